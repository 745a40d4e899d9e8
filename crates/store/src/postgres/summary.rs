//! The overview: bounded counts, and what the fleet offers.

use jobyard_model::placement::NODE_HEARD_WITHIN_MS;
use jobyard_model::{Resources, Status, Timestamp};

use super::Core;
use super::fault::Fault;
use super::load::{self, Columns};
use super::nodes;
use super::query::Query;
use crate::encoding::{amount, column, inconsistent};
use crate::jobs::COUNT_BOUND;
use crate::{StatusCount, StoreError, Summary};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

// Each counts along its own index and stops at the bound.
const COUNTS: &str =
    "SELECT 1::smallint, (SELECT count(*) FROM (SELECT 1 FROM job_live WHERE status = 1 LIMIT $1) n)
  UNION ALL SELECT 2::smallint, (SELECT count(*) FROM (SELECT 1 FROM job_live WHERE status = 2 LIMIT $1) n)
  UNION ALL SELECT 3::smallint, (SELECT count(*) FROM (SELECT 1 FROM attempt_live LIMIT $1) n)
  UNION ALL SELECT 4::smallint, (SELECT count(*) FROM (SELECT 1 FROM job_live WHERE status = 4 LIMIT $1) n)
  UNION ALL SELECT 5::smallint, (SELECT count(*) FROM (SELECT 1 FROM job_end
    WHERE current AND status = 5 AND finished_ms > (SELECT jobyard_now()) - $2 LIMIT $1) n)
  UNION ALL SELECT 6::smallint, (SELECT count(*) FROM (SELECT 1 FROM job_end
    WHERE current AND status = 6 AND finished_ms > (SELECT jobyard_now()) - $2 LIMIT $1) n)
  UNION ALL SELECT 7::smallint, (SELECT count(*) FROM (SELECT 1 FROM job_end
    WHERE current AND status = 7 AND finished_ms > (SELECT jobyard_now()) - $2 LIMIT $1) n)";

// The oldest of each (group, priority) is an index step away, and the oldest of all is among those.
const OLDEST_WAITING: &str = "WITH RECURSIVE step AS (
    (SELECT pool_id, lane, owner_id, shape_id, priority, wait_since_ms FROM job_live WHERE status = 2
      ORDER BY pool_id, lane, owner_id, shape_id, priority DESC, wait_since_ms LIMIT 1)
    UNION ALL
    SELECT next.* FROM step CROSS JOIN LATERAL (
      (SELECT j.pool_id, j.lane, j.owner_id, j.shape_id, j.priority, j.wait_since_ms FROM job_live j
        WHERE j.status = 2 AND j.pool_id = step.pool_id AND j.lane = step.lane AND j.owner_id = step.owner_id
          AND j.shape_id = step.shape_id AND j.priority < step.priority
        ORDER BY j.priority DESC, j.wait_since_ms LIMIT 1)
      UNION ALL
      (SELECT j.pool_id, j.lane, j.owner_id, j.shape_id, j.priority, j.wait_since_ms FROM job_live j
        WHERE j.status = 2 AND (j.pool_id, j.lane, j.owner_id, j.shape_id)
          > (step.pool_id, step.lane, step.owner_id, step.shape_id)
        ORDER BY j.pool_id, j.lane, j.owner_id, j.shape_id, j.priority DESC, j.wait_since_ms LIMIT 1)
      LIMIT 1) next)
  SELECT min(wait_since_ms) FROM step";

/// What the overview shows.
pub(super) async fn summary(core: &Core) -> Result<Summary, StoreError> {
    try_summary(core).await.map_err(|fault| fault.during("summing up"))
}

async fn try_summary(core: &Core) -> Result<Summary, Fault> {
    let queries = || {
        let counts = Query::new(COUNTS).bind(column(COUNT_BOUND + 1)).bind(DAY_MS);
        [Query::new(load::NOW), counts, Query::new(OLDEST_WAITING), nodes::of_pool(None)]
    };
    let [now, counts, oldest, nodes] = core.database.read(queries).await?;
    let now = load::clock(&now)?;
    let oldest: Option<i64> = match oldest.first() {
        Some(row) => Columns::of(row).take()?,
        None => None,
    };
    let nodes = nodes::states(&nodes)?;
    let heard: Vec<_> =
        nodes.iter().filter(|node| now.ms_since(node.heard_at) <= NODE_HEARD_WITHIN_MS).collect();
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Ok(Summary {
        counts: counts.iter().map(count).collect::<Result<_, _>>()?,
        oldest_waiting: oldest.map(Timestamp),
        nodes_heard: number(heard.len()),
        nodes: number(nodes.len()),
        capacity: heard.iter().fold(Resources::default(), |sum, node| sum.plus(node.capacity)),
        reserved: nodes.iter().fold(Resources::default(), |sum, node| sum.plus(node.reserved)),
    })
}

fn count(row: &tokio_postgres::Row) -> Result<StatusCount, Fault> {
    let mut columns = Columns::of(row);
    let code: i16 = columns.take()?;
    let status = Status::from_code(code).ok_or_else(|| inconsistent("job_live", code, "no such status"))?;
    let counted = amount(columns.take()?);
    Ok(StatusCount { status, count: counted.min(COUNT_BOUND), capped: counted > COUNT_BOUND })
}
