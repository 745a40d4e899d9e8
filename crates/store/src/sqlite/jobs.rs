//! Jobs and attempts as read.

use jobyard_model::{
    AttemptEnd, Intent, JobId, JobSpec, LeaseId, NodeId, Outcome, Phase, ServiceRun, Timestamp,
};
use rusqlite::{OptionalExtension, Row};

use super::fault::Fault;
use super::load;
use super::scope::Scope;
use crate::encoding::{from_json, inconsistent, policy_of};
use crate::{AttemptRecord, JobRecord, rows};

/// One job.
pub(super) fn one(scope: &Scope<'_>, job_id: JobId) -> Result<Option<JobRecord>, Fault> {
    match submitted(scope, job_id)? {
        Some(submitted) => record(scope, job_id, submitted),
        None => Ok(None),
    }
}

struct SubmittedRow {
    spec: JobSpec,
    submitted_by: String,
    created_at: Timestamp,
    idempotency_key: Option<String>,
}

fn submitted(scope: &Scope<'_>, job_id: JobId) -> Result<Option<SubmittedRow>, Fault> {
    let sql = "SELECT spec, submitted_by, created_ms, idempotency_key FROM job WHERE id = ?1";
    let mut statement = scope.statement(sql)?;
    let mut rows = statement.query([job_id.0])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(SubmittedRow {
        spec: from_json("job", job_id, row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)?,
        submitted_by: row.get(1)?,
        created_at: Timestamp(row.get(2)?),
        idempotency_key: row.get(3)?,
    }))
}

fn record(scope: &Scope<'_>, job_id: JobId, submitted: SubmittedRow) -> Result<Option<JobRecord>, Fault> {
    let (job, started_ms) = match load::live(scope, job_id)? {
        Some((row, attempt)) => (row.to_job(attempt.as_ref())?, row.started_ms),
        None => {
            let end = load::current_end(scope, job_id)?;
            let end = end.ok_or_else(|| inconsistent("job", job_id, "neither live nor ended"))?;
            (end.to_job(policy_of(&submitted.spec))?, end.started_ms)
        }
    };
    let last = if job.last_attempt > 0 { last_ended(scope, job_id)? } else { None };
    let (last_end, last_service) = last.unzip();
    Ok(Some(JobRecord {
        spec: submitted.spec,
        submitted_by: submitted.submitted_by,
        created_at: submitted.created_at,
        idempotency_key: submitted.idempotency_key,
        job,
        started_at: started_ms.map(Timestamp),
        last_end,
        last_service: last_service.flatten(),
    }))
}

type LastEnded = ((u32, Outcome, AttemptEnd), Option<ServiceRun>);

fn last_ended(scope: &Scope<'_>, job_id: JobId) -> Result<Option<LastEnded>, Fault> {
    let sql = "SELECT number, outcome, \"end\", service FROM attempt WHERE job_id = ?1 ORDER BY number DESC LIMIT 1";
    let found = scope
        .statement(sql)?
        .query_row([job_id.0], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?, row.get::<_, Option<String>>(3)?))
        })
        .optional()?;
    let Some((number, code, text, service)) = found else { return Ok(None) };
    let end = (number, outcome(job_id, code)?, from_json("attempt", job_id, &text)?);
    Ok(Some((end, rows::service("attempt", job_id.0, service.as_deref())?)))
}

fn outcome(job_id: JobId, code: i16) -> Result<Outcome, Fault> {
    Ok(Outcome::from_code(code).ok_or_else(|| inconsistent("attempt", job_id, "no such outcome"))?)
}

/// All attempts of a job, by number.
pub(super) fn attempts(scope: &Scope<'_>, job_id: JobId) -> Result<Vec<AttemptRecord>, Fault> {
    let sql = "SELECT number, round, lease_id, node_id, node_name, placed_ms, accepted_ms, started_ms, ended_ms, \
        lease_until_ms, outcome, \"end\", service FROM attempt WHERE job_id = ?1 ORDER BY number";
    let mut statement = scope.statement(sql)?;
    let mut rows = statement.query([job_id.0])?;
    let mut attempts = Vec::new();
    while let Some(row) = rows.next()? {
        attempts.push(ended_attempt(job_id, row)?);
    }
    attempts.extend(live_attempt(scope, job_id)?);
    Ok(attempts)
}

fn ended_attempt(job_id: JobId, row: &Row<'_>) -> Result<AttemptRecord, Fault> {
    let end = from_json("attempt", job_id, &row.get::<_, String>(11)?)?;
    let service: Option<String> = row.get(12)?;
    Ok(AttemptRecord {
        number: row.get(0)?,
        round: row.get(1)?,
        lease_id: LeaseId(row.get(2)?),
        node_id: NodeId(row.get(3)?),
        node_name: row.get(4)?,
        phase: None,
        intent: Intent::Run,
        placed_at: Timestamp(row.get(5)?),
        accepted_at: row.get::<_, Option<i64>>(6)?.map(Timestamp),
        started_at: row.get::<_, Option<i64>>(7)?.map(Timestamp),
        ended_at: Some(Timestamp(row.get(8)?)),
        lease_until: Some(Timestamp(row.get(9)?)),
        end: Some((outcome(job_id, row.get(10)?)?, end)),
        service: rows::service("attempt", job_id.0, service.as_deref())?,
    })
}

fn live_attempt(scope: &Scope<'_>, job_id: JobId) -> Result<Option<AttemptRecord>, Fault> {
    let Some((row, Some(attempt))) = load::live(scope, job_id)? else { return Ok(None) };
    let node_name: Option<String> = scope
        .statement("SELECT name FROM node WHERE node_id = ?1")?
        .query_row([attempt.node_id], |row| row.get(0))
        .optional()?;
    let job = row.to_job(Some(&attempt))?;
    let live = attempt.to_live()?;
    Ok(Some(AttemptRecord {
        number: live.number,
        round: job.round,
        lease_id: live.lease_id,
        node_id: live.node_id,
        node_name: node_name.unwrap_or_default(),
        phase: Some::<Phase>(live.phase),
        intent: job.intent,
        placed_at: live.placed_at,
        accepted_at: live.accepted_at,
        started_at: live.started_at,
        ended_at: None,
        lease_until: Some(live.lease_until),
        end: None,
        service: live.service,
    }))
}
