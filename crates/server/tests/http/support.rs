//! A server to call, callers of each role, and a hand that plays informer and worker on the store.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use jobyard_api::json::TokenCreate;
use jobyard_model::node::NodeRegistration;
use jobyard_model::{
    AttemptEnd, Clock, EndedBy, Exit, ExitFacts, JobId, LeaseId, NodeId, Outputs, Resources, Role, Runtime,
    ServiceRun, SessionId, Timestamp, Usage,
};
use jobyard_server::s3::JobBuckets;
use jobyard_server::{
    ArtifactStore, ConnectionSettings, DirectoryStore, Metrics, SecretKeys, Server, ServerParts,
    ServerSettings, create_token, serve_http,
};
use jobyard_store::sqlite::{SqliteOptions, SqliteStore};
use jobyard_store::{
    Actor, Answer, LogBody, LogChunk, LogStream, Placement, Report, ReportItem, Store, Verdict,
};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// No test waits longer for one thing.
const DEADLINE: Duration = Duration::from_secs(30);

/// A clock that stands until it is moved.
pub(crate) struct HandClock(AtomicI64);

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

impl HandClock {
    pub(crate) fn advance_ms(&self, duration_ms: i64) {
        self.0.fetch_add(duration_ms, Ordering::SeqCst);
    }
}

/// A server on loopback.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) clock: Arc<HandClock>,
    pub(crate) directory: tempfile::TempDir,
    http: reqwest::Client,
    shutdown: CancellationToken,
    serving: JoinHandle<()>,
}

/// What serves on a port.
pub(crate) struct Serving {
    pub(crate) address: SocketAddr,
    shutdown: CancellationToken,
    serving: JoinHandle<()>,
}

impl Serving {
    async fn start(parts: ServerParts, connections: ConnectionSettings) -> Self {
        let shutdown = parts.shutdown.clone();
        let server = Server::new(parts);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let serving = tokio::spawn(serve_http(listener, server.router(), connections, shutdown.clone()));
        Self { address, shutdown, serving }
    }

    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.serving.await.expect("no panic");
    }
}

/// What the datastore bears.
struct DatastoreLimits {
    most_pages: Option<i64>,
    dashboard_timeout: Duration,
}

impl Default for DatastoreLimits {
    fn default() -> Self {
        Self { most_pages: None, dashboard_timeout: Duration::from_secs(30) }
    }
}

/// Whoever calls: a role, and the owners it acts for.
#[derive(Clone)]
pub(crate) struct Caller<'a> {
    server: &'a TestServer,
    secret: Option<String>,
}

impl TestServer {
    pub(crate) async fn start() -> Self {
        Self::start_with(ServerSettings::default()).await
    }

    pub(crate) async fn start_with(settings: ServerSettings) -> Self {
        Self::start_with_pages(settings, None).await
    }

    /// With a datastore that is full at so many pages.
    pub(crate) async fn start_with_pages(settings: ServerSettings, most_pages: Option<i64>) -> Self {
        let nothing = (None, JobBuckets::none());
        let limits = DatastoreLimits { most_pages, ..DatastoreLimits::default() };
        Self::start_bearing(ConnectionSettings::default(), settings, limits, nothing).await
    }

    /// With a datastore that gives looks over many jobs so much time.
    pub(crate) async fn start_with_dashboard_timeout(dashboard_timeout: Duration) -> Self {
        let (nothing, settings) = ((None, JobBuckets::none()), ServerSettings::default());
        let limits = DatastoreLimits { dashboard_timeout, ..DatastoreLimits::default() };
        Self::start_bearing(ConnectionSettings::default(), settings, limits, nothing).await
    }

    /// With a listener that bears only so much.
    pub(crate) async fn start_with_connections(connections: ConnectionSettings) -> Self {
        let nothing = (None, JobBuckets::none());
        Self::start_bearing(connections, ServerSettings::default(), DatastoreLimits::default(), nothing).await
    }

    /// With its artifacts there.
    pub(crate) async fn start_on(artifacts: Arc<dyn ArtifactStore>) -> Self {
        let (connections, settings) = (ConnectionSettings::default(), ServerSettings::default());
        Self::start_bearing(
            connections,
            settings,
            DatastoreLimits::default(),
            (Some(artifacts), JobBuckets::none()),
        )
        .await
    }

    /// With these places in S3 that jobs may name.
    pub(crate) async fn start_allowing(buckets: Arc<JobBuckets>) -> Self {
        let (connections, settings) = (ConnectionSettings::default(), ServerSettings::default());
        Self::start_bearing(connections, settings, DatastoreLimits::default(), (None, buckets)).await
    }

    async fn start_bearing(
        connections: ConnectionSettings,
        settings: ServerSettings,
        limits: DatastoreLimits,
        (artifacts, buckets): (Option<Arc<dyn ArtifactStore>>, Arc<JobBuckets>),
    ) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let clock = Arc::new(HandClock(AtomicI64::new(1_777_622_400_000)));
        let DatastoreLimits { most_pages, dashboard_timeout } = limits;
        let options = SqliteOptions::new(Arc::clone(&clock) as Arc<dyn Clock>);
        let options = SqliteOptions { dashboard_timeout, ..options };
        let store = SqliteStore::open_limited(&directory.path().join("jobyard.db"), options, most_pages)
            .expect("a datastore");
        let artifacts = artifacts.unwrap_or_else(|| {
            let place = directory.path().join("artifacts");
            Arc::new(DirectoryStore::open(place, clock.now()).expect("a directory"))
        });
        let parts = ServerParts {
            store: Arc::clone(&store) as Arc<dyn Store>,
            artifacts,
            secret_keys: Some(secret_keys()),
            buckets,
            settings,
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            metrics: Metrics::default(),
            shutdown: CancellationToken::new(),
        };
        let Serving { address, shutdown, serving } = Serving::start(parts, connections).await;
        Self { address, store, clock, directory, http: reqwest::Client::new(), shutdown, serving }
    }

    /// Another server on the same datastore.
    pub(crate) async fn another(&self) -> Serving {
        let parts = ServerParts {
            store: Arc::clone(&self.store) as Arc<dyn Store>,
            artifacts: Arc::new(self.artifacts()),
            secret_keys: Some(secret_keys()),
            buckets: JobBuckets::none(),
            settings: ServerSettings::default(),
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            metrics: Metrics::default(),
            shutdown: CancellationToken::new(),
        };
        Serving::start(parts, ConnectionSettings::default()).await
    }

    /// Ends the server in good order: open streams end, calls in hand finish.
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.serving.await.expect("no panic");
        self.store.close().await;
    }

    pub(crate) async fn caller(&self, role: Role, owners: &[&str]) -> Caller<'_> {
        let wanted = TokenCreate {
            name: format!("{}-{}", role.as_str(), owners.join("-")),
            role,
            owners: owners.iter().map(|owner| (*owner).to_owned()).collect(),
            expires_in: None,
        };
        let created = create_token(&*self.store, &wanted, self.clock.now(), &Actor::role("test")).await;
        Caller { server: self, secret: Some(created.expect("a token").secret) }
    }

    pub(crate) async fn submitter(&self) -> Caller<'_> {
        self.caller(Role::Submitter, &["team"]).await
    }

    pub(crate) async fn admin(&self) -> Caller<'_> {
        self.caller(Role::Admin, &["ops"]).await
    }

    pub(crate) fn nobody(&self) -> Caller<'_> {
        Caller { server: self, secret: None }
    }

    pub(crate) fn with_secret(&self, secret: &str) -> Caller<'_> {
        Caller { server: self, secret: Some(secret.to_owned()) }
    }

    /// Where its bytes lie.
    pub(crate) fn artifacts(&self) -> DirectoryStore {
        DirectoryStore::open(self.directory.path().join("artifacts"), self.clock.now()).expect("a directory")
    }

    /// How many jobs there are, by a way that no test goes through.
    pub(crate) async fn job_count(&self) -> usize {
        let query = jobyard_store::JobQuery { limit: 500, ..jobyard_store::JobQuery::default() };
        jobyard_store::Dashboard::jobs(&*self.store, &query).await.expect("a page").items.len()
    }
}

impl Caller<'_> {
    /// The secret that it brings.
    pub(crate) fn secret(&self) -> &str {
        self.secret.as_deref().expect("a token")
    }

    pub(crate) fn call(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("http://{}{path}", self.server.address);
        let request = self.server.http.request(method, url);
        match &self.secret {
            Some(secret) => request.bearer_auth(secret),
            None => request,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        Reply::of(self.call(Method::GET, path).send().await.expect("an answer")).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.post_bytes(path, body.to_string()).await
    }

    pub(crate) async fn post_bytes(&self, path: &str, body: impl Into<reqwest::Body>) -> Reply {
        Reply::of(self.call(Method::POST, path).body(body).send().await.expect("an answer")).await
    }

    /// Submits a job that must be accepted, and gives its id.
    pub(crate) async fn submit(&self, job: Value) -> JobId {
        let answer = self.post("/api/v1/jobs", &job).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
        answer.body["id"].as_str().expect("an id").parse().expect("an id")
    }
}

/// Status and JSON of an answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
}

impl Reply {
    pub(crate) async fn of(response: Response) -> Self {
        let status = response.status();
        let kind = response.headers().get("content-type").cloned();
        let bytes = response.bytes().await.expect("a body");
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes)));
        if status.is_client_error() || status.is_server_error() {
            assert_eq!(
                kind.as_ref().map(reqwest::header::HeaderValue::as_bytes),
                Some(&b"application/problem+json"[..]),
                "{body}"
            );
            assert_eq!(body["status"], json!(status.as_u16()), "{body}");
            assert!(body["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{body}");
        }
        Self { status, body }
    }

    pub(crate) fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    /// `code` at `pointer` among the faults.
    pub(crate) fn names(&self, pointer: &str, code: &str) -> bool {
        let errors = self.body["errors"].as_array().cloned().unwrap_or_default();
        errors.iter().any(|error| error["pointer"] == pointer && error["code"] == code)
    }

    #[track_caller]
    pub(crate) fn expect(self, status: StatusCode, code: &str) -> Self {
        assert_eq!((self.status, self.code()), (status, code), "{}", self.body);
        self
    }

    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert!(self.status.is_success(), "{self:?}");
        self.body
    }
}

/// Plays informer and worker: one node, and attempts on it.
pub(crate) struct Hand<'a> {
    store: &'a SqliteStore,
    pub(crate) node_id: NodeId,
    session: SessionId,
}

/// An attempt in the hand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pub(crate) job_id: JobId,
    pub(crate) attempt: u32,
    pub(crate) lease_id: LeaseId,
}

impl<'a> Hand<'a> {
    pub(crate) async fn register(server: &'a TestServer) -> Self {
        Self::register_as(server, "node-a", 0xabcd, 4_000).await
    }

    /// A node with so much CPU.
    pub(crate) async fn register_as(server: &'a TestServer, name: &str, id: u128, cpu_milli: u64) -> Self {
        let hand = Self {
            store: &server.store,
            node_id: NodeId(Uuid::from_u128(id)),
            session: SessionId(Uuid::from_u128(1)),
        };
        let node = NodeRegistration {
            node_id: hand.node_id,
            session: hand.session,
            boot_id: "boot".to_owned(),
            name: name.to_owned(),
            pool: "default".to_owned(),
            capacity: Resources { cpu_milli, memory_bytes: 4 << 30 },
            max_attempts: 100,
            labels: BTreeMap::from([("disk".to_owned(), "ssd".to_owned())]),
            runtimes: vec![Runtime::Process],
            containment: "subreaper".to_owned(),
            door: String::new(),
            version: "0.1.0".to_owned(),
        };
        server.store.register_node(&node).await.expect("registered");
        hand
    }

    /// Claims a waiting job and says that its task process runs.
    pub(crate) async fn run(&self, job_id: JobId) -> Held {
        let held = self.place(job_id).await;
        self.report(held, Report::Started).await;
        held
    }

    /// Claims a waiting job.
    pub(crate) async fn place(&self, job_id: JobId) -> Held {
        let placement = Placement { job_id, node_id: self.node_id, session: self.session };
        let claimed = self.store.claim(vec![placement]).await.expect("claimed");
        let claimed = claimed.first().expect("the job waits");
        Held { job_id, attempt: claimed.attempt, lease_id: claimed.lease_id }
    }

    pub(crate) async fn exit(&self, held: Held, code: i32) {
        let facts = ExitFacts {
            ended_by: EndedBy::Itself,
            exit: Exit::Code(code),
            message: String::new(),
            started_at: Some(Timestamp(1)),
            ended_at: Timestamp(2),
            usage: Usage { wall_ms: 1_500, limits: "none".to_owned(), ..Usage::default() },
            outputs: Outputs::None,
        };
        self.report(held, Report::Ended(AttemptEnd::Exited(facts))).await;
    }

    pub(crate) async fn restart(&self, held: Held, run: ServiceRun) {
        self.report(held, Report::Service(run)).await;
    }

    pub(crate) async fn report(&self, held: Held, report: Report) {
        let Held { job_id, attempt, lease_id } = held;
        let answers = self.store.report(vec![ReportItem { job_id, attempt, lease_id, report }]).await;
        let Answer { verdict, .. } = answers.expect("answered")[0];
        assert_eq!(verdict, Verdict::Accepted);
    }

    pub(crate) async fn log(&self, held: Held, stream: LogStream, from: u64, text: &str) {
        let body = LogBody::Inline(Bytes::copy_from_slice(text.as_bytes()));
        self.append(held, stream, from..from + text.len() as u64, body).await;
    }

    /// Bytes of stdout that lie in a segment, from its beginning.
    pub(crate) async fn log_in(&self, held: Held, range: Range<u64>, segment: &str) {
        self.append(held, LogStream::Stdout, range, LogBody::Segment { name: segment.to_owned(), offset: 0 })
            .await;
    }

    async fn append(&self, held: Held, stream: LogStream, range: Range<u64>, body: LogBody) {
        let chunk = LogChunk {
            job_id: held.job_id,
            attempt: held.attempt,
            lease_id: held.lease_id,
            stream,
            from: range.start,
            to: range.end,
            at: Timestamp(1_777_622_400_000),
            seq: 0,
            body,
        };
        self.store.append_logs(vec![chunk]).await.expect("appended");
    }
}

/// What the server of the tests keeps secrets with.
pub(crate) fn secret_keys() -> SecretKeys {
    SecretKeys::parse(&"5e".repeat(32)).expect("a key")
}

/// Waits for something that comes within [`DEADLINE`], or fails.
pub(crate) async fn in_time<T>(what: &str, coming: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, coming).await.unwrap_or_else(|_| panic!("never came: {what}"))
}

/// Asks until it is so.
pub(crate) async fn until(what: &str, ask: impl AsyncFn() -> bool) {
    let limit = Instant::now() + DEADLINE;
    while !ask().await {
        assert!(Instant::now() < limit, "never came about: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A job that is fine.
pub(crate) fn fine() -> Value {
    json!({"command": ["true"]})
}
