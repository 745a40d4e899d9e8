//! What can happen to a job, and how it says that it won't.

use thiserror::Error;

use crate::{AttemptEnd, Intent, LeaseId, NodeId, ServiceRun, SessionId, Status, Timestamp};

/// What can happen to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEvent {
    /// The missing executable was uploaded.
    ArtifactArrived,
    /// `run_at` or the delay of a retry is over.
    Due,
    /// `start_within` is over.
    StartDeadlinePassed,
    /// An informer chose a node.
    Claim {
        /// New and random.
        lease_id: LeaseId,
        /// Where.
        node_id: NodeId,
        /// The node's session.
        session: SessionId,
        /// When the claim lease runs out.
        lease_until: Timestamp,
    },
    /// The worker took the attempt.
    Accept {
        /// The fence.
        lease_id: LeaseId,
        /// The full lease's end.
        lease_until: Timestamp,
    },
    /// The task process exists.
    Start {
        /// The fence.
        lease_id: LeaseId,
        /// The renewed lease's end.
        lease_until: Timestamp,
    },
    /// The task process ended, and its outputs are going up.
    Finish {
        /// The fence.
        lease_id: LeaseId,
        /// The renewed lease's end.
        lease_until: Timestamp,
    },
    /// A heartbeat.
    Renew {
        /// The fence.
        lease_id: LeaseId,
        /// The renewed lease's end.
        lease_until: Timestamp,
    },
    /// A service's task process left and waits for its next start, or was started again.
    Restart {
        /// The fence.
        lease_id: LeaseId,
        /// The renewed lease's end.
        lease_until: Timestamp,
        /// How it stands now.
        run: ServiceRun,
    },
    /// The attempt is over.
    End {
        /// The fence.
        lease_id: LeaseId,
        /// How it came about.
        end: AttemptEnd,
    },
    /// Somebody wants something else of the job.
    Raise(Intent),
    /// Somebody wants a new round.
    RetryByHand {
        /// The newest attempt they saw.
        after_attempt: Option<u32>,
    },
}

/// Why an event changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusalKind {
    /// The event speaks of a lease that is not the live one.
    StaleLease,
    /// What is wanted is already so, or more is.
    AlreadySo,
    /// A newer attempt exists than the one named.
    NewerAttempt,
    /// Nothing is due yet.
    NotDue,
    /// The event is for services, and this is a task.
    WrongKind,
    /// The event makes no sense in this status.
    WrongStatus,
}

/// An event that changes nothing, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
#[error("a job in status `{status}` refuses the event `{event}`: {kind:?}")]
pub struct Refusal {
    /// Where the job was and stays.
    pub status: Status,
    /// The event's name.
    pub event: &'static str,
    /// Why.
    pub kind: RefusalKind,
}

impl JobEvent {
    /// The event's name in refusals and in docs/job-states.md.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::ArtifactArrived => "artifact_arrived",
            Self::Due => "due",
            Self::StartDeadlinePassed => "start_deadline_passed",
            Self::Claim { .. } => "claim",
            Self::Accept { .. } => "accept",
            Self::Start { .. } => "start",
            Self::Finish { .. } => "finish",
            Self::Renew { .. } => "renew",
            Self::Restart { .. } => "restart",
            Self::End { .. } => "end",
            Self::Raise(Intent::Run) => "run",
            Self::Raise(Intent::Evict) => "evict",
            Self::Raise(Intent::Stop) => "stop",
            Self::Raise(Intent::Cancel) => "cancel",
            Self::RetryByHand { .. } => "retry_by_hand",
        }
    }
}
