//! What an informer does to many jobs goes on where another one stopped, and what happened is counted once.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use jobyard_api::doors::WorkerDoor;
use jobyard_api::submit::{FileUrls, SecretEnvs, SubmitSettings, parse_job};
use jobyard_informer::{InformerParts, InformerSettings, LoopBoard, WorkerDoors};
use jobyard_model::{BulkAction, Clock, JobFilter, JobId, NodeId, SessionId, Status, Timestamp};
use jobyard_store::sqlite::{SqliteOptions, SqliteStore};
use jobyard_store::{Actor, BulkRecord, BulkStatus, Dashboard, MinuteQuery, NewBulk, NewJob, Store};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// No test waits longer for one thing.
const DEADLINE: Duration = Duration::from_secs(60);
const JOBS: u128 = 2_000;

/// A clock that goes on with each look.
struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp(1_777_622_400_000 + self.0.fetch_add(1, Ordering::SeqCst))
    }
}

/// There are no nodes.
struct NoDoors;

impl WorkerDoors for NoDoors {
    fn door(&self, node_id: NodeId, _: &str) -> Arc<dyn WorkerDoor> {
        panic!("nothing is placed, so nobody calls {node_id}")
    }
}

async fn submit(store: &SqliteStore) {
    let settings =
        SubmitSettings { file_urls: FileUrls::Refused, secret_envs: SecretEnvs::Refused, lease_ms: 180_000 };
    let parsed = parse_job(br#"{"command": ["true"], "name": "many"}"#, &settings).expect("it is fine");
    let spec = parsed.into_spec("team");
    let job = |number| NewJob {
        id: JobId(Uuid::from_u128(number)),
        spec: spec.clone(),
        submitted_by: "ann".to_owned(),
        idempotency: None,
        secrets: None,
    };
    store.submit((1..=JOBS).map(job).collect(), &Actor::role("test")).await.expect("submitted");
}

fn informer(store: &Arc<SqliteStore>, shutdown: &CancellationToken) -> tokio::task::JoinHandle<()> {
    let parts = InformerParts {
        store: store.clone(),
        doors: Arc::new(NoDoors),
        settings: InformerSettings::default(),
        board: LoopBoard::default(),
        webhook: None,
        id: SessionId(Uuid::from_u128(1)),
    };
    tokio::spawn(jobyard_informer::run(parts, shutdown.clone()))
}

async fn until(store: &SqliteStore, id: Uuid, is_so: impl Fn(&BulkRecord) -> bool) -> BulkRecord {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let bulk = store.bulk(id).await.expect("read").expect("there is one");
        if is_so(&bulk) {
            return bulk;
        }
        assert!(Instant::now() < deadline, "{bulk:?}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_action_goes_on_where_an_informer_stopped() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = SqliteOptions::new(Arc::new(Ticking(AtomicI64::new(0))));
    let store = SqliteStore::open(&directory.path().join("jobyard.db"), options).expect("a datastore");
    submit(&store).await;
    let bulk = NewBulk {
        id: Uuid::from_u128(9),
        filter: "name=many".to_owned(),
        action: BulkAction::Cancel,
        owners: Some(vec!["team".to_owned()]),
        idempotency_key: None,
    };
    store.start_bulk(&bulk, &Actor::role("test")).await.expect("begun");

    let shutdown = CancellationToken::new();
    let first = informer(&store, &shutdown);
    until(&store, bulk.id, |bulk| bulk.changed > 0).await;
    shutdown.cancel();
    tokio::time::timeout(DEADLINE, first).await.expect("in time").expect("no panic");

    let shutdown = CancellationToken::new();
    let second = informer(&store, &shutdown);
    let done = until(&store, bulk.id, |bulk| bulk.status != BulkStatus::Running).await;
    assert_eq!((done.status, done.changed, done.unchanged), (BulkStatus::Done, JOBS as u64, 0));
    let waiting = JobFilter::of_statuses([Status::Waiting]);
    assert_eq!(store.count_jobs(&waiting).await.expect("counted").count, 0);

    let day_ms = 24 * 3_600_000;
    let query = MinuteQuery {
        from: Timestamp(1_777_622_400_000),
        to: Timestamp(1_777_622_400_000 + day_ms),
        step_minutes: 24 * 60,
    };
    let deadline = Instant::now() + DEADLINE;
    loop {
        let page = store.minutes(&query).await.expect("read");
        let counts = &page.spans[0].1;
        let ended = counts.ended.get(&Status::Cancelled).copied().unwrap_or(0);
        assert!(counts.submitted <= JOBS as u64 && ended <= JOBS as u64, "{counts:?}");
        if (counts.submitted, ended) == (JOBS as u64, JOBS as u64) {
            break;
        }
        assert!(Instant::now() < deadline, "{counts:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    shutdown.cancel();
    tokio::time::timeout(DEADLINE, second).await.expect("in time").expect("no panic");
    store.close().await;
}
