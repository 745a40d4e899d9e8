//! What submitters and controllers of jobs send.

use std::collections::BTreeMap;
use std::fmt;

use jobyard_model::{IoClass, JobId, JobKind, Runtime};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::words::{IoClassWord, JobKindWord, RuntimeWord};
use super::{Bytes, Cores, Seconds, Time};

/// A job to be submitted. What is left out gets its default; unknown and doubled fields are refused.
///
/// The order of the fields is part of the contract: the idempotency hash is taken over this type's JSON (see
/// [`crate::submit::ParsedJob::hash`]), so new fields go to the end and are skipped when absent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobSubmit {
    /// The team that is accounted for; the token's first owner when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<String>,
    /// For people; the last path part of the program when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 200)]
    pub name: Option<String>,
    /// `task` ends by itself, `service` is meant to stay up; `task` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<JobKindWord>)]
    pub kind: Option<JobKind>,
    /// `sha256:<hex>` in the artifact store; `s3://<bucket>/<key>` or `file:///…` where the server's settings allow it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")]
    pub binary_url: Option<String>,
    /// The program and its arguments; with `binary_url` the arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The environment of the task process, besides `PATH` and `JOBYARD_*`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Not before this instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_at: Option<Time>,
    /// Expire when no attempt was `running` this long after creation or `run_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_within: Option<Seconds>,
    /// How many retries its own failures may cost; 3 when left out. Without effect on a service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 1000)]
    pub max_retries: Option<u32>,
    /// Delay before the first retry, and before the first restart of a service, at most 60 s; doubles with each; 1 s when
    /// left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Seconds>,
    /// Exit codes (1–255) after which another attempt, or a restart of a service, is pointless.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub no_retry_exit_codes: Vec<i32>,
    /// The most time an attempt's task process gets; no limit when left out. Refused for a service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Seconds>,
    /// Between TERM and KILL; 10 s when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_grace: Option<Seconds>,
    /// What placement reserves; 0.1 cores and 128 MiB when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesSubmit>,
    /// Where its time goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<IoClassWord>)]
    pub io_class: Option<IoClass>,
    /// How its task process is isolated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<RuntimeWord>)]
    pub runtime: Option<Runtime>,
    /// 0–100, more is more urgent; when left out 50 for a task, 75 for a service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 100)]
    pub priority: Option<u8>,
    /// Whether more urgent jobs may take its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemptible: Option<bool>,
    /// At most one live attempt, ever; needs a `stop_grace` of at most a third of the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclusive: Option<bool>,
    /// The pool to wait in; `default` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// What its node must be labelled with.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_labels: BTreeMap<String, String>,
    /// For people and filters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What made it, when that was no person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<JobOrigin>,
    /// The same key with the same job gives the same job again; with another job it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 200)]
    pub idempotency_key: Option<String>,
    /// `sha256:<hex>`: a tree, staged read-only as the folder `JOBYARD_INPUT`, or an artifact, which lies in that folder
    /// as `artifact`. Where the server's settings allow it `s3://<bucket>/<key>/`: all objects below that, or without
    /// the last `/` one object, under its own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")]
    pub input_path: Option<String>,
    /// `s3://<bucket>/<key>` where the server's settings allow it: what it leaves in `JOBYARD_OUTPUT` goes there, below
    /// `<job>/<attempt>/`, `_manifest.json` last, instead of into the artifact store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "s3://results/search")]
    pub output_path: Option<String>,
    /// Secrets for the environment of the task process, beside `env`. Kept encrypted, and handed to the task alone: no
    /// answer, event or log has them. With the idempotency key other secrets are another job.
    #[serde(default, skip_serializing_if = "SecretEnv::is_empty")]
    #[schema(value_type = BTreeMap<String, String>, write_only)]
    pub secret_env: SecretEnv,
}

/// Names and secret values. Shows the names alone where it is printed.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretEnv(pub BTreeMap<String, String>);

impl SecretEnv {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for SecretEnv {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

/// What a job asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourcesSubmit {
    /// Cores: a weight between neighbours, not a cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cores>,
    /// Bytes, or a text such as `256MiB`; enforced where the node's containment can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// A hard cap in cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_limit: Option<Cores>,
}

/// What made a job, when that was no person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobOrigin {
    /// Such as `schedule`.
    pub kind: String,
    /// Which one.
    pub id: String,
    /// Which occurrence or step of it.
    pub key: String,
}

/// Up to 10,000 jobs, accepted all or none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchSubmit {
    /// The jobs.
    pub jobs: Vec<JobSubmit>,
}

/// What became of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BatchAccepted {
    /// One a job, in order.
    pub items: Vec<BatchItem>,
    /// What was accepted but looks wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// One job of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BatchItem {
    /// The job's id; the first one's when the key was used before.
    #[schema(value_type = String, format = "uuid")]
    pub id: JobId,
    /// `false`: the key was used before.
    pub created: bool,
}

/// A retry by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryRequest {
    /// The newest attempt that was seen. When there is a newer one, nothing is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_attempt: Option<u32>,
}
