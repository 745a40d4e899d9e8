//! The overview: bounded counts, and what the fleet offers.

use jobyard_model::placement::NODE_HEARD_WITHIN_MS;
use jobyard_model::{Resources, Status, Timestamp};
use rusqlite::{OptionalExtension, params};

use super::fault::Fault;
use super::scope::Scope;
use super::{groups, nodes};
use crate::encoding::amount;
use crate::jobs::COUNT_BOUND;
use crate::{StatusCount, Summary};

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
    })
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

/// The oldest of each group and priority is an index step away; the oldest of all is among those.
fn oldest_waiting(scope: &Scope<'_>) -> Result<Option<Timestamp>, Fault> {
    let pools: Vec<i32> = {
        let mut statement = scope.statement("SELECT pool_id FROM pool")?;
        let rows = statement.query_map([], |row| row.get(0))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    let sql = "SELECT priority, wait_since_ms FROM job_live INDEXED BY job_live_claim WHERE status = 2 \
        AND pool_id = ?1 AND lane = ?2 AND owner_id = ?3 AND shape_id = ?4 AND priority < ?5 \
        ORDER BY priority DESC, wait_since_ms LIMIT 1";
    let mut statement = scope.statement(sql)?;
    let mut oldest: Option<i64> = None;
    for pool_id in pools {
        for group in groups::by_lane(scope, pool_id)?.concat() {
            let mut below = i16::MAX;
            loop {
                let place = params![pool_id, group.lane, group.owner_id, group.shape_id, below];
                let found = statement
                    .query_row(place, |row| Ok((row.get::<_, i16>(0)?, row.get::<_, i64>(1)?)))
                    .optional()?;
                let Some((priority, since)) = found else { break };
                oldest = Some(oldest.map_or(since, |oldest| oldest.min(since)));
                below = priority;
            }
        }
    }
    Ok(oldest.map(Timestamp))
}
