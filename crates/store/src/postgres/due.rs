//! What time alone brings about: due jobs, start deadlines, leases that ran out.

use std::sync::PoisonError;

use jobyard_model::{AttemptEnd, JobEvent, Timestamp};
use uuid::Uuid;

use super::Core;
use super::fault::Fault;
use super::load::{self, Columns, attempt_columns, job_columns};
use super::query::Query;
use super::session::{Rows, Session};
use crate::encoding::{amount, later_than_any_delay};
use crate::ledger::{INFORMER, Ledger, Terms};
use crate::{SilenceReport, StoreError};

// One statement each, so that each follows its index. Whoever holds a row moves it on itself.
const DUE_READY: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM job_live j WHERE j.status = 1 AND j.due_ms <= (SELECT jobyard_now())
    ORDER BY j.status, j.due_ms LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED"
);
const DUE_RETRY: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM job_live j WHERE j.status = 4 AND j.due_ms <= (SELECT jobyard_now())
    ORDER BY j.status, j.due_ms LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED"
);
// Further away than any delay: the clock stepped back.
const FAR_RETRY: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM job_live j WHERE j.status = 4 AND j.due_ms > (SELECT jobyard_now()) + $2
    ORDER BY j.status, j.due_ms LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED"
);
const START_DEADLINE: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM job_live j WHERE j.status IN (1, 2) AND j.start_deadline_ms IS NOT NULL
    AND j.start_deadline_ms <= (SELECT jobyard_now()) ORDER BY j.start_deadline_ms
    LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED"
);

const REPORT_CLOCK: &str = "SELECT stamped_ms, reap_not_before_ms FROM report_clock";
const COUNT_SILENT: &str = "SELECT count(*) FROM attempt_live WHERE lease_until_ms <= $1";
const FIND_SILENT: &str = "SELECT job_id FROM attempt_live WHERE lease_until_ms <= $1
    ORDER BY lease_until_ms, job_id LIMIT $2";
const LOCK_JOBS: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM job_live j WHERE j.id = ANY($1) ORDER BY j.id FOR NO KEY UPDATE SKIP LOCKED"
);
// Whose job is held by somebody else is passed over with it.
const LOCK_SILENT: &str = concat!(
    "SELECT ",
    attempt_columns!(),
    " FROM attempt_live a WHERE a.job_id = ANY($1) AND a.lease_until_ms <= $2
    ORDER BY a.job_id FOR NO KEY UPDATE SKIP LOCKED"
);

/// Moves due jobs to `waiting`, ends those whose `start_within` is over, and counts both.
pub(super) async fn release(core: &Core, limit: u32) -> Result<u64, StoreError> {
    core.database.change("releasing due jobs", |session| try_release(core, session, limit)).await
}

async fn try_release(core: &Core, mut session: Session, limit: u32) -> Result<u64, Fault> {
    let limit = i64::from(limit);
    let far = later_than_any_delay(Timestamp(0)).0;
    let [ready, retry, far_retry, deadline, now] = session
        .begin([
            Query::new(DUE_READY).bind(limit),
            Query::new(DUE_RETRY).bind(limit),
            Query::new(FAR_RETRY).bind(limit).bind(far),
            Query::new(START_DEADLINE).bind(limit),
            Query::new(load::NOW),
        ])
        .await?;
    let terms = Terms { now: load::clock(&now)?, leases: core.leases };
    let mut ledger = Ledger::new(terms);
    let mut moved = 0;
    for (rows, event) in [
        (ready, JobEvent::Due),
        (retry, JobEvent::Due),
        (far_retry, JobEvent::Due),
        (deadline, JobEvent::StartDeadlinePassed),
    ] {
        moved += apply_to_all(&mut ledger, &rows, (&event, terms.now))?;
    }
    super::finish(core, session, ledger).await?;
    Ok(moved)
}

fn apply_to_all(
    ledger: &mut Ledger,
    rows: &Rows,
    (event, now): (&JobEvent, Timestamp),
) -> Result<u64, Fault> {
    let mut applied = 0;
    for row in rows {
        let mut row = load::job_row(row)?;
        let id = jobyard_model::JobId(row.id);
        row.due_ms = row.due_ms.map(|due| due.min(now.0));
        // Found due a moment ago, it may be found past its deadline too.
        if ledger.job(id).is_none() {
            load::into(ledger, row, None);
        }
        applied += u64::from(ledger.apply(id, event.clone(), INFORMER).is_ok());
    }
    Ok(applied)
}

/// Gives up on attempts whose lease ran out, unless silence is not to be judged now (promise 4).
pub(super) async fn expire_silent(core: &Core, limit: u32) -> Result<SilenceReport, StoreError> {
    core.database.change("giving up on silent attempts", |session| try_expire(core, session, limit)).await
}

async fn try_expire(core: &Core, mut session: Session, limit: u32) -> Result<SilenceReport, Fault> {
    let [clock, now] = session.begin([Query::new(REPORT_CLOCK), Query::new(load::NOW)]).await?;
    let now = load::clock(&now)?;
    if let Some(why) = paused(core, &clock, now)? {
        let [count] = session.query([Query::new(COUNT_SILENT).bind(now.0)]).await?;
        session.roll_back().await?;
        let held_back = match count.first() {
            Some(row) => amount(Columns::of(row).take()?),
            None => 0,
        };
        return Ok(SilenceReport { expired: 0, paused: Some(why), held_back });
    }
    let silent = find_silent(core, &mut session, now, limit).await?;
    if silent.is_empty() {
        session.roll_back().await?;
        return Ok(SilenceReport::default());
    }
    let ids: Vec<Uuid> = silent.iter().map(|row| Columns::of(row).take()).collect::<Result<_, _>>()?;
    let lock_jobs = Query::new(LOCK_JOBS).bind(ids.clone());
    let lock_attempts = Query::new(LOCK_SILENT).bind(ids.clone()).bind(now.0);
    let [jobs, attempts, now] = session.query([lock_jobs, lock_attempts, Query::new(load::NOW)]).await?;
    let expired = give_up(core, session, (&jobs, &attempts, &now)).await?;
    Ok(SilenceReport { expired, paused: None, held_back: 0 })
}

/// No index leads to these: each renewal would have to write it. While a held snapshot keeps attempts that are over in
/// the table, they are looked for less often.
async fn find_silent(core: &Core, session: &mut Session, now: Timestamp, limit: u32) -> Result<Rows, Fault> {
    {
        let mut pacing = core.silence.lock().unwrap_or_else(PoisonError::into_inner);
        if !pacing.is_quick(core.quick_walk_us) && !pacing.begin_if_rested() {
            return Ok(Rows::new());
        }
    }
    let stopwatch = || Query::new(load::STOPWATCH);
    let find = Query::new(FIND_SILENT).bind(now.0).bind(i64::from(limit));
    let found = session.query([stopwatch(), find, stopwatch()]).await;
    let took_us = match &found {
        Ok([before, _, after]) => Some(load::elapsed_us(before, after)?),
        Err(_) => None,
    };
    core.silence.lock().unwrap_or_else(PoisonError::into_inner).end(took_us);
    let [_, silent, _] = found?;
    Ok(silent)
}

async fn give_up(
    core: &Core,
    session: Session,
    (jobs, attempts, now): (&Rows, &Rows, &Rows),
) -> Result<u64, Fault> {
    let mut ledger = Ledger::new(Terms { now: load::clock(now)?, leases: core.leases });
    let mut silent =
        attempts.iter().map(load::attempt_row).collect::<Result<Vec<_>, _>>()?.into_iter().peekable();
    let mut expired = 0;
    for job in jobs {
        let job = load::job_row(job)?;
        while silent.next_if(|attempt| attempt.job_id < job.id).is_some() {}
        // Renewed, or ended, since it was found.
        let Some(attempt) = silent.next_if(|attempt| attempt.job_id == job.id) else { continue };
        let (id, lease_id) = (jobyard_model::JobId(job.id), jobyard_model::LeaseId(attempt.lease_id));
        load::into(&mut ledger, job, Some(attempt));
        let event = JobEvent::End { lease_id, end: AttemptEnd::Silent };
        expired += u64::from(ledger.apply(id, event, INFORMER).is_ok());
    }
    super::finish(core, session, ledger).await?;
    Ok(expired)
}

fn paused(core: &Core, clock: &Rows, now: Timestamp) -> Result<Option<&'static str>, Fault> {
    let (stamped_at, reap_not_before) = match clock.first() {
        Some(row) => {
            let mut columns = Columns::of(row);
            (Timestamp(columns.take()?), Timestamp(columns.take()?))
        }
        None => (Timestamp(0), Timestamp(0)),
    };
    let fresh_ms = core.leases.report_fresh_ms;
    Ok(match () {
        () if now.ms_since(stamped_at) > fresh_ms => {
            Some("no server with an open report door has been heard of lately")
        }
        () if stamped_at.ms_since(now) > fresh_ms => Some("the clock stepped back"),
        () if reap_not_before > now => Some("workers get one lease after a gap to be heard again"),
        () => None,
    })
}
