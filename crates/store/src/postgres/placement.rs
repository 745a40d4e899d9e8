//! The informer's reads and claims.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jobyard_model::{
    Intent, JobEvent, JobId, JobSpec, Lane, LeaseId, NodeId, Priority, QueueHead, SessionId, ShapeId,
    Timestamp,
};
use uuid::Uuid;

use super::Core;
use super::fault::Fault;
use super::load::{self, Columns, job_columns};
use super::query::Query;
use super::queues::Queue;
use super::session::{Rows, Session};
use crate::encoding::{amount, from_json, inconsistent};
use crate::groups::{self, Group};
use crate::ledger::INFORMER;
use crate::{Claimed, PlaceSnapshot, Placement, StopOrder, StoreError};

const HEADS: &str =
    "SELECT head.id, shown.owner_id, shown.shape_id, shown.priority, head.wait_since_ms, head.avoid_node
  FROM unnest($2::smallint[], $3::int[], $4::int[], $5::smallint[], $6::bigint[])
    AS shown(lane, owner_id, shape_id, priority, from_ms)
  CROSS JOIN LATERAL (
    SELECT j.id, j.wait_since_ms, j.avoid_node FROM job_live j
    WHERE j.status = 2 AND j.pool_id = $1 AND j.lane = shown.lane AND j.owner_id = shown.owner_id
      AND j.shape_id = shown.shape_id AND j.priority = shown.priority
      AND j.wait_since_ms BETWEEN shown.from_ms AND (SELECT jobyard_now())
    ORDER BY j.wait_since_ms, j.id LIMIT $7) head";

// Chosen ids only; what another informer holds is its own. The guard on the status stands in the lock itself, in a
// form that keeps the planner from combining the key with an index of all that waits.
const LOCK_WAITING: &str = concat!(
    "WITH pick AS MATERIALIZED (SELECT ",
    job_columns!(),
    " FROM job_live j WHERE j.id = ANY($1) AND j.status + 0 = 2 AND j.wait_since_ms <= (SELECT jobyard_now())
    ORDER BY j.id FOR NO KEY UPDATE SKIP LOCKED) SELECT * FROM pick ORDER BY id"
);
const SPECS: &str = "SELECT id, spec::text FROM job WHERE id = ANY($1)";
// Nobody has closed the node since the snapshot, and the session is still its newest.
const OPEN_NODES: &str = "SELECT node_id, session FROM node WHERE node_id = ANY($1) AND gate = 0
    AND suspended IS NULL AND quarantined IS NULL";

const STOPS: &str =
    "SELECT a.job_id, a.number, a.lease_id, a.node_id, node.session, node.door, wanted.intent,
    (job.spec ->> 'stop_grace_ms')::bigint
  FROM (SELECT id, intent FROM job_live WHERE status = 3 AND intent > 0 ORDER BY id LIMIT $1) wanted
  CROSS JOIN LATERAL (SELECT * FROM attempt_live WHERE attempt_live.job_id = wanted.id OFFSET 0) a
  CROSS JOIN LATERAL (SELECT * FROM node WHERE node.node_id = a.node_id OFFSET 0) node
  CROSS JOIN LATERAL (SELECT spec FROM job WHERE job.id = wanted.id OFFSET 0) job
  ORDER BY wanted.id";

/// The heads of each group, and the nodes.
pub(super) async fn snapshot(
    core: &Arc<Core>,
    pool: &str,
    heads_per_group: u32,
    limit: u32,
) -> Result<PlaceSnapshot, StoreError> {
    let snapshot = try_snapshot(core, pool, (heads_per_group, limit)).await;
    snapshot.map_err(|fault| fault.during("reading the heads of the queues"))
}

async fn try_snapshot(
    core: &Arc<Core>,
    pool: &str,
    (heads_per_group, limit): (u32, u32),
) -> Result<PlaceSnapshot, Fault> {
    let Some(pool_id) = core.interned.pool_id(&core.database, pool).await? else {
        let [now] = core.database.read(|| [Query::new(load::NOW)]).await?;
        return Ok(PlaceSnapshot { now: load::clock(&now)?, ..PlaceSnapshot::default() });
    };
    let (queues, turn) = core.queues.of_pool(core, pool_id).await?;
    let groups = by_lane(&queues);
    let known: usize = groups.iter().map(Vec::len).sum();
    // Each group gets its share of the limit; which ones are shown, when they are more than that, changes each second.
    let shown: BTreeSet<Group> = groups::chosen(&groups, limit as usize, turn).into_iter().collect();
    let queues: Vec<_> = queues.into_iter().filter(|(queue, _)| shown.contains(&queue.group())).collect();
    let fair = limit / u32::try_from(known.max(1)).unwrap_or(u32::MAX);
    let share = heads_per_group.min(fair.max(1));
    let reading = core.attempts.reading(pool_id);
    let queries = || {
        let heads = Query::new(HEADS)
            .bind(pool_id)
            .bind_each(&queues, |(queue, _)| queue.lane)
            .bind_each(&queues, |(queue, _)| queue.owner_id)
            .bind_each(&queues, |(queue, _)| queue.shape_id)
            .bind_each(&queues, |(queue, _)| queue.priority)
            .bind_each(&queues, |(_, from_ms)| *from_ms)
            .bind(i64::from(share) + 1);
        let [now, before, nodes, live, after] = reading.queries();
        [heads, now, before, nodes, live, after]
    };
    let [heads, now, before, nodes, live, after] = core.database.read(queries).await?;
    let (nodes, now) = core.attempts.nodes(core, &reading, [&now, &before, &nodes, &live, &after])?;
    let heads = heads.iter().map(head).collect::<Result<Vec<_>, _>>()?;
    core.queues.note(pool_id, &queues, &heads, now);
    let (heads, cut) = first_of_each(heads, share as usize);
    let shape_ids: Vec<i32> = heads.iter().map(|head| head.shape_id.0).collect();
    let shapes = core.interned.shapes(&core.database, &shape_ids).await?;
    Ok(PlaceSnapshot { now, heads, shapes, nodes, more: cut || shown.len() < known })
}

/// The groups of each lane, the least urgent lane first.
fn by_lane(queues: &[(Queue, i64)]) -> Vec<Vec<Group>> {
    let mut lanes = vec![Vec::new(); Lane::ALL.len()];
    let mut groups: Vec<Group> = queues.iter().map(|(queue, _)| queue.group()).collect();
    groups.dedup();
    for group in groups {
        if let Some(lane) = usize::try_from(group.lane).ok().and_then(|lane| lanes.get_mut(lane)) {
            lane.push(group);
        }
    }
    lanes
}

/// At most so many of each group, in order; and whether that left some out.
fn first_of_each(mut heads: Vec<QueueHead>, share: usize) -> (Vec<QueueHead>, bool) {
    let group = |head: &QueueHead| (head.priority.lane(), head.owner_id, head.shape_id);
    heads.sort_by_key(|head| (group(head), Reverse(head.priority), head.wait_since, head.job_id));
    let found = heads.len();
    let first = heads.chunk_by(|left, right| group(left) == group(right));
    let heads: Vec<_> = first.flat_map(|heads| heads.iter().take(share).copied()).collect();
    let cut = heads.len() < found;
    (heads, cut)
}

fn head(row: &tokio_postgres::Row) -> Result<QueueHead, Fault> {
    let mut columns = Columns::of(row);
    let job_id = JobId(columns.take()?);
    let (owner_id, shape_id) = (columns.take()?, ShapeId(columns.take()?));
    let priority: i16 = columns.take()?;
    let priority = u8::try_from(priority).ok().and_then(Priority::new);
    let priority = priority.ok_or_else(|| inconsistent("job_live", job_id, "no such priority"))?;
    let wait_since = Timestamp(columns.take()?);
    let avoid_node = columns.take::<Option<Uuid>>()?.map(NodeId);
    Ok(QueueHead { job_id, owner_id, shape_id, priority, wait_since, avoid_node })
}

/// Claims what still waits, for nodes that still take attempts.
pub(super) async fn claim(core: &Core, placements: &[Placement]) -> Result<Vec<Claimed>, StoreError> {
    core.database.change("claiming jobs", |session| try_claim(core, session, placements)).await
}

async fn try_claim(
    core: &Core,
    mut session: Session,
    placements: &[Placement],
) -> Result<Vec<Claimed>, Fault> {
    let jobs: Vec<Uuid> = placements.iter().map(|placement| placement.job_id.0).collect();
    let nodes: Vec<Uuid> = placements.iter().map(|placement| placement.node_id.0).collect();
    let [waiting, specs, open_nodes, now] = session
        .begin([
            Query::new(LOCK_WAITING).bind(jobs.clone()),
            Query::new(SPECS).bind(jobs),
            Query::new(OPEN_NODES).bind(nodes),
            Query::new(load::NOW),
        ])
        .await?;
    let mut ledger = load::ledger(&waiting, &Rows::new(), &now, core.leases)?;
    let lease_until = load::clock(&now)?.plus_ms(core.leases.claim_lease_ms);
    let mut specs: HashMap<Uuid, String> = pairs(&specs)?;
    let open_nodes: HashMap<Uuid, Uuid> = pairs(&open_nodes)?;
    let mut claimed = Vec::with_capacity(placements.len());
    for placement in placements {
        let Placement { job_id, node_id, session } = *placement;
        let waits = ledger.job(job_id).is_some_and(|job| job.live_attempt().is_none());
        if !waits || open_nodes.get(&node_id.0) != Some(&session.0) {
            continue;
        }
        let spec = specs.remove(&job_id.0);
        let spec = spec.ok_or_else(|| inconsistent("job", job_id, "a hot row without its job"))?;
        let spec: JobSpec = from_json("job", job_id, &spec)?;
        let lease_id = LeaseId(Uuid::new_v4());
        let event = JobEvent::Claim { lease_id, node_id, session, lease_until };
        if ledger.claim(job_id, event, spec.resources, INFORMER).is_err() {
            continue;
        }
        let attempt = ledger.job(job_id).map_or(0, |job| job.last_attempt);
        claimed.push(Claimed { job_id, attempt, lease_id, node_id, session, spec });
    }
    super::finish(core, session, ledger).await?;
    Ok(claimed)
}

fn pairs<V: tokio_postgres::types::FromSqlOwned>(rows: &Rows) -> Result<HashMap<Uuid, V>, Fault> {
    rows.iter()
        .map(|row| {
            let mut columns = Columns::of(row);
            Ok((columns.take()?, columns.take()?))
        })
        .collect()
}

/// Live attempts that are wanted to stop, with where to push that.
pub(super) async fn pending_stops(core: &Core, limit: u32) -> Result<Vec<StopOrder>, StoreError> {
    let stops = try_pending_stops(core, limit).await;
    stops.map_err(|fault| fault.during("reading which attempts are wanted to stop"))
}

async fn try_pending_stops(core: &Core, limit: u32) -> Result<Vec<StopOrder>, Fault> {
    let [rows] = core.database.read(|| [Query::new(STOPS).bind(i64::from(limit))]).await?;
    let order = |row| {
        let mut columns = Columns::of(row);
        let job_id = JobId(columns.take()?);
        let attempt = crate::rows::number(columns.take()?);
        let (lease_id, node_id) = (LeaseId(columns.take()?), NodeId(columns.take()?));
        let (session, door) = (SessionId(columns.take()?), columns.take()?);
        let intent = Intent::from_code(columns.take()?);
        let intent = intent.ok_or_else(|| inconsistent("job_live", job_id, "no such intent"))?;
        let grace_ms = amount(columns.take()?);
        Ok(StopOrder { job_id, attempt, lease_id, node_id, session, door, intent, grace_ms })
    };
    rows.iter().map(order).collect()
}
