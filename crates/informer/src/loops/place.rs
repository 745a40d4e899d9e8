//! Places waiting jobs and pushes them: snapshot, plan, claim, and only then the push.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use jobyard_model::{JobId, NodeId, NodeState, QueueHead, SessionId};
use jobyard_scheduler::{PlanMemory, Snapshot, plan};
use jobyard_store::{Claimed, PlaceSnapshot, Placement, Store, StoreError};
use tokio_util::task::TaskTracker;

use crate::pace::{Ran, RunOnce};
use crate::push::Push;
use crate::{InformerSettings, WorkerDoors};

/// The most placements of one pass, which is one commit.
const PASS_LIMIT: usize = 256;
/// Heads read of each (lane, owner, shape): few while few can be placed, twice as many each time that all of a group
/// were.
const FEWEST_HEADS_PER_GROUP: u32 = 16;
const MOST_HEADS_PER_GROUP: u32 = 256;
/// Heads read in all.
const HEADS_LIMIT: u32 = 1_024;

pub(crate) struct PlaceLoop {
    store: Arc<dyn Store>,
    doors: Arc<dyn WorkerDoors>,
    settings: InformerSettings,
    pushes: TaskTracker,
    pools: BTreeMap<String, PoolMemory>,
}

/// What one pass over a pool leaves for the next.
struct PoolMemory {
    plan: PlanMemory,
    heads_per_group: u32,
}

impl Default for PoolMemory {
    fn default() -> Self {
        Self { plan: PlanMemory::default(), heads_per_group: FEWEST_HEADS_PER_GROUP }
    }
}

impl PlaceLoop {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        doors: Arc<dyn WorkerDoors>,
        settings: InformerSettings,
        pushes: TaskTracker,
    ) -> Self {
        Self { store, doors, settings, pushes, pools: BTreeMap::new() }
    }

    async fn pools(&self) -> Result<Vec<String>, StoreError> {
        if !self.settings.pools.is_empty() {
            return Ok(self.settings.pools.clone());
        }
        Ok(self.store.pools().await?.into_iter().map(|pool| pool.name).collect())
    }

    async fn place_pool(&mut self, pool: &str) -> Result<Ran, StoreError> {
        let memory = self.pools.entry(pool.to_owned()).or_default();
        let snapshot = self.store.place_snapshot(pool, memory.heads_per_group, HEADS_LIMIT).await?;
        if snapshot.heads.is_empty() || snapshot.nodes.is_empty() {
            return Ok(Ran::default());
        }
        let placements = plan_placements(&snapshot, &mut memory.plan);
        if placements.is_empty() {
            return Ok(Ran { gather: true, ..Ran::default() });
        }
        // Jobs of a group are alike: where one of them found no place, the unread ones behind it find none either.
        let read_on =
            placements.len() == PASS_LIMIT || snapshot.more && has_placed_group(&snapshot, &placements);
        memory.heads_per_group = match read_on {
            true => (memory.heads_per_group * 2).min(MOST_HEADS_PER_GROUP),
            false => FEWEST_HEADS_PER_GROUP,
        };
        let left_out = placements.len() < snapshot.heads.len();
        let claimed = self.store.claim(placements).await?;
        let changed = claimed.len() as u64;
        self.push(claimed, &snapshot.nodes);
        Ok(Ran { changed, more: read_on && changed > 0, gather: left_out })
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
            sum = Ran {
                changed: sum.changed + ran.changed,
                more: sum.more || ran.more,
                gather: sum.gather || ran.gather,
            };
        }
        Ok(sum)
    }
}

/// Whether all heads that were read of some (lane, owner, shape) are placed.
fn has_placed_group(snapshot: &PlaceSnapshot, placements: &[Placement]) -> bool {
    let placed: HashSet<JobId> = placements.iter().map(|placement| placement.job_id).collect();
    let group = |head: &QueueHead| (head.priority.lane(), head.owner_id, head.shape_id);
    let left_out = snapshot.heads.iter().filter(|head| !placed.contains(&head.job_id));
    let left_out: HashSet<_> = left_out.map(group).collect();
    snapshot.heads.iter().any(|head| !left_out.contains(&group(head)))
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
