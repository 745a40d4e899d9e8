//! The report door's writes: what workers report, and that a server with an open door lives.

use std::sync::Arc;

use jobyard_model::{AttemptEnd, JobEvent};

use super::Core;
use super::fault::{Fault, Shared};
use super::load;
use super::query::Query;
use super::session::Session;
use crate::encoding::{clean, column};
use crate::ledger::INFORMER;
use crate::wake::{WakeTopic, Wakes};
use crate::{Answer, NotStarted, ReportItem, StoreError};

const DOING: &str = "carrying out what workers report";

/// One call to `report`.
pub(super) type Call = Arc<Vec<ReportItem>>;
/// What became of it.
pub(super) type Outcome = Result<Vec<Answer>, Fault>;

/// A step back of the clock below this is the drift of a healthy clock.
const STEP_BACK_MS: i64 = 2_000;

// The clock is read once the row is held: two servers that stamp at the same time must not look like a step back.
const STAMP: &str = "WITH held AS MATERIALIZED (
    SELECT stamped_ms, reap_not_before_ms FROM report_clock FOR NO KEY UPDATE
  ), tick AS MATERIALIZED (SELECT held.*, jobyard_now() AS now_ms FROM held)
  UPDATE report_clock SET stamped_ms = tick.now_ms,
    reap_not_before_ms = CASE
      WHEN tick.now_ms - tick.stamped_ms > $1 OR tick.stamped_ms - tick.now_ms > $2 THEN tick.now_ms + $3
      ELSE tick.reap_not_before_ms END
  FROM tick RETURNING tick.stamped_ms - tick.now_ms > $2";

// After a step back of the clock nothing may lie further ahead than its own delay: waiting jobs would not be placed,
// nor silent attempts given up, until the old time comes again.
const BRING_BACK_WAITING: &str = "WITH far AS MATERIALIZED (
    SELECT ctid AS place FROM job_live WHERE status = 2 AND wait_since_ms > $1
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)
  UPDATE job_live SET wait_since_ms = jobyard_now() FROM far WHERE job_live.ctid = far.place";
const BRING_BACK_LEASES: &str = "WITH far AS MATERIALIZED (
    SELECT ctid AS place FROM attempt_live WHERE lease_until_ms > $1
    ORDER BY job_id FOR NO KEY UPDATE SKIP LOCKED)
  UPDATE attempt_live SET lease_until_ms = $1 FROM far WHERE attempt_live.ctid = far.place";

/// Carries out what several calls report, in one transaction; when that fails for what one of them says, each in its
/// own.
pub(super) async fn carry_out(core: Arc<Core>, calls: Vec<Call>) -> Vec<Outcome> {
    match together(&core, &calls).await {
        Ok(answers) => answers.into_iter().map(Ok).collect(),
        Err(Fault::Statement(_) | Fault::Inconsistent { .. }) if calls.len() > 1 => {
            let mut answers = Vec::with_capacity(calls.len());
            for call in calls {
                answers.push(
                    together(&core, &[call]).await.map(|mut answers| answers.pop().unwrap_or_default()),
                );
            }
            answers
        }
        Err(fault) => calls.iter().map(|_| Err(fault.clone())).collect(),
    }
}

/// As the caller sees it; `None` for a call that came to no end.
pub(super) fn into_result(answer: Option<Outcome>) -> Result<Vec<Answer>, StoreError> {
    let unknown = || Err(Fault::Unknown(Shared::new("the transaction was abandoned")));
    answer.unwrap_or_else(unknown).map_err(|fault| fault.during(DOING))
}

async fn together(core: &Core, calls: &[Call]) -> Result<Vec<Vec<Answer>>, Fault> {
    let items: Vec<ReportItem> = calls.iter().flat_map(|call| call.iter().cloned()).collect();
    let answers = core.database.try_change(|session| report(core, session, &items)).await?;
    let mut answers = answers.into_iter();
    Ok(calls.iter().map(|call| answers.by_ref().take(call.len()).collect()).collect())
}

async fn report(core: &Core, mut session: Session, items: &[ReportItem]) -> Result<Vec<Answer>, Fault> {
    let jobs = items.iter().map(|item| item.job_id.0).collect();
    let mut ledger = load::lock_jobs(&mut session, jobs, core.leases).await?;
    let strangers = ledger.strangers(items);
    if !strangers.is_empty() {
        ledger.load_past(load::past(&mut session, &strangers).await?);
    }
    let answers = items.iter().map(|item| ledger.report(item)).collect();
    super::finish(core, session, ledger).await?;
    Ok(answers)
}

/// Ends attempts that surely never started, and counts them.
pub(super) async fn end_not_started(core: &Core, attempts: &[NotStarted]) -> Result<u64, StoreError> {
    core.database
        .change("ending attempts that never started", |session| try_end(core, session, attempts))
        .await
}

async fn try_end(core: &Core, mut session: Session, attempts: &[NotStarted]) -> Result<u64, Fault> {
    let jobs = attempts.iter().map(|attempt| attempt.job_id.0).collect();
    let mut ledger = load::lock_jobs(&mut session, jobs, core.leases).await?;
    let mut ended = 0;
    for attempt in attempts {
        let end = AttemptEnd::NotStarted { why: clean(&attempt.why) };
        let event = JobEvent::End { lease_id: attempt.lease_id, end };
        ended += u64::from(ledger.apply(attempt.job_id, event, INFORMER).is_ok());
    }
    super::finish(core, session, ledger).await?;
    Ok(ended)
}

/// Stamps `report_clock`; holds back verdicts by silence for a lease after a gap or a step back.
pub(super) async fn stamp(core: &Core) -> Result<(), StoreError> {
    core.database.change("stamping the report clock", |session| try_stamp(core, session)).await
}

async fn try_stamp(core: &Core, mut session: Session) -> Result<(), Fault> {
    let stamp = Query::new(STAMP)
        .bind(column(core.leases.report_gap_ms))
        .bind(STEP_BACK_MS)
        .bind(column(core.leases.lease_ms));
    let [stamped, now] = session.begin([stamp, Query::new(load::NOW)]).await?;
    let stepped_back = match stamped.first() {
        Some(row) => load::Columns::of(row).take()?,
        None => false,
    };
    if !stepped_back {
        session.commit(Vec::new()).await?;
        return Ok(());
    }
    let now = load::clock(&now)?;
    let far = crate::encoding::later_than_any_delay(now);
    let lease_until = now.plus_ms(core.leases.lease_ms);
    session
        .commit(vec![
            Query::new(BRING_BACK_WAITING).bind(far.0),
            Query::new(BRING_BACK_LEASES).bind(lease_until.0),
        ])
        .await?;
    tracing::warn!("the clock stepped back; what lay too far ahead was brought back");
    let mut wakes = Wakes::of(WakeTopic::Placement);
    wakes.add(WakeTopic::Due);
    core.wakes.bump(wakes);
    Ok(())
}
