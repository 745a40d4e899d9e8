//! Places waiting jobs and pushes them: snapshot, plan, claim, and only then the push.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use jobyard_model::{NodeId, NodeState, SessionId};
use jobyard_scheduler::{PlanMemory, Snapshot, plan};
use jobyard_store::{Claimed, PlaceSnapshot, Placement, Store, StoreError};
use tokio_util::task::TaskTracker;

use crate::pace::{Ran, RunOnce};
use crate::push::Push;
use crate::{InformerSettings, WorkerDoors};

/// The most placements of one pass, which is one commit.
const PASS_LIMIT: usize = 256;
/// Heads read of each (lane, owner, shape).
const HEADS_PER_GROUP: u32 = 256;
/// Heads read in all.
const HEADS_LIMIT: u32 = 1_024;

pub(crate) struct PlaceLoop {
    store: Arc<dyn Store>,
    doors: Arc<dyn WorkerDoors>,
    settings: InformerSettings,
    pushes: TaskTracker,
    memories: BTreeMap<String, PlanMemory>,
}

impl PlaceLoop {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        doors: Arc<dyn WorkerDoors>,
        settings: InformerSettings,
        pushes: TaskTracker,
    ) -> Self {
        Self { store, doors, settings, pushes, memories: BTreeMap::new() }
    }

    async fn pools(&self) -> Result<Vec<String>, StoreError> {
        if !self.settings.pools.is_empty() {
            return Ok(self.settings.pools.clone());
        }
        Ok(self.store.pools().await?.into_iter().map(|pool| pool.name).collect())
    }

    async fn place_pool(&mut self, pool: &str) -> Result<Ran, StoreError> {
        let snapshot = self.store.place_snapshot(pool, HEADS_PER_GROUP, HEADS_LIMIT).await?;
        if snapshot.heads.is_empty() || snapshot.nodes.is_empty() {
            return Ok(Ran::default());
        }
        let memory = self.memories.entry(pool.to_owned()).or_default();
        let placements = plan_placements(&snapshot, memory);
        if placements.is_empty() {
            return Ok(Ran::default());
        }
        let planned = placements.len();
        let claimed = self.store.claim(placements).await?;
        let changed = claimed.len() as u64;
        self.push(claimed, &snapshot.nodes);
        Ok(Ran { changed, more: planned == PASS_LIMIT || snapshot.more && changed > 0 })
    }

    /// Hands each node its attempts; returns at once, so that one slow node holds up no other.
    fn push(&self, claimed: Vec<Claimed>, nodes: &[NodeState]) {
        let claimed_at = Instant::now();
        let mut by_node: BTreeMap<(NodeId, SessionId), Vec<Claimed>> = BTreeMap::new();
        for attempt in claimed {
            by_node.entry((attempt.node_id, attempt.session)).or_default().push(attempt);
        }
        for ((node_id, session), attempts) in by_node {
            let Some(node) = nodes.iter().find(|node| node.node_id == node_id) else { continue };
            let door = self.doors.door(node_id, &node.door);
            let store = self.store.clone();
            self.pushes.spawn(Push { store, door, session, attempts, claimed_at }.run());
        }
    }
}

impl RunOnce for PlaceLoop {
    async fn run_once(&mut self) -> Result<Ran, StoreError> {
        let mut sum = Ran::default();
        for pool in self.pools().await? {
            let ran = self.place_pool(&pool).await?;
            sum = Ran { changed: sum.changed + ran.changed, more: sum.more || ran.more };
        }
        Ok(sum)
    }
}

fn plan_placements(snapshot: &PlaceSnapshot, memory: &mut PlanMemory) -> Vec<Placement> {
    let input = Snapshot {
        now: snapshot.now,
        heads: &snapshot.heads,
        shapes: &snapshot.shapes,
        nodes: &snapshot.nodes,
        limit: PASS_LIMIT,
    };
    let chosen = plan(input, memory).chosen;
    chosen
        .into_iter()
        .map(|chosen| Placement { job_id: chosen.job_id, node_id: chosen.node_id, session: chosen.session })
        .collect()
}
