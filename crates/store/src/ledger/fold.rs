//! Events folded over loaded jobs.

use std::collections::{BTreeMap, BTreeSet};

use jobyard_model::lifecycle::{EndedAttempt, Refusal, Transition};
use jobyard_model::{
    ArtifactHash, AttemptEnd, ExitFacts, Job, JobEvent, JobId, LeaseId, Moment, NodeId, Outcome, Outputs,
    Phase, Resources, SessionId, Timestamp,
};

use super::{JobUpdate, NodeMark, Past, PastAttempt, Terms, Writes};
use crate::StoreError;
use crate::encoding::clean;
use crate::rows::{AttemptRow, EndRow, EventRow, HistoryRow, JobRow, Seat, number_column};
use crate::wake::{WakeTopic, Wakes};

/// Loaded jobs, and what became of them so far.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(super) terms: Terms,
    pub(super) entries: BTreeMap<JobId, Entry>,
    pub(super) past: Past,
    pub(super) withheld: BTreeSet<JobId>,
    ended: Vec<(JobId, u32, EndedAttempt)>,
    ends: Vec<EndRow>,
    reopened: Vec<(JobId, i32)>,
    events: Vec<EventRow>,
    nodes: BTreeMap<(NodeId, SessionId), NodeMark>,
    wakes: Wakes,
}

/// One job as loaded and as it became.
#[derive(Debug)]
pub(super) struct Entry {
    row_before: Option<JobRow>,
    attempt_before: Option<AttemptRow>,
    pub(super) job: Job,
    seat: Seat,
    started_at: Option<Timestamp>,
    heard_at: Timestamp,
    reserved: Resources,
}

/// Why an event changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denied {
    /// The job was not loaded: there is none, or another transaction holds it.
    NotLoaded,
    /// The job refused it.
    Refused(Refusal),
}

impl Ledger {
    /// An empty one.
    pub(crate) fn new(terms: Terms) -> Self {
        Self {
            terms,
            entries: BTreeMap::new(),
            past: Past::new(),
            withheld: BTreeSet::new(),
            ended: Vec::new(),
            ends: Vec::new(),
            reopened: Vec::new(),
            events: Vec::new(),
            nodes: BTreeMap::new(),
            wakes: Wakes::default(),
        }
    }

    /// Takes in a hot row, with its live attempt while it has one.
    ///
    /// # Errors
    /// [`StoreError::Inconsistent`] when the rows break our own rules.
    pub(crate) fn load(&mut self, row: JobRow, attempt: Option<AttemptRow>) -> Result<(), StoreError> {
        let entry = Entry {
            job: row.to_job(attempt.as_ref())?,
            seat: row.seat()?,
            started_at: row.started_ms.map(Timestamp),
            heard_at: attempt.as_ref().map_or(self.terms.now, |attempt| Timestamp(attempt.heard_ms)),
            reserved: attempt.as_ref().map(AttemptRow::reserved).unwrap_or_default(),
            row_before: Some(row),
            attempt_before: attempt,
        };
        self.entries.insert(entry.job.id, entry);
        Ok(())
    }

    /// Takes in a job that is over, so that it can be retried by hand.
    pub(crate) fn load_ended(&mut self, job: Job, seat: Seat) {
        let entry = Entry {
            row_before: None,
            attempt_before: None,
            seat,
            started_at: None,
            heard_at: self.terms.now,
            reserved: Resources::default(),
            job,
        };
        self.entries.insert(entry.job.id, entry);
    }

    /// Takes in a job that was just made by [`Job::create`].
    pub(crate) fn create(&mut self, created: Transition, seat: Seat, who: &str) {
        self.note_changes(created.job.id, &created, who);
        self.load_ended(created.job, seat);
    }

    /// The job as it is by now.
    pub(crate) fn job(&self, job_id: JobId) -> Option<&Job> {
        self.entries.get(&job_id).map(|entry| &entry.job)
    }

    /// Lets an event happen to a loaded job.
    ///
    /// # Errors
    /// [`Denied`]: nothing changed.
    pub(crate) fn apply(&mut self, job_id: JobId, event: JobEvent, who: &str) -> Result<(), Denied> {
        let entry = self.entries.get_mut(&job_id).ok_or(Denied::NotLoaded)?;
        let moment = Moment { now: self.terms.now, chance: chance(&entry.job) };
        let round = entry.job.round;
        let by_worker = matches!(
            event,
            JobEvent::Accept { .. }
                | JobEvent::Start { .. }
                | JobEvent::Finish { .. }
                | JobEvent::Renew { .. }
                | JobEvent::Restart { .. }
                | JobEvent::Claim { .. }
        );
        let transition = entry.job.clone().apply(event, moment).map_err(Denied::Refused)?;
        if by_worker {
            entry.heard_at = moment.now;
        }
        if transition.job.round > round {
            entry.started_at = None;
            self.reopened.push((job_id, number_column(round)));
        }
        if let Some(attempt) = transition.job.live_attempt()
            && attempt.phase >= Phase::Running
        {
            entry.started_at = entry.started_at.or(attempt.started_at);
            if entry.job.live_attempt().is_some_and(|before| before.phase < Phase::Running) {
                self.nodes.insert((attempt.node_id, attempt.session), NodeMark { reset: true, bad: 0 });
            }
            if attempt.phase == Phase::Finishing {
                // Its processor time and memory are free.
                self.wakes.add(WakeTopic::Placement);
            }
        }
        entry.job = transition.job.clone();
        self.note_changes(job_id, &transition, who);
        Ok(())
    }

    /// As [`Self::apply`] of a claim, with what the attempt reserves.
    ///
    /// # Errors
    /// [`Denied`]: nothing changed.
    pub(crate) fn claim(
        &mut self,
        job_id: JobId,
        claim: JobEvent,
        reserved: Resources,
        who: &str,
    ) -> Result<(), Denied> {
        self.apply(job_id, claim, who)?;
        if let Some(entry) = self.entries.get_mut(&job_id) {
            entry.reserved = reserved;
        }
        Ok(())
    }

    fn note_changes(&mut self, job_id: JobId, transition: &Transition, who: &str) {
        self.events.extend(transition.changes.iter().map(|change| EventRow {
            at_ms: self.terms.now.0,
            job_id: job_id.0,
            attempt: change.attempt.map(number_column),
            who: clean(who),
            from: change.from,
            to: change.to,
            why: clean(&change.why),
        }));
        if let Some(ended) = &transition.ended {
            self.note_ended(job_id, transition.job.round, ended);
        }
        let started_at = self.entries.get(&job_id).and_then(|entry| entry.started_at);
        self.ends.extend(EndRow::new(&transition.job, started_at));
    }

    fn note_ended(&mut self, job_id: JobId, round: u32, ended: &EndedAttempt) {
        let attempt = &ended.attempt;
        let past = PastAttempt { lease_id: attempt.lease_id, fingerprint: ended.end.fingerprint() };
        self.past.insert((job_id, attempt.number), past);
        let never_accepted = ended.outcome == Outcome::NotStarted && ended.end == AttemptEnd::Silent;
        if ended.outcome == Outcome::LaunchFailed || never_accepted {
            self.nodes.entry((attempt.node_id, attempt.session)).or_default().bad += 1;
        }
        self.ended.push((job_id, round, ended.clone()));
        self.wakes.add(WakeTopic::Placement);
        // Its log is whole: who follows it is done.
        self.wakes.add(WakeTopic::Logs);
    }

    /// What is to be written.
    ///
    /// # Errors
    /// [`StoreError::Inconsistent`] when an end has no JSON form.
    pub(crate) fn into_writes(self) -> Result<Writes, StoreError> {
        let history = self.ended.iter().map(|(job_id, round, ended)| HistoryRow::new(*job_id, *round, ended));
        let mut writes = Writes {
            history: history.collect::<Result<_, _>>()?,
            outputs: self
                .ended
                .iter()
                .filter_map(|(job_id, _, ended)| Some((kept(ended)?, *job_id)))
                .collect(),
            ends: self.ends,
            reopened: self.reopened,
            events: self.events,
            nodes: self.nodes,
            wakes: self.wakes,
            ..Writes::default()
        };
        if !writes.events.is_empty() {
            writes.wakes.add(WakeTopic::Events);
        }
        for (job_id, entry) in self.entries {
            entry.compare(job_id, self.terms.now, &mut writes);
        }
        Ok(writes)
    }
}

impl Entry {
    fn compare(self, job_id: JobId, now: Timestamp, writes: &mut Writes) {
        let live = self.job.live_attempt();
        let attempt = live.map(|live| AttemptRow::new(job_id, live, self.reserved, self.heard_at));
        let row = JobRow::new(&self.job, self.seat, self.started_at);
        if let Some(after) = &row {
            note_wakes(self.row_before.as_ref(), after, now, &mut writes.wakes);
        }
        match (self.row_before, row) {
            (Some(before), Some(after)) if before == after => {}
            (Some(before), Some(after)) => writes.updated_jobs.push(JobUpdate { before, after }),
            (Some(before), None) => writes.deleted_jobs.push(before),
            (None, Some(after)) => writes.inserted_jobs.push(after),
            (None, None) => {}
        }
        match (self.attempt_before, attempt) {
            (Some(before), Some(after)) if before.lease_id == after.lease_id => {
                if before != after {
                    writes.updated_attempts.push(after);
                }
            }
            (before, after) => {
                writes.deleted_attempts.extend(before);
                writes.inserted_attempts.extend(after);
            }
        }
    }
}

/// The tree of what an attempt left.
fn kept(ended: &EndedAttempt) -> Option<ArtifactHash> {
    match &ended.end {
        AttemptEnd::Exited(ExitFacts { outputs: Outputs::Kept(hash), .. }) => Some(*hash),
        _ => None,
    }
}

fn note_wakes(before: Option<&JobRow>, after: &JobRow, now: Timestamp, wakes: &mut Wakes) {
    let changed = |column: fn(&JobRow) -> Option<i64>| {
        column(after).filter(|value| before.and_then(column) != Some(*value))
    };
    if let Some(since) = changed(|row| row.wait_since_ms) {
        wakes.add(if since > now.0 { WakeTopic::Due } else { WakeTopic::Placement });
    }
    if changed(|row| row.due_ms).is_some() || changed(|row| row.start_deadline_ms).is_some() {
        wakes.add(WakeTopic::Due);
    }
    if before.is_some_and(|before| before.intent < after.intent) {
        wakes.add(WakeTopic::Stops);
    }
}

/// One draw for the jitter: a lease is random and new for each claim, so its last bits are as good as any.
fn chance(job: &Job) -> u32 {
    let bits = |lease_id: LeaseId| (lease_id.0.as_u128() & u128::from(u32::MAX)) as u32;
    job.live_attempt().map_or(0, |attempt| bits(attempt.lease_id))
}
