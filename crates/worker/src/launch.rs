//! A launch as it came over the wire, checked; and what of it the next worker must know.

use std::ffi::OsString;
use std::path::PathBuf;

use bytes::Bytes;
use jobyard_api::grpc::convert::{self, ConvertError};
use jobyard_api::proto::{self, ObjectUse};
use jobyard_handoff::{AttemptIdentity, RestartPlan, Times};
use jobyard_model::{ArtifactHash, JobId, LeaseId, Resources};

use crate::inputs::Wanted;
use crate::settings::WorkerTimes;

/// Which attempt, and its fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct AttemptRef {
    pub(crate) job_id: JobId,
    pub(crate) number: u32,
    pub(crate) lease_id: LeaseId,
}

impl AttemptRef {
    pub(crate) fn identity(&self) -> AttemptIdentity {
        AttemptIdentity {
            job_id: self.job_id.to_string(),
            attempt: self.number,
            lease_id: self.lease_id.to_string(),
        }
    }

    /// `None`: no plan of ours says this.
    pub(crate) fn of(identity: &AttemptIdentity) -> Option<Self> {
        Some(Self {
            job_id: identity.job_id.parse().ok()?,
            number: identity.attempt,
            lease_id: identity.lease_id.parse().ok()?,
        })
    }
}

/// What to execute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Executable {
    /// To be fetched into the cache.
    Artifact(ArtifactHash),
    /// An object of S3, to be staged.
    Object(String),
    /// A file of the node.
    File(PathBuf),
    /// `command[0]` names what the node has.
    Command,
}

/// All that an attempt wants.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) attempt: AttemptRef,
    pub(crate) executable: Executable,
    /// To be staged.
    pub(crate) input: Option<Wanted>,
    /// Its outputs go to S3, not into the artifact store.
    pub(crate) outputs_in_s3: bool,
    pub(crate) command: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// It has secrets, which are fetched when all else is there.
    pub(crate) has_secrets: bool,
    pub(crate) resources: Resources,
    pub(crate) cpu_limit_milli: Option<u64>,
    pub(crate) times: Times,
    pub(crate) exclusive: bool,
    /// Of a service.
    pub(crate) restart: Option<RestartPlan>,
}

/// What holds for all launches of one call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeaseTimes {
    pub(crate) lease_ms: u64,
    pub(crate) heartbeat_ms: u64,
}

impl Order {
    pub(crate) fn read(
        launch: proto::Launch,
        lease: LeaseTimes,
        worker: &WorkerTimes,
    ) -> Result<Self, ConvertError> {
        convert::runtime(&launch.runtime)?;
        let executable = if !launch.artifact.is_empty() {
            Executable::Artifact(convert::artifact_hash(&launch.artifact)?)
        } else if !launch.file.is_empty() {
            Executable::File(launch.file.into())
        } else if !launch.executable_url.is_empty() {
            Executable::Object(launch.executable_url)
        } else {
            Executable::Command
        };
        let input = if !launch.input.is_empty() {
            Some(Wanted::Stored(convert::artifact_hash(&launch.input)?))
        } else if !launch.input_url.is_empty() {
            Some(Wanted::Objects { url: launch.input_url, used_as: ObjectUse::Input })
        } else {
            None
        };
        let mut environment: Vec<_> =
            launch.env.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        // The same job looks the same at each attempt.
        environment.sort();
        let defaults = Times::default();
        let or_default = |set: u64, default: u64| if set == 0 { default } else { set };
        let lease_ms = or_default(lease.lease_ms, defaults.lease_ms);
        Ok(Self {
            attempt: AttemptRef {
                job_id: convert::job_id(&launch.job_id)?,
                number: launch.attempt,
                lease_id: convert::lease_id(&launch.lease_id)?,
            },
            executable,
            input,
            outputs_in_s3: !launch.output_url.is_empty(),
            command: launch.command.into_iter().map(Into::into).collect(),
            environment,
            has_secrets: launch.secrets,
            resources: Resources { cpu_milli: launch.cpu_milli, memory_bytes: launch.memory_bytes },
            cpu_limit_milli: (launch.cpu_limit_milli != 0).then_some(launch.cpu_limit_milli),
            times: Times {
                timeout_ms: launch.timeout_ms,
                stop_grace_ms: launch.stop_grace_ms,
                heartbeat_ms: or_default(lease.heartbeat_ms, defaults.heartbeat_ms),
                lease_ms,
                // The margin must leave room for heartbeats when leases are short.
                lease_margin_ms: worker.lease_margin_ms.min(lease_ms / 6),
                orphan_limit_ms: worker.orphan_limit_ms,
            },
            exclusive: launch.exclusive,
            restart: launch.restarts.map(restart_plan),
        })
    }

    /// For the attempt directory: what the plan doesn't say and the next worker needs. No command and no environment:
    /// those may be secret and are the sidecar's.
    pub(crate) fn record(&self) -> Vec<u8> {
        let artifact = match self.executable {
            Executable::Artifact(hash) => Bytes::copy_from_slice(&hash.0),
            Executable::Object(_) | Executable::File(_) | Executable::Command => Bytes::new(),
        };
        let launch = proto::Launch {
            artifact,
            output_url: if self.outputs_in_s3 { "s3://".to_owned() } else { String::new() },
            cpu_milli: self.resources.cpu_milli,
            memory_bytes: self.resources.memory_bytes,
            ..proto::Launch::default()
        };
        prost::Message::encode_to_vec(&launch)
    }
}

fn restart_plan(restarts: proto::Restarts) -> RestartPlan {
    let usual = RestartPlan::default();
    let backoff_ms = Some(restarts.backoff_ms).filter(|backoff_ms| *backoff_ms != 0);
    RestartPlan {
        first_delay_ms: backoff_ms.unwrap_or(usual.first_delay_ms),
        final_exit_codes: restarts.final_exit_codes,
        ..usual
    }
}

/// What a worker kept for the next one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) resources: Resources,
    pub(crate) artifact: Option<ArtifactHash>,
    pub(crate) outputs_in_s3: bool,
}

impl Kept {
    /// Nothing when the record is not one: the attempt goes on all the same.
    pub(crate) fn read(record: &[u8]) -> Self {
        let launch: proto::Launch = prost::Message::decode(record).unwrap_or_default();
        Self {
            resources: Resources { cpu_milli: launch.cpu_milli, memory_bytes: launch.memory_bytes },
            artifact: convert::artifact_hash(&launch.artifact).ok(),
            outputs_in_s3: !launch.output_url.is_empty(),
        }
    }
}
