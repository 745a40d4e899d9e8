//! Why a job isn't running yet.

use jobyard_model::{NodeId, Status};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Time;
use super::words::StatusWord;

/// Why a job isn't running yet, and what would change that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Why {
    /// Where it is.
    #[schema(value_type = StatusWord)]
    pub status: Status,
    /// Stable; which of the gates holds it, or `running`, or how it ended.
    pub reason: String,
    /// In plain words.
    pub summary: String,
    /// What would change it; empty when nothing has to.
    pub remedy: String,
    /// What a job passes before it runs, in order, and where this one stands.
    pub gates: Vec<WhyGate>,
    /// What stands in the way on each node of its pool; empty while another gate holds it.
    pub nodes: Vec<WhyNode>,
}

/// One thing a job passes before it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WhyGate {
    /// `artifact`, `run_at`, `backoff`, `placement`.
    pub gate: String,
    /// Whether the job is past it.
    pub open: bool,
    /// In plain words.
    pub detail: String,
    /// When it opens by itself.
    pub opens_time: Option<Time>,
}

/// One node, as the job sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WhyNode {
    /// Which.
    #[schema(value_type = String, format = "uuid")]
    pub node_id: NodeId,
    /// The host name.
    pub name: String,
    /// It fits here now.
    pub fits: bool,
    /// What stands in the way, in plain words; empty when it fits.
    pub obstacle: String,
    /// The obstacle will not go away by itself.
    pub lasting: bool,
}
