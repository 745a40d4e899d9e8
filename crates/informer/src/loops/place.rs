//! Places waiting jobs and pushes them: snapshot, plan, claim, and only then the push.

use std::collections::{BTreeMap, BTreeSet, HashSet};
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
/// From so many running attempts on a pass may wait for the room that several of them leave.
const MANY_ATTEMPTS: u32 = 8;
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
    /// Those of the last run, unless the settings name them.
    pools: BTreeSet<String>,
    memories: BTreeMap<String, PoolMemory>,
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
        let pools = settings.pools.iter().cloned().collect();
        Self { store, doors, settings, pushes, pools, memories: BTreeMap::new() }
    }

    async fn place_pools(&mut self, pools: &BTreeSet<String>) -> Result<Ran, StoreError> {
        let mut sum = Ran::default();
        for pool in pools {
            let ran = self.place_pool(pool).await?;
            sum = sum.and(ran);
        }
        Ok(sum)
    }

    async fn place_pool(&mut self, pool: &str) -> Result<Ran, StoreError> {
        let memory = self.memories.entry(pool.to_owned()).or_default();
        let snapshot = self.store.place_snapshot(pool, memory.heads_per_group, HEADS_LIMIT).await?;
        if snapshot.heads.is_empty() || snapshot.nodes.is_empty() {
            return Ok(Ran::default());
        }
        let placements = plan_placements(&snapshot, &mut memory.plan);
        if placements.is_empty() {
            return Ok(Ran::default());
        }
        // Jobs of a group are alike: where one of them found no place, the unread ones behind it find none either.
        let read_on =
            placements.len() == PASS_LIMIT || snapshot.more && has_placed_group(&snapshot, &placements);
        memory.heads_per_group = match read_on {
            true => (memory.heads_per_group * 2).min(MOST_HEADS_PER_GROUP),
            false => FEWEST_HEADS_PER_GROUP,
        };
        let is_left_out = placements.len() < snapshot.heads.len();
        let running: u32 = snapshot.nodes.iter().map(|node| node.attempts).sum();
        let claimed = self.store.claim(placements).await?;
        let changed = claimed.len() as u64;
        self.push(claimed, &snapshot.nodes);
        // Attempts end one by one on a busy fleet, and each makes room for one of those that are left out. Where nothing
        // could be placed, or few run, the next one that waits is placed at once.
        let gather = is_left_out && changed > 0 && running >= MANY_ATTEMPTS;
        Ok(Ran { changed, more: read_on && changed > 0, gather })
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
    /// Asks which pools there are beside the pass over those it knows, not before it: a start waits for that pass.
    async fn run_once(&mut self) -> Result<Ran, StoreError> {
        let known = self.pools.clone();
        if !self.settings.pools.is_empty() {
            return self.place_pools(&known).await;
        }
        let store = self.store.clone();
        let (asked, ran) = tokio::join!(store.pools(), self.place_pools(&known));
        self.pools = asked?.into_iter().map(|pool| pool.name).collect();
        let new = self.pools.difference(&known).cloned().collect();
        Ok(ran?.and(self.place_pools(&new).await?))
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use async_trait::async_trait;
    use jobyard_api::doors::{DoorError, WorkerDoor};
    use jobyard_api::proto;
    use jobyard_api::submit::{FileUrls, SecretEnvs, SubmitSettings, parse_job};
    use jobyard_model::node::NodeRegistration;
    use jobyard_model::{Clock, Resources, Runtime, Timestamp};
    use jobyard_store::sqlite::{SqliteOptions, SqliteStore};
    use jobyard_store::{Actor, NewJob};
    use uuid::Uuid;

    use super::*;

    /// A clock that stands: nothing runs out.
    struct Standing;

    impl Clock for Standing {
        fn now(&self) -> Timestamp {
            Timestamp(1_777_622_400_000)
        }
    }

    /// Never answers: what matters here is what is claimed.
    struct Silent;

    #[async_trait]
    impl WorkerDoor for Silent {
        async fn launch(&self, _: proto::LaunchRequest) -> Result<proto::LaunchReply, DoorError> {
            std::future::pending().await
        }

        async fn stop(&self, _: proto::StopRequest) -> Result<proto::StopReply, DoorError> {
            std::future::pending().await
        }
    }

    impl WorkerDoors for Silent {
        fn door(&self, _: NodeId, _: &str) -> Arc<dyn WorkerDoor> {
            Arc::new(Self)
        }
    }

    async fn loop_over(jobs: u32, slots: u32, directory: &tempfile::TempDir) -> PlaceLoop {
        let options = SqliteOptions::new(Arc::new(Standing));
        let store = SqliteStore::open(&directory.path().join("jobyard.db"), options).expect("a datastore");
        let node = NodeRegistration {
            node_id: NodeId(Uuid::from_u128(1)),
            session: SessionId(Uuid::from_u128(1)),
            boot_id: "boot".to_owned(),
            name: "node".to_owned(),
            pool: "default".to_owned(),
            capacity: Resources { cpu_milli: 1_000_000, memory_bytes: 1 << 50 },
            max_attempts: slots,
            labels: BTreeMap::new(),
            runtimes: vec![Runtime::Process],
            containment: "subreaper".to_owned(),
            door: String::new(),
            version: "0.1.0".to_owned(),
        };
        store.register_node(&node).await.expect("registered");
        let settings = SubmitSettings {
            file_urls: FileUrls::Refused,
            secret_envs: SecretEnvs::Refused,
            lease_ms: 180_000,
        };
        let job = |number: u32| NewJob {
            id: JobId(Uuid::from_u128(number.into())),
            spec: parse_job(br#"{"command": ["true"]}"#, &settings).expect("it is fine").into_spec("team"),
            submitted_by: "ann".to_owned(),
            idempotency: None,
            secrets: None,
        };
        store.submit((1..=jobs).map(job).collect(), &Actor::role("test")).await.expect("submitted");
        PlaceLoop::new(store, Arc::new(Silent), InformerSettings::default(), TaskTracker::new())
    }

    #[tokio::test]
    async fn all_that_has_room_is_placed_without_a_pause_and_the_rest_is_gathered() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut place = loop_over(1_000, 600, &directory).await;
        let mut placed = 0;
        for run in 1.. {
            let ran = place.run_once().await.expect("placed");
            placed += ran.changed;
            if !ran.more {
                assert_eq!((placed, ran.gather), (600, true));
                assert!(run <= 7, "{run} runs");
                return;
            }
        }
    }

    #[tokio::test]
    async fn where_few_run_or_nothing_has_room_nothing_waits_for_company() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut place = loop_over(10, 1, &directory).await;
        let ran = place.run_once().await.expect("placed");
        assert_eq!(ran, Ran { changed: 1, more: false, gather: false });
        assert_eq!(place.run_once().await.expect("no room"), Ran::default());
    }

    #[tokio::test]
    async fn when_all_is_placed_nothing_waits_for_company() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut place = loop_over(1, 600, &directory).await;
        let ran = place.run_once().await.expect("placed");
        assert_eq!(ran, Ran { changed: 1, more: false, gather: false });
        assert_eq!(place.run_once().await.expect("nothing to do"), Ran::default());
    }
}
