//! Stops reach each node by itself, whatever the others do.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jobyard_api::doors::{DoorError, WorkerDoor};
use jobyard_api::proto;
use jobyard_api::submit::{FileUrls, SecretEnvs, SubmitSettings, parse_job};
use jobyard_informer::{InformerParts, InformerSettings, LoopBoard, WorkerDoors};
use jobyard_model::node::NodeRegistration;
use jobyard_model::{Clock, JobId, LeaseId, NodeId, Resources, Runtime, SessionId, Timestamp};
use jobyard_store::sqlite::{SqliteOptions, SqliteStore};
use jobyard_store::{Actor, NewJob, Placement, Store};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// No test waits longer for one thing.
const DEADLINE: Duration = Duration::from_secs(30);

/// A clock that stands: nothing runs out.
struct Standing;

impl Clock for Standing {
    fn now(&self) -> Timestamp {
        Timestamp(1_777_622_400_000)
    }
}

/// A node's door: says which leases it is told to stop, and answers as often as it is let.
struct NodeDoor {
    told: mpsc::UnboundedSender<Vec<LeaseId>>,
    answers: Arc<Semaphore>,
}

#[async_trait]
impl WorkerDoor for NodeDoor {
    async fn launch(&self, _: proto::LaunchRequest) -> Result<proto::LaunchReply, DoorError> {
        Ok(proto::LaunchReply::default())
    }

    async fn stop(&self, request: proto::StopRequest) -> Result<proto::StopReply, DoorError> {
        let leases =
            request.stops.iter().map(|stop| LeaseId(Uuid::from_slice(&stop.lease_id).expect("an id")));
        // The test may be over.
        let _ = self.told.send(leases.collect());
        self.answers.acquire().await.expect("never closed").forget();
        Ok(proto::StopReply::default())
    }
}

/// A node as the test sees it.
struct Node {
    node_id: NodeId,
    session: SessionId,
    told: mpsc::UnboundedReceiver<Vec<LeaseId>>,
    answers: Arc<Semaphore>,
}

impl Node {
    /// Waits for the next call.
    async fn call(&mut self) -> Vec<LeaseId> {
        in_time("a call", self.told.recv()).await.expect("the informer runs")
    }

    /// Waits for a call that names the lease.
    async fn call_for(&mut self, lease_id: LeaseId) {
        while !self.call().await.contains(&lease_id) {}
    }
}

#[derive(Default)]
struct Doors(BTreeMap<NodeId, Arc<dyn WorkerDoor>>);

impl WorkerDoors for Doors {
    fn door(&self, node_id: NodeId, _: &str) -> Arc<dyn WorkerDoor> {
        self.0[&node_id].clone()
    }
}

/// Nodes and a datastore, for an informer.
struct Fleet {
    store: Arc<SqliteStore>,
    doors: Doors,
    _directory: tempfile::TempDir,
}

impl Fleet {
    fn open() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let options = SqliteOptions::new(Arc::new(Standing));
        let store = SqliteStore::open(&directory.path().join("jobyard.db"), options).expect("a datastore");
        Self { store, doors: Doors::default(), _directory: directory }
    }

    /// Adds a node whose door answers so many calls.
    async fn node(&mut self, number: u128, answers: usize) -> Node {
        let (node_id, session) = (NodeId(Uuid::from_u128(number)), SessionId(Uuid::from_u128(number)));
        let registration = NodeRegistration {
            node_id,
            session,
            boot_id: "boot".to_owned(),
            name: format!("node-{number}"),
            pool: "default".to_owned(),
            capacity: Resources { cpu_milli: 4_000, memory_bytes: 4 << 30 },
            max_attempts: 100,
            labels: BTreeMap::new(),
            runtimes: vec![Runtime::Process],
            containment: "subreaper".to_owned(),
            door: String::new(),
            version: "0.1.0".to_owned(),
        };
        self.store.register_node(&registration).await.expect("registered");
        let (sender, told) = mpsc::unbounded_channel();
        let answers = Arc::new(Semaphore::new(answers));
        self.doors.0.insert(node_id, Arc::new(NodeDoor { told: sender, answers: answers.clone() }));
        Node { node_id, session, told, answers }
    }

    /// An attempt on the node.
    async fn attempt(&self, node: &Node, number: u128) -> (JobId, LeaseId) {
        let job_id = JobId(Uuid::from_u128(number));
        let settings = SubmitSettings {
            file_urls: FileUrls::Refused,
            secret_envs: SecretEnvs::Refused,
            lease_ms: 180_000,
        };
        let parsed = parse_job(br#"{"command": ["true"]}"#, &settings).expect("it is fine");
        let spec = parsed.into_spec("team");
        let job =
            NewJob { id: job_id, spec, submitted_by: "ann".to_owned(), idempotency: None, secrets: None };
        self.store.submit(vec![job], &Actor::role("test")).await.expect("submitted");
        let placement = Placement { job_id, node_id: node.node_id, session: node.session };
        let claimed = self.store.claim(vec![placement]).await.expect("claimed");
        (job_id, claimed.first().expect("it waits").lease_id)
    }

    async fn cancel(&self, job_id: JobId) {
        self.store.cancel(job_id, &Actor::role("test")).await.expect("cancelled");
    }

    fn informer(&mut self, shutdown: &CancellationToken) -> tokio::task::JoinHandle<()> {
        let parts = InformerParts {
            store: self.store.clone(),
            doors: Arc::new(std::mem::take(&mut self.doors)),
            settings: InformerSettings::default(),
            board: LoopBoard::default(),
            webhook: None,
            id: SessionId(Uuid::from_u128(1)),
        };
        tokio::spawn(jobyard_informer::run(parts, shutdown.clone()))
    }
}

async fn in_time<T>(what: &str, coming: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, coming).await.unwrap_or_else(|_| panic!("never came: {what}"))
}

#[tokio::test]
async fn a_node_that_does_not_answer_holds_up_no_other_and_gets_no_second_call() {
    let mut fleet = Fleet::open();
    let mut frozen = fleet.node(1, 0).await;
    let mut well = fleet.node(2, Semaphore::MAX_PERMITS).await;
    let (on_frozen, first_lease) = fleet.attempt(&frozen, 1).await;
    let (later_on_frozen, later_lease) = fleet.attempt(&frozen, 2).await;
    let (on_well, well_lease) = fleet.attempt(&well, 3).await;
    let shutdown = CancellationToken::new();
    let informer = fleet.informer(&shutdown);

    fleet.cancel(on_frozen).await;
    assert_eq!(frozen.call().await, [first_lease]);
    fleet.cancel(on_well).await;
    well.call_for(well_lease).await;
    fleet.cancel(later_on_frozen).await;
    // The loop came by again, and again.
    well.call_for(well_lease).await;
    well.call_for(well_lease).await;
    assert!(frozen.told.try_recv().is_err(), "one call is in flight");

    // Once it answers, it is told at once of all that is wanted by now.
    frozen.answers.add_permits(1);
    let told = frozen.call().await;
    assert!(told.contains(&first_lease) && told.contains(&later_lease), "{told:?}");
    frozen.answers.add_permits(Semaphore::MAX_PERMITS / 2);
    shutdown.cancel();
    in_time("the informer's end", informer).await.expect("no panic");
    fleet.store.close().await;
}
