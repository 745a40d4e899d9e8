//! One try at running a job on one node.

use jobyard_model::{EndedBy, Intent, NodeId, Outcome, Phase};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::words::{EndedByWord, IntentWord, OutcomeWord, PhaseWord};
use super::{Seconds, ServiceExit, Time};

/// One try at running a job on one node. Its lease is never shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Attempt {
    /// From 1, never reused within a job.
    pub number: u32,
    /// The round it belongs to.
    pub round: u32,
    /// Where.
    #[schema(value_type = String, format = "uuid")]
    pub node_id: NodeId,
    /// The node's name; empty when the node is no longer known.
    pub node_name: String,
    /// Where it is; absent once it ended.
    #[schema(value_type = Option<PhaseWord>)]
    pub phase: Option<Phase>,
    /// What is wanted of it.
    #[schema(value_type = IntentWord)]
    pub intent: Intent,
    /// How it ended.
    #[schema(value_type = Option<OutcomeWord>)]
    pub outcome: Option<Outcome>,
    /// What made its task process end; absent without a witness.
    #[schema(value_type = Option<EndedByWord>)]
    pub ended_by: Option<EndedBy>,
    /// The code its task process left with.
    pub exit_code: Option<i32>,
    /// The signal its task process died of.
    pub signal: Option<i32>,
    /// Why it ended, in plain words; empty when there is nothing to say.
    pub message: String,
    /// When it was claimed.
    pub placed_time: Time,
    /// When the worker took it.
    pub accepted_time: Option<Time>,
    /// When its task process was reported.
    pub started_time: Option<Time>,
    /// When its end was accepted.
    pub finished_time: Option<Time>,
    /// When its lease runs out unless it is renewed; absent once it ended.
    pub lease_until: Option<Time>,
    /// What it used; absent while it runs and when nobody measured.
    pub usage: Option<Usage>,
    /// Of a service: how often its task process was started again.
    #[serde(default)]
    pub restarts: u32,
    /// Of a service: how its task process left last, before the attempt's end.
    pub last_exit: Option<ServiceExit>,
    /// Of a service: when its task process is started again, by the node's clock; absent while it runs.
    pub next_start: Option<Time>,
}

/// What an attempt used; 0 where the node can't measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// Between start and end of the task process, by a monotonic clock.
    pub wall: Seconds,
    /// Processor time in user mode.
    pub cpu_user: Seconds,
    /// Processor time in the kernel.
    pub cpu_system: Seconds,
    /// The most memory at one time.
    pub peak_memory_bytes: u64,
    /// What enforced the limits: `cgroup-v1`, `cgroup-v2`, `none`.
    pub limits: String,
}
