//! The overview.

use jobyard_model::Status;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::words::StatusWord;
use super::{NodeResources, Time};

/// Bounded counts of jobs, and what the fleet offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Summary {
    /// One for each status; ended ones within the last 24 hours.
    pub jobs: Vec<StatusCount>,
    /// Since when the job that waits longest has waited.
    pub oldest_waiting_time: Option<Time>,
    /// All nodes.
    pub nodes: u32,
    /// Nodes heard of lately.
    pub nodes_heard: u32,
    /// What heard nodes offer.
    pub capacity: NodeResources,
    /// What attempts reserve.
    pub reserved: NodeResources,
    /// The datastore's clock.
    pub now: Time,
    /// The version of the server that answers.
    pub version: String,
    /// What everything is kept in: `postgres` or `sqlite`.
    pub datastore: String,
}

/// How many jobs have a status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatusCount {
    /// The status.
    #[schema(value_type = StatusWord)]
    pub status: Status,
    /// Counting stops at a bound.
    pub count: u64,
    /// There are more than `count`.
    pub capped: bool,
}
