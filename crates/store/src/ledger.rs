//! What becomes of loaded rows: decided here once, for both dialects.
//!
//! A dialect loads the rows that a call speaks of under its lock, hands them over ([`Ledger::load`]), lets the call's
//! events or reports be folded over them in order, and carries out the [`Writes`] that come of it, each guarded by
//! what was read and counted. Owns no SQL, reads no clock, draws no chance.
//!
//! Invariant: what is written is the difference between the rows as loaded and the jobs as they became, so that a
//! refused event, a repeated report or a pair that cancels out writes nothing.

mod fold;
mod reports;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use jobyard_model::{ArtifactHash, JobId, LeaseId, LeaseSettings, NodeId, SessionId, Timestamp};

use crate::rows::{AttemptRow, EndRow, EventRow, HistoryRow, JobRow};
use crate::wake::Wakes;

pub(crate) use fold::{Denied, Ledger};

/// Who events of reports are by.
pub(crate) const WORKER: &str = "worker";
/// Who events of placement, silence and due times are by.
pub(crate) const INFORMER: &str = "informer";

/// What a call works with besides the rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    /// The datastore's clock, read once a call.
    pub(crate) now: Timestamp,
    /// How long leases last.
    pub(crate) leases: LeaseSettings,
}

/// What history says of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PastAttempt {
    /// Its fence.
    pub(crate) lease_id: LeaseId,
    /// Of the end that was accepted.
    pub(crate) fingerprint: i64,
}

/// Ended attempts by job and number.
pub(crate) type Past = HashMap<(JobId, u32), PastAttempt>;

/// A hot row before and after: updated `WHERE id, status, attempt, lease_id` are those of `before`; one row, or the
/// call is rolled back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobUpdate {
    pub(crate) before: JobRow,
    pub(crate) after: JobRow,
}

/// What to do about a node's row of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct NodeMark {
    /// A task process started: `bad_in_row` begins at 0 again (write only where it isn't).
    pub(crate) reset: bool,
    /// Then this many attempts failed to launch or were never accepted. At
    /// [`jobyard_model::node::SUSPEND_AFTER`] the node is suspended.
    pub(crate) bad: u32,
}

/// All that a call changes. Written in this order, in the call's transaction.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Writes {
    /// `job_live`: changed rows.
    pub(crate) updated_jobs: Vec<JobUpdate>,
    /// `job_live`: jobs that are over; deleted by id, status, attempt and lease as read.
    pub(crate) deleted_jobs: Vec<JobRow>,
    /// `job_live`: jobs of a new round, or new altogether.
    pub(crate) inserted_jobs: Vec<JobRow>,
    /// `attempt_live`: phase, times and lease of live attempts; by job, number and lease.
    pub(crate) updated_attempts: Vec<AttemptRow>,
    /// `attempt_live`: attempts that are over; deleted by job, number and lease.
    pub(crate) deleted_attempts: Vec<AttemptRow>,
    /// `attempt_live`: claims.
    pub(crate) inserted_attempts: Vec<AttemptRow>,
    /// `attempt`: the history.
    pub(crate) history: Vec<HistoryRow>,
    /// `job_artifact`: the outputs of attempts that ended.
    pub(crate) outputs: Vec<(ArtifactHash, JobId)>,
    /// `job_end`: rounds (job, round) that are no longer `current`. Before the inserts into `job_end`.
    pub(crate) reopened: Vec<(JobId, i32)>,
    /// `job_end`: rounds that are over, inserted as `current`.
    pub(crate) ends: Vec<EndRow>,
    /// `event`, in order.
    pub(crate) events: Vec<EventRow>,
    /// `node.bad_in_row` and `node.suspended`, by the session that the attempts were placed for: what was meant for a
    /// worker that is gone says nothing about the one that came after it.
    pub(crate) nodes: BTreeMap<(NodeId, SessionId), NodeMark>,
    /// What to wake after the commit.
    pub(crate) wakes: Wakes,
}

impl Writes {
    /// Whether nothing changes.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
