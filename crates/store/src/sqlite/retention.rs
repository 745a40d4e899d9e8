//! Removing what is old, a bounded batch at a time.

use jobyard_model::JobId;
use rusqlite::params;

use super::fault::Fault;
use super::load;
use super::scope::Scope;
use crate::{Cutoffs, Removed};

/// In no order: sorting would read all that is old for each batch.
pub(super) const OLD_JOBS: &str =
    "SELECT job_id FROM job_end WHERE current AND status IN (5, 6, 7) AND finished_ms < ?1 LIMIT ?2";

/// Removes at most `limit` of each.
pub(super) fn remove_old(scope: &Scope<'_>, cutoffs: Cutoffs, limit: u32) -> Result<Removed, Fault> {
    let old = load::ids(scope, OLD_JOBS, params![cutoffs.jobs.0, limit])?;
    for job_id in &old {
        remove_job(scope, *job_id)?;
    }
    let sql = "DELETE FROM idempotency WHERE (owner_id, key) IN (SELECT owner_id, key FROM idempotency \
        WHERE created_ms < ?1 AND NOT EXISTS (SELECT 1 FROM job_live WHERE id = job_id) LIMIT ?2)";
    let keys = scope.execute(sql, params![cutoffs.keys.0, limit])?;
    let sql = "DELETE FROM audit WHERE number IN (SELECT number FROM audit WHERE at_ms < ?1 LIMIT ?2)";
    let audit = scope.execute(sql, params![cutoffs.audit.0, limit])?;
    Ok(Removed { jobs: old.len() as u64, keys: keys as u64, audit: audit as u64 })
}

fn remove_job(scope: &Scope<'_>, job_id: JobId) -> Result<(), Fault> {
    let floor = "UPDATE event_floor SET number = max(number, \
        coalesce((SELECT max(number) FROM event WHERE job_id = ?1), 0))";
    scope.execute(floor, [job_id.0])?;
    for sql in [
        "DELETE FROM job_label WHERE (key, value, job_id) IN (SELECT label.key, label.value, job.id \
            FROM job, json_each(job.spec, '$.labels') label WHERE job.id = ?1)",
        "DELETE FROM event WHERE job_id = ?1",
        "DELETE FROM log_chunk WHERE job_id = ?1",
        "DELETE FROM attempt WHERE job_id = ?1",
        "DELETE FROM job_secret WHERE job_id = ?1",
        "DELETE FROM job_artifact WHERE job_id = ?1",
        "DELETE FROM job_end WHERE job_id = ?1",
        "DELETE FROM job WHERE id = ?1",
    ] {
        scope.execute(sql, [job_id.0])?;
    }
    Ok(())
}
