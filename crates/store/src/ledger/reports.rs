//! What workers report, folded over loaded jobs and history, each item with its verdict.

use jobyard_model::lifecycle::{Refusal, RefusalKind};
use jobyard_model::{Intent, JobEvent, JobId};

use super::{Denied, Ledger, Past, WORKER};
use crate::encoding::clean_end;
use crate::{Answer, Report, ReportItem, Verdict};

impl Ledger {
    /// The attempts whose history must be at hand before [`Self::report`]: those that are not live under the lease
    /// they are named with.
    pub(crate) fn strangers(&self, items: &[ReportItem]) -> Vec<(JobId, u32)> {
        let mut strangers: Vec<_> = items
            .iter()
            .filter(|item| self.live_intent(item).is_none())
            .map(|item| (item.job_id, item.attempt))
            .collect();
        strangers.sort_unstable();
        strangers.dedup();
        strangers
    }

    /// Notes a job whose rows could not be read now: what is reported of it gets [`Verdict::Later`].
    pub(crate) fn withhold(&mut self, job_id: JobId) {
        self.withheld.insert(job_id);
    }

    /// Takes in what history has of [`Self::strangers`].
    pub(crate) fn load_past(&mut self, past: Past) {
        self.past.extend(past);
    }

    /// Carries out one item after those before it, and says what became of it.
    pub(crate) fn report(&mut self, item: &ReportItem) -> Answer {
        if self.withheld.contains(&item.job_id) {
            return Answer { verdict: Verdict::Later, intent: Intent::Run };
        }
        if self.live_intent(item).is_none() {
            return Answer { verdict: self.verdict_of_the_past(item), intent: Intent::Run };
        }
        let applied = self.apply(item.job_id, self.event_of(item), WORKER);
        let verdict = match applied {
            Ok(()) => Verdict::Accepted,
            Err(Denied::NotLoaded) => Verdict::Later,
            Err(Denied::Refused(refusal)) => verdict_of_refusal(refusal),
        };
        let intent = self.job(item.job_id).map_or(Intent::Run, |job| job.intent);
        Answer { verdict, intent }
    }

    /// What is wanted of the attempt, if it is live and the item holds its lease.
    fn live_intent(&self, item: &ReportItem) -> Option<Intent> {
        let job = self.job(item.job_id)?;
        let attempt = job.live_attempt()?;
        (attempt.number == item.attempt && attempt.lease_id == item.lease_id).then_some(job.intent)
    }

    fn event_of(&self, item: &ReportItem) -> JobEvent {
        let lease_id = item.lease_id;
        let lease_until = self.terms.now.plus_ms(self.terms.leases.lease_ms);
        match &item.report {
            Report::Accepted => JobEvent::Accept { lease_id, lease_until },
            Report::Started => JobEvent::Start { lease_id, lease_until },
            Report::Finishing => JobEvent::Finish { lease_id, lease_until },
            Report::Renewed => JobEvent::Renew { lease_id, lease_until },
            Report::Service(run) => JobEvent::Restart { lease_id, lease_until, run: *run },
            Report::Ended(end) => JobEvent::End { lease_id, end: clean_end(end.clone()) },
        }
    }

    fn verdict_of_the_past(&self, item: &ReportItem) -> Verdict {
        if let Some(past) = self.past.get(&(item.job_id, item.attempt)) {
            return match &item.report {
                Report::Ended(end)
                    if past.lease_id == item.lease_id && past.fingerprint == end.fingerprint() =>
                {
                    Verdict::Already
                }
                _ => Verdict::Stale,
            };
        }
        // The number is live under another lease: as after a failover that lost the claim.
        let live = self.job(item.job_id).and_then(|job| job.live_attempt());
        match live.is_some_and(|attempt| attempt.number == item.attempt) {
            true => Verdict::Stale,
            false => Verdict::Unknown,
        }
    }
}

fn verdict_of_refusal(refusal: Refusal) -> Verdict {
    match refusal.kind {
        RefusalKind::AlreadySo | RefusalKind::WrongKind => Verdict::Already,
        RefusalKind::StaleLease | RefusalKind::NewerAttempt => Verdict::Stale,
        // A renewal of what was not accepted yet, a restart of what was not reported as running.
        RefusalKind::WrongStatus | RefusalKind::NotDue => Verdict::Later,
    }
}
