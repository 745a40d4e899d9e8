//! Many connections at once: no deadlock, no attempt twice, no job lost.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jobyard_model::node::NodeGate;
use jobyard_model::{JobSpec, LeaseSettings, NodeId};
use jobyard_store::{Claimed, NodeHeartbeat, PostgresConfig, PostgresStore, Report, Store};
use tokio::sync::Mutex;

use super::conformance::World;
use super::conformance::world::{Node, ann, exit, item, spec};
use super::{OnServer, Server, server};

/// Numbers that look random, the same each time.
pub(crate) struct Draw(AtomicU64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    pub(crate) fn below(&self, bound: u64) -> u64 {
        let state = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27) % bound
    }
}

/// What the mix works on.
struct Mix {
    stores: Vec<Arc<dyn Store>>,
    node: Node,
    claimed: Mutex<Vec<Claimed>>,
    draw: Draw,
}

impl Mix {
    fn store(&self) -> &Arc<dyn Store> {
        &self.stores[self.draw.below(self.stores.len() as u64) as usize]
    }

    async fn some(&self, most: u64) -> Vec<Claimed> {
        let claimed = self.claimed.lock().await;
        if claimed.is_empty() {
            return Vec::new();
        }
        let any = || claimed[self.draw.below(claimed.len() as u64) as usize].clone();
        (0..=self.draw.below(most)).map(|_| any()).collect()
    }

    async fn step(&self) {
        let store = self.store();
        match self.draw.below(10) {
            0..=2 => self.claim(store).await,
            3 => self.report(store, Report::Accepted).await,
            4 => self.report(store, Report::Started).await,
            5 => self.report(store, Report::Renewed).await,
            6 => self.report(store, Report::Ended(exit(self.draw.below(2) as i32))).await,
            7 => {
                store.expire_silent(20).await.unwrap();
            }
            8 => {
                store.release_due(20).await.unwrap();
            }
            _ => self.control(store).await,
        }
    }

    async fn claim(&self, store: &Arc<dyn Store>) {
        // Leases that run out suspend the node; its worker proves each time that it can start something.
        let proof = NodeHeartbeat {
            node_id: self.node.id(),
            session: self.node.registration.session,
            nonce: 1,
            proven: true,
        };
        store.heartbeat_node(proof).await.unwrap();
        let heads = store.place_snapshot("default", 8, 8).await.unwrap().heads;
        let (node_id, session): (NodeId, _) = (self.node.id(), self.node.registration.session);
        let place = |head: &jobyard_model::QueueHead| jobyard_store::Placement {
            job_id: head.job_id,
            node_id,
            session,
        };
        let claimed = store.claim(heads.iter().rev().map(place).collect()).await.unwrap();
        self.claimed.lock().await.extend(claimed);
    }

    async fn report(&self, store: &Arc<dyn Store>, report: Report) {
        let some = self.some(12).await;
        store.report(some.iter().map(|claimed| item(claimed, report.clone())).collect()).await.unwrap();
    }

    async fn control(&self, store: &Arc<dyn Store>) {
        for claimed in self.some(1).await {
            match self.draw.below(6) {
                0 => {
                    store.cancel(claimed.job_id, &ann()).await.unwrap();
                }
                1 => {
                    store.retry(claimed.job_id, None, &ann()).await.unwrap();
                }
                2 => {
                    store.set_node_gate(self.node.id(), NodeGate::Draining, &ann()).await.unwrap();
                    store.set_node_gate(self.node.id(), NodeGate::Open, &ann()).await.unwrap();
                }
                3 => {
                    store.register_node(&self.node.registration).await.unwrap();
                }
                _ => {
                    let fresh = super::conformance::world::new_job(JobSpec { backoff_ms: 1, ..spec() });
                    store.submit(vec![fresh], &ann()).await.unwrap();
                }
            }
        }
    }
}

/// Leases that run out while they are looked at, and retries that are due at once.
fn hasty(server: &Server) -> PostgresConfig {
    let lease = LeaseSettings { claim_lease_ms: 20, lease_ms: 30, ..LeaseSettings::default() };
    PostgresConfig { pool_size: 8, lease, ..server.config() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_connections_mix_without_a_deadlock() {
    let server = server().await;
    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    for _ in 0..2 {
        stores.push(PostgresStore::open(hasty(&server)).await.unwrap());
    }
    let world = World {
        store: Arc::clone(&stores[0]),
        dialect: Box::new(OnServer(Arc::clone(&server))),
        max_unended_per_owner: super::MAX_UNENDED,
    };
    world.submit_many(200, &JobSpec { backoff_ms: 1, max_retries: 2, ..spec() }).await;
    stores[0].stamp_report_clock().await.unwrap();
    server.sql("UPDATE report_clock SET reap_not_before_ms = 0").await;
    let node = world.node().await;
    let mix = Arc::new(Mix { stores, node, claimed: Mutex::default(), draw: Draw::new(7) });
    let workers: Vec<_> = (0..16)
        .map(|_| {
            let mix = Arc::clone(&mix);
            tokio::spawn(async move {
                for _ in 0..60 {
                    mix.step().await;
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    assert!(mix.claimed.lock().await.len() > 100);
    assert!(!server.log().contains("deadlock detected"), "{}", server.log());
    invariants_hold(&server).await;
}

/// What must be true whatever happened.
pub(crate) async fn invariants_hold(server: &Server) {
    for (what, broken) in [
        (
            "a job is live or over, never both and never neither",
            "SELECT id FROM job LEFT JOIN job_live USING (id)
            LEFT JOIN job_end ON job_end.job_id = job.id AND job_end.current
            WHERE (job_live.id IS NULL) = (job_end.job_id IS NULL)",
        ),
        (
            "a running job has its live attempt, and no other job has one",
            "SELECT coalesce(job_live.id, attempt_live.job_id) FROM job_live
            FULL JOIN attempt_live ON attempt_live.job_id = job_live.id
            WHERE (coalesce(job_live.status, 0) = 3) <> (attempt_live.job_id IS NOT NULL)
            OR job_live.lease_id <> attempt_live.lease_id OR job_live.attempt <> attempt_live.number",
        ),
        (
            "attempts have no gaps",
            "SELECT job.id FROM job LEFT JOIN job_live USING (id)
            LEFT JOIN job_end ON job_end.job_id = job.id AND job_end.current
            WHERE coalesce(job_live.attempt, job_end.attempt) <>
              (SELECT count(*) FROM attempt WHERE attempt.job_id = job.id)
              + (SELECT count(*) FROM attempt_live WHERE attempt_live.job_id = job.id)",
        ),
        (
            "an attempt ended once in the events",
            "SELECT job_id FROM event WHERE attempt IS NOT NULL AND from_ = 'running'
            AND to_ IN ('success', 'retry', 'waiting', 'final_failed', 'cancelled')
            GROUP BY job_id, attempt HAVING count(*) > 1",
        ),
        ("a lease was given once", "SELECT lease_id FROM attempt GROUP BY lease_id HAVING count(*) > 1"),
    ] {
        assert_eq!(server.sql(broken).await, Vec::<String>::new(), "{what}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_dropped_leaves_no_transaction_open() {
    let server = server().await;
    let store = PostgresStore::open(hasty(&server)).await.unwrap();
    let world = World {
        store: Arc::clone(&store) as Arc<dyn Store>,
        dialect: Box::new(OnServer(Arc::clone(&server))),
        max_unended_per_owner: super::MAX_UNENDED,
    };
    let node = world.node().await;
    world.submit_many(200, &spec()).await;
    let mix = Mix { stores: vec![store], node, claimed: Mutex::default(), draw: Draw::new(11) };
    let open =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'jobyard' AND xact_start IS NOT NULL";
    let mut dropped = 0;
    for _ in 0..500 {
        let within = Duration::from_micros(mix.draw.below(6_000));
        if tokio::time::timeout(within, mix.step()).await.is_err() {
            dropped += 1;
            // Before the next call would end it, and well before the server would.
            server.wait_at_most(Duration::from_secs(20), open, "0").await;
        }
    }
    assert!(dropped > 50, "only {dropped} calls were dropped half-way");
    // The pool has all its connections, and they work.
    for _ in 0..20 {
        world.submit(spec()).await;
    }
    invariants_hold(&server).await;
}
