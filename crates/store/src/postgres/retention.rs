//! Removing what is old, a bounded batch at a time.

use uuid::Uuid;

use super::Core;
use super::fault::Fault;
use super::load::Columns;
use super::query::Query;
use super::session::Session;
use crate::{Cutoffs, Removed, StoreError};

// One statement a status, so that each follows its index. A job that is being retried by hand is held, and kept.
const OLD_SUCCESS: &str = "SELECT job_id FROM job_end WHERE current AND status = 5 AND finished_ms < $1
    ORDER BY status, finished_ms LIMIT $2 FOR UPDATE SKIP LOCKED";
const OLD_FAILED: &str = "SELECT job_id FROM job_end WHERE current AND status = 6 AND finished_ms < $1
    ORDER BY status, finished_ms LIMIT $2 FOR UPDATE SKIP LOCKED";
const OLD_CANCELLED: &str = "SELECT job_id FROM job_end WHERE current AND status = 7 AND finished_ms < $1
    ORDER BY status, finished_ms LIMIT $2 FOR UPDATE SKIP LOCKED";

const RAISE_FLOOR: &str = "UPDATE event_floor SET transaction = newest.transaction, number = newest.number
  FROM (SELECT transaction, number FROM event WHERE job_id = ANY($1)
    ORDER BY transaction DESC, number DESC LIMIT 1) newest
  WHERE (event_floor.transaction, event_floor.number) < (newest.transaction, newest.number)";
const REMOVE: [&str; 8] = [
    "DELETE FROM job_label USING (SELECT job.id, label.key, label.value FROM job
       CROSS JOIN LATERAL json_each_text(job.spec -> 'labels') label WHERE job.id = ANY($1)) old
     WHERE job_label.key = old.key AND job_label.value = old.value AND job_label.job_id = old.id",
    "DELETE FROM event WHERE job_id = ANY($1)",
    "DELETE FROM log_chunk WHERE job_id = ANY($1)",
    "DELETE FROM attempt WHERE job_id = ANY($1)",
    "DELETE FROM job_secret WHERE job_id = ANY($1)",
    "DELETE FROM job_artifact WHERE job_id = ANY($1)",
    "DELETE FROM job_end WHERE job_id = ANY($1)",
    "DELETE FROM job WHERE id = ANY($1)",
];

const REMOVE_KEYS: &str = "WITH old AS MATERIALIZED (
    SELECT ctid AS place FROM idempotency WHERE created_ms < $1
      AND (SELECT 1 FROM job_live WHERE job_live.id = idempotency.job_id) IS NULL
    ORDER BY created_ms LIMIT $2 FOR UPDATE SKIP LOCKED)
  DELETE FROM idempotency USING old WHERE idempotency.ctid = old.place
  RETURNING 1";
const REMOVE_AUDIT: &str = "WITH old AS MATERIALIZED (
    SELECT ctid AS place FROM audit WHERE at_ms < $1 ORDER BY at_ms LIMIT $2 FOR UPDATE SKIP LOCKED)
  DELETE FROM audit USING old WHERE audit.ctid = old.place RETURNING 1";

/// Removes at most `limit` of each.
pub(super) async fn remove_old(core: &Core, cutoffs: Cutoffs, limit: u32) -> Result<Removed, StoreError> {
    core.database.change("removing what is old", |session| try_remove(session, cutoffs, limit)).await
}

async fn try_remove(mut session: Session, cutoffs: Cutoffs, limit: u32) -> Result<Removed, Fault> {
    let old = |sql| Query::new(sql).bind(cutoffs.jobs.0).bind(i64::from(limit));
    let ended = session.begin([old(OLD_SUCCESS), old(OLD_FAILED), old(OLD_CANCELLED)]).await?;
    let mut jobs = Vec::new();
    for row in ended.iter().flatten() {
        jobs.push(Columns::of(row).take::<Uuid>()?);
    }
    jobs.truncate(limit as usize);
    let mut queries = Vec::new();
    if !jobs.is_empty() {
        queries.push(Query::new(RAISE_FLOOR).bind(jobs.clone()));
        queries.extend(REMOVE.map(|sql| Query::new(sql).bind(jobs.clone())));
    }
    queries.push(Query::new(REMOVE_KEYS).bind(cutoffs.keys.0).bind(i64::from(limit)));
    queries.push(Query::new(REMOVE_AUDIT).bind(cutoffs.audit.0).bind(i64::from(limit)));
    let done = session.commit(queries).await?;
    let counted = |from_last: usize| done.iter().rev().nth(from_last).map_or(0, |rows| rows.len() as u64);
    Ok(Removed { jobs: jobs.len() as u64, keys: counted(1), audit: counted(0) })
}
