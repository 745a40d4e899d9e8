//! Placement while walks are slow: it reads from where the last pass found what waits and lives.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use jobyard_model::{JobId, JobSpec, Priority, Resources};
use jobyard_store::{Claimed, PlaceSnapshot, PostgresConfig, PostgresStore, Report, Store};

use super::conformance::World;
use super::conformance::world::{Node, exit, spec};
use super::{OnServer, Server, server};

/// A datastore with one store that reads as others do, and one to which every walk is slow.
struct Slow {
    server: Arc<Server>,
    world: World,
    node: Node,
    store: Arc<PostgresStore>,
}

impl Slow {
    async fn new() -> Self {
        let server = server().await;
        let world = World {
            store: PostgresStore::open(server.config()).await.unwrap(),
            dialect: Box::new(OnServer(Arc::clone(&server))),
            max_unended_per_owner: super::MAX_UNENDED,
        };
        let node = world.node().await;
        let config = PostgresConfig { quick_walk: Duration::ZERO, ..server.config() };
        let store = PostgresStore::open(config).await.unwrap();
        let slow = Self { server, world, node, store };
        // The first walk is quick until it is known how long it took.
        let attempt = slow.claim(spec()).await;
        assert_eq!(slow.snapshot().await.nodes[0].attempts, 1);
        slow.store.expire_silent(10).await.unwrap();
        slow.world.end(&attempt, exit(0)).await;
        slow
    }

    async fn snapshot(&self) -> PlaceSnapshot {
        self.store.place_snapshot("default", 16, 1_000).await.unwrap()
    }

    async fn waiting(&self) -> Vec<JobId> {
        self.snapshot().await.heads.iter().map(|head| head.job_id).collect()
    }

    /// By somebody else.
    async fn claim(&self, spec: JobSpec) -> Claimed {
        self.world.placed(spec, &self.node).await
    }

    /// What is reserved as the next pass sees it and as it is.
    async fn reserved(&self) -> ((Resources, u32), (Resources, u32)) {
        let seen = self.snapshot().await.nodes.remove(0);
        let real = self.world.store.nodes().await.unwrap().remove(0);
        ((seen.reserved, seen.attempts), (real.reserved, real.attempts))
    }

    /// Passes, until one of them sees it; informers make one each second.
    async fn until<T, F: Future<Output = Option<T>>>(&self, seen: impl Fn() -> F) -> T {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(seen) = seen().await {
                return seen;
            }
            assert!(Instant::now() < deadline, "no pass saw it");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_is_found_wherever_it_stands_in_the_queue() {
    let slow = Slow::new().await;
    let urgent = || JobSpec { priority: Priority::new(95).unwrap(), ..spec() };
    // A queue that is new.
    let first = slow.world.submit(urgent()).await;
    slow.until(|| async { (slow.waiting().await == [first]).then_some(()) }).await;
    slow.world.claim(&[first], &slow.node).await;
    // One that is known, though nothing waits in it at the moment.
    assert_eq!(slow.waiting().await, []);
    let second = slow.world.submit(urgent()).await;
    assert_eq!(slow.waiting().await, [second]);
    // Two that wait, then one that became visible late, with a place before them.
    let third = slow.world.submit(urgent()).await;
    assert_eq!(slow.waiting().await, [second, third]);
    slow.world.claim(&[second, third], &slow.node).await;
    assert_eq!(slow.waiting().await, []);
    let late = slow.world.submit(urgent()).await;
    let move_back =
        format!("UPDATE job_live SET wait_since_ms = wait_since_ms - 3600000 WHERE id = '{late}'");
    slow.server.sql(&move_back).await;
    slow.until(|| async { (slow.waiting().await == [late]).then_some(()) }).await;
    // And others do not hide it.
    let young = slow.world.submit(urgent()).await;
    assert_eq!(slow.waiting().await, [late, young]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reservations_add_up_whatever_begins_and_ends() {
    let slow = Slow::new().await;
    let sized = |cpu_milli| JobSpec { resources: Resources { cpu_milli, ..Resources::DEFAULT }, ..spec() };
    let mut live = Vec::new();
    for number in 0..60 {
        live.push(slow.claim(sized(100 + number)).await);
        if number % 3 == 0 {
            let attempt = live.remove(live.len() / 2);
            slow.world.report(&attempt, Report::Started).await;
            slow.world.end(&attempt, exit(0)).await;
        }
        if number % 7 == 1 {
            let attempt = live.last().unwrap();
            slow.world.report(attempt, Report::Started).await;
            slow.world.report(attempt, Report::Finishing).await;
        }
        let (seen, real) = slow.reserved().await;
        assert_eq!(seen, real, "after {number}");
    }
    // A claim that became visible late.
    let late = slow.claim(sized(5_000)).await;
    let move_back = "UPDATE attempt_live SET placed_ms = placed_ms - 3600000";
    slow.server.sql(&format!("{move_back} WHERE job_id = '{}'", late.job_id)).await;
    let seen = || async {
        let (seen, real) = slow.reserved().await;
        (seen == real).then_some(())
    };
    slow.until(seen).await;
    // Long ones, all in one place now, are counted until they end.
    slow.server.sql(move_back).await;
    slow.until(seen).await;
    for attempt in live.drain(..10) {
        slow.world.end(&attempt, exit(0)).await;
        let (seen, real) = slow.reserved().await;
        assert_eq!(seen, real);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_attempt_is_found_all_the_same() {
    let slow = Slow::new().await;
    let attempt = slow.claim(spec()).await;
    slow.world.settle().await;
    slow.until(|| async {
        slow.world.store.stamp_report_clock().await.unwrap();
        let report = slow.store.expire_silent(10).await.unwrap();
        (report.expired == 1).then_some(())
    })
    .await;
    assert_eq!(slow.world.job(attempt.job_id).await.job.live_attempt(), None);
}
