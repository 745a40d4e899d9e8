//! What is on a node, and where it would go were the node drained now.

use std::collections::{BTreeMap, HashMap};

use futures_util::{StreamExt, TryStreamExt, stream};
use jobyard_api::json::{DrainMove, DrainPreview, NodeAttempt, Time};
use jobyard_model::placement::QueueHead;
use jobyard_model::{Intent, JobId, NodeId, NodeState, ShapeId, Timestamp};
use jobyard_scheduler::{PlanMemory, Snapshot, plan};
use jobyard_store::JobRecord;

use super::accept_jobs::shape_of;
use crate::error::ApiError;
use crate::server::Server;

/// A node takes no more than 1,000.
const MOST_ATTEMPTS: u32 = 1_000;
/// Jobs that are read at a time.
const AT_ONCE: usize = 32;

/// One node.
pub(crate) async fn read_node(server: &Server, node_id: NodeId) -> Result<NodeState, ApiError> {
    let nodes = server.store().nodes().await?;
    nodes.into_iter().find(|node| node.node_id == node_id).ok_or(ApiError::NotFound { what: "node" })
}

/// The un-ended attempts of a node, oldest job first.
pub(crate) async fn attempts_of(server: &Server, node_id: NodeId) -> Result<Vec<NodeAttempt>, ApiError> {
    read_node(server, node_id).await?;
    let records = live_jobs(server, node_id).await?;
    Ok(records.iter().filter_map(|record| view(record, node_id)).collect())
}

/// What a drain would move, and where each job would be placed were it waiting now, the more urgent first. Changes
/// nothing.
pub(crate) async fn preview_drain(server: &Server, node_id: NodeId) -> Result<DrainPreview, ApiError> {
    let nodes = server.store().nodes().await?;
    let pool = nodes.iter().find(|node| node.node_id == node_id).map(|node| node.pool.clone());
    let pool = pool.ok_or(ApiError::NotFound { what: "node" })?;
    let others: Vec<NodeState> =
        nodes.into_iter().filter(|node| node.pool == pool && node.node_id != node_id).collect();
    let records = live_jobs(server, node_id).await?;
    let attempts = records.iter().filter(|record| view(record, node_id).is_some()).count();
    let moving: Vec<_> = records.iter().filter(|record| record.job.intent <= Intent::Evict).collect();
    let chosen = choose(&moving, &others, server.store().now().await?);
    let name_of: HashMap<NodeId, &str> =
        others.iter().map(|node| (node.node_id, node.name.as_str())).collect();
    let moves: Vec<DrainMove> = moving
        .iter()
        .filter_map(|record| {
            let to_node_id = chosen.get(&record.job.id).copied();
            let to_node_name = to_node_id.and_then(|id| name_of.get(&id)).map(|name| (*name).to_owned());
            Some(DrainMove { attempt: view(record, node_id)?, to_node_id, to_node_name })
        })
        .collect();
    let would_wait = moves.iter().filter(|one| one.to_node_id.is_none()).count();
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Ok(DrainPreview { attempts: count(attempts), moves, would_wait: count(would_wait) })
}

async fn live_jobs(server: &Server, node_id: NodeId) -> Result<Vec<JobRecord>, ApiError> {
    let ids = server.store().jobs_on_node(node_id, MOST_ATTEMPTS).await?;
    let read = |id| server.store().job(id);
    let records: Vec<Option<JobRecord>> = stream::iter(ids).map(read).buffered(AT_ONCE).try_collect().await?;
    Ok(records.into_iter().flatten().collect())
}

/// The attempt, unless it has ended or moved meanwhile.
fn view(record: &JobRecord, node_id: NodeId) -> Option<NodeAttempt> {
    let attempt = record.job.live_attempt().filter(|attempt| attempt.node_id == node_id)?;
    let spec = &record.spec;
    Some(NodeAttempt {
        job_id: record.job.id,
        job_name: spec.name.clone(),
        owner_id: spec.owner.clone(),
        kind: spec.kind,
        number: attempt.number,
        phase: attempt.phase,
        intent: record.job.intent,
        priority: spec.priority.value(),
        exclusive: spec.exclusive,
        resources: spec.resources.into(),
        placed_time: Time(attempt.placed_at),
        started_time: attempt.started_at.map(Time),
        lease_until: Time(attempt.lease_until),
    })
}

/// Plans them as placement would, were they waiting since now.
fn choose(moving: &[&JobRecord], nodes: &[NodeState], now: Timestamp) -> HashMap<JobId, NodeId> {
    let mut owners: BTreeMap<&str, i32> = BTreeMap::new();
    let (mut shapes, mut heads) = (HashMap::new(), Vec::with_capacity(moving.len()));
    let mut ids = BTreeMap::new();
    for record in moving {
        let next = i32::try_from(owners.len()).unwrap_or(i32::MAX);
        let owner_id = *owners.entry(&record.spec.owner).or_insert(next);
        let shape = shape_of(&record.spec);
        let next = ShapeId(i32::try_from(ids.len()).unwrap_or(i32::MAX));
        let shape_id = *ids.entry(shape.clone()).or_insert(next);
        shapes.insert(shape_id, shape);
        let priority = record.spec.priority;
        heads.push(QueueHead {
            job_id: record.job.id,
            owner_id,
            shape_id,
            priority,
            wait_since: now,
            avoid_node: None,
        });
    }
    let snapshot = Snapshot { now, heads: &heads, shapes: &shapes, nodes, limit: heads.len() };
    let plan = plan(snapshot, &mut PlanMemory::default());
    plan.chosen.into_iter().map(|chosen| (chosen.job_id, chosen.node_id)).collect()
}
