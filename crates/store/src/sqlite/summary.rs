//! The overview: bounded counts, and what the fleet offers.

use jobyard_model::placement::NODE_HEARD_WITHIN_MS;
use jobyard_model::{JobId, Resources, Status, Timestamp};
use rusqlite::{OptionalExtension, params};
use uuid::Uuid;

use super::fault::Fault;
use super::scope::Scope;
use super::{groups, nodes};
use crate::encoding::amount;
use crate::jobs::{self, COUNT_BOUND, FAILURES};
use crate::listing::Failed;
use crate::{Failing, StatusCount, Summary};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// What the overview shows.
pub(super) fn summary(scope: &Scope<'_>) -> Result<Summary, Fault> {
    let counts = Status::ALL.into_iter().map(|status| count(scope, status)).collect::<Result<_, _>>()?;
    let nodes = nodes::of_pool(scope, None)?;
    let heard: Vec<_> =
        nodes.iter().filter(|node| scope.now().ms_since(node.heard_at) <= NODE_HEARD_WITHIN_MS).collect();
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Ok(Summary {
        counts,
        oldest_waiting: oldest_waiting(scope)?,
        nodes_heard: number(heard.len()),
        nodes: number(nodes.len()),
        capacity: heard.iter().fold(Resources::default(), |sum, node| sum.plus(node.capacity)),
        reserved: nodes.iter().fold(Resources::default(), |sum, node| sum.plus(node.reserved)),
        pools: jobs::pools_of(&nodes, scope.now()),
        report_clock: last(scope, "SELECT max(stamped_ms) FROM report_clock")?,
        counted: last(scope, "SELECT max(touched_ms) FROM minute_cursor")?,
    })
}

fn last(scope: &Scope<'_>, sql: &str) -> Result<Option<Timestamp>, Fault> {
    let ms: Option<i64> = scope.statement(sql)?.query_row([], |row| row.get(0))?;
    Ok(ms.and_then(jobs::once))
}

pub(super) const FAILURES_SINCE: &str = "SELECT job_id, finished_ms, reason FROM job_end \
    WHERE current AND status = 6 AND finished_ms >= ?1 ORDER BY finished_ms DESC LIMIT ?2";

/// What failed since then, grouped.
pub(super) fn failing(scope: &Scope<'_>, since: Timestamp) -> Result<Failing, Fault> {
    let mut statement = scope.statement(FAILURES_SINCE)?;
    let mut rows = statement.query(params![since.0, FAILURES as i64])?;
    let mut failures = Vec::new();
    while let Some(row) = rows.next()? {
        let (job_id, at): (Uuid, i64) = (row.get(0)?, row.get(1)?);
        let reason: Option<String> = row.get(2)?;
        if let Some(failed) = failed(scope, job_id, reason.as_ref())? {
            failures.push((failed.print()?, JobId(job_id), Timestamp(at)));
        }
    }
    Ok(jobs::grouped(failures))
}

fn failed(scope: &Scope<'_>, job_id: Uuid, reason: Option<&String>) -> Result<Option<Failed>, Fault> {
    let sql = "SELECT owner.name, job.name, z.outcome, z.\"end\" FROM job JOIN owner ON owner.owner_id = job.owner_id \
        LEFT JOIN attempt z ON z.job_id = job.id AND z.number = (SELECT max(number) FROM attempt WHERE job_id = job.id) \
        WHERE job.id = ?1";
    let found = scope.statement(sql)?.query_row([job_id], |row| {
        let (owner, name) = (row.get(0)?, row.get(1)?);
        Ok(Failed { job_id, reason: reason.cloned(), owner, name, outcome: row.get(2)?, end: row.get(3)? })
    });
    Ok(found.optional()?)
}

/// Counts to the bound. The numbers are literals, so that the partial indexes are seen.
fn count(scope: &Scope<'_>, status: Status) -> Result<StatusCount, Fault> {
    let sql = count_sql(status);
    let bound = i64::try_from(COUNT_BOUND).unwrap_or(i64::MAX);
    let day_ago = scope.now().0 - DAY_MS;
    let counted: i64 = scope.statement(&sql)?.query_row(params![bound + 1, day_ago], |row| row.get(0))?;
    let counted = amount(counted);
    Ok(StatusCount { status, count: counted.min(COUNT_BOUND), capped: counted > COUNT_BOUND })
}

pub(super) fn count_sql(status: Status) -> String {
    let code = status.code();
    let rows = match status {
        Status::Running => "SELECT 1 FROM attempt_live WHERE ?2 IS NOT NULL".to_owned(),
        Status::Ready | Status::Waiting | Status::Retry => {
            format!("SELECT 1 FROM job_live WHERE status = {code} AND ?2 IS NOT NULL")
        }
        Status::Success | Status::FinalFailed | Status::Cancelled => {
            format!("SELECT 1 FROM job_end WHERE current AND status = {code} AND finished_ms > ?2")
        }
    };
    format!("SELECT count(*) FROM ({rows} LIMIT ?1)")
}

fn oldest_waiting(scope: &Scope<'_>) -> Result<Option<Timestamp>, Fault> {
    Ok(heads(scope)?.into_iter().map(|(since_ms, _)| Timestamp(since_ms)).min())
}

/// The ids of those that have waited longest.
pub(super) fn longest_waiting(scope: &Scope<'_>, limit: u32) -> Result<Vec<JobId>, Fault> {
    let mut heads = heads(scope)?;
    heads.sort_unstable();
    Ok(heads.into_iter().take(limit as usize).map(|(_, job_id)| job_id).collect())
}

/// The oldest of each group and priority is an index step away; the oldest of all is among those.
fn heads(scope: &Scope<'_>) -> Result<Vec<(i64, JobId)>, Fault> {
    let pools: Vec<i32> = {
        let mut statement = scope.statement("SELECT pool_id FROM pool")?;
        let rows = statement.query_map([], |row| row.get(0))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    let sql = "SELECT priority, wait_since_ms, id FROM job_live INDEXED BY job_live_claim WHERE status = 2 \
        AND pool_id = ?1 AND lane = ?2 AND owner_id = ?3 AND shape_id = ?4 AND priority < ?5 \
        ORDER BY priority DESC, wait_since_ms LIMIT 1";
    let mut statement = scope.statement(sql)?;
    let mut heads = Vec::new();
    for pool_id in pools {
        for group in groups::by_lane(scope, pool_id)?.concat() {
            let mut below = i16::MAX;
            loop {
                let place = params![pool_id, group.lane, group.owner_id, group.shape_id, below];
                let found = statement
                    .query_row(place, |row| Ok((row.get::<_, i16>(0)?, row.get(1)?, JobId(row.get(2)?))))
                    .optional()?;
                let Some((priority, since_ms, job_id)) = found else { break };
                heads.push((since_ms, job_id));
                below = priority;
            }
        }
    }
    Ok(heads)
}
