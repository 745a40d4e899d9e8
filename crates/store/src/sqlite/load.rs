//! Rows of `job_live`, `attempt_live`, `job_end` and `attempt`, read into what the ledger works with.

use jobyard_model::lifecycle::Policy;
use jobyard_model::{Job, JobId, JobSpec, LeaseId, Priority, ShapeId};
use rusqlite::{OptionalExtension, Row, params};
use uuid::Uuid;

use super::fault::Fault;
use super::scope::Scope;
use crate::encoding::{from_json, policy_of};
use crate::ledger::{Ledger, Past, PastAttempt};
use crate::rows::{AttemptRow, EndRow, JobRow, Seat};

const JOB_LIVE: &str = "SELECT id, status, kind, pool_id, shape_id, owner_id, lane, priority, wait_since_ms, \
    due_ms, artifact_missing, start_deadline_ms, attempt, lease_id, intent, round, retry_count, \
    platform_failures, platform_since_ms, unpaid_in_row, evictions, avoid_node, max_retries, backoff_ms, \
    no_retry_exit_codes, start_within_ms, exclusive, started_ms FROM job_live WHERE id = ?1";

const ATTEMPT_LIVE: &str = "SELECT job_id, number, lease_id, node_id, session, phase, placed_ms, accepted_ms, \
    started_ms, lease_until_ms, heard_ms, cpu_milli, memory_bytes, service FROM attempt_live WHERE job_id = ?1";

const JOB_END: &str = "SELECT job_id, round, status, reason, finished_ms, started_ms, attempt, intent, \
    retry_count, platform_failures, unpaid_in_row, evictions, platform_since_ms \
    FROM job_end WHERE job_id = ?1 AND current";

fn job_row(row: &Row<'_>) -> rusqlite::Result<JobRow> {
    Ok(JobRow {
        id: row.get(0)?,
        status: row.get(1)?,
        kind: row.get(2)?,
        pool_id: row.get(3)?,
        shape_id: row.get(4)?,
        owner_id: row.get(5)?,
        lane: row.get(6)?,
        priority: row.get(7)?,
        wait_since_ms: row.get(8)?,
        due_ms: row.get(9)?,
        artifact_missing: row.get(10)?,
        start_deadline_ms: row.get(11)?,
        attempt: row.get(12)?,
        lease_id: row.get(13)?,
        intent: row.get(14)?,
        round: row.get(15)?,
        retry_count: row.get(16)?,
        platform_failures: row.get(17)?,
        platform_since_ms: row.get(18)?,
        unpaid_in_row: row.get(19)?,
        evictions: row.get(20)?,
        avoid_node: row.get(21)?,
        max_retries: row.get(22)?,
        backoff_ms: row.get(23)?,
        no_retry_exit_codes: row.get(24)?,
        start_within_ms: row.get(25)?,
        exclusive: row.get(26)?,
        started_ms: row.get(27)?,
    })
}

fn attempt_row(row: &Row<'_>) -> rusqlite::Result<AttemptRow> {
    Ok(AttemptRow {
        job_id: row.get(0)?,
        number: row.get(1)?,
        lease_id: row.get(2)?,
        node_id: row.get(3)?,
        session: row.get(4)?,
        phase: row.get(5)?,
        placed_ms: row.get(6)?,
        accepted_ms: row.get(7)?,
        started_ms: row.get(8)?,
        lease_until_ms: row.get(9)?,
        heard_ms: row.get(10)?,
        cpu_milli: row.get(11)?,
        memory_bytes: row.get(12)?,
        service: row.get(13)?,
    })
}

fn end_row(row: &Row<'_>) -> rusqlite::Result<EndRow> {
    Ok(EndRow {
        job_id: row.get(0)?,
        round: row.get(1)?,
        status: row.get(2)?,
        reason: row.get(3)?,
        finished_ms: row.get(4)?,
        started_ms: row.get(5)?,
        attempt: row.get(6)?,
        intent: row.get(7)?,
        retry_count: row.get(8)?,
        platform_failures: row.get(9)?,
        unpaid_in_row: row.get(10)?,
        evictions: row.get(11)?,
        platform_since_ms: row.get(12)?,
    })
}

/// The hot row of a job that is not over, with its live attempt.
pub(super) fn live(scope: &Scope<'_>, job_id: JobId) -> Result<Option<(JobRow, Option<AttemptRow>)>, Fault> {
    let row = scope.statement(JOB_LIVE)?.query_row([job_id.0], job_row).optional()?;
    let Some(row) = row else { return Ok(None) };
    let attempt = match row.lease_id {
        Some(_) => attempt_live(scope, job_id)?,
        None => None,
    };
    Ok(Some((row, attempt)))
}

/// The live attempt of a job.
pub(super) fn attempt_live(scope: &Scope<'_>, job_id: JobId) -> Result<Option<AttemptRow>, Fault> {
    Ok(scope.statement(ATTEMPT_LIVE)?.query_row([job_id.0], attempt_row).optional()?)
}

/// The end of a job's newest round, once it is over.
pub(super) fn current_end(scope: &Scope<'_>, job_id: JobId) -> Result<Option<EndRow>, Fault> {
    Ok(scope.statement(JOB_END)?.query_row([job_id.0], end_row).optional()?)
}

/// Takes a job that is not over into the ledger. `false`: there is none of this id.
pub(super) fn into_ledger(scope: &Scope<'_>, ledger: &mut Ledger, job_id: JobId) -> Result<bool, Fault> {
    let Some((row, attempt)) = live(scope, job_id)? else { return Ok(false) };
    ledger.load(row, attempt)?;
    Ok(true)
}

/// As [`into_ledger`], for a job that may be over.
pub(super) fn any_into_ledger(scope: &Scope<'_>, ledger: &mut Ledger, job_id: JobId) -> Result<bool, Fault> {
    if into_ledger(scope, ledger, job_id)? {
        return Ok(true);
    }
    let Some(end) = current_end(scope, job_id)? else { return Ok(false) };
    let Some((spec, seat)) = spec_and_seat(scope, job_id)? else { return Ok(false) };
    ledger.load_ended(ended_job(&end, policy_of(&spec))?, seat);
    Ok(true)
}

fn ended_job(end: &EndRow, policy: Policy) -> Result<Job, Fault> {
    Ok(end.to_job(policy)?)
}

fn spec_and_seat(scope: &Scope<'_>, job_id: JobId) -> Result<Option<(JobSpec, Seat)>, Fault> {
    let found = scope
        .statement("SELECT spec, owner_id, pool_id, shape_id FROM job WHERE id = ?1")?
        .query_row([job_id.0], |row| {
            Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?, row.get::<_, i32>(3)?))
        })
        .optional()?;
    let Some((text, owner_id, pool_id, shape_id)) = found else { return Ok(None) };
    let spec: JobSpec = from_json("job", job_id, &text)?;
    let priority: Priority = spec.priority;
    Ok(Some((spec, Seat { owner_id, pool_id, shape_id: ShapeId(shape_id), priority })))
}

/// What was submitted.
pub(super) fn spec(scope: &Scope<'_>, job_id: JobId) -> Result<Option<JobSpec>, Fault> {
    let text: Option<String> = scope
        .statement("SELECT spec FROM job WHERE id = ?1")?
        .query_row([job_id.0], |row| row.get(0))
        .optional()?;
    Ok(match text {
        Some(text) => Some(from_json("job", job_id, &text)?),
        None => None,
    })
}

/// What history has of these attempts.
pub(super) fn past(scope: &Scope<'_>, attempts: &[(JobId, u32)]) -> Result<Past, Fault> {
    let mut statement =
        scope.statement("SELECT lease_id, fingerprint FROM attempt WHERE job_id = ?1 AND number = ?2")?;
    let mut past = Past::new();
    for (job_id, number) in attempts {
        let found = statement
            .query_row(params![job_id.0, number], |row| {
                Ok(PastAttempt { lease_id: LeaseId(row.get(0)?), fingerprint: row.get(1)? })
            })
            .optional()?;
        past.extend(found.map(|attempt| ((*job_id, *number), attempt)));
    }
    Ok(past)
}

/// Ids of a query that yields one column.
pub(super) fn ids(scope: &Scope<'_>, sql: &str, params: impl rusqlite::Params) -> Result<Vec<JobId>, Fault> {
    let mut statement = scope.statement(sql)?;
    let rows = statement.query_map(params, |row| row.get::<_, Uuid>(0).map(JobId))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
