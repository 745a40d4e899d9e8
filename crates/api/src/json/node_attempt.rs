//! What runs on a node, and where it would go.

use jobyard_model::{Intent, JobId, JobKind, NodeId, Phase};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::words::{IntentWord, JobKindWord, PhaseWord};
use super::{NodeResources, Time};

/// An un-ended attempt on a node, and what one wants to know of its job there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeAttempt {
    /// Whose attempt it is.
    #[schema(value_type = String, format = "uuid")]
    pub job_id: JobId,
    /// The job's name.
    pub job_name: String,
    /// The team that is accounted for.
    pub owner_id: String,
    /// Whether it is meant to end.
    #[schema(value_type = JobKindWord)]
    pub kind: JobKind,
    /// The attempt's number.
    pub number: u32,
    /// Where it is.
    #[schema(value_type = PhaseWord)]
    pub phase: Phase,
    /// What is wanted of it.
    #[schema(value_type = IntentWord)]
    pub intent: Intent,
    /// 0–100, more is more urgent.
    pub priority: u8,
    /// Never two at a time.
    pub exclusive: bool,
    /// What it reserves.
    pub resources: NodeResources,
    /// When it was claimed.
    pub placed_time: Time,
    /// When its task process was reported.
    pub started_time: Option<Time>,
    /// When its lease runs out unless it is renewed.
    pub lease_until: Time,
}

/// What a drain would do, were it begun now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DrainPreview {
    /// How many un-ended attempts the node has.
    pub attempts: u32,
    /// Those that would have to leave; the others are being stopped anyway.
    pub moves: Vec<DrainMove>,
    /// How many of these would have to wait for room.
    pub would_wait: u32,
}

/// An attempt that would have to leave, and where its job would be placed next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DrainMove {
    /// Which.
    #[serde(flatten)]
    pub attempt: NodeAttempt,
    /// The node with room for it now; absent when it would wait.
    #[schema(value_type = Option<String>, format = "uuid")]
    pub to_node_id: Option<NodeId>,
    /// That node's name.
    pub to_node_name: Option<String>,
}
