//! What time alone brings about: due jobs, start deadlines, leases that ran out.

use jobyard_model::{AttemptEnd, JobEvent, JobId, LeaseId};
use rusqlite::params;

use super::fault::Fault;
use super::scope::Scope;
use super::{load, reports, writes};
use crate::SilenceReport;
use crate::encoding::later_than_any_delay;
use crate::ledger::{INFORMER, Ledger};

pub(super) const DUE_RUN_AT: &str =
    "SELECT id FROM job_live WHERE status = 1 AND due_ms <= ?1 ORDER BY due_ms LIMIT ?2";
pub(super) const DUE_RETRIES: &str =
    "SELECT id FROM job_live WHERE status = 4 AND due_ms <= ?1 ORDER BY due_ms LIMIT ?2";
pub(super) const FAR_RETRIES: &str = "SELECT id FROM job_live WHERE status = 4 AND due_ms > ?1 LIMIT ?2";
pub(super) const EXPIRED: &str = "SELECT id FROM job_live WHERE status IN (1, 2) \
    AND start_deadline_ms IS NOT NULL AND start_deadline_ms <= ?1 ORDER BY start_deadline_ms LIMIT ?2";

/// Moves due jobs to `waiting`, ends those whose `start_within` is over, and counts both.
pub(super) fn release(scope: &Scope<'_>, limit: u32) -> Result<u64, Fault> {
    let now = scope.now().0;
    let mut moved = 0;
    let mut due = load::ids(scope, DUE_RUN_AT, params![now, limit])?;
    due.extend(load::ids(scope, DUE_RETRIES, params![now, limit])?);
    due.extend(load::ids(scope, FAR_RETRIES, params![later_than_any_delay(scope.now()).0, limit])?);
    due.truncate(limit as usize);
    moved += apply_all(scope, &due, &JobEvent::Due)?;
    let expired = load::ids(scope, EXPIRED, params![now, limit])?;
    moved += apply_all(scope, &expired, &JobEvent::StartDeadlinePassed)?;
    Ok(moved)
}

fn apply_all(scope: &Scope<'_>, job_ids: &[JobId], event: &JobEvent) -> Result<u64, Fault> {
    let mut ledger = Ledger::new(scope.terms);
    let mut applied = 0;
    for job_id in job_ids {
        let Some((mut row, attempt)) = load::live(scope, *job_id)? else { continue };
        // Further away than its own delay: the clock stepped back.
        row.due_ms = row.due_ms.map(|due| due.min(scope.now().0));
        ledger.load(row, attempt)?;
        applied += u64::from(ledger.apply(*job_id, event.clone(), INFORMER).is_ok());
    }
    writes::carry_out(scope, ledger)?;
    Ok(applied)
}

/// Gives up on attempts whose lease ran out, unless silence is not to be judged now (promise 4).
pub(super) fn expire_silent(scope: &Scope<'_>, limit: u32) -> Result<SilenceReport, Fault> {
    let now = scope.now();
    let clock = reports::report_clock(scope)?;
    let paused = match () {
        () if now.ms_since(clock.stamped_at) > scope.terms.leases.report_fresh_ms => {
            Some("no server with an open report door has been heard of lately")
        }
        () if clock.stamped_at.ms_since(now) > scope.terms.leases.report_fresh_ms => {
            Some("the clock stepped back")
        }
        () if clock.reap_not_before > now => Some("workers get one lease after a gap to be heard again"),
        () => None,
    };
    if paused.is_some() {
        let held_back: i64 = scope
            .statement("SELECT count(*) FROM attempt_live WHERE lease_until_ms <= ?1")?
            .query_row([now.0], |row| row.get(0))?;
        return Ok(SilenceReport { expired: 0, paused, held_back: crate::encoding::amount(held_back) });
    }
    let mut ledger = Ledger::new(scope.terms);
    let mut expired = 0;
    for (job_id, lease_id) in silent(scope, limit)? {
        load::into_ledger(scope, &mut ledger, job_id)?;
        let event = JobEvent::End { lease_id, end: AttemptEnd::Silent };
        expired += u64::from(ledger.apply(job_id, event, INFORMER).is_ok());
    }
    writes::carry_out(scope, ledger)?;
    Ok(SilenceReport { expired, paused: None, held_back: 0 })
}

fn silent(scope: &Scope<'_>, limit: u32) -> Result<Vec<(JobId, LeaseId)>, Fault> {
    let sql = "SELECT job_id, lease_id FROM attempt_live WHERE lease_until_ms <= ?1 \
        ORDER BY lease_until_ms, job_id LIMIT ?2";
    let mut statement = scope.statement(sql)?;
    let rows = statement
        .query_map(params![scope.now().0, limit], |row| Ok((JobId(row.get(0)?), LeaseId(row.get(1)?))))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
