//! What workers report, and what they are answered.

use jobyard_model::{AttemptEnd, Intent, JobId, LeaseId, ServiceRun};

/// One thing a worker says about one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportItem {
    /// Which job.
    pub job_id: JobId,
    /// The attempt's number.
    pub attempt: u32,
    /// The fence.
    pub lease_id: LeaseId,
    /// What.
    pub report: Report,
}

/// What happened to the attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// The worker took it.
    Accepted,
    /// The task process exists. Implies `Accepted`.
    Started,
    /// The task process ended, and its outputs are going up. Implies `Started`, and gives back what it reserved.
    Finishing,
    /// It lives.
    Renewed,
    /// Of a service: its task process left, or was started again. Renews the lease.
    Service(ServiceRun),
    /// It is over.
    Ended(AttemptEnd),
}

/// What became of one item. All but `Later` let the worker forget it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It was carried out.
    Accepted,
    /// The same lease said the same before.
    Already,
    /// The lease is not the live one: stop what still runs.
    Stale,
    /// There is no such job or attempt: stop what still runs.
    Unknown,
    /// It could not be carried out now: say it again.
    Later,
}

/// The answer to one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// What became of it.
    pub verdict: Verdict,
    /// What is wanted of the attempt.
    pub intent: Intent,
}

/// What a look at silent attempts did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SilenceReport {
    /// Attempts given up.
    pub expired: u64,
    /// Why silence was not judged: `report_clock` is stale, or `reap_not_before` lies ahead.
    pub paused: Option<&'static str>,
    /// Attempts whose lease has run out and that were not given up.
    pub held_back: u64,
}
