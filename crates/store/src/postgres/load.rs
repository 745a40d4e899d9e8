//! Rows of the hot tables and the history, read under lock and turned into the shared records.
//!
//! Lock order: `job_live`, then `attempt_live`, each by ascending id.

use tokio_postgres::Row;
use tokio_postgres::types::FromSqlOwned;
use uuid::Uuid;

use jobyard_model::{JobId, LeaseId, LeaseSettings, Timestamp};

use super::fault::{Fault, Shared};
use super::query::Query;
use super::session::{Rows, Session};
use crate::ledger::{Ledger, Past, PastAttempt, Terms};
use crate::rows::{AttemptRow, EndRow, JobRow, number};

/// The columns of `job_live` as [`job_row`] reads them.
macro_rules! job_columns {
    () => {
        "j.id, j.status, j.kind, j.pool_id, j.shape_id, j.owner_id, j.lane, j.priority, j.wait_since_ms, j.due_ms, \
         j.artifact_missing, j.start_deadline_ms, j.attempt, j.lease_id, j.intent, j.round, j.retry_count, \
         j.platform_failures, j.platform_since_ms, j.unpaid_in_row, j.evictions, j.avoid_node, j.max_retries, \
         j.backoff_ms, j.no_retry_exit_codes, j.start_within_ms, j.exclusive, j.started_ms"
    };
}

/// The columns of `attempt_live` as [`attempt_row`] reads them.
macro_rules! attempt_columns {
    () => {
        "a.job_id, a.number, a.lease_id, a.node_id, a.session, a.phase, a.placed_ms, a.accepted_ms, a.started_ms, \
         a.lease_until_ms, a.heard_ms, a.cpu_milli, a.memory_bytes, a.service"
    };
}

/// The columns of `job_end` as [`end_row`] reads them.
macro_rules! end_columns {
    () => {
        "e.job_id, e.round, e.status, e.reason, e.finished_ms, e.started_ms, e.attempt, e.intent, e.retry_count, \
         e.platform_failures, e.unpaid_in_row, e.evictions, e.platform_since_ms"
    };
}
pub(super) use {attempt_columns, end_columns, job_columns};

const LOCK_JOBS: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM job_live j WHERE j.id = ANY($1) ORDER BY j.id FOR NO KEY UPDATE"
);
const LOCK_ATTEMPTS: &str = concat!(
    "SELECT ",
    attempt_columns!(),
    " FROM attempt_live a WHERE a.job_id = ANY($1) ORDER BY a.job_id FOR NO KEY UPDATE"
);
/// Only once the locks are held, so that no lease is judged by a time before the wait.
pub(super) const NOW: &str = "SELECT jobyard_now()";
/// For how long the statements between two of these took.
pub(super) const STOPWATCH: &str = "SELECT jobyard_stopwatch_us()";
const PAST: &str = "SELECT a.job_id, a.number, a.lease_id, a.fingerprint
    FROM unnest($1::uuid[], $2::int[]) AS asked(job_id, number) CROSS JOIN LATERAL (
      SELECT * FROM attempt WHERE attempt.job_id = asked.job_id AND attempt.number = asked.number OFFSET 0) a";

/// Opens the transaction, locks these jobs with their live attempts, and takes them into a ledger. Jobs that are over
/// or don't exist are not in it.
pub(super) async fn lock_jobs(
    session: &mut Session,
    jobs: Vec<Uuid>,
    leases: LeaseSettings,
) -> Result<Ledger, Fault> {
    let [jobs, attempts, now] = session.begin(lock_queries(jobs)).await?;
    ledger(&jobs, &attempts, &now, leases)
}

/// As [`lock_jobs`], in a transaction that is open already.
pub(super) async fn lock_more(
    session: &mut Session,
    jobs: Vec<Uuid>,
    leases: LeaseSettings,
) -> Result<Ledger, Fault> {
    let [jobs, attempts, now] = session.query(lock_queries(jobs)).await?;
    ledger(&jobs, &attempts, &now, leases)
}

fn lock_queries(mut jobs: Vec<Uuid>) -> [Query; 3] {
    jobs.sort_unstable();
    jobs.dedup();
    [Query::new(LOCK_JOBS).bind(jobs.clone()), Query::new(LOCK_ATTEMPTS).bind(jobs), Query::new(NOW)]
}

/// A ledger of rows that are locked; both sets ascend by job.
pub(super) fn ledger(
    jobs: &Rows,
    attempts: &Rows,
    now: &Rows,
    leases: LeaseSettings,
) -> Result<Ledger, Fault> {
    let mut ledger = Ledger::new(Terms { now: clock(now)?, leases });
    let mut attempts =
        attempts.iter().map(attempt_row).collect::<Result<Vec<_>, _>>()?.into_iter().peekable();
    for job in jobs {
        let job = job_row(job)?;
        while attempts.next_if(|attempt| attempt.job_id < job.id).is_some() {}
        let attempt = attempts.next_if(|attempt| attempt.job_id == job.id);
        into(&mut ledger, job, attempt);
    }
    Ok(ledger)
}

/// Takes a job in. One whose rows make no sense is passed over: it must not hold back the others.
pub(super) fn into(ledger: &mut Ledger, job: JobRow, attempt: Option<AttemptRow>) {
    let job_id = JobId(job.id);
    if let Err(error) = ledger.load(job, attempt) {
        tracing::error!(%job_id, %error, "a job's rows make no sense; it is passed over");
        ledger.withhold(job_id);
    }
}

/// What history says of these attempts.
pub(super) async fn past(session: &mut Session, attempts: &[(JobId, u32)]) -> Result<Past, Fault> {
    let query = Query::new(PAST)
        .bind_each(attempts, |(job_id, _)| job_id.0)
        .bind_each(attempts, |(_, number)| crate::rows::number_column(*number));
    let [rows] = session.query([query]).await?;
    rows.iter()
        .map(|row| {
            let mut columns = Columns::of(row);
            let attempt = (JobId(columns.take()?), number(columns.take()?));
            Ok((attempt, PastAttempt { lease_id: LeaseId(columns.take()?), fingerprint: columns.take()? }))
        })
        .collect()
}

/// The answer to [`NOW`].
pub(super) fn clock(rows: &Rows) -> Result<Timestamp, Fault> {
    let row = rows.first().ok_or_else(|| Fault::Statement(Shared::new("the clock gave no answer")))?;
    Ok(Timestamp(Columns::of(row).take()?))
}

/// Microseconds between two answers to [`STOPWATCH`].
pub(super) fn elapsed_us(before: &Rows, after: &Rows) -> Result<i64, Fault> {
    Ok(clock(after)?.0 - clock(before)?.0)
}

/// A row of `job_live`, from [`job_columns`].
pub(super) fn job_row(row: &Row) -> Result<JobRow, Fault> {
    job_row_from(&mut Columns::of(row))
}

/// As [`job_row`], among other columns.
pub(super) fn job_row_from(columns: &mut Columns<'_>) -> Result<JobRow, Fault> {
    Ok(JobRow {
        id: columns.take()?,
        status: columns.take()?,
        kind: columns.take()?,
        pool_id: columns.take()?,
        shape_id: columns.take()?,
        owner_id: columns.take()?,
        lane: columns.take()?,
        priority: columns.take()?,
        wait_since_ms: columns.take()?,
        due_ms: columns.take()?,
        artifact_missing: columns.take()?,
        start_deadline_ms: columns.take()?,
        attempt: columns.take()?,
        lease_id: columns.take()?,
        intent: columns.take()?,
        round: columns.take()?,
        retry_count: columns.take()?,
        platform_failures: columns.take()?,
        platform_since_ms: columns.take()?,
        unpaid_in_row: columns.take()?,
        evictions: columns.take()?,
        avoid_node: columns.take()?,
        max_retries: columns.take()?,
        backoff_ms: columns.take()?,
        no_retry_exit_codes: columns.take()?,
        start_within_ms: columns.take()?,
        exclusive: columns.take()?,
        started_ms: columns.take()?,
    })
}

/// A row of `attempt_live`, from [`attempt_columns`].
pub(super) fn attempt_row(row: &Row) -> Result<AttemptRow, Fault> {
    attempt_row_from(&mut Columns::of(row))
}

/// As [`attempt_row`], among other columns.
pub(super) fn attempt_row_from(columns: &mut Columns<'_>) -> Result<AttemptRow, Fault> {
    Ok(AttemptRow {
        job_id: columns.take()?,
        number: columns.take()?,
        lease_id: columns.take()?,
        node_id: columns.take()?,
        session: columns.take()?,
        phase: columns.take()?,
        placed_ms: columns.take()?,
        accepted_ms: columns.take()?,
        started_ms: columns.take()?,
        lease_until_ms: columns.take()?,
        heard_ms: columns.take()?,
        cpu_milli: columns.take()?,
        memory_bytes: columns.take()?,
        service: columns.take()?,
    })
}

/// A row of `job_end`, from [`end_columns`].
pub(super) fn end_row_from(columns: &mut Columns<'_>) -> Result<EndRow, Fault> {
    Ok(EndRow {
        job_id: columns.take()?,
        round: columns.take()?,
        status: columns.take()?,
        reason: columns.take()?,
        finished_ms: columns.take()?,
        started_ms: columns.take()?,
        attempt: columns.take()?,
        intent: columns.take()?,
        retry_count: columns.take()?,
        platform_failures: columns.take()?,
        unpaid_in_row: columns.take()?,
        evictions: columns.take()?,
        platform_since_ms: columns.take()?,
    })
}

/// A row read from left to right.
pub(super) struct Columns<'r> {
    row: &'r Row,
    next: usize,
}

impl<'r> Columns<'r> {
    /// From the first column.
    pub(super) fn of(row: &'r Row) -> Self {
        Self { row, next: 0 }
    }

    /// The next column.
    ///
    /// # Errors
    /// When the statement and its reader disagree.
    pub(super) fn take<T: FromSqlOwned>(&mut self) -> Result<T, Fault> {
        let index = self.next;
        self.next += 1;
        self.row.try_get(index).map_err(|error| Fault::Statement(Shared::new(error)))
    }

    /// Leaves columns out.
    pub(super) fn skip(&mut self, count: usize) {
        self.next += count;
    }

    /// Whether the next column, a UUID, is null: that of a row which was not joined.
    ///
    /// # Errors
    /// When the statement and its reader disagree.
    pub(super) fn absent(&self) -> Result<bool, Fault> {
        let id: Option<Uuid> =
            self.row.try_get(self.next).map_err(|error| Fault::Statement(Shared::new(error)))?;
        Ok(id.is_none())
    }
}
