//! A node for tests: the real worker, the real sidecar, real processes, on directories of its own. It reports to a
//! [`Desk`].

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jobyard_api::doors::WorkerDoor;
use jobyard_api::grpc::convert;
use jobyard_api::proto::{self, LaunchVerdict, StopVerdict};
use jobyard_model::{ArtifactHash, Clock, JobId, LeaseId, Timestamp};
use jobyard_worker::{HandedOver, StartError, Worker, WorkerParts, WorkerSettings};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::desk::Desk;

/// For anything that should happen at once, on a machine that may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A clock that stands still: nothing may depend on it.
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp(1_700_000_000_000)
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
