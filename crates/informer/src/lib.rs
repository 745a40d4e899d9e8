//! The informer: claims waiting jobs, places them, pushes them to workers, gives up on silent attempts.
//!
//! Stateless: several may run at once, and one may die or freeze anywhere. Every change is a guarded statement of the
//! store; what a pass remembers (whose turn it is) only makes the next one fair. Invariant: **an attempt is pushed
//! only after its claim is durable**, and ended as `not_started` only when it surely never started.
//!
//! One loop a file in [`loops`]; each has `run_once`, which takes no hint about what changed.

mod delivery;
mod doors;
mod launch;
pub mod loops;
mod pace;
mod push;
mod webhook;

use std::sync::Arc;
use std::time::Duration;

use jobyard_model::SessionId;
use jobyard_store::{Store, WakeTopic};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use doors::WorkerDoors;
pub use pace::{LoopBoard, LoopReading};
pub use webhook::{Webhook, WebhookError};

use loops::{
    carry_out_bulk, count_minutes, deliver_stops, expire_leases, place, release_due, retention,
    retire_artifacts, tell_failures,
};
use pace::Pace;

/// What an informer is made of.
pub struct InformerParts {
    /// The datastore.
    pub store: Arc<dyn Store>,
    /// How workers are reached.
    pub doors: Arc<dyn WorkerDoors>,
    /// Settings.
    pub settings: InformerSettings,
    /// Where the loops say how they fare.
    pub board: LoopBoard,
    /// Who is told of jobs that failed for good.
    pub webhook: Option<Webhook>,
    /// Which informer this is: new at each start.
    pub id: SessionId,
}

/// What can be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InformerSettings {
    /// Pools to place for; empty: all there are.
    pub pools: Vec<String>,
    /// How long ended jobs are kept, in milliseconds.
    pub keep_jobs_ms: u64,
    /// How long idempotency keys of ended jobs are kept at least, in milliseconds.
    pub keep_keys_ms: u64,
    /// How long audit rows are kept, in milliseconds.
    pub keep_audit_ms: u64,
    /// How long artifacts are kept that nothing refers to, in milliseconds.
    pub keep_artifacts_ms: u64,
    /// How long it is kept what happened in each minute, in milliseconds.
    pub keep_minutes_ms: u64,
}

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

impl Default for InformerSettings {
    fn default() -> Self {
        Self {
            pools: Vec::new(),
            keep_jobs_ms: 90 * DAY_MS,
            keep_keys_ms: 7 * DAY_MS,
            keep_audit_ms: 365 * DAY_MS,
            keep_artifacts_ms: 7 * DAY_MS,
            keep_minutes_ms: 30 * DAY_MS,
        }
    }
}

/// Runs every loop until `shutdown`; then lets calls in flight to workers finish (each has a deadline) and returns.
pub async fn run(parts: InformerParts, shutdown: CancellationToken) {
    let InformerParts { store, doors, settings, board, webhook, id } = parts;
    let tracker = TaskTracker::new();
    let calls = TaskTracker::new();
    let woken = |name, topic, period| Pace::new(name, Some(store.wakes(topic)), period);
    let timed = |name, period| Pace::new(name, None, period);

    let place = place::PlaceLoop::new(store.clone(), doors.clone(), settings.clone(), calls.clone());
    let second = Duration::from_secs(1);
    tracker.spawn(woken("place", WakeTopic::Placement, second).run(place, board.clone(), shutdown.clone()));
    let stops = deliver_stops::DeliverStopsLoop::new(store.clone(), doors.clone(), calls.clone());
    tracker.spawn(woken("deliver_stops", WakeTopic::Stops, second).run(
        stops,
        board.clone(),
        shutdown.clone(),
    ));
    let expire = expire_leases::ExpireLeasesLoop::new(store.clone(), board.clone());
    tracker.spawn(timed("expire_leases", second).run(expire, board.clone(), shutdown.clone()));
    let due = release_due::ReleaseDueLoop::new(store.clone());
    tracker.spawn(timed("release_due", Duration::from_millis(200)).run(due, board.clone(), shutdown.clone()));
    let retention = retention::RetentionLoop::new(store.clone(), settings.clone());
    let minute = Duration::from_secs(60);
    tracker.spawn(timed("retention", minute).run(retention, board.clone(), shutdown.clone()));
    let bulk = carry_out_bulk::CarryOutBulkLoop::new(store.clone());
    tracker.spawn(timed("carry_out_bulk", second).run(bulk, board.clone(), shutdown.clone()));
    let count = count_minutes::CountMinutesLoop::new(store.clone(), settings.keep_minutes_ms);
    tracker.spawn(timed("count_minutes", second).run(count, board.clone(), shutdown.clone()));
    let retire = retire_artifacts::RetireArtifactsLoop::new(store.clone(), settings);
    tracker.spawn(timed("retire_artifacts", minute).run(retire, board.clone(), shutdown.clone()));
    if let Some(webhook) = webhook {
        let tell =
            tell_failures::TellFailuresLoop::new(store, (webhook, id), board.clone(), shutdown.clone());
        tracker.spawn(timed(tell_failures::NAME, second).run(tell, board, shutdown));
    }

    tracker.close();
    tracker.wait().await;
    calls.close();
    calls.wait().await;
}
