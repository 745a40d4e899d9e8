//! A fresh datastore with one node, and its queue drained as informer and worker do it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use jobyard_api::submit::{FileUrls, SecretEnvs, SubmitSettings, parse_job};
use jobyard_model::attempt::{EndedBy, Exit, ExitFacts, Outputs, Usage};
use jobyard_model::node::{MAX_ATTEMPTS_PER_NODE, NodeRegistration};
use jobyard_model::{AttemptEnd, Clock, JobId, NodeId, Resources, Runtime, SessionId, Timestamp};
use jobyard_scheduler::{PlanMemory, Snapshot, plan};
use jobyard_store::{
    Actor, Claimed, NewJob, NodeHeartbeat, Placement, PostgresConfig, PostgresStore, Report, ReportItem,
    SqliteOptions, SqliteStore, Store, Verdict, WakeTopic,
};
use jobyard_test_postgres::Cluster;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// As the informer's loop has them.
const PASS_LIMIT: usize = 256;
const HEADS_PER_GROUP: u32 = 256;
const HEADS_LIMIT: u32 = 1_024;
const BATCH: usize = 1_000;

pub(crate) struct Place {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) kept: Kept,
    heartbeats: JoinHandle<()>,
}

/// What it is kept in.
pub(crate) enum Kept {
    Sqlite(tempfile::TempDir),
    Postgres(Cluster),
}

struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        Timestamp(i64::try_from(since.as_millis()).unwrap())
    }
}

impl Place {
    pub(crate) async fn new(datastore: &str) -> Self {
        let (store, kept): (Arc<dyn Store>, Kept) = match datastore {
            "sqlite" => {
                let directory = tempfile::tempdir().unwrap();
                let options = SqliteOptions::new(Arc::new(SystemClock));
                let store = SqliteStore::open(&directory.path().join("jobyard.db"), options).unwrap();
                (store, Kept::Sqlite(directory))
            }
            _ => {
                let cluster = Cluster::start_new().unwrap();
                let config = PostgresConfig::new(cluster.url("postgres"));
                PostgresStore::migrate(&config).await.unwrap();
                (PostgresStore::open(config).await.unwrap(), Kept::Postgres(cluster))
            }
        };
        store.register_node(&node()).await.unwrap();
        let heartbeats = tokio::spawn(heartbeats(Arc::clone(&store)));
        Self { store, kept, heartbeats }
    }

    pub(crate) async fn submit(&self, count: usize) {
        let settings = SubmitSettings {
            file_urls: FileUrls::Refused,
            secret_envs: SecretEnvs::Refused,
            lease_ms: 180_000,
        };
        let parsed = parse_job(br#"{"command": ["/bin/true"]}"#, &settings).unwrap();
        let spec = parsed.into_spec("team");
        let mut left = count;
        while left > 0 {
            let size = left.min(BATCH);
            let job = || NewJob {
                id: JobId(Uuid::now_v7()),
                spec: spec.clone(),
                submitted_by: "bench".to_owned(),
                idempotency: None,
                secrets: None,
            };
            let jobs = std::iter::repeat_with(job).take(size).collect();
            self.store.submit(jobs, &Actor::role("bench")).await.unwrap();
            left -= size;
        }
    }

    /// Claims and finishes so many jobs; how long that took.
    pub(crate) async fn drain(&self, count: usize) -> Duration {
        let started = Instant::now();
        let (sender, receiver) = mpsc::channel(4);
        let finisher = tokio::spawn(finish(Arc::clone(&self.store), receiver));
        let mut wakes = self.store.wakes(WakeTopic::Placement);
        let (mut memory, mut left) = (PlanMemory::default(), count);
        while left > 0 {
            let claimed = self.claim(&mut memory, left).await;
            left -= claimed.len();
            match claimed.is_empty() {
                true => wakes.changed().await.unwrap(),
                false => sender.send(claimed).await.unwrap(),
            }
        }
        drop(sender);
        finisher.await.unwrap();
        started.elapsed()
    }

    async fn claim(&self, memory: &mut PlanMemory, most: usize) -> Vec<Claimed> {
        let snapshot = self.store.place_snapshot("default", HEADS_PER_GROUP, HEADS_LIMIT).await.unwrap();
        let input = Snapshot {
            now: snapshot.now,
            heads: &snapshot.heads,
            shapes: &snapshot.shapes,
            nodes: &snapshot.nodes,
            limit: PASS_LIMIT.min(most),
        };
        let chosen = plan(input, memory).chosen.into_iter();
        let placements: Vec<_> = chosen
            .map(|chosen| Placement {
                job_id: chosen.job_id,
                node_id: chosen.node_id,
                session: chosen.session,
            })
            .collect();
        match placements.is_empty() {
            true => Vec::new(),
            false => self.store.claim(placements).await.unwrap(),
        }
    }

    /// How long each call of a lone job's life takes.
    pub(crate) async fn one_life(&self) -> Vec<(&'static str, Duration)> {
        let mut taken = Vec::new();
        let mut began = Instant::now();
        let mut lap = |name| {
            taken.push((name, began.elapsed()));
            began = Instant::now();
        };
        let mut wakes = self.store.wakes(WakeTopic::Placement);
        wakes.mark_unchanged();
        self.submit(1).await;
        lap("submit");
        wakes.changed().await.unwrap();
        lap("wake-up");
        let mut memory = PlanMemory::default();
        let claimed = self.claim(&mut memory, 1).await;
        lap("placement pass and claim");
        for report in [Report::Accepted, Report::Started, Report::Ended(succeeded())] {
            let claimed = &claimed[0];
            let (job_id, attempt, lease_id) = (claimed.job_id, claimed.attempt, claimed.lease_id);
            let item = ReportItem { job_id, attempt, lease_id, report };
            let answers = self.store.report(vec![item]).await.unwrap();
            assert_eq!(answers[0].verdict, Verdict::Accepted);
            lap("report");
        }
        taken
    }

    pub(crate) async fn close(self) {
        self.heartbeats.abort();
        self.store.close().await;
    }
}

/// Reports what a busy node says of short tasks: accepted, started and ended in one call.
async fn finish(store: Arc<dyn Store>, mut claimed: mpsc::Receiver<Vec<Claimed>>) {
    while let Some(claimed) = claimed.recv().await {
        let items = claimed.iter().flat_map(|attempt| {
            [Report::Accepted, Report::Started, Report::Ended(succeeded())].map(|report| ReportItem {
                job_id: attempt.job_id,
                attempt: attempt.attempt,
                lease_id: attempt.lease_id,
                report,
            })
        });
        let answers = store.report(items.collect()).await.unwrap();
        assert!(answers.iter().all(|answer| answer.verdict == Verdict::Accepted), "{answers:?}");
    }
}

fn succeeded() -> AttemptEnd {
    AttemptEnd::Exited(ExitFacts {
        ended_by: EndedBy::Itself,
        exit: Exit::Code(0),
        message: String::new(),
        started_at: None,
        ended_at: SystemClock.now(),
        usage: Usage { wall_ms: 1, limits: "cgroup-v2".to_owned(), ..Usage::default() },
        outputs: Outputs::None,
    })
}

async fn heartbeats(store: Arc<dyn Store>) {
    let NodeRegistration { node_id, session, .. } = node();
    loop {
        let heartbeat = NodeHeartbeat { node_id, session, nonce: 1, proven: false };
        store.heartbeat_node(heartbeat).await.unwrap();
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

fn node() -> NodeRegistration {
    NodeRegistration {
        node_id: NodeId(Uuid::from_u128(1)),
        session: SessionId(Uuid::from_u128(1)),
        boot_id: "boot".to_owned(),
        name: "node".to_owned(),
        pool: "default".to_owned(),
        capacity: Resources { cpu_milli: 1_000_000, memory_bytes: 1 << 50 },
        max_attempts: MAX_ATTEMPTS_PER_NODE,
        labels: BTreeMap::new(),
        runtimes: vec![Runtime::Process],
        containment: "cgroup".to_owned(),
        door: String::new(),
        version: "0".to_owned(),
    }
}
