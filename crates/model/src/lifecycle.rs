//! The life of a job: every transition of its status, in one place.
//!
//! A [`Job`] here is what the hot row and its live attempt hold: no payload, no history. [`Job::apply`] consumes it
//! and gives back the next one with what has to be written besides, or a [`Refusal`]. Whoever stores the answer
//! writes job, ended attempt and changes in one transaction, guarded by the status and lease it read.
//!
//! Invariant: an event that speaks of an attempt names its lease, and is refused when that lease is not the live one.

mod event;

pub use event::{JobEvent, Refusal, RefusalKind};

use crate::attempt::name_outcome;
use crate::retry::{self, Accounts, Budgets, Ended, FailReason, NextStep};
use crate::settings::{EXCLUSIVE_PAUSE_MS, MISSING_ARTIFACT_MS};
use crate::{
    AttemptEnd, Intent, JobId, JobKind, LeaseId, LiveAttempt, Moment, NodeId, Outcome, Phase, ServiceRun,
    SessionId, Status, Timestamp,
};

/// Stands in events and in a job's `reason` while a service's task process waits for its next start.
pub const RESTARTING: &str = "restarting";

/// What of a job its transitions must know and never change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Task or service.
    pub kind: JobKind,
    /// What failures may cost.
    pub budgets: Budgets,
    /// How long after creation or `run_at` the job may wait for its first `running` attempt.
    pub start_within_ms: Option<u64>,
    /// At most one live attempt, ever.
    pub exclusive: bool,
}

/// A job that is not over, or just ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Which.
    pub id: JobId,
    /// What never changes.
    pub policy: Policy,
    /// From 1; one more with each retry by hand.
    pub round: u32,
    /// The newest attempt's number, 0 before the first.
    pub last_attempt: u32,
    /// What this round has spent.
    pub accounts: Accounts,
    /// What is wanted.
    pub intent: Intent,
    /// When the job expires unless an attempt was `running` by then.
    pub start_deadline: Option<Timestamp>,
    /// Where the last attempt ended badly; another node is preferred.
    pub avoid_node: Option<NodeId>,
    /// Where it is.
    pub state: JobState,
}

/// A status, with what is true only there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// Something is outstanding.
    Ready {
        /// `run_at`, when that lies ahead.
        due: Option<Timestamp>,
        /// Whether the executable has not been uploaded yet.
        artifact_missing: bool,
    },
    /// Waits for a node.
    Waiting {
        /// Its place in the queue; in the future while it backs off.
        since: Timestamp,
    },
    /// Has a live attempt.
    Running(LiveAttempt),
    /// Waits for the delay after a failure.
    Retry {
        /// When the delay is over.
        due: Timestamp,
    },
    /// Over.
    Ended(End),
}

/// How and when a round ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// `Success`, `FinalFailed` or `Cancelled`.
    pub status: Status,
    /// Why, for `FinalFailed`.
    pub reason: Option<FailReason>,
    /// By the datastore's clock.
    pub finished_at: Timestamp,
}

/// An attempt that is over, for the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedAttempt {
    /// As it was.
    pub attempt: LiveAttempt,
    /// How it ended.
    pub outcome: Outcome,
    /// Why.
    pub end: AttemptEnd,
    /// Whether another attempt could have ended otherwise.
    pub retryable: bool,
    /// By the datastore's clock.
    pub ended_at: Timestamp,
}

/// One change of status, phase or intent, for the job's history of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The attempt it belongs to.
    pub attempt: Option<u32>,
    /// A status or phase, or what was wanted; empty for the creation.
    pub from: &'static str,
    /// A status or phase, or what is wanted.
    pub to: &'static str,
    /// In plain words, or an outcome.
    pub why: String,
}

/// A transition that took place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// The job after it.
    pub job: Job,
    /// The attempt that ended with it.
    pub ended: Option<EndedAttempt>,
    /// What to append to the history; empty for a renewal.
    pub changes: Vec<Change>,
}

impl Job {
    /// A new job, in `ready` or, with nothing outstanding, in `waiting`.
    #[must_use]
    pub fn create(id: JobId, policy: Policy, outstanding: Outstanding, now: Timestamp) -> Transition {
        let due = outstanding.run_at.filter(|run_at| *run_at > now);
        let mut job = Self {
            id,
            policy,
            round: 1,
            last_attempt: 0,
            accounts: Accounts::default(),
            intent: Intent::Run,
            start_deadline: None,
            avoid_node: None,
            state: JobState::Waiting { since: now },
        };
        if due.is_some() || outstanding.artifact_missing {
            job.state = JobState::Ready { due, artifact_missing: outstanding.artifact_missing };
        }
        job.start_deadline = job.first_deadline(due.unwrap_or(now));
        let change =
            Change { attempt: None, from: "", to: job.status().as_str(), why: "submitted".to_owned() };
        Transition { job, ended: None, changes: vec![change] }
    }

    /// Where it is.
    #[must_use]
    pub fn status(&self) -> Status {
        match &self.state {
            JobState::Ready { .. } => Status::Ready,
            JobState::Waiting { .. } => Status::Waiting,
            JobState::Running(_) => Status::Running,
            JobState::Retry { .. } => Status::Retry,
            JobState::Ended(end) => end.status,
        }
    }

    /// The attempt that has not ended.
    #[must_use]
    pub fn live_attempt(&self) -> Option<&LiveAttempt> {
        match &self.state {
            JobState::Running(attempt) => Some(attempt),
            _ => None,
        }
    }

    /// What the event makes of the job.
    ///
    /// # Errors
    /// A [`Refusal`] when the event changes nothing: a lease that is not the live one, a status it makes no sense in.
    pub fn apply(self, event: JobEvent, moment: Moment) -> Result<Transition, Refusal> {
        let refusal = Refusal { status: self.status(), event: event.name(), kind: RefusalKind::WrongStatus };
        let refuse = |kind| Refusal { kind, ..refusal };
        match event {
            JobEvent::ArtifactArrived => self.artifact_arrived(moment).ok_or(refusal),
            JobEvent::Due => self.due(moment).map_err(refuse),
            JobEvent::StartDeadlinePassed => self.start_deadline_passed(moment).map_err(refuse),
            JobEvent::Claim { lease_id, node_id, session, lease_until } => {
                self.claim(Placement { lease_id, node_id, session, lease_until }, moment).ok_or(refusal)
            }
            JobEvent::Accept { lease_id, lease_until } => {
                self.advance(Phase::Starting, lease_id, lease_until, moment).map_err(refuse)
            }
            JobEvent::Start { lease_id, lease_until } => {
                self.advance(Phase::Running, lease_id, lease_until, moment).map_err(refuse)
            }
            JobEvent::Finish { lease_id, lease_until } => {
                self.advance(Phase::Finishing, lease_id, lease_until, moment).map_err(refuse)
            }
            JobEvent::Renew { lease_id, lease_until } => self.renew(lease_id, lease_until).map_err(refuse),
            JobEvent::Restart { lease_id, lease_until, run } => {
                self.restart(lease_id, lease_until, run).map_err(refuse)
            }
            JobEvent::End { lease_id, end } => self.end(lease_id, end, moment).map_err(refuse),
            JobEvent::Raise(intent) => self.raise(intent, moment).map_err(refuse),
            JobEvent::RetryByHand { after_attempt } => {
                self.retry_by_hand(after_attempt, moment).map_err(refuse)
            }
        }
    }

    fn artifact_arrived(self, moment: Moment) -> Option<Transition> {
        let JobState::Ready { due, artifact_missing: true } = self.state else { return None };
        let start_deadline = match self.policy.start_within_ms {
            Some(_) => self.start_deadline,
            None => None,
        };
        let job = Self { start_deadline, state: JobState::Ready { due, artifact_missing: false }, ..self };
        match due {
            Some(due) if due > moment.now => Some(Transition { job, ended: None, changes: Vec::new() }),
            _ => Some(job.moved(JobState::Waiting { since: moment.now }, None, "artifact arrived")),
        }
    }

    fn due(self, moment: Moment) -> Result<Transition, RefusalKind> {
        match self.state {
            JobState::Ready { due: Some(due), .. } | JobState::Retry { due } if due > moment.now => {
                Err(RefusalKind::NotDue)
            }
            JobState::Ready { due: Some(_), artifact_missing: true } => {
                let state = JobState::Ready { due: None, artifact_missing: true };
                Ok(Transition { job: Self { state, ..self }, ended: None, changes: Vec::new() })
            }
            JobState::Ready { due: Some(_), artifact_missing: false } | JobState::Retry { .. } => {
                Ok(self.moved(JobState::Waiting { since: moment.now }, None, "due"))
            }
            _ => Err(RefusalKind::WrongStatus),
        }
    }

    fn start_deadline_passed(self, moment: Moment) -> Result<Transition, RefusalKind> {
        if !matches!(self.state, JobState::Ready { .. } | JobState::Waiting { .. }) {
            return Err(RefusalKind::WrongStatus);
        }
        if self.start_deadline.is_none_or(|deadline| deadline > moment.now) {
            return Err(RefusalKind::NotDue);
        }
        let end =
            End { status: Status::FinalFailed, reason: Some(FailReason::Expired), finished_at: moment.now };
        Ok(self.moved(JobState::Ended(end), None, FailReason::Expired.as_str()))
    }

    fn claim(self, placement: Placement, moment: Moment) -> Option<Transition> {
        let JobState::Waiting { since } = self.state else { return None };
        if since > moment.now {
            return None;
        }
        let number = self.last_attempt + 1;
        let attempt = LiveAttempt {
            number,
            lease_id: placement.lease_id,
            node_id: placement.node_id,
            session: placement.session,
            phase: Phase::Placed,
            placed_at: moment.now,
            accepted_at: None,
            started_at: None,
            lease_until: placement.lease_until,
            service: None,
        };
        let why = format!("placed on node {}", placement.node_id);
        let job = Self { last_attempt: number, ..self };
        Some(job.moved(JobState::Running(attempt), Some(number), &why))
    }

    fn advance(
        self,
        phase: Phase,
        lease_id: LeaseId,
        lease_until: Timestamp,
        moment: Moment,
    ) -> Result<Transition, RefusalKind> {
        let attempt = self.fenced(lease_id)?.clone();
        if attempt.phase >= phase {
            return Err(RefusalKind::AlreadySo);
        }
        let change = Change {
            attempt: Some(attempt.number),
            from: attempt.phase.as_str(),
            to: phase.as_str(),
            why: String::new(),
        };
        // Whatever is finishing was running, though that may not have been reported.
        let started = phase >= Phase::Running;
        let attempt = LiveAttempt {
            phase,
            lease_until,
            accepted_at: attempt.accepted_at.or(Some(moment.now)),
            started_at: attempt.started_at.or(started.then_some(moment.now)),
            ..attempt
        };
        let start_deadline = if started { None } else { self.start_deadline };
        let job = Self { start_deadline, state: JobState::Running(attempt), ..self };
        Ok(Transition { job, ended: None, changes: vec![change] })
    }

    fn renew(self, lease_id: LeaseId, lease_until: Timestamp) -> Result<Transition, RefusalKind> {
        let attempt = self.fenced(lease_id)?.clone();
        // A claim lease ends by acceptance or by running out, never by renewal.
        if attempt.phase == Phase::Placed {
            return Err(RefusalKind::WrongStatus);
        }
        let state = JobState::Running(LiveAttempt { lease_until, ..attempt });
        Ok(Transition { job: Self { state, ..self }, ended: None, changes: Vec::new() })
    }

    /// The status stays `running` and the phase too: the attempt goes on.
    fn restart(
        self,
        lease_id: LeaseId,
        lease_until: Timestamp,
        run: ServiceRun,
    ) -> Result<Transition, RefusalKind> {
        let attempt = self.fenced(lease_id)?.clone();
        match attempt.phase {
            _ if self.policy.kind == JobKind::Task => return Err(RefusalKind::WrongKind),
            Phase::Placed | Phase::Starting => return Err(RefusalKind::WrongStatus),
            Phase::Running | Phase::Finishing if run.is_after(attempt.service.as_ref()) => {}
            Phase::Running | Phase::Finishing => return Err(RefusalKind::AlreadySo),
        }
        let word = |is_waiting| if is_waiting { RESTARTING } else { Phase::Running.as_str() };
        let change = Change {
            attempt: Some(attempt.number),
            from: word(attempt.is_restarting()),
            to: word(run.is_waiting()),
            why: run.describe(),
        };
        let state = JobState::Running(LiveAttempt { lease_until, service: Some(run), ..attempt });
        Ok(Transition { job: Self { state, ..self }, ended: None, changes: vec![change] })
    }

    fn end(self, lease_id: LeaseId, end: AttemptEnd, moment: Moment) -> Result<Transition, RefusalKind> {
        let attempt = self.fenced(lease_id)?.clone();
        if end == AttemptEnd::Silent && attempt.lease_until > moment.now {
            return Err(RefusalKind::NotDue);
        }
        let kind = self.policy.kind;
        let outcome = name_outcome(&end, attempt.phase, self.intent, kind);
        let ended = Ended::new(&end, outcome, &self.policy.budgets);
        let accounts = self.accounts.at(kind, moment.now);
        let step = retry::next_step(self.intent, ended, &accounts, &self.policy, moment);
        let state = match self.policy.exclusive && end == AttemptEnd::Silent {
            true => {
                not_before(state_after(step, moment.now), attempt.lease_until.plus_ms(EXCLUSIVE_PAUSE_MS))
            }
            false => state_after(step, moment.now),
        };
        let avoid_node =
            matches!(step, NextStep::Wait { .. } | NextStep::Retry { .. }).then_some(attempt.node_id);
        // Whoever evicted one attempt did not evict the next.
        let intent = if self.intent == Intent::Evict { Intent::Run } else { self.intent };
        let number = attempt.number;
        let history =
            EndedAttempt { attempt, outcome, end, retryable: ended.retryable, ended_at: moment.now };
        let job = Self { accounts: accounts.charged(outcome, step, moment.now), avoid_node, intent, ..self };
        let mut transition = job.moved(state, Some(number), outcome.as_str());
        transition.ended = Some(history);
        Ok(transition)
    }

    fn raise(self, intent: Intent, moment: Moment) -> Result<Transition, RefusalKind> {
        if intent == Intent::Stop && self.policy.kind == JobKind::Task {
            return Err(RefusalKind::WrongKind);
        }
        match self.state {
            JobState::Ended(_) => Err(RefusalKind::AlreadySo),
            JobState::Running(ref attempt) if self.intent < intent => {
                let change = Change {
                    attempt: Some(attempt.number),
                    from: self.intent.as_str(),
                    to: intent.as_str(),
                    why: "wanted".to_owned(),
                };
                Ok(Transition { job: Self { intent, ..self }, ended: None, changes: vec![change] })
            }
            JobState::Running(_) => Err(RefusalKind::AlreadySo),
            _ if intent == Intent::Cancel => {
                let end = End { status: Status::Cancelled, reason: None, finished_at: moment.now };
                Ok(Self { intent, ..self }.moved(JobState::Ended(end), None, "cancelled"))
            }
            _ if intent == Intent::Stop => {
                let end = End { status: Status::Success, reason: None, finished_at: moment.now };
                Ok(Self { intent, ..self }.moved(JobState::Ended(end), None, "stopped"))
            }
            _ => Err(RefusalKind::WrongStatus),
        }
    }

    fn retry_by_hand(self, after_attempt: Option<u32>, moment: Moment) -> Result<Transition, RefusalKind> {
        if after_attempt.is_some_and(|seen| seen < self.last_attempt) {
            return Err(RefusalKind::NewerAttempt);
        }
        match self.state {
            JobState::Ended(End { status: Status::FinalFailed | Status::Cancelled, .. }) => {}
            _ => return Err(RefusalKind::WrongStatus),
        }
        let mut job = Self {
            round: self.round + 1,
            accounts: Accounts::default(),
            intent: Intent::Run,
            avoid_node: None,
            ..self
        };
        job.start_deadline = job.policy.start_within_ms.map(|within_ms| moment.now.plus_ms(within_ms));
        Ok(job.moved(JobState::Waiting { since: moment.now }, None, "retried by hand"))
    }

    /// The live attempt, if `lease_id` is its lease.
    fn fenced(&self, lease_id: LeaseId) -> Result<&LiveAttempt, RefusalKind> {
        match &self.state {
            JobState::Running(attempt) if attempt.lease_id == lease_id => Ok(attempt),
            _ => Err(RefusalKind::StaleLease),
        }
    }

    fn first_deadline(&self, from: Timestamp) -> Option<Timestamp> {
        let artifact_missing = matches!(self.state, JobState::Ready { artifact_missing: true, .. });
        let within_ms = self.policy.start_within_ms.or(artifact_missing.then_some(MISSING_ARTIFACT_MS))?;
        Some(from.plus_ms(within_ms))
    }

    fn moved(self, state: JobState, attempt: Option<u32>, why: &str) -> Transition {
        let from = self.status().as_str();
        let job = Self { state, ..self };
        let change = Change { attempt, from, to: job.status().as_str(), why: why.to_owned() };
        Transition { job, ended: None, changes: vec![change] }
    }
}

/// What a new job waits for before it may wait for a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outstanding {
    /// Not before this instant; one in the past is nothing to wait for.
    pub run_at: Option<Timestamp>,
    /// The executable has not been uploaded yet.
    pub artifact_missing: bool,
}

#[derive(Clone, Copy)]
struct Placement {
    lease_id: LeaseId,
    node_id: NodeId,
    session: SessionId,
    lease_until: Timestamp,
}

fn state_after(step: NextStep, now: Timestamp) -> JobState {
    let ended = |status, reason| JobState::Ended(End { status, reason, finished_at: now });
    match step {
        NextStep::Succeed => ended(Status::Success, None),
        NextStep::Cancel => ended(Status::Cancelled, None),
        NextStep::Fail(reason) => ended(Status::FinalFailed, Some(reason)),
        NextStep::Wait { delay_ms } => JobState::Waiting { since: now.plus_ms(delay_ms) },
        NextStep::Retry { delay_ms, .. } => JobState::Retry { due: now.plus_ms(delay_ms) },
    }
}

/// Holds back the next attempt of a job whose last one may still be stopping itself.
fn not_before(state: JobState, earliest: Timestamp) -> JobState {
    match state {
        JobState::Waiting { since } => JobState::Waiting { since: since.max(earliest) },
        JobState::Retry { due } => JobState::Retry { due: due.max(earliest) },
        other => other,
    }
}
