//! A job as read.

use std::collections::BTreeMap;

use jobyard_model::{EndedBy, Intent, IoClass, JobId, JobKind, NodeId, Outcome, Runtime, Status};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::words::{EndedByWord, IntentWord, IoClassWord, JobKindWord, OutcomeWord, RuntimeWord, StatusWord};
use super::{Bytes, Cores, JobOrigin, Seconds, StatusCount, Time, Usage};

/// A job: what was submitted, where it is, what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// UUIDv7.
    #[schema(value_type = String, format = "uuid")]
    pub id: JobId,
    /// The team that is accounted for.
    pub owner_id: String,
    /// Who submitted it.
    pub submitted_by: String,
    /// For people; need not be unique.
    pub name: String,
    /// Task or service.
    #[schema(value_type = JobKindWord)]
    pub kind: JobKind,
    /// Where it is.
    #[schema(value_type = StatusWord)]
    pub status: Status,
    /// Beside the status: the phase while it runs (`restarting` while a service waits for its next start), why it waits
    /// or ended; empty when there is nothing to add.
    pub reason: String,
    /// The executable; absent when `command[0]` names one that the node has.
    pub binary_url: Option<String>,
    /// The program and its arguments, or with `binary_url` the arguments.
    pub command: Vec<String>,
    /// The environment of its task process; absent for those who don't act for its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
    /// What is staged for each attempt.
    #[serde(default)]
    pub input_path: Option<String>,
    /// Where in S3 its outputs go; absent when they go into the artifact store.
    #[serde(default)]
    pub output_path: Option<String>,
    /// When it was accepted.
    pub created_time: Time,
    /// When the first attempt of the newest round was `running`.
    pub started_time: Option<Time>,
    /// When the newest round ended.
    pub finished_time: Option<Time>,
    /// Not before this instant.
    pub run_at: Option<Time>,
    /// Expires when no attempt was `running` this long after creation or `run_at`.
    pub start_within: Option<Seconds>,
    /// Retries that its own failures cost in this round.
    pub retry_count: u32,
    /// How many they may cost.
    pub max_retries: u32,
    /// Delay before the first retry; doubles with each.
    pub backoff: Seconds,
    /// Exit codes after which another attempt is pointless.
    pub no_retry_exit_codes: Vec<i32>,
    /// Retries that the platform's failures cost in this round.
    pub platform_failures: u32,
    /// How often it had to leave a node in this round.
    pub evictions: u32,
    /// From 1; one more with each retry by hand.
    pub round: u32,
    /// The most time an attempt's task process gets.
    pub timeout: Option<Seconds>,
    /// Between TERM and KILL.
    pub stop_grace: Seconds,
    /// What placement reserves.
    pub resources: JobResources,
    /// Where its time goes.
    #[schema(value_type = IoClassWord)]
    pub io_class: IoClass,
    /// How its task process is isolated.
    #[schema(value_type = RuntimeWord)]
    pub runtime: Runtime,
    /// 0–100, more is more urgent.
    pub priority: u8,
    /// Whether more urgent jobs may take its place.
    pub preemptible: bool,
    /// At most one live attempt, ever.
    pub exclusive: bool,
    /// The pool it waits in.
    pub pool: String,
    /// What its node must be labelled with.
    pub node_labels: BTreeMap<String, String>,
    /// For people and filters.
    pub labels: BTreeMap<String, String>,
    /// What made it, when that was no person.
    pub origin: Option<JobOrigin>,
    /// The key it came with.
    pub idempotency_key: Option<String>,
    /// What is wanted of it.
    #[schema(value_type = IntentWord)]
    pub intent: Intent,
    /// Of a service: how often its task process was started again in the newest attempt.
    #[serde(default)]
    pub restarts: u32,
    /// Of a service: how its task process left last in the newest attempt; absent while it never did.
    pub last_exit: Option<ServiceExit>,
    /// Of a service: when its task process is started again, by the node's clock; absent while it runs.
    pub next_start: Option<Time>,
    /// How the newest ended attempt ended.
    pub result: Option<JobResult>,
    /// The newest attempt's number; absent before the first.
    pub attempt: Option<u32>,
    /// What was accepted but looks wrong. Only in the answer to a submission.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A job as a line of a list: nothing of what was submitted to be executed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobRow {
    /// UUIDv7.
    #[schema(value_type = String, format = "uuid")]
    pub id: JobId,
    /// The team that is accounted for.
    pub owner_id: String,
    /// For people; need not be unique.
    pub name: String,
    /// Task or service.
    #[schema(value_type = JobKindWord)]
    pub kind: JobKind,
    /// Where it is.
    #[schema(value_type = StatusWord)]
    pub status: Status,
    /// Beside the status, as in a job.
    pub reason: String,
    /// Who submitted it.
    pub submitted_by: String,
    /// The pool it waits in.
    pub pool: String,
    /// 0–100, more is more urgent.
    pub priority: u8,
    /// For people and filters.
    pub labels: BTreeMap<String, String>,
    /// What is wanted of it.
    #[schema(value_type = IntentWord)]
    pub intent: Intent,
    /// When it was accepted.
    pub created_time: Time,
    /// When the first attempt of the newest round was `running`.
    pub started_time: Option<Time>,
    /// When the newest round ended.
    pub finished_time: Option<Time>,
    /// Since when it waits for a place; only while it does, and in the future while it backs off.
    pub waiting_since_time: Option<Time>,
    /// Retries that its own failures cost in this round.
    pub retry_count: u32,
    /// How many they may cost.
    pub max_retries: u32,
    /// From 1; one more with each retry by hand.
    pub round: u32,
    /// The newest attempt's number; absent before the first.
    pub attempt: Option<u32>,
    /// The node of the newest attempt.
    #[schema(value_type = Option<String>, format = "uuid")]
    pub node_id: Option<NodeId>,
    /// That node's name; absent when it is not known any more.
    pub node_name: Option<String>,
    /// How the newest ended attempt ended.
    #[schema(value_type = Option<OutcomeWord>)]
    pub outcome: Option<Outcome>,
    /// The code its task process left with.
    pub exit_code: Option<i32>,
    /// The signal its task process died of.
    pub signal: Option<i32>,
    /// Why it ended, in plain words; at most 200 characters, empty when there is nothing to say.
    pub message: String,
}

/// How many jobs a filter passes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobCount {
    /// At most 10,000.
    pub count: u64,
    /// There are more than 10,000.
    pub capped: bool,
    /// `false`: only a bounded number of the newest jobs was looked at, or `capped`; there may be more.
    pub complete: bool,
    /// Those that were counted, by status; one for each status.
    pub by_status: Vec<StatusCount>,
}

/// Values that a condition of a filter can have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FilterValues {
    /// In the order of their bytes.
    pub items: Vec<String>,
    /// There are more that begin with the prefix.
    pub more: bool,
}

/// What placement reserves for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobResources {
    /// Cores: a weight between neighbours, not a cap.
    pub cpu: Cores,
    /// Bytes; enforced where the node's containment can.
    pub memory: Bytes,
    /// A hard cap in cores.
    pub cpu_limit: Option<Cores>,
}

/// How a service's task process left, before it was started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServiceExit {
    /// The code it left with.
    pub exit_code: Option<i32>,
    /// The signal it died of.
    pub signal: Option<i32>,
    /// `memory` when it was its memory limit, else `itself`.
    #[schema(value_type = EndedByWord)]
    pub ended_by: EndedBy,
    /// When, by the node's clock.
    pub time: Time,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobResult {
    /// The attempt's number.
    pub attempt: u32,
    /// How it ended.
    #[schema(value_type = OutcomeWord)]
    pub outcome: Outcome,
    /// The code its task process left with.
    pub exit_code: Option<i32>,
    /// The signal its task process died of.
    pub signal: Option<i32>,
    /// Why, in plain words; empty when there is nothing to say.
    pub message: String,
    /// What it left in `JOBYARD_OUTPUT`: `sha256:<hex>`, a tree, or with `output_path` the folder in S3,
    /// `<output_path>/<job>/<attempt>/`. Absent when it left nothing, did not succeed, and for those who don't act for its
    /// owner.
    #[serde(default)]
    pub output: Option<String>,
    /// What it used; absent when nobody measured.
    pub usage: Option<Usage>,
}
