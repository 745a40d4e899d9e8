//! The overview.

use std::collections::BTreeMap;

use jobyard_model::{JobId, Outcome, Status};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::words::{OutcomeWord, StatusWord};
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
    /// The same of each pool that has nodes, by name.
    #[serde(default)]
    pub pools: Vec<PoolSummary>,
    /// How the roles fare.
    #[serde(default)]
    pub health: Health,
    /// The datastore's clock.
    pub now: Time,
    /// The version of the server that answers.
    pub version: String,
    /// What everything is kept in: `postgres` or `sqlite`.
    pub datastore: String,
}

/// What a pool offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolSummary {
    /// Its name.
    pub name: String,
    /// All its nodes.
    pub nodes: u32,
    /// Nodes heard of lately.
    pub nodes_heard: u32,
    /// What heard nodes offer.
    pub capacity: NodeResources,
    /// What attempts reserve.
    pub reserved: NodeResources,
}

/// How the roles fare, by the datastore's clock.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// When a server with an open report door last said that it lives, which each does every 5 s; absent when none ever did.
    pub report_door_time: Option<Time>,
    /// When an informer last counted what happened, which one does at least every 15 s; absent when none ever did.
    pub informer_time: Option<Time>,
    /// How long the datastore took to answer, in milliseconds.
    pub reading_ms: u64,
}

/// What fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Failing {
    /// At most 50, the most frequent first.
    pub items: Vec<FailingGroup>,
    /// `false`: more failed than is looked at, or in more ways.
    pub complete: bool,
}

/// Jobs that failed for good in the same way and were not retried since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailingGroup {
    /// Their name.
    pub name: String,
    /// Their owner.
    pub owner_id: String,
    /// Why they are over.
    pub reason: String,
    /// How their last attempt ended; absent when they had none.
    #[schema(value_type = Option<OutcomeWord>)]
    pub outcome: Option<Outcome>,
    /// The code it left with.
    pub exit_code: Option<i32>,
    /// The signal it died of.
    pub signal: Option<i32>,
    /// How many there are.
    pub count: u64,
    /// The newest of them.
    #[schema(value_type = String, format = "uuid")]
    pub last_job_id: JobId,
    /// When that one failed.
    pub last_time: Time,
    /// The filter that finds them, as a query string.
    pub filter: String,
}

/// A job that waits for a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WaitingJob {
    /// Which.
    #[schema(value_type = String, format = "uuid")]
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// Its owner.
    pub owner_id: String,
    /// The pool it waits in.
    pub pool: String,
    /// Since when.
    pub waiting_since_time: Time,
    /// Why, as in `GET /api/v1/jobs/{id}/why`.
    pub reason: String,
    /// The same in plain words.
    pub summary: String,
    /// What would change it; empty when there is nothing to do.
    pub remedy: String,
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

/// What happened by the minute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Minutes {
    /// In order, none left out.
    pub items: Vec<MinuteSpan>,
    /// Up to when everything is counted; later spans are counted in part, or not yet.
    pub complete_until_time: Time,
}

/// What happened in a span of minutes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MinuteSpan {
    /// Its beginning.
    pub time: Time,
    /// Jobs that were accepted.
    pub submitted: u64,
    /// Attempts whose task process began.
    pub started: u64,
    /// Jobs that came to an end, by their status then: `success`, `final_failed`, `cancelled`.
    pub ended: BTreeMap<String, u64>,
    /// Attempts that ended, by their outcome; those that are 0 are left out.
    pub outcomes: BTreeMap<String, u64>,
    /// How long jobs had waited when they were placed.
    pub waits: WaitTimes,
}

/// How long jobs had waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WaitTimes {
    /// How many were placed.
    pub count: u64,
    /// Half of them had waited at most so many milliseconds; up to 42 % too much. Absent when none was placed.
    pub p50_ms: Option<u64>,
    /// The same of 95 in a hundred.
    pub p95_ms: Option<u64>,
}
