//! The informer's reads and claims.

use std::collections::{BTreeSet, HashMap};

use jobyard_model::{
    Intent, JobEvent, JobId, LeaseId, NodeId, Priority, QueueHead, SessionId, Shape, ShapeId, Timestamp,
};
use rusqlite::{Row, params};
use uuid::Uuid;

use super::fault::Fault;
use super::groups;
use super::scope::Scope;
use super::{load, nodes, pools, writes};
use crate::encoding::{from_json, inconsistent};
use crate::groups::Group;
use crate::ledger::{INFORMER, Ledger};
use crate::{Claimed, PlaceSnapshot, Placement, StopOrder};

pub(super) const HEADS: &str = "SELECT id, owner_id, shape_id, priority, wait_since_ms, avoid_node FROM job_live \
        INDEXED BY job_live_claim WHERE status = 2 AND pool_id = ?1 AND lane = ?2 AND owner_id = ?3 \
        AND shape_id = ?4 AND wait_since_ms <= ?5 ORDER BY priority DESC, wait_since_ms, id LIMIT ?6";
pub(super) const PENDING_STOPS: &str = "SELECT attempt_live.job_id, number, attempt_live.lease_id, attempt_live.node_id, node.session, \
        node.door, intent, json_extract(job.spec, '$.stop_grace_ms') \
        FROM job_live INDEXED BY job_live_stop CROSS JOIN attempt_live ON attempt_live.job_id = job_live.id \
        CROSS JOIN node ON node.node_id = attempt_live.node_id CROSS JOIN job ON job.id = job_live.id \
        WHERE status = 3 AND intent > 0 ORDER BY job_live.id LIMIT ?1";

/// The heads of each group, and the nodes.
pub(super) fn snapshot(
    scope: &Scope<'_>,
    pool: &str,
    heads_per_group: u32,
    limit: u32,
) -> Result<PlaceSnapshot, Fault> {
    let mut snapshot = PlaceSnapshot { now: scope.now(), ..PlaceSnapshot::default() };
    let Some(pool_id) = pools::id(scope, pool)? else { return Ok(snapshot) };
    let lanes = groups::by_lane(scope, pool_id)?;
    let known: usize = lanes.iter().map(Vec::len).sum();
    // Each group gets its share of the limit; which ones are shown, when they are more than that, changes each second.
    let turn = u64::try_from(scope.now().0 / 1_000).unwrap_or(0);
    let shown = crate::groups::chosen(&lanes, limit as usize, turn);
    let fair = limit / u32::try_from(known.max(1)).unwrap_or(u32::MAX);
    let share = heads_per_group.min(fair.max(1));
    snapshot.more = shown.len() < known;
    for group in shown {
        let heads = heads(scope, pool_id, group, share + 1)?;
        snapshot.more |= heads.len() > share as usize;
        snapshot.heads.extend(heads.into_iter().take(share as usize));
    }
    snapshot.shapes = shapes(scope, &snapshot.heads)?;
    snapshot.nodes = nodes::of_pool(scope, Some(pool_id))?;
    snapshot.nodes.sort_by_key(|node| node.node_id);
    Ok(snapshot)
}

fn heads(scope: &Scope<'_>, pool_id: i32, group: Group, limit: u32) -> Result<Vec<QueueHead>, Fault> {
    let mut statement = scope.statement(HEADS)?;
    let place = params![pool_id, group.lane, group.owner_id, group.shape_id, scope.now().0, limit];
    let rows = statement.query_map(place, head)?;
    let heads = rows.collect::<rusqlite::Result<Vec<Option<QueueHead>>>>()?;
    Ok(heads.into_iter().flatten().collect())
}

/// `None` for a priority that the table's checks don't let in.
fn head(row: &Row<'_>) -> rusqlite::Result<Option<QueueHead>> {
    let Some(priority) = Priority::new(row.get(3)?) else { return Ok(None) };
    Ok(Some(QueueHead {
        job_id: JobId(row.get(0)?),
        owner_id: row.get(1)?,
        shape_id: ShapeId(row.get(2)?),
        priority,
        wait_since: Timestamp(row.get(4)?),
        avoid_node: row.get::<_, Option<Uuid>>(5)?.map(NodeId),
    }))
}

fn shapes(scope: &Scope<'_>, heads: &[QueueHead]) -> Result<HashMap<ShapeId, Shape>, Fault> {
    let wanted: BTreeSet<ShapeId> = heads.iter().map(|head| head.shape_id).collect();
    let mut statement = scope.statement("SELECT spec FROM shape WHERE shape_id = ?1")?;
    let mut shapes = HashMap::with_capacity(wanted.len());
    for shape_id in wanted {
        let text: String = statement.query_row([shape_id.0], |row| row.get(0))?;
        shapes.insert(shape_id, from_json("shape", shape_id.0, &text)?);
    }
    Ok(shapes)
}

/// Claims what still waits, for nodes that still take attempts.
pub(super) fn claim(scope: &Scope<'_>, placements: &[Placement]) -> Result<Vec<Claimed>, Fault> {
    let mut ledger = Ledger::new(scope.terms);
    let mut claimed = Vec::with_capacity(placements.len());
    let lease_until = scope.now().plus_ms(scope.terms.leases.claim_lease_ms);
    for placement in placements {
        let Placement { job_id, node_id, session } = *placement;
        if ledger.job(job_id).is_some() || !takes_attempts(scope, node_id, session)? {
            continue;
        }
        if !load::into_ledger(scope, &mut ledger, job_id)? {
            continue;
        }
        let spec = load::spec(scope, job_id)?;
        let spec = spec.ok_or_else(|| inconsistent("job", job_id, "a hot row without its job"))?;
        let lease_id = LeaseId(Uuid::new_v4());
        let event = JobEvent::Claim { lease_id, node_id, session, lease_until };
        if ledger.claim(job_id, event, spec.resources, INFORMER).is_err() {
            continue;
        }
        let attempt = ledger.job(job_id).map_or(0, |job| job.last_attempt);
        claimed.push(Claimed { job_id, attempt, lease_id, node_id, session, spec });
    }
    writes::carry_out(scope, ledger)?;
    Ok(claimed)
}

/// Whether this session is the node's newest and nobody has closed the node since the snapshot.
fn takes_attempts(scope: &Scope<'_>, node_id: NodeId, session: SessionId) -> Result<bool, Fault> {
    let sql = "SELECT 1 FROM node WHERE node_id = ?1 AND session = ?2 AND gate = 0 AND suspended IS NULL \
        AND quarantined IS NULL";
    Ok(scope.statement(sql)?.exists(params![node_id.0, session.0])?)
}

/// Live attempts that are wanted to stop, with where to push that.
pub(super) fn pending_stops(scope: &Scope<'_>, limit: u32) -> Result<Vec<StopOrder>, Fault> {
    let mut statement = scope.statement(PENDING_STOPS)?;
    let rows = statement.query_map([limit], stop_order)?;
    let orders = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(orders.into_iter().flatten().collect())
}

/// `None` for an intent that the table's checks don't let in.
fn stop_order(row: &Row<'_>) -> rusqlite::Result<Option<StopOrder>> {
    let Some(intent) = Intent::from_code(row.get(6)?) else { return Ok(None) };
    Ok(Some(StopOrder {
        job_id: JobId(row.get(0)?),
        attempt: row.get(1)?,
        lease_id: LeaseId(row.get(2)?),
        node_id: NodeId(row.get(3)?),
        session: SessionId(row.get(4)?),
        door: row.get(5)?,
        intent,
        grace_ms: crate::encoding::amount(row.get(7)?),
    }))
}
