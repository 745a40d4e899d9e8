//! Cancel, stop and retry by hand.

use jobyard_model::lifecycle::RefusalKind;
use jobyard_model::{Intent, JobEvent, JobId};

use super::fault::Fault;
use super::scope::Scope;
use super::{audit, load, writes};
use crate::ledger::{Denied, Ledger};
use crate::{Actor, Control};

/// Wants the job cancelled.
pub(super) fn cancel(scope: &Scope<'_>, job_id: JobId, by: &Actor) -> Result<Control, Fault> {
    control(scope, (job_id, JobEvent::Raise(Intent::Cancel)), "job.cancel", by)
}

/// Wants the service stopped.
pub(super) fn stop(scope: &Scope<'_>, job_id: JobId, by: &Actor) -> Result<Control, Fault> {
    control(scope, (job_id, JobEvent::Raise(Intent::Stop)), "job.stop", by)
}

/// Starts a new round.
pub(super) fn retry(
    scope: &Scope<'_>,
    job_id: JobId,
    after_attempt: Option<u32>,
    by: &Actor,
) -> Result<Control, Fault> {
    control(scope, (job_id, JobEvent::RetryByHand { after_attempt }), "job.retry", by)
}

fn control(
    scope: &Scope<'_>,
    (job_id, event): (JobId, JobEvent),
    action: &str,
    by: &Actor,
) -> Result<Control, Fault> {
    let mut ledger = Ledger::new(scope.terms);
    if !load::any_into_ledger(scope, &mut ledger, job_id)? {
        return Ok(Control::NotFound);
    }
    match ledger.apply(job_id, event, &by.name) {
        Ok(()) => {}
        Err(Denied::NotLoaded) => return Ok(Control::NotFound),
        Err(Denied::Refused(refusal)) => {
            return Ok(match refusal.kind {
                RefusalKind::AlreadySo | RefusalKind::NewerAttempt => Control::Nothing,
                RefusalKind::WrongKind => Control::WrongKind,
                RefusalKind::StaleLease | RefusalKind::NotDue | RefusalKind::WrongStatus => {
                    Control::Refused(refusal.status)
                }
            });
        }
    }
    writes::carry_out(scope, ledger)?;
    audit::note(scope, by, action, &job_id.to_string(), "")?;
    Ok(Control::Done)
}
