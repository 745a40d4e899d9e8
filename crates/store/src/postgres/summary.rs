//! The overview: bounded counts, and what the fleet offers.

use jobyard_model::placement::NODE_HEARD_WITHIN_MS;
use jobyard_model::{JobId, Resources, Status, Timestamp};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::Core;
use super::fault::Fault;
use super::load::{self, Columns};
use super::looks::Look;
use super::nodes;
use crate::encoding::{amount, column, inconsistent};
use crate::jobs::{self, COUNT_BOUND, FAILURES};
use crate::listing::Failed;
use crate::{Failing, FailurePrint, StatusCount, StoreError, Summary};

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
macro_rules! heads {
    ($select:literal) => {
        concat!("WITH RECURSIVE step AS (
    (SELECT pool_id, lane, owner_id, shape_id, priority, wait_since_ms, id FROM job_live WHERE status = 2
      ORDER BY pool_id, lane, owner_id, shape_id, priority DESC, wait_since_ms LIMIT 1)
    UNION ALL
    SELECT next.* FROM step CROSS JOIN LATERAL (
      (SELECT j.pool_id, j.lane, j.owner_id, j.shape_id, j.priority, j.wait_since_ms, j.id FROM job_live j
        WHERE j.status = 2 AND j.pool_id = step.pool_id AND j.lane = step.lane AND j.owner_id = step.owner_id
          AND j.shape_id = step.shape_id AND j.priority < step.priority
        ORDER BY j.priority DESC, j.wait_since_ms LIMIT 1)
      UNION ALL
      (SELECT j.pool_id, j.lane, j.owner_id, j.shape_id, j.priority, j.wait_since_ms, j.id FROM job_live j
        WHERE j.status = 2 AND (j.pool_id, j.lane, j.owner_id, j.shape_id)
          > (step.pool_id, step.lane, step.owner_id, step.shape_id)
        ORDER BY j.pool_id, j.lane, j.owner_id, j.shape_id, j.priority DESC, j.wait_since_ms LIMIT 1)
      LIMIT 1) next) ", $select)
    };
}
const OLDEST_WAITING: &str = heads!("SELECT min(wait_since_ms) FROM step");
const LONGEST_WAITING: &str = heads!("SELECT id FROM step ORDER BY wait_since_ms, id LIMIT $1");

const ROLES: &str =
    "SELECT (SELECT max(stamped_ms) FROM report_clock), (SELECT max(touched_ms) FROM minute_cursor)";

// Along the index of failures, the newest first.
const FAILURES_SINCE: &str =
    "SELECT e.job_id, e.finished_ms, e.reason, owner.name, job.name, z.outcome, z.end
  FROM (SELECT * FROM job_end WHERE current AND status = 6 AND finished_ms >= $1
      ORDER BY status DESC, finished_ms DESC LIMIT $2) e
    CROSS JOIN LATERAL (SELECT * FROM job WHERE job.id = e.job_id OFFSET 0) job
    CROSS JOIN LATERAL (SELECT * FROM owner WHERE owner.owner_id = job.owner_id OFFSET 0) owner
    LEFT JOIN LATERAL (SELECT outcome, \"end\" FROM attempt WHERE attempt.job_id = e.job_id
      ORDER BY number DESC LIMIT 1) z ON true
  ORDER BY e.finished_ms DESC";

/// What the overview shows.
pub(super) async fn summary(core: &Core) -> Result<Summary, StoreError> {
    try_summary(core).await.map_err(|fault| fault.during("summing up"))
}

async fn try_summary(core: &Core) -> Result<Summary, Fault> {
    let looks = || {
        let bound = column(COUNT_BOUND + 1);
        let counts = Look::new(COUNTS).bind(bound, Type::INT8).bind(DAY_MS, Type::INT8);
        [Look::new(load::NOW), counts, Look::new(OLDEST_WAITING), Look::new(ROLES)]
    };
    let [now, counts, oldest, roles] = core.looks.look(looks).await?;
    // A small table and a narrow one: what every server reads each few seconds.
    let [nodes] = core.database.read(|| [nodes::of_pool(None)]).await?;
    let (report_clock, counted) = match roles.first() {
        Some(row) => {
            let mut columns = Columns::of(row);
            (columns.take::<Option<i64>>()?, columns.take::<Option<i64>>()?)
        }
        None => (None, None),
    };
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
        pools: jobs::pools_of(&nodes, now),
        report_clock: report_clock.and_then(jobs::once),
        counted: counted.and_then(jobs::once),
    })
}

/// What failed since then, grouped.
pub(super) async fn failing(core: &Core, since: Timestamp) -> Result<Failing, StoreError> {
    let failures = try_failures(core, since).await.map_err(|fault| fault.during("looking for what fails"))?;
    Ok(jobs::grouped(failures))
}

async fn try_failures(core: &Core, since: Timestamp) -> Result<Vec<(FailurePrint, JobId, Timestamp)>, Fault> {
    let look = || {
        let look = Look::new(FAILURES_SINCE).bind(since.0, Type::INT8);
        [look.bind(FAILURES as i64, Type::INT8)]
    };
    let [rows] = core.looks.look(look).await?;
    rows.iter().map(failure).collect()
}

fn failure(row: &tokio_postgres::Row) -> Result<(FailurePrint, JobId, Timestamp), Fault> {
    let mut columns = Columns::of(row);
    let (job_id, at): (Uuid, i64) = (columns.take()?, columns.take()?);
    let failed = Failed {
        job_id,
        reason: columns.take()?,
        owner: columns.take()?,
        name: columns.take()?,
        outcome: columns.take()?,
        end: columns.take()?,
    };
    Ok((failed.print()?, JobId(job_id), Timestamp(at)))
}

/// The ids of those that have waited longest.
pub(super) async fn longest_waiting(core: &Core, limit: u32) -> Result<Vec<JobId>, StoreError> {
    let look = || [Look::new(LONGEST_WAITING).bind(i64::from(limit), Type::INT8)];
    let found = core.looks.look(look).await;
    let ids = found.and_then(|[rows]| rows.iter().map(|row| Columns::of(row).take().map(JobId)).collect());
    ids.map_err(|fault| fault.during("looking for what waits longest"))
}

fn count(row: &tokio_postgres::Row) -> Result<StatusCount, Fault> {
    let mut columns = Columns::of(row);
    let code: i16 = columns.take()?;
    let status = Status::from_code(code).ok_or_else(|| inconsistent("job_live", code, "no such status"))?;
    let counted = amount(columns.take()?);
    Ok(StatusCount { status, count: counted.min(COUNT_BOUND), capped: counted > COUNT_BOUND })
}
