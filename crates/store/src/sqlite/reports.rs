//! The report door's writes: what workers report, and that a server with an open door lives.

use std::collections::BTreeSet;

use jobyard_model::{AttemptEnd, JobEvent, Timestamp};
use rusqlite::params;

use super::fault::Fault;
use super::scope::Scope;
use super::{load, writes};
use crate::encoding::later_than_any_delay;
use crate::ledger::{INFORMER, Ledger};
use crate::wake::WakeTopic;
use crate::{Answer, NotStarted, ReportItem, StoreError};

/// A step back of the clock below this is the drift of a healthy clock.
const STEP_BACK_MS: u64 = 2_000;

/// Carries out what workers report; each item gets its own answer.
pub(super) fn report(scope: &Scope<'_>, items: &[ReportItem]) -> Result<Vec<Answer>, Fault> {
    let mut ledger = Ledger::new(scope.terms);
    let job_ids: BTreeSet<_> = items.iter().map(|item| item.job_id).collect();
    for job_id in job_ids {
        match load::into_ledger(scope, &mut ledger, job_id) {
            Ok(_) => {}
            // One row that makes no sense must not hold up what others report.
            Err(Fault::Store(error @ StoreError::Inconsistent { .. })) => {
                tracing::error!(%job_id, %error, "could not read a job that a worker reports about");
                ledger.withhold(job_id);
            }
            Err(fault) => return Err(fault),
        }
    }
    let past = load::past(scope, &ledger.strangers(items))?;
    ledger.load_past(past);
    let answers = items.iter().map(|item| ledger.report(item)).collect();
    writes::carry_out(scope, ledger)?;
    Ok(answers)
}

/// Ends attempts that surely never started, and counts them.
pub(super) fn end_not_started(scope: &Scope<'_>, attempts: &[NotStarted]) -> Result<u64, Fault> {
    let mut ledger = Ledger::new(scope.terms);
    let mut ended = 0;
    for attempt in attempts {
        if ledger.job(attempt.job_id).is_none() {
            load::into_ledger(scope, &mut ledger, attempt.job_id)?;
        }
        let why = crate::encoding::clean(&attempt.why);
        let event = JobEvent::End { lease_id: attempt.lease_id, end: AttemptEnd::NotStarted { why } };
        ended += u64::from(ledger.apply(attempt.job_id, event, INFORMER).is_ok());
    }
    writes::carry_out(scope, ledger)?;
    Ok(ended)
}

/// What `report_clock` says.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReportClock {
    pub(super) stamped_at: Timestamp,
    pub(super) reap_not_before: Timestamp,
}

/// Reads `report_clock`.
pub(super) fn report_clock(scope: &Scope<'_>) -> Result<ReportClock, Fault> {
    let sql = "SELECT stamped_ms, reap_not_before_ms FROM report_clock";
    Ok(scope.statement(sql)?.query_row([], |row| {
        Ok(ReportClock { stamped_at: Timestamp(row.get(0)?), reap_not_before: Timestamp(row.get(1)?) })
    })?)
}

/// Stamps `report_clock`; holds back verdicts by silence for a lease after a gap or a step back.
pub(super) fn stamp(scope: &Scope<'_>) -> Result<(), Fault> {
    let clock = report_clock(scope)?;
    let (now, leases) = (scope.now(), scope.terms.leases);
    let stepped_back = clock.stamped_at.ms_since(now) > STEP_BACK_MS;
    let gap = now.ms_since(clock.stamped_at) > leases.report_gap_ms;
    let reap_not_before = match gap || stepped_back {
        true => now.plus_ms(leases.lease_ms),
        false => clock.reap_not_before,
    };
    scope.execute(
        "UPDATE report_clock SET stamped_ms = ?1, reap_not_before_ms = ?2",
        params![now.0, reap_not_before.0],
    )?;
    if stepped_back {
        bring_back(scope)?;
    }
    Ok(())
}

/// After a step back of the clock nothing may lie further ahead than its own delay: waiting jobs would not be placed,
/// nor silent attempts given up, until the old time comes again.
fn bring_back(scope: &Scope<'_>) -> Result<(), Fault> {
    let now = scope.now();
    let far = later_than_any_delay(now);
    let sql = "UPDATE job_live SET wait_since_ms = ?1 WHERE status = 2 AND wait_since_ms > ?2";
    let waiting = scope.execute(sql, params![now.0, far.0])?;
    let lease_until = now.plus_ms(scope.terms.leases.lease_ms);
    let sql = "UPDATE attempt_live SET lease_until_ms = ?1 WHERE lease_until_ms > ?1";
    let leases = scope.execute(sql, [lease_until.0])?;
    tracing::warn!(waiting, leases, "the clock stepped back; what lay too far ahead was brought back");
    scope.wake(WakeTopic::Placement);
    scope.wake(WakeTopic::Due);
    Ok(())
}
