//! The webhook, against a real listener that does not always answer well.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use jobyard_api::doors::WorkerDoor;
use jobyard_api::submit::{FileUrls, SecretEnvs, SubmitSettings, parse_job};
use jobyard_informer::{InformerParts, InformerSettings, LoopBoard, Webhook, WorkerDoors};
use jobyard_model::{Clock, JobId, NodeId, SessionId, Status, Timestamp};
use jobyard_store::sqlite::{SqliteOptions, SqliteStore};
use jobyard_store::{Actor, NewJob, Store};
use serde_json::Value;
use sha2::Sha256;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

const DEADLINE: Duration = Duration::from_secs(60);
const KEY: &[u8] = b"0123456789abcdef";

/// How the listener treats a call.
#[derive(Debug, Clone, Copy)]
enum Treatment {
    Answer(u16),
    /// The connection is closed in the middle.
    Cut,
    /// Nothing comes, ever.
    Silence,
}

/// A call as it came.
#[derive(Debug)]
struct Call {
    headers: BTreeMap<String, String>,
    body: String,
}

impl Call {
    fn document(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    /// Signed with the key, over what came.
    fn is_signed(&self) -> bool {
        let mut mac = Hmac::<Sha256>::new_from_slice(KEY).expect("a key");
        mac.update(self.headers["jobyard-timestamp"].as_bytes());
        mac.update(b".");
        mac.update(self.body.as_bytes());
        let wanted: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        self.headers["jobyard-signature"] == format!("v1={wanted}")
    }
}

/// Listens; treats the first calls as told, and the others well.
async fn listen(treatments: &[Treatment]) -> (String, mpsc::UnboundedReceiver<Call>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/hook?of=jobyard", listener.local_addr().expect("an address"));
    let (sender, calls) = mpsc::unbounded_channel();
    let mut treatments: VecDeque<_> = treatments.iter().copied().collect();
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = BufReader::new(stream);
            let Some(call) = read(&mut stream).await else { continue };
            if sender.send(call).is_err() {
                return;
            }
            match treatments.pop_front().unwrap_or(Treatment::Answer(200)) {
                Treatment::Answer(status) => {
                    let answer =
                        format!("HTTP/1.1 {status} So\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                    stream.write_all(answer.as_bytes()).await.expect("sent");
                }
                Treatment::Cut => drop(stream),
                Treatment::Silence => kept.push(stream),
            }
        }
    });
    (url, calls)
}

/// `None`: somebody connected and went.
async fn read(stream: &mut BufReader<TcpStream>) -> Option<Call> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    assert_eq!(line.trim_end(), "POST /hook?of=jobyard HTTP/1.1");
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let mut body = vec![0; headers["content-length"].parse().expect("a length")];
    stream.read_exact(&mut body).await.ok()?;
    Some(Call { headers, body: String::from_utf8(body).expect("text") })
}

struct HandClock(AtomicI64);

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

struct NoDoors;

impl WorkerDoors for NoDoors {
    fn door(&self, _: NodeId, _: &str) -> Arc<dyn WorkerDoor> {
        unreachable!("there are no nodes")
    }
}

/// A datastore without nodes, and informers on it.
struct World {
    store: Arc<SqliteStore>,
    clock: Arc<HandClock>,
    _directory: tempfile::TempDir,
}

impl World {
    fn open() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let clock = Arc::new(HandClock(AtomicI64::new(1_777_627_800_000)));
        let options = SqliteOptions::new(clock.clone());
        let store = SqliteStore::open(&directory.path().join("jobyard.db"), options).expect("a datastore");
        Self { store, clock, _directory: directory }
    }

    fn informer(&self, number: u128, url: &str) -> Informer {
        let parts = InformerParts {
            store: self.store.clone(),
            doors: Arc::new(NoDoors),
            settings: InformerSettings::default(),
            board: LoopBoard::default(),
            webhook: Some(Webhook::new(url, KEY).expect("a webhook")),
            id: SessionId(Uuid::from_u128(number)),
        };
        let (board, shutdown) = (parts.board.clone(), CancellationToken::new());
        let ended = tokio::spawn(jobyard_informer::run(parts, shutdown.clone()));
        Informer { board, shutdown, ended }
    }

    /// A job whose time to start runs out at once, since there is no node.
    async fn expire(&self, number: u128) -> JobId {
        let job_id = JobId(Uuid::from_u128(number));
        let settings = SubmitSettings {
            file_urls: FileUrls::Refused,
            secret_envs: SecretEnvs::Refused,
            lease_ms: 180_000,
        };
        let job = br#"{"name": "report", "command": ["true"], "start_within": 1, "labels": {"team": "a"}}"#;
        let spec = parse_job(job, &settings).expect("it is fine").into_spec("search");
        let job =
            NewJob { id: job_id, spec, submitted_by: "ann".to_owned(), idempotency: None, secrets: None };
        self.store.submit(vec![job], &Actor::role("test")).await.expect("submitted");
        self.clock.0.fetch_add(2_000, Ordering::SeqCst);
        job_id
    }

    async fn status(&self, job_id: JobId) -> Status {
        self.store.job(job_id).await.expect("read").expect("there").job.status()
    }
}

struct Informer {
    board: LoopBoard,
    shutdown: CancellationToken,
    ended: JoinHandle<()>,
}

impl Informer {
    /// Until its webhook's loop has run, so that it knows where it begins.
    async fn follows(&self) {
        let runs = || {
            self.board.readings().iter().any(|(name, reading)| *name == "tell_failures" && reading.runs > 0)
        };
        until("the loop runs", async || runs()).await;
    }

    fn errors(&self) -> u64 {
        let readings = self.board.readings();
        readings.iter().find(|(name, _)| *name == "tell_failures").map_or(0, |(_, reading)| reading.errors)
    }

    async fn end(self) {
        self.shutdown.cancel();
        in_time("the informer's end", self.ended).await.expect("no panic");
    }
}

async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    in_time(what, waiting).await;
}

async fn in_time<T>(what: &str, coming: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, coming).await.unwrap_or_else(|_| panic!("never came: {what}"))
}

async fn next(calls: &mut mpsc::UnboundedReceiver<Call>) -> Call {
    in_time("a call", calls.recv()).await.expect("it listens")
}

#[tokio::test]
async fn a_failure_is_told_signed_and_again_until_it_is_heard() {
    let world = World::open();
    let (url, mut calls) = listen(&[Treatment::Answer(500), Treatment::Cut]).await;
    let informer = world.informer(1, &url);
    informer.follows().await;
    let job_id = world.expire(1).await;
    let first = next(&mut calls).await;
    let told = first.document();
    assert_eq!((&told["type"], &told["job_id"]), (&"job.final_failed".into(), &job_id.to_string().into()));
    assert_eq!(told["why"], "expired");
    let job = serde_json::json!({"name": "report", "owner_id": "search", "submitted_by": "ann", "labels": {"team": "a"}, "outcome": null});
    assert_eq!(told["job"], job);
    for call in [&first, &next(&mut calls).await, &next(&mut calls).await] {
        assert!(call.is_signed(), "{call:?}");
        assert_eq!(call.document(), told, "the same each time");
        assert_eq!(told["id"].as_str(), Some(call.headers["jobyard-event"].as_str()));
    }
    assert_eq!(informer.errors(), 2);
    // Heard: the next call is about the next failure.
    let later = world.expire(2).await;
    assert_eq!(next(&mut calls).await.document()["job_id"], later.to_string());
    informer.end().await;
}

#[tokio::test]
async fn the_next_informer_goes_on_where_the_last_one_was() {
    let world = World::open();
    let (url, mut calls) = listen(&[]).await;
    let informer = world.informer(1, &url);
    informer.follows().await;
    let first = world.expire(1).await;
    assert_eq!(next(&mut calls).await.document()["job_id"], first.to_string());
    informer.end().await;
    let second = world.expire(2).await;
    world.store.release_due(10).await.expect("released");
    assert_eq!(world.status(second).await, Status::FinalFailed);
    let informer = world.informer(2, &url);
    assert_eq!(
        next(&mut calls).await.document()["job_id"],
        second.to_string(),
        "neither lost nor told again"
    );
    informer.end().await;
}

#[tokio::test]
async fn a_listener_that_is_silent_holds_up_nothing_else() {
    let world = World::open();
    let (url, mut calls) = listen(&[Treatment::Silence]).await;
    let informer = world.informer(1, &url);
    informer.follows().await;
    world.expire(1).await;
    next(&mut calls).await;
    let other = world.expire(2).await;
    until("another job is seen to", async || world.status(other).await == Status::FinalFailed).await;
    // Not even its end waits for the answer.
    informer.end().await;
}
