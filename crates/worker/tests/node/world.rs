//! A node for tests: the real worker, the real sidecar, real processes, on directories of its own. The other side of
//! the report door is a [`Desk`] that takes, remembers and can be away.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use jobyard_api::doors::{DoorError, ReportDoor, WorkerDoor};
use jobyard_api::grpc::convert::{self, AttemptReport, Said};
use jobyard_api::proto::{self, LaunchVerdict, LogVerdict, NodeVerdict, ReportVerdict, StopVerdict};
use jobyard_model::{ArtifactHash, AttemptEnd, Clock, ExitFacts, JobId, LeaseId, Timestamp};
use jobyard_worker::{HandedOver, StartError, Worker, WorkerParts, WorkerSettings};
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// For anything that should happen at once, on a machine that may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A clock that stands still: nothing may depend on it.
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp(1_700_000_000_000)
    }
}

/// What the control plane has heard, and how it answers.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) down: bool,
    /// Reports that are taken and whose answers are lost.
    pub(crate) answers_lost: u32,
    pub(crate) reports: Vec<(LeaseId, Said)>,
    pub(crate) ends: HashMap<LeaseId, AttemptEnd>,
    /// What of stdout and stderr was there when the end came.
    pub(crate) logs_at_end: HashMap<LeaseId, [Vec<u8>; 2]>,
    pub(crate) logs: HashMap<LeaseId, [Vec<u8>; 2]>,
    /// Leases that are not live.
    pub(crate) stale: HashSet<LeaseId>,
    pub(crate) intents: HashMap<LeaseId, u32>,
    pub(crate) artifacts: HashMap<ArtifactHash, Bytes>,
    /// Fetches stay open and give nothing.
    pub(crate) fetches_hang: bool,
    pub(crate) fetches: u32,
    /// Manifests that came up.
    pub(crate) trees: Vec<ArtifactHash>,
    /// How many artifacts came up, manifests included.
    pub(crate) stored: u32,
    /// Uploads stay open and come to no end.
    pub(crate) stores_hang: bool,
    /// Why uploads are refused; empty when they are not.
    pub(crate) stores_refused: String,
    pub(crate) logs_later: u32,
    pub(crate) registered: Vec<proto::RegisterRequest>,
    pub(crate) unknown_pool: bool,
    pub(crate) superseded: bool,
    pub(crate) suspended: String,
    pub(crate) order: Vec<&'static str>,
}

/// The report door's other side.
pub(crate) struct Desk {
    heard: Mutex<Heard>,
    changed: watch::Sender<()>,
}

impl Desk {
    fn new() -> Arc<Self> {
        Arc::new(Self { heard: Mutex::default(), changed: watch::channel(()).0 })
    }

    pub(crate) fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap()
    }

    pub(crate) fn set(&self, change: impl FnOnce(&mut Heard)) {
        change(&mut self.heard());
    }

    /// Until what was heard gives an answer.
    pub(crate) async fn until<T>(&self, what: &str, find: impl Fn(&Heard) -> Option<T>) -> T {
        let mut changed = self.changed.subscribe();
        let found = async {
            loop {
                changed.mark_unchanged();
                if let Some(found) = find(&self.heard()) {
                    return found;
                }
                changed.changed().await.unwrap();
            }
        };
        tokio::time::timeout(PATIENCE, found).await.unwrap_or_else(|_| panic!("in vain: {what}"))
    }

    pub(crate) async fn end_of(&self, lease_id: LeaseId) -> AttemptEnd {
        self.until("the end", |heard| heard.ends.get(&lease_id).cloned()).await
    }

    pub(crate) async fn facts_of(&self, lease_id: LeaseId) -> ExitFacts {
        match self.end_of(lease_id).await {
            AttemptEnd::Exited(facts) => facts,
            other => panic!("no exit: {other:?}"),
        }
    }

    pub(crate) async fn started(&self, lease_id: LeaseId) {
        self.until("the start", |heard| heard.reports.contains(&(lease_id, Said::Started)).then_some(()))
            .await;
    }

    pub(crate) fn count(&self, lease_id: LeaseId, said: &Said) -> usize {
        self.heard().reports.iter().filter(|(found, what)| *found == lease_id && what == said).count()
    }

    fn answer<T>(&self, answer: impl FnOnce(&mut Heard) -> T) -> Result<T, DoorError> {
        let result = {
            let mut heard = self.heard();
            if heard.down {
                return Err(DoorError::NotSent { address: "desk".to_owned(), why: "it is away".to_owned() });
            }
            answer(&mut heard)
        };
        self.changed.send_replace(());
        Ok(result)
    }
}

impl Heard {
    fn take_log(&mut self, chunk: &proto::LogChunk) -> proto::LogAnswer {
        let answer = |verdict: LogVerdict, end| proto::LogAnswer { verdict: verdict.into(), end };
        if self.logs_later > 0 {
            self.logs_later -= 1;
            return answer(LogVerdict::Later, 0);
        }
        let lease_id = convert::lease_id(&chunk.lease_id).unwrap();
        let stream = &mut self.logs.entry(lease_id).or_default()[chunk.stream as usize - 1];
        let end = stream.len() as u64;
        if chunk.from != end {
            return answer(LogVerdict::Gap, end);
        }
        assert!(chunk.data.len() <= 256 << 10);
        stream.extend_from_slice(&chunk.data);
        answer(LogVerdict::End, stream.len() as u64)
    }

    fn take_report(&mut self, report: &proto::Report) -> proto::ReportAnswer {
        let report = AttemptReport::try_from(report).unwrap();
        let lease_id = report.lease_id;
        let is_step = matches!(report.what, Said::Accepted | Said::Started);
        let was_said = is_step && self.reports.contains(&(lease_id, report.what.clone()));
        self.reports.push((lease_id, report.what.clone()));
        let verdict = if self.stale.contains(&lease_id) {
            ReportVerdict::Stale
        } else {
            match (self.ends.get(&lease_id), report.what) {
                (Some(known), Said::Ended(end)) if known.fingerprint() == end.fingerprint() => {
                    ReportVerdict::Already
                }
                (Some(_), _) => ReportVerdict::Stale,
                (None, Said::Ended(end)) => {
                    self.order.push("end");
                    self.ends.insert(lease_id, end);
                    let log = self.logs.get(&lease_id).cloned().unwrap_or_default();
                    self.logs_at_end.insert(lease_id, log);
                    ReportVerdict::Accepted
                }
                (None, _) if was_said => ReportVerdict::Already,
                (None, _) => ReportVerdict::Accepted,
            }
        };
        let intent = self.intents.get(&lease_id).copied().unwrap_or_default();
        proto::ReportAnswer { verdict: verdict.into(), intent }
    }
}

#[async_trait]
impl ReportDoor for Desk {
    async fn register(&self, request: proto::RegisterRequest) -> Result<proto::RegisterReply, DoorError> {
        self.answer(|heard| {
            heard.order.push("register");
            heard.registered.push(request);
            if heard.unknown_pool {
                let message = "there is no pool `moon`; the pools are: default".to_owned();
                return proto::RegisterReply { verdict: NodeVerdict::Refused.into(), message };
            }
            proto::RegisterReply { verdict: NodeVerdict::Welcome.into(), message: String::new() }
        })
    }

    async fn heartbeat(&self, request: proto::HeartbeatRequest) -> Result<proto::HeartbeatReply, DoorError> {
        self.answer(|heard| {
            if request.proven {
                heard.suspended.clear();
            }
            let verdict = if heard.superseded { NodeVerdict::Superseded } else { NodeVerdict::Welcome };
            proto::HeartbeatReply { verdict: verdict.into(), suspended: heard.suspended.clone() }
        })
    }

    async fn report(&self, request: proto::ReportRequest) -> Result<proto::ReportReply, DoorError> {
        let (reply, is_lost) = self.answer(|heard| {
            let reply = proto::ReportReply {
                logs: request.logs.iter().map(|chunk| heard.take_log(chunk)).collect(),
                reports: request.reports.iter().map(|report| heard.take_report(report)).collect(),
            };
            let is_lost = heard.answers_lost > 0;
            heard.answers_lost = heard.answers_lost.saturating_sub(1);
            (reply, is_lost)
        })?;
        if is_lost {
            return Err(DoorError::Unknown { address: "desk".to_owned(), why: "cut".to_owned() });
        }
        Ok(reply)
    }

    async fn fetch_artifact(
        &self,
        request: proto::FetchArtifactRequest,
    ) -> Result<BoxStream<'static, Result<Bytes, DoorError>>, DoorError> {
        let hash = convert::artifact_hash(&request.sha256).unwrap();
        let found = self.answer(|heard| {
            heard.fetches += 1;
            (heard.fetches_hang, heard.artifacts.get(&hash).cloned())
        })?;
        match found {
            (true, _) => Ok(futures_util::stream::pending().boxed()),
            (false, Some(bytes)) => {
                let pieces: Vec<_> =
                    bytes.chunks(1 << 10).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
                Ok(futures_util::stream::iter(pieces).boxed())
            }
            (false, None) => {
                let why = "the artifact is not in the artifact store".to_owned();
                Err(DoorError::Refused { address: "desk".to_owned(), why })
            }
        }
    }

    async fn missing_artifacts(
        &self,
        request: proto::MissingArtifactsRequest,
    ) -> Result<proto::MissingArtifactsReply, DoorError> {
        self.answer(|heard| {
            let is_missing =
                |hash: &Bytes| !heard.artifacts.contains_key(&convert::artifact_hash(hash).unwrap());
            proto::MissingArtifactsReply { missing: request.sha256.into_iter().filter(is_missing).collect() }
        })
    }

    async fn store_artifact(
        &self,
        request: proto::StoreArtifactRequest,
        mut data: BoxStream<'static, std::io::Result<Bytes>>,
    ) -> Result<(), DoorError> {
        let (hangs, refused) = self.answer(|heard| (heard.stores_hang, heard.stores_refused.clone()))?;
        if hangs {
            return std::future::pending().await;
        }
        if !refused.is_empty() {
            return Err(DoorError::Refused { address: "desk".to_owned(), why: refused });
        }
        let mut bytes = Vec::new();
        while let Some(piece) = data.next().await {
            bytes.extend_from_slice(&piece.unwrap());
        }
        let hash = convert::artifact_hash(&request.sha256).unwrap();
        assert_eq!(hash, ArtifactHash(Sha256::digest(&bytes).into()));
        self.answer(|heard| {
            heard.stored += 1;
            heard.order.push("stored");
            heard.artifacts.insert(hash, bytes.into());
            if request.tree {
                heard.trees.push(hash);
            }
        })
    }
}

/// Directories of one node, and the desk it reports to.
pub(crate) struct World {
    pub(crate) root: tempfile::TempDir,
    pub(crate) desk: Arc<Desk>,
    pub(crate) settings: WorkerSettings,
}

/// A worker that runs, and what stops it.
pub(crate) struct Running {
    pub(crate) worker: Worker,
    stop: CancellationToken,
}

impl World {
    pub(crate) fn new() -> Self {
        let root =
            tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(0o711)).tempdir().unwrap();
        let mut settings = WorkerSettings::new(root.path().join("data"), sidecar());
        settings.state_dir = Some(root.path().join("state"));
        settings.task_dir = Some(root.path().join("task"));
        settings.times.node_heartbeat_ms = 50;
        settings.cpu_milli = Some(100_000);
        settings.memory_bytes = Some(100 << 30);
        Self { root, desk: Desk::new(), settings }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) async fn try_start(&self) -> Result<Running, StartError> {
        let stop = CancellationToken::new();
        let parts = WorkerParts {
            report: Arc::clone(&self.desk) as _,
            settings: self.settings.clone(),
            clock: Arc::new(Still),
        };
        let worker = Worker::start(parts, stop.clone()).await?;
        Ok(Running { worker, stop })
    }

    /// Waits for an earlier worker's lock.
    pub(crate) async fn start(&self) -> Running {
        let started = async {
            loop {
                match self.try_start().await {
                    Ok(running) => return running,
                    Err(StartError::AlreadyRunning(_)) => tokio::task::yield_now().await,
                    Err(error) => panic!("{error}"),
                }
            }
        };
        tokio::time::timeout(PATIENCE, started).await.unwrap()
    }

    /// A program that the artifact store has.
    pub(crate) fn upload(&self, program: &str) -> ArtifactHash {
        let hash = ArtifactHash(Sha256::digest(program).into());
        self.desk.set(|heard| drop(heard.artifacts.insert(hash, Bytes::copy_from_slice(program.as_bytes()))));
        hash
    }

    /// Stops the worker and sees that nothing of any attempt is left.
    pub(crate) async fn close(self, running: Running) {
        until("all attempts cleared away", || running.worker.attempts() == 0).await;
        assert_eq!(running.stop().await.attempts, 0);
        for empty in ["state/a", "task/work", "data/logs", "data/spool"] {
            until(&format!("{empty} to be empty"), || names_in(&self.path(empty)).is_empty()).await;
        }
    }
}

impl Running {
    pub(crate) async fn launch(&self, launches: Vec<proto::Launch>) -> Vec<proto::LaunchAnswer> {
        let request = proto::LaunchRequest {
            session: convert::id_bytes(self.worker.session().0),
            launches,
            lease_ms: 180_000,
            heartbeat_ms: 60_000,
        };
        self.worker.launch(request).await.unwrap().answers
    }

    /// Launches one that must be accepted.
    pub(crate) async fn run(&self, launch: proto::Launch) -> LeaseId {
        let lease_id = convert::lease_id(&launch.lease_id).unwrap();
        let answers = self.launch(vec![launch]).await;
        assert_eq!(answers[0].verdict(), LaunchVerdict::Accepted, "{}", answers[0].message);
        lease_id
    }

    pub(crate) async fn stop_attempt(&self, launch: &proto::Launch, grace_ms: u64) -> StopVerdict {
        let stop = proto::Stop {
            job_id: launch.job_id.clone(),
            attempt: launch.attempt,
            lease_id: launch.lease_id.clone(),
            grace_ms,
        };
        let session = convert::id_bytes(self.worker.session().0);
        let reply = self.worker.stop(proto::StopRequest { session, stops: vec![stop] }).await.unwrap();
        reply.verdicts().next().unwrap()
    }

    /// As SIGTERM would.
    pub(crate) async fn stop(self) -> HandedOver {
        self.stop.cancel();
        tokio::time::timeout(PATIENCE, self.worker.ended()).await.unwrap().unwrap()
    }

    /// As SIGKILL would: nothing is said, nothing is handed over.
    pub(crate) fn kill(self) {
        drop(self.worker);
    }
}

pub(crate) fn launch(command: &[&str]) -> proto::Launch {
    proto::Launch {
        job_id: convert::id_bytes(JobId(Uuid::new_v4()).0),
        attempt: 1,
        lease_id: convert::id_bytes(LeaseId(Uuid::new_v4()).0),
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        stop_grace_ms: 5_000,
        cpu_milli: 100,
        memory_bytes: 128 << 20,
        runtime: "process".to_owned(),
        ..proto::Launch::default()
    }
}

pub(crate) fn shell(script: &str) -> proto::Launch {
    launch(&["/bin/sh", "-c", script])
}

/// A launch of what [`World::upload`] uploaded.
pub(crate) fn artifact(hash: ArtifactHash) -> proto::Launch {
    proto::Launch { artifact: Bytes::copy_from_slice(&hash.0), ..launch(&[]) }
}

/// Polls a condition that nobody signals.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    let met = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, met).await.unwrap_or_else(|_| panic!("in vain: {what}"));
}

pub(crate) fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// An argument of `sleep` that no other process on the machine has.
pub(crate) fn odd_seconds() -> String {
    format!("9{:09}.{:04}", Uuid::new_v4().as_u128() % 1_000_000_000, std::process::id() % 10_000)
}

/// The processes with this argument.
pub(crate) fn processes_with(argument: &str) -> Vec<i32> {
    let has = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|found| found == argument.as_bytes())
    };
    names_in_proc().into_iter().filter(has).collect()
}

/// The sidecars of this world that have an attempt: their working directory is its directory.
pub(crate) fn sidecars_of(world: &World) -> Vec<i32> {
    let attempts = std::fs::canonicalize(world.path("state/a")).unwrap();
    let is_ours = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(sidecar().as_os_str().as_encoded_bytes())
            && std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(&attempts))
    };
    names_in_proc().into_iter().filter(is_ours).collect()
}

fn names_in_proc() -> Vec<i32> {
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

pub(crate) fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// Next to the tests' own folder; `cargo build -p jobyard-sidecar` puts it there.
fn sidecar() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let path = here.parent().and_then(Path::parent).unwrap().join("jobyard-sidecar");
    assert!(path.exists(), "{} is missing: cargo build -p jobyard-sidecar", path.display());
    path
}
