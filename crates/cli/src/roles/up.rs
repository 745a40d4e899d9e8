//! Everything on one machine, in one process: embedded datastore, local artifact store, server, informer, one worker.
//!
//! The doors between the roles are function calls. What the process holds beyond its data directory are the sidecars'
//! connections; the next `up` takes the sidecars over.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use jobyard_api::doors::WorkerDoor;
use jobyard_client::json::TokenCreate;
use jobyard_informer::{InformerParts, LoopBoard, WorkerDoors};
use jobyard_model::ids::TokenId;
use jobyard_model::{Clock as _, NodeId, Role, SessionId};
use jobyard_server::report::{ReportDesk, stamp_report_clock};
use jobyard_server::{
    LoopMetrics, Metrics, SecretKeys, Server, ServerParts, drop_old_logs, serve_http, sweep_artifacts,
};
use jobyard_store::sqlite::{SqliteOptions, SqliteStore};
use jobyard_store::{Actor, Store};
use jobyard_worker::{HandedOver, Worker, WorkerError};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::clock::SystemClock;
use super::config::{Config, RoleArguments, secret_keys};
use super::metrics::feed_loops;
use super::shutdown::{EndSignal, EndSignals};
use super::{RoleError, artifacts, informer, server, worker};
use crate::data_dir::default_data_dir;

/// How long a second Ctrl-C is waited for while attempts run on.
const SECOND_INTERRUPT_WITHIN: Duration = Duration::from_secs(3);

/// Flags of `up`.
#[derive(Debug, Clone, Args)]
pub(crate) struct UpArguments {
    /// Where everything is kept [default: ~/.local/share/jobyard]
    #[arg(long, value_name = "DIR", env = "JOBYARD_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// Listen on other than loopback although tasks share this user's rights, or plain HTTP is readable on the way
    #[arg(long)]
    open_to_others: bool,
    #[command(flatten)]
    role: RoleArguments,
}

pub(super) async fn run(arguments: UpArguments) -> Result<(), RoleError> {
    let config = arguments.role.load()?;
    let data_dir = arguments.data_dir.clone().or_else(default_data_dir);
    let data_dir =
        data_dir.ok_or_else(|| RoleError::Refused("no home directory: name one with --data-dir".into()))?;
    let address = config.server.listen.unwrap_or(server::DEFAULT_LISTEN);
    if !address.ip().is_loopback() && !arguments.open_to_others {
        let why = format!(
            "{address} can be reached by others, and HTTP without TLS can be read on the way: \
             listen on loopback behind a reverse proxy, or say --open-to-others"
        );
        return Err(RoleError::Refused(why));
    }
    let mut signals =
        EndSignals::catch().map_err(|source| RoleError::Process { doing: "catch signals", source })?;
    let yard = Yard::open(&config, &data_dir, address).await?;
    yard.say_ready()?;
    let signal = tokio::select! {
        signal = signals.next() => signal,
        ended = yard.worker.ended() => return yard.close_after(ended).await,
    };
    yard.close(signal, signals).await
}

/// A running `up`.
struct Yard {
    store: Arc<dyn Store>,
    worker: Arc<Worker>,
    worker_stop: CancellationToken,
    address: SocketAddr,
    data_dir: PathBuf,
    /// What of a link signs a browser in: the base path and a one-time code.
    login: String,
    /// Ends placement first, so that nothing is pushed to a worker that is about to leave.
    informer_shutdown: CancellationToken,
    shutdown: CancellationToken,
    informer: TaskTracker,
    servers: TaskTracker,
}

impl Yard {
    async fn open(config: &Config, data_dir: &Path, address: SocketAddr) -> Result<Self, RoleError> {
        let webhook = config.webhook.webhook()?;
        let settings = server::settings(config)?;
        make_private(data_dir)?;
        let secret_keys = ensure_secret_keys(config, data_dir)?;
        let listener = server::listen(address, "--listen").await?;
        let address = listener
            .local_addr()
            .map_err(|source| RoleError::Process { doing: "read own address", source })?;
        let options = SqliteOptions {
            lease: config.leases.settings()?,
            max_unended_per_owner: config.datastore.max_unended_jobs_per_owner,
            dashboard_timeout: config.datastore.dashboard_timeout()?,
            clock: Arc::new(SystemClock),
        };
        let store: Arc<dyn Store> = SqliteStore::open(&data_dir.join("jobyard.db"), options)?;
        let login = login_link(store.as_ref(), data_dir, config).await?;
        let buckets = artifacts::job_buckets(config)?;
        let artifacts = artifacts::open_or_in(config, &data_dir.join("artifacts"))?;
        let shutdown = CancellationToken::new();
        let (informer_tracker, servers) = (TaskTracker::new(), TaskTracker::new());

        let (board, loops) = (LoopBoard::default(), LoopMetrics::default());
        let metrics = Metrics::with_loops(&loops);
        let made = Server::new(ServerParts {
            store: store.clone(),
            artifacts: artifacts.clone(),
            buckets: buckets.clone(),
            secret_keys: Some(secret_keys.clone()),
            settings,
            clock: Arc::new(SystemClock),
            metrics,
            shutdown: shutdown.clone(),
        });
        let connections = server::connections(config);
        servers.spawn(serve_http(listener, made.router(), connections, shutdown.clone()));
        servers.spawn(stamp_report_clock(store.clone(), shutdown.clone()));
        servers.spawn(sweep_artifacts(store.clone(), artifacts.clone(), shutdown.clone()));
        servers.spawn(feed_loops(board.clone(), loops, shutdown.clone()));
        let retention = made.log_retention();
        servers.spawn(drop_old_logs(store.clone(), artifacts.clone(), retention, shutdown.clone()));
        let desk = ReportDesk::new(store.clone(), artifacts, made.log_retention());
        let desk = Arc::new(desk.with_secret_keys(Some(secret_keys)).with_buckets(buckets));
        let settings = worker::settings(config, &data_dir.join("worker"), "")?;
        let worker_stop = CancellationToken::new();
        let worker = Arc::new(worker::start(desk, settings, worker_stop.clone()).await?);
        let informer_shutdown = CancellationToken::new();
        let doors = Arc::new(OneDoor(worker.clone()));
        let (settings, id) = (informer::settings(config), SessionId(Uuid::new_v4()));
        let parts = InformerParts { store: store.clone(), doors, settings, board, webhook, id };
        informer_tracker.spawn(jobyard_informer::run(parts, informer_shutdown.clone()));
        informer_tracker.close();
        servers.close();
        let data_dir = data_dir.to_owned();
        Ok(Self {
            store,
            worker,
            worker_stop,
            address,
            data_dir,
            login,
            informer_shutdown,
            shutdown,
            informer: informer_tracker,
            servers,
        })
    }

    /// Leaves the address where commands look for it, and says it on standard output, with a link that signs a browser in.
    fn say_ready(&self) -> Result<(), RoleError> {
        let url = format!("http://{}", self.address);
        write_private(&self.data_dir.join("url"), &url)?;
        let mut out = std::io::stdout();
        // In one piece: whoever reads may leave after the first line. Nowhere else, since whoever has the link is admin.
        let said = format!("ready {url}\nlogin {url}{}\n", self.login);
        out.write_all(said.as_bytes())
            .and_then(|()| out.flush())
            .map_err(|source| RoleError::Process { doing: "write to standard output", source })
    }

    /// Stops: placement, then the worker, then the doors, then the datastore. Attempts run on under their sidecars,
    /// unless Ctrl-C is pressed again.
    async fn close(self, signal: EndSignal, mut signals: EndSignals) -> Result<(), RoleError> {
        self.informer_shutdown.cancel();
        self.informer.wait().await;
        let running = self.worker.attempts();
        if running > 0 {
            say(&format!("{running} attempts keep running; the next `jobyard up` takes them over."));
        }
        if running > 0 && signal == EndSignal::Interrupt {
            say("Press Ctrl-C again within 3 seconds to stop them too.");
            let again = tokio::time::timeout(SECOND_INTERRUPT_WITHIN, signals.next()).await;
            if again == Ok(EndSignal::Interrupt) {
                self.worker.evict_all().await;
            }
        }
        self.leave().await;
        Ok(())
    }

    /// The worker can't go on; the rest is closed in order all the same.
    async fn close_after(self, ended: Result<HandedOver, WorkerError>) -> Result<(), RoleError> {
        self.informer_shutdown.cancel();
        self.informer.wait().await;
        self.leave().await;
        ended?;
        Ok(())
    }

    async fn leave(self) {
        self.worker_stop.cancel();
        // What it could not hand over stands in its log; the next one finds it.
        let _handed_over = self.worker.ended().await;
        self.shutdown.cancel();
        self.servers.wait().await;
        self.store.close().await;
    }
}

/// The only worker there is.
struct OneDoor(Arc<dyn WorkerDoor>);

impl WorkerDoors for OneDoor {
    fn door(&self, _node_id: NodeId, _address: &str) -> Arc<dyn WorkerDoor> {
        self.0.clone()
    }
}

/// The path of a link that signs one browser in, once and soon.
async fn login_link(store: &dyn Store, data_dir: &Path, config: &Config) -> Result<String, RoleError> {
    let token_id = ensure_admin_token(store, data_dir).await?;
    let made = jobyard_server::create_login(store, token_id, SystemClock.now(), &Actor::role("up")).await?;
    // Browsers keep what follows the # to themselves.
    Ok(format!("{}/login#{}", config.server.base_path()?.as_prefix(), made.login))
}

/// Keeps the admin token that is there and valid, or makes a new one.
async fn ensure_admin_token(store: &dyn Store, data_dir: &Path) -> Result<TokenId, RoleError> {
    let path = data_dir.join("admin.token");
    if let Ok(secret) = fs::read_to_string(&path)
        && let Some(token) = store.token_by_hash(jobyard_server::token_hash(secret.trim())).await?
    {
        return Ok(token.id);
    }
    let token = TokenCreate {
        name: "admin".to_owned(),
        role: Role::Admin,
        owners: vec!["default".to_owned()],
        expires_in: None,
    };
    let created = jobyard_server::create_token(store, &token, SystemClock.now(), &Actor::role("up")).await?;
    write_private(&path, &created.secret)?;
    Ok(created.token.id)
}

/// The keys of the file that is set, else those of the data directory, which gets one when it has none.
fn ensure_secret_keys(config: &Config, data_dir: &Path) -> Result<SecretKeys, RoleError> {
    if let Some(keys) = config.server.secret_keys()? {
        return Ok(keys);
    }
    let path = data_dir.join("secret.key");
    let is_there = path.try_exists();
    if !is_there.map_err(|source| RoleError::Path { doing: "look for", path: path.clone(), source })? {
        write_private(&path, &SecretKeys::new_file())?;
    }
    Ok(secret_keys(&path)?)
}

pub(super) fn make_private(dir: &Path) -> Result<(), RoleError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|source| RoleError::Path {
        doing: "make the data directory",
        path: dir.to_owned(),
        source,
    })
}

/// Replaces a file that only its owner may read.
fn write_private(path: &Path, text: &str) -> Result<(), RoleError> {
    let fresh = path.with_extension("new");
    let write = || {
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, path)?;
        path.parent().map_or(Ok(()), |directory| fs::File::open(directory)?.sync_all())
    };
    write().map_err(|source| RoleError::Path { doing: "write", path: path.to_owned(), source })
}

fn say(line: &str) {
    // Nobody may be there to read it.
    let _unread = writeln!(std::io::stderr(), "{line}");
}
