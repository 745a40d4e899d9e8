//! Jobs and attempts as read. A record is read by one statement, so it never shows a job in two places.

use std::collections::HashMap;
use std::sync::Arc;

use jobyard_model::{AttemptEnd, Intent, JobId, JobSpec, LeaseId, NodeId, Outcome, ServiceRun, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

use super::Core;
use super::fault::Fault;
use super::load::{self, Columns, attempt_columns, end_columns, job_columns};
use super::query::Query;
use super::session::Rows;
use crate::encoding::{from_json, inconsistent, policy_of};
use crate::rows::{self, number};
use crate::{AttemptRecord, JobRecord, StoreError};

/// Whole records of these ids.
pub(super) const RECORDS: &str = concat!(
    "SELECT job.id, job.spec::text, job.submitted_by, job.created_ms, job.idempotency_key, ",
    job_columns!(),
    ", ",
    attempt_columns!(),
    ", ",
    end_columns!(),
    ", last.number, last.outcome, last.end, last.service
  FROM job LEFT JOIN LATERAL (SELECT * FROM job_live WHERE job_live.id = job.id OFFSET 0) j ON true
    LEFT JOIN LATERAL (SELECT * FROM attempt_live WHERE attempt_live.job_id = job.id OFFSET 0) a ON true
    LEFT JOIN LATERAL (SELECT * FROM job_end
      WHERE job_end.job_id = job.id AND job_end.current OFFSET 0) e ON true
    LEFT JOIN LATERAL (SELECT number, outcome, \"end\", service FROM attempt
      WHERE attempt.job_id = job.id ORDER BY number DESC LIMIT 1) last ON true
  WHERE job.id = ANY($1) ORDER BY job.id DESC"
);
const JOB_COLUMNS: usize = 28;
const ATTEMPT_COLUMNS: usize = 14;
const END_COLUMNS: usize = 13;

const ATTEMPTS: &str = "SELECT number, round, lease_id, node_id, node_name, placed_ms, accepted_ms, started_ms,
    ended_ms, lease_until_ms, outcome, \"end\", NULL::smallint, NULL::smallint, service FROM attempt WHERE job_id = $1
  UNION ALL
  SELECT a.number, j.round, a.lease_id, a.node_id, coalesce(node.name, ''), a.placed_ms, a.accepted_ms, a.started_ms,
    NULL, a.lease_until_ms, NULL, NULL, a.phase, j.intent, a.service
  FROM attempt_live a JOIN job_live j ON j.id = a.job_id LEFT JOIN node ON node.node_id = a.node_id
  WHERE a.job_id = $1
  ORDER BY number";

/// A job that was looked for.
pub(super) type Found = Result<Option<JobRecord>, Fault>;

/// Jobs that several callers look for, in order. What is wrong with one job is told to its caller alone.
pub(super) async fn find(core: Arc<Core>, ids: Vec<JobId>) -> Vec<Found> {
    let rows = match read(&core, &ids).await {
        Ok(rows) => rows,
        Err(fault) => return vec![Err(fault); ids.len()],
    };
    let row_of: HashMap<Uuid, &Row> = rows.iter().map(|row| (row.get(0), row)).collect();
    ids.iter().map(|id| row_of.get(&id.0).map(|row| record(row)).transpose()).collect()
}

async fn read(core: &Core, ids: &[JobId]) -> Result<Rows, Fault> {
    let query = || [Query::new(RECORDS).bind_each(ids, |job_id| job_id.0)];
    let [rows] = core.database.read(query).await?;
    Ok(rows)
}

/// A row of [`RECORDS`].
pub(super) fn record(row: &Row) -> Result<JobRecord, Fault> {
    let mut columns = Columns::of(row);
    let id: Uuid = columns.take()?;
    let spec: String = columns.take()?;
    let spec: JobSpec = from_json("job", id, &spec)?;
    let (submitted_by, created_ms, idempotency_key) = (columns.take()?, columns.take()?, columns.take()?);
    let live = match columns.absent()? {
        true => {
            columns.skip(JOB_COLUMNS);
            None
        }
        false => Some(load::job_row_from(&mut columns)?),
    };
    let attempt = match columns.absent()? {
        true => {
            columns.skip(ATTEMPT_COLUMNS);
            None
        }
        false => Some(load::attempt_row_from(&mut columns)?),
    };
    let (job, started_ms) = match (live, columns.absent()?) {
        (Some(live), _) => {
            columns.skip(END_COLUMNS);
            (live.to_job(attempt.as_ref())?, live.started_ms)
        }
        (None, false) => {
            let end = load::end_row_from(&mut columns)?;
            (end.to_job(policy_of(&spec))?, end.started_ms)
        }
        (None, true) => return Err(inconsistent("job", id, "neither live nor ended").into()),
    };
    let (last_end, last_service) = match columns.take::<Option<i32>>()? {
        Some(last) => (Some(ended(id, last, &mut columns)?), service(id, &mut columns)?),
        None => (None, None),
    };
    Ok(JobRecord {
        spec,
        submitted_by,
        created_at: Timestamp(created_ms),
        idempotency_key,
        job,
        started_at: started_ms.map(Timestamp),
        last_end,
        last_service,
    })
}

fn ended(id: Uuid, last: i32, columns: &mut Columns<'_>) -> Result<(u32, Outcome, AttemptEnd), Fault> {
    let outcome = outcome(id, columns.take()?)?;
    let end: String = columns.take()?;
    Ok((number(last), outcome, from_json("attempt", id, &end)?))
}

fn service(id: Uuid, columns: &mut Columns<'_>) -> Result<Option<ServiceRun>, Fault> {
    Ok(rows::service("attempt", id, columns.take::<Option<String>>()?.as_deref())?)
}

fn outcome(id: Uuid, code: i16) -> Result<Outcome, Fault> {
    Ok(Outcome::from_code(code).ok_or_else(|| inconsistent("attempt", id, "no such outcome"))?)
}

/// All attempts of a job, ended and live, by number.
pub(super) async fn attempts(core: &Core, job_id: JobId) -> Result<Vec<AttemptRecord>, StoreError> {
    const DOING: &str = "reading a job's attempts";
    let rows = core.database.read(|| [Query::new(ATTEMPTS).bind(job_id.0)]).await;
    let [rows] = rows.map_err(|fault| fault.during(DOING))?;
    let records = rows.iter().map(|row| attempt(job_id, row));
    records.collect::<Result<_, Fault>>().map_err(|fault| fault.during(DOING))
}

fn attempt(job_id: JobId, row: &Row) -> Result<AttemptRecord, Fault> {
    let time = |ms: Option<i64>| ms.map(Timestamp);
    let mut columns = Columns::of(row);
    let (number_, round) = (number(columns.take()?), number(columns.take()?));
    let (lease_id, node_id) = (LeaseId(columns.take()?), NodeId(columns.take()?));
    let node_name = columns.take()?;
    let placed_at = Timestamp(columns.take()?);
    let (accepted_at, started_at) = (time(columns.take()?), time(columns.take()?));
    let (ended_at, lease_until) = (time(columns.take()?), time(columns.take()?));
    let end = match (columns.take::<Option<i16>>()?, columns.take::<Option<String>>()?) {
        (Some(code), Some(end)) => Some((outcome(job_id.0, code)?, from_json("attempt", job_id, &end)?)),
        _ => None,
    };
    let phase = columns.take::<Option<i16>>()?.map(jobyard_model::Phase::from_code);
    let intent = columns.take::<Option<i16>>()?.and_then(Intent::from_code).unwrap_or(Intent::Run);
    let service = service(job_id.0, &mut columns)?;
    let phase = match phase {
        Some(None) => return Err(inconsistent("attempt_live", job_id, "no such phase").into()),
        Some(phase) => phase,
        None => None,
    };
    Ok(AttemptRecord {
        number: number_,
        round,
        lease_id,
        node_id,
        node_name,
        phase,
        intent,
        placed_at,
        accepted_at,
        started_at,
        ended_at,
        lease_until,
        end,
        service,
    })
}
