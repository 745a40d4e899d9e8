//! A real server on a real embedded datastore, in the test's own process, and a worker led by hand.
//!
//! The worker's side is said straight to the datastore, so that a test decides when an attempt starts, writes and ends.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jobyard_client::json::{JobSubmit, TokenCreate};
use jobyard_client::{Client, JobId, RetryPolicy, Role, Token};
use jobyard_model::node::NodeRegistration;
use jobyard_model::{
    AttemptEnd, Clock, EndedBy, Exit, ExitFacts, NodeId, Outputs, Resources, Runtime, SessionId, Timestamp,
    Usage,
};
use jobyard_server::{
    ConnectionSettings, DirectoryStore, Metrics, Server, ServerParts, ServerSettings, create_token,
    serve_http,
};
use jobyard_store::sqlite::{SqliteOptions, SqliteStore};
use jobyard_store::{
    Actor, Claimed, LogAnswer, LogBody, LogChunk, LogStream, Placement, Report, ReportItem, Store, Verdict,
};
use tokio::net::TcpListener;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Runs from a fixed instant, so that tests don't depend on the day.
struct TestClock(Instant);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_777_627_800_000)
            .plus_ms(u64::try_from(self.0.elapsed().as_millis()).expect("not that long"))
    }
}

/// A server on a runtime of its own, so that it can be killed with all its connections.
struct Serving {
    runtime: tokio::runtime::Runtime,
    served: JoinHandle<()>,
    shutdown: CancellationToken,
}

/// The installation.
pub(crate) struct Yard {
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) secret: String,
    address: SocketAddr,
    pub(crate) directory: tempfile::TempDir,
    clock: Arc<TestClock>,
    serving: Option<Serving>,
}

impl Yard {
    pub(crate) async fn start() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let clock = Arc::new(TestClock(Instant::now()));
        let store = SqliteStore::open(&directory.path().join("yard.db"), SqliteOptions::new(clock.clone()))
            .expect("an embedded datastore");
        let wanted = TokenCreate {
            name: "tester".to_owned(),
            role: Role::Admin,
            owners: vec!["search".to_owned()],
            expires_in: None,
        };
        let created = create_token(store.as_ref(), &wanted, clock.now(), &Actor::role("test")).await;
        let secret = created.expect("a token").secret;
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut yard = Self { store, secret, address, directory, clock, serving: None };
        yard.serve().await;
        yard
    }

    /// Starts the server; again at the same address after [`stop_server`](Self::stop_server).
    pub(crate) async fn serve(&mut self) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let address = self.address;
        let listener =
            runtime.spawn(TcpListener::bind(address)).await.expect("no panic").expect("a free address");
        self.address = listener.local_addr().expect("an address");
        let shutdown = CancellationToken::new();
        let artifacts = DirectoryStore::open(self.directory.path().join("artifacts"), self.clock.now());
        let server = Server::new(ServerParts {
            store: self.store.clone(),
            artifacts: Arc::new(artifacts.expect("an artifact store")),
            secret_keys: None,
            buckets: jobyard_server::s3::JobBuckets::none(),
            settings: ServerSettings::default(),
            clock: self.clock.clone(),
            metrics: Metrics::default(),
            shutdown: shutdown.clone(),
        });
        let connections = ConnectionSettings::default();
        let served = runtime.spawn(serve_http(listener, server.router(), connections, shutdown.clone()));
        self.serving = Some(Serving { runtime, served, shutdown });
    }

    /// Ends the server in good order: open streams end, nobody listens any more.
    pub(crate) async fn stop_server(&mut self) {
        let serving = self.serving.take().expect("it serves");
        serving.shutdown.cancel();
        serving.served.await.expect("no panic");
        serving.runtime.shutdown_background();
    }

    /// Ends the server as a kill does: every connection breaks off.
    pub(crate) async fn kill_server(&mut self) {
        let serving = self.serving.take().expect("it serves");
        serving.runtime.shutdown_background();
        // Cancelled with its runtime, as wanted.
        let _ = serving.served.await;
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn client(&self) -> Client {
        self.client_with(&self.secret)
    }

    pub(crate) fn client_with(&self, secret: &str) -> Client {
        let policy = RetryPolicy { first_delay: Duration::from_millis(5), ..RetryPolicy::default() };
        let builder = Client::builder().url(&self.url()).expect("a url").retry_policy(policy);
        builder.token(Token::new(secret).expect("a token")).build().expect("a client")
    }

    pub(crate) async fn submit(&self, command: &[&str]) -> JobId {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        self.client().jobs().submit(JobSubmit { command, ..JobSubmit::default() }).await.expect("accepted").id
    }

    /// Registers a node.
    pub(crate) async fn node(&self, name: &str) -> Node {
        let registration = NodeRegistration {
            node_id: NodeId(uuid::Uuid::from_u128(u128::from(name.len() as u64) << 64 | 7)),
            session: SessionId(uuid::Uuid::from_u128(9)),
            boot_id: "boot".to_owned(),
            name: name.to_owned(),
            pool: "default".to_owned(),
            capacity: Resources { cpu_milli: 8_000, memory_bytes: 16 << 30 },
            max_attempts: 10,
            labels: BTreeMap::new(),
            runtimes: vec![Runtime::Process],
            containment: "cgroup".to_owned(),
            door: String::new(),
            version: "0.1.0".to_owned(),
        };
        self.store.register_node(&registration).await.expect("registered");
        Node { store: self.store.clone(), node_id: registration.node_id, session: registration.session }
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.runtime.shutdown_background();
        }
    }
}

/// Asks until the answer is there.
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, ask: impl Fn() -> F) -> T {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < until, "never came about: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A worker led by hand.
pub(crate) struct Node {
    store: Arc<SqliteStore>,
    node_id: NodeId,
    session: SessionId,
}

impl Node {
    /// Claims a waiting job and says that its task process runs.
    pub(crate) async fn start(&self, job_id: JobId) -> Task {
        let placement = Placement { job_id, node_id: self.node_id, session: self.session };
        let claimed = self.store.claim(vec![placement]).await.expect("claimed").remove(0);
        let task = Task { store: self.store.clone(), claimed };
        task.report(Report::Started).await;
        task
    }
}

/// A running attempt.
pub(crate) struct Task {
    store: Arc<SqliteStore>,
    claimed: Claimed,
}

impl Task {
    async fn report(&self, report: Report) {
        let Claimed { job_id, attempt, lease_id, .. } = self.claimed;
        let answers =
            self.store.report(vec![ReportItem { job_id, attempt, lease_id, report }]).await.expect("heard");
        assert_eq!(answers[0].verdict, Verdict::Accepted);
    }

    /// Writes to a stream from an offset; that is where the stream must end.
    pub(crate) async fn write(&self, stream: LogStream, from: u64, bytes: &'static [u8]) {
        let to = from + bytes.len() as u64;
        let chunk = LogChunk {
            job_id: self.claimed.job_id,
            attempt: self.claimed.attempt,
            lease_id: self.claimed.lease_id,
            stream,
            from,
            to,
            at: Timestamp(0),
            seq: 0,
            body: LogBody::Inline(bytes::Bytes::from_static(bytes)),
        };
        assert_eq!(self.store.append_logs(vec![chunk]).await.expect("kept"), [LogAnswer::End(to)]);
    }

    /// Ends by itself.
    pub(crate) async fn exit(self, exit: Exit) {
        self.end(EndedBy::Itself, exit).await;
    }

    /// Ends because it was told to.
    pub(crate) async fn stopped(self) {
        self.end(EndedBy::Stop, Exit::Signal(15)).await;
    }

    async fn end(&self, ended_by: EndedBy, exit: Exit) {
        let facts = ExitFacts {
            ended_by,
            exit,
            message: String::new(),
            started_at: None,
            ended_at: Timestamp(0),
            usage: Usage::default(),
            outputs: Outputs::None,
        };
        self.report(Report::Ended(AttemptEnd::Exited(facts))).await;
    }
}
