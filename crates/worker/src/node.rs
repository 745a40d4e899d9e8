//! What all parts of a worker share.

use std::future::Future;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jobyard_api::doors::ReportDoor;
use jobyard_handoff::LogPlan;
use jobyard_model::{Clock, Resources};
use jobyard_runtime::{NodeRuntime, PrepareError, PrepareRequest, Prepared, Program, SidecarPool};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::artifacts::{ArtifactCache, Item};
use crate::identity::Identity;
use crate::launch::{Executable, Order};
use crate::places::Places;
use crate::relay::Relay;
use crate::settings::WorkerSettings;
use crate::table::{Capacity, Table};
use crate::users::Users;

/// Processes and threads of an attempt.
const PIDS_LIMIT: u32 = 4_096;
/// Launches and clean-ups that go on at the same time; each is a few system calls.
const BLOCKING_WORK: usize = 8;

pub(crate) struct Node {
    pub(crate) settings: WorkerSettings,
    pub(crate) identity: Arc<Identity>,
    pub(crate) places: Places,
    pub(crate) runtime: NodeRuntime,
    pub(crate) sidecars: SidecarPool,
    /// A sidecar was taken into use: there may be too few that are idle.
    pub(crate) sidecar_taken: Notify,
    /// `None`: attempts run as this user.
    pub(crate) users: Option<Users>,
    pub(crate) door: Arc<dyn ReportDoor>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) relay: Relay,
    pub(crate) artifacts: Arc<ArtifactCache>,
    pub(crate) capacity: Capacity,
    pub(crate) table: Mutex<Table>,
    /// The worker is being stopped: who watches a sidecar lets go of it.
    pub(crate) hand_over: CancellationToken,
    /// How many sidecars were let go of while they ran.
    pub(crate) handed_over: AtomicUsize,
    /// Ends every task at once, as a kill would.
    pub(crate) abort: CancellationToken,
    pub(crate) keepers: TaskTracker,
    pub(crate) blocking_work: Semaphore,
}

/// See [`BLOCKING_WORK`].
pub(crate) fn blocking_permits() -> Semaphore {
    Semaphore::new(BLOCKING_WORK)
}

impl Node {
    pub(crate) fn table(&self) -> MutexGuard<'_, Table> {
        // Every change of the table is complete before anything can panic.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the life of an attempt, or something as long.
    pub(crate) fn spawn_keeper(&self, keeper: impl Future<Output = ()> + Send + 'static) {
        self.keepers.spawn(until(self.abort.clone(), keeper));
    }

    /// Runs something that never ends by itself.
    pub(crate) fn spawn_background(&self, task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(until(self.abort.clone(), task));
    }

    /// Runs a few system calls off the async threads, a bounded number at a time. `None`: everything ends.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let _permit = self.blocking_work.acquire().await.ok()?;
        match tokio::task::spawn_blocking(work).await {
            Ok(done) => Some(done),
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "work on an attempt broke off");
                None
            }
        }
    }

    /// Makes what the attempt needs on this machine. Blocks.
    pub(crate) fn prepare(&self, order: &Order, slot: u32) -> Result<Prepared, PrepareError> {
        let artifact;
        let program = match &order.executable {
            Executable::Artifact(hash) => {
                artifact = self.artifacts.path(Item::program(*hash));
                Program::Artifact(&artifact)
            }
            Executable::Object(url) => {
                artifact = self.places.program(slot, url);
                Program::Artifact(&artifact)
            }
            Executable::File(path) => Program::Artifact(path),
            Executable::Command => Program::FromArguments,
        };
        let input = order.input.as_ref().map(|_| self.places.input(slot));
        self.runtime.prepare(&PrepareRequest {
            identity: order.attempt.identity(),
            name: &slot.to_string(),
            program,
            arguments: &order.command,
            environment: &order.environment,
            directory: None,
            input: input.as_deref(),
            scratch: &self.places.scratch(slot),
            user: self.users.map(|users| users.in_slot(slot)),
            resources: jobyard_runtime::Resources {
                memory_bytes: order.resources.memory_bytes,
                cpu_milli: order.resources.cpu_milli,
                cpu_limit_milli: order.cpu_limit_milli,
                pids_limit: PIDS_LIMIT,
            },
            times: order.times,
            exclusive: order.exclusive,
            restart: order.restart.clone(),
            log: LogPlan {
                path: self.places.log(&order.attempt),
                limit_bytes: self.settings.log_limit_bytes,
            },
        })
    }

    /// Whether the data disk has room for another attempt's log and working directory.
    pub(crate) fn has_disk_room(&self) -> bool {
        let found = rustix::fs::statvfs(&self.places.data);
        found.is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) >= self.settings.disk_floor_bytes)
    }
}

async fn until(abort: CancellationToken, task: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        () = abort.cancelled() => {}
        () = task => {}
    }
}

/// What the node offers: what is set, else what the machine has.
pub(crate) fn capacity(settings: &WorkerSettings) -> Capacity {
    let machine = rustix::system::sysinfo();
    let memory = u64::from(machine.mem_unit).saturating_mul(machine.totalram);
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    Capacity {
        resources: Resources {
            cpu_milli: settings.cpu_milli.unwrap_or(cores * 1_000),
            memory_bytes: settings.memory_bytes.unwrap_or(memory),
        },
        attempts: settings.max_attempts,
    }
}

/// CLOCK_BOOTTIME in milliseconds: what sidecars count leases by.
pub(crate) fn boottime_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1_000 + u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000_000
}
