//! The worker: its start, its door, its stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use jobyard_api::doors::{DoorError, ReportDoor, WorkerDoor};
use jobyard_api::grpc::convert;
use jobyard_api::proto::{self, LaunchVerdict, StopVerdict};
use jobyard_model::{Clock, NodeId, SessionId};
use jobyard_runtime::{NodeRuntime, SidecarPool, remove_tree};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::{MissedTickBehavior, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::adoption::{LeftBehind, look_around};
use crate::artifacts::ArtifactCache;
use crate::error::{StartError, WorkerError, failed};
use crate::heartbeats::{self, Standing};
use crate::identity::Identity;
use crate::keeper::{self, LaunchAnswer};
use crate::launch::{LeaseTimes, Order};
use crate::node::{Node, blocking_permits, capacity};
use crate::places::{Places, own_directory};
use crate::relay::Relay;
use crate::settings::WorkerSettings;
use crate::spool::Spool;
use crate::table::{Admission, REMEMBER_PAST_MS, Table};
use crate::users::Users;

/// How often sidecars that many attempts needed at once are let go.
const TRIM_PAUSE: Duration = Duration::from_secs(60);

/// What a worker is started with.
pub struct WorkerParts {
    /// Where it reports to.
    pub report: Arc<dyn ReportDoor>,
    /// What is set of it.
    pub settings: WorkerSettings,
    /// The node's wall clock; shown, never compared.
    pub clock: Arc<dyn Clock>,
}

/// What a stopped worker left to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandedOver {
    /// Attempts whose sidecars go on.
    pub attempts: usize,
}

/// A running worker. Dropping it is like killing it: no task is harmed, and the next worker on the same directories
/// takes over.
pub struct Worker {
    node: Arc<Node>,
    standing: watch::Receiver<Standing>,
    ended: watch::Receiver<Option<Result<HandedOver, WorkerError>>>,
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.node.abort.cancel();
    }
}

impl Worker {
    /// Takes the data directory, takes over what an earlier worker left, and begins to register. Runs until `stop`
    /// is cancelled; see [`Worker::ended`].
    ///
    /// # Errors
    /// What is wrong with the machine or the settings. Nothing is changed then, but for directories made.
    pub async fn start(parts: WorkerParts, stop: CancellationToken) -> Result<Self, StartError> {
        let made = tokio::task::spawn_blocking(move || make(parts)).await;
        let (node, left_behind) = match made {
            Ok(made) => made?,
            // Only a panic in there, or the end of everything, comes this way.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        left_behind.take_over(&node);
        let relaying = Arc::clone(&node);
        node.spawn_background(async move { relaying.relay.run().await });
        let (tell, standing) = watch::channel(Standing::Unheard);
        node.spawn_background(heartbeats::run(Arc::clone(&node), tell));
        node.spawn_background(keep_warm(Arc::clone(&node)));
        let ageing = Arc::clone(&node);
        node.spawn_background(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(REMEMBER_PAST_MS)).await;
                ageing.table().age();
            }
        });
        let (tell, ended) = watch::channel(None);
        tokio::spawn(supervise(Arc::clone(&node), stop, (standing.clone(), tell)));
        Ok(Self { node, standing, ended })
    }

    /// Which node it is.
    #[must_use]
    pub fn node_id(&self) -> NodeId {
        self.node.identity.node_id
    }

    /// Which start of it this is; launches name it.
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.node.identity.session
    }

    /// How many attempts are here, those that are being cleared away included.
    #[must_use]
    pub fn attempts(&self) -> usize {
        self.node.table().count()
    }

    /// Until the control plane has welcomed this session.
    ///
    /// # Errors
    /// Why it has not and will not.
    pub async fn registered(&self) -> Result<(), WorkerError> {
        let mut standing = self.standing.clone();
        let found = standing.wait_for(|standing| *standing != Standing::Unheard).await;
        match found.as_deref() {
            Ok(Standing::Out(error)) => Err(error.clone()),
            // The sender lives as long as the node's tasks: without it the worker is gone, which `ended` tells.
            Ok(Standing::Welcome | Standing::Unheard) | Err(_) => Ok(()),
        }
    }

    /// Until the worker has stopped: on its token, having said what it had in hand and let go of the sidecars that
    /// go on.
    ///
    /// # Errors
    /// Why it had to stop.
    pub async fn ended(&self) -> Result<HandedOver, WorkerError> {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(result)) => result.clone(),
            Ok(None) | Err(_) => Ok(HandedOver { attempts: 0 }),
        }
    }

    /// Asks every attempt to leave this node (each counts as evicted, which costs nobody anything) and waits until
    /// none is left. Nothing new is taken from here on.
    pub async fn evict_all(&self) {
        self.node.table().close();
        self.node.table().evict_all();
        let tracker = &self.node.keepers;
        tracker.close();
        tracker.wait().await;
    }
}

fn make(parts: WorkerParts) -> Result<(Arc<Node>, LeftBehind), StartError> {
    let WorkerParts { report, settings, clock } = parts;
    own_directory(&settings.data_dir, 0o700)?;
    let identity = Arc::new(Identity::take(&settings.data_dir)?);
    let sidecar = &settings.sidecar_path;
    rustix::fs::access(sidecar, rustix::fs::Access::EXEC_OK)
        .map_err(|error| StartError::NoSidecar { path: sidecar.clone(), source: error.into() })?;
    let places = Places::open(&settings, &identity.short_name())?;
    let runtime = NodeRuntime::set_up(&identity.short_name())?;
    let spool = Spool::at(places.spool.clone());
    let log_pause = Duration::from_millis(settings.times.log_batch_ms);
    let relay = Relay::new(Arc::clone(&report), Arc::clone(&identity), spool.clone(), log_pause)
        .map_err(failed("start the thread that reads", &places.logs))?;
    let (directory, limit_bytes) = (places.artifacts.clone(), settings.cache_limit_bytes);
    let artifacts = ArtifactCache::open(directory, limit_bytes, Arc::clone(&report))
        .map_err(failed("open the cache of executables", &places.artifacts))?;
    let capacity = capacity(&settings);
    let sidecars = SidecarPool::new(&settings.sidecar_path);
    let may_switch = runtime.abilities().users;
    let users = may_switch.then(|| Users::of(identity.node_id, settings.first_user_id)).flatten();
    let node = Arc::new(Node {
        table: std::sync::Mutex::new(Table::new(capacity)),
        settings,
        identity,
        places,
        runtime,
        sidecars,
        sidecar_taken: Notify::new(),
        users,
        door: report,
        clock,
        relay,
        artifacts,
        capacity,
        hand_over: CancellationToken::new(),
        handed_over: AtomicUsize::new(0),
        abort: CancellationToken::new(),
        keepers: TaskTracker::new(),
        blocking_work: blocking_permits(),
    });
    let left_behind = look_around(&node, &spool)?;
    Ok((node, left_behind))
}

/// Keeps some sidecars without an attempt, so that a launch need not wait for one to start. A new one is started when
/// the task of the one before runs, not in its way.
async fn keep_warm(node: Arc<Node>) {
    let mut quiet = tokio::time::interval(TRIM_PAUSE);
    quiet.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let (filling, is_low) = (Arc::clone(&node), node.sidecars.is_low());
        if is_low && let Some(Err(error)) = node.blocking(move || filling.sidecars.fill()).await {
            // A launch that needs one says so of itself.
            tracing::warn!(error = &error as &dyn std::error::Error, "no sidecar can be kept warm");
            quiet.tick().await;
        }
        tokio::select! {
            () = node.sidecar_taken.notified() => {}
            _ = quiet.tick() => {
                let trimming = Arc::clone(&node);
                node.blocking(move || trimming.sidecars.trim()).await;
            }
        }
    }
}

type Endings = (watch::Receiver<Standing>, watch::Sender<Option<Result<HandedOver, WorkerError>>>);

/// Waits for the end and brings it about: nothing new, what is in hand is said, what could not be said is on disk.
async fn supervise(node: Arc<Node>, stop: CancellationToken, (mut standing, ended): Endings) {
    let why = tokio::select! {
        () = stop.cancelled() => None,
        () = node.abort.cancelled() => return,
        Ok(out) = standing.wait_for(|standing| matches!(standing, Standing::Out(_))) => Some(out.clone()),
    };
    node.table().close();
    node.hand_over.cancel();
    node.keepers.close();
    let hand_over = async {
        node.keepers.wait().await;
        node.relay.quiet().await;
    };
    let patience = Duration::from_millis(node.settings.times.hand_over_ms);
    if timeout(patience, hand_over).await.is_err() {
        tracing::warn!("the report door did not take everything in time; the next worker goes on");
    }
    let leaving = Arc::clone(&node);
    if let Err(error) = tokio::task::spawn_blocking(move || leave(&leaving)).await {
        tracing::error!(error = &error as &dyn std::error::Error, "leaving the node broke off");
    }
    node.abort.cancel();
    let result = match why {
        Some(Standing::Out(error)) => Err(error),
        _ => Ok(HandedOver { attempts: node.handed_over.load(Ordering::Relaxed) }),
    };
    ended.send_replace(Some(result));
}

/// A node without attempts is left as it was found, but for its data directory. Blocks.
fn leave(node: &Node) {
    node.relay.keep_all();
    node.sidecars.close();
    if node.table().count() > 0 {
        return;
    }
    let kept = node.places.empty_work();
    let removals = node.places.borrowed.iter().map(|path| remove_tree(path));
    for error in [kept].into_iter().chain(removals).chain([node.runtime.tear_down()]).filter_map(Result::err)
    {
        // The next worker uses it again.
        tracing::info!(error = &error as &dyn std::error::Error, "something of the node stays");
    }
}

/// The answer to one launch, or where it comes from.
enum Pending {
    Now(LaunchVerdict, String),
    Making(oneshot::Receiver<LaunchAnswer>),
}

impl Worker {
    fn is_this_session(&self, session: &[u8]) -> bool {
        convert::session_id(session).is_ok_and(|session| session == self.session())
    }

    fn launch_one(&self, launch: proto::Launch, lease: LeaseTimes) -> Pending {
        let order = match Order::read(launch, lease, &self.node.settings.times) {
            Ok(order) => order,
            Err(error) => return Pending::Now(LaunchVerdict::Unsupported, error.to_string()),
        };
        let lease_id = order.attempt.lease_id;
        let mut table = self.node.table();
        match table.admit(lease_id, order.resources) {
            Admission::Known => Pending::Now(LaunchVerdict::Accepted, String::new()),
            Admission::Refused(verdict, why) => Pending::Now(verdict, why),
            Admission::Admitted(_) if !self.node.has_disk_room() => {
                table.withdraw(lease_id, LaunchVerdict::DiskFull);
                let least = self.node.settings.disk_floor_bytes;
                let why = format!("the data disk has less than {least} bytes free");
                Pending::Now(LaunchVerdict::DiskFull, why)
            }
            Admission::Admitted(place) => {
                drop(table);
                let (answer, made) = oneshot::channel();
                self.node.spawn_keeper(keeper::launched(Arc::clone(&self.node), order, place, answer));
                Pending::Making(made)
            }
        }
    }
}

#[async_trait]
impl WorkerDoor for Worker {
    async fn launch(&self, request: proto::LaunchRequest) -> Result<proto::LaunchReply, DoorError> {
        let lease = LeaseTimes { lease_ms: request.lease_ms, heartbeat_ms: request.heartbeat_ms };
        let is_ours = self.is_this_session(&request.session);
        let pending: Vec<Pending> = request
            .launches
            .into_iter()
            .map(|launch| match is_ours {
                true => self.launch_one(launch, lease),
                false => Pending::Now(LaunchVerdict::WrongSession, String::new()),
            })
            .collect();
        let mut answers = Vec::with_capacity(pending.len());
        for pending in pending {
            let (verdict, message) = match pending {
                Pending::Now(verdict, message) => (verdict, message),
                Pending::Making(made) => match made.await {
                    Ok(LaunchAnswer::Accepted) => (LaunchVerdict::Accepted, String::new()),
                    Ok(LaunchAnswer::DiskFull(why)) => (LaunchVerdict::DiskFull, why),
                    Err(_) => {
                        let address = self.node.settings.door.clone();
                        let why = "the worker ends; the next one knows what became of it".to_owned();
                        return Err(DoorError::Unknown { address, why });
                    }
                },
            };
            answers.push(proto::LaunchAnswer { verdict: verdict.into(), message });
        }
        Ok(proto::LaunchReply { answers })
    }

    async fn stop(&self, request: proto::StopRequest) -> Result<proto::StopReply, DoorError> {
        let is_ours = self.is_this_session(&request.session);
        let mut table = self.node.table();
        let verdicts = request.stops.iter().map(|stop| match convert::lease_id(&stop.lease_id) {
            Ok(lease_id) if is_ours => table.stop(lease_id, stop.grace_ms),
            Ok(_) => StopVerdict::WrongSession,
            // Nobody can have launched that.
            Err(_) => StopVerdict::Unknown,
        });
        Ok(proto::StopReply { verdicts: verdicts.map(Into::into).collect() })
    }
}
