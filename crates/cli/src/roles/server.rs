//! The server as a process of its own: HTTP for people, a unix socket for workers.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use jobyard_api::grpc::{bind_door, serve_report_door};
use jobyard_api::submit::FileUrls;
use jobyard_server::report::{ReportDesk, stamp_report_clock};
use jobyard_server::{
    ConnectionSettings, Front, Metrics, Server, ServerParts, ServerSettings, drop_old_logs, serve_http,
    sweep_artifacts,
};
use rustix::process::{Resource, getrlimit};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::clock::SystemClock;
use super::config::{Config, ConfigError, RoleArguments, needed};
use super::shutdown::EndSignals;
use super::{RoleError, artifacts, datastore};

pub(super) async fn run(arguments: RoleArguments) -> Result<(), RoleError> {
    let config = arguments.load()?;
    let signals =
        EndSignals::catch().map_err(|source| RoleError::Process { doing: "catch signals", source })?;
    let address = config.server.listen.unwrap_or(DEFAULT_LISTEN);
    let report_socket =
        needed(config.server.report_socket.clone(), "server.report_socket", "--report-socket")?;
    let secret_keys = config.server.secret_keys()?;
    let settings = settings(&config)?;
    let artifacts = artifacts::open(&config)?;
    let buckets = artifacts::job_buckets(&config)?;
    let listener = listen(address, "--listen").await?;
    let shutdown = CancellationToken::new();
    signals.cancel_on_first(shutdown.clone());

    let (doors, front) = (TaskTracker::new(), Front::waiting());
    doors.spawn(serve_http(listener, front.clone(), connections(&config), shutdown.clone()));
    let store = datastore::wait_for(&config, &shutdown).await?;
    if let Some(store) = &store {
        let server = Server::new(ServerParts {
            store: store.clone(),
            artifacts: artifacts.clone(),
            buckets: buckets.clone(),
            secret_keys: secret_keys.clone(),
            settings: settings.clone(),
            clock: Arc::new(SystemClock),
            metrics: Metrics::default(),
            shutdown: shutdown.clone(),
        });
        let desk = ReportDesk::new(store.clone(), artifacts.clone(), server.log_retention());
        let desk = Arc::new(desk.with_secret_keys(secret_keys).with_buckets(buckets));
        let report_listener = bind_door(&report_socket).await?;
        doors.spawn(serve_report_door(report_listener, desk, shutdown.clone().cancelled_owned()));
        doors.spawn(stamp_report_clock(store.clone(), shutdown.clone()));
        doors.spawn(sweep_artifacts(store.clone(), artifacts.clone(), shutdown.clone()));
        doors.spawn(drop_old_logs(store.clone(), artifacts, server.log_retention(), shutdown));
        front.begin(server.router());
        tracing::info!(%address, report_socket = %report_socket.display(), "server serves");
    }
    doors.close();
    doors.wait().await;
    if let Some(store) = store {
        store.close().await;
    }
    Ok(())
}

/// Loopback, so that nothing is open to others unless somebody says so.
pub(super) const DEFAULT_LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7700);

/// Listens; `flag` is what sets the address.
pub(super) async fn listen(address: SocketAddr, flag: &'static str) -> Result<TcpListener, RoleError> {
    TcpListener::bind(address).await.map_err(|source| RoleError::Listen {
        address: address.to_string(),
        flag,
        source,
    })
}

/// How many connections are taken: half of the files that the process may have open are for other things.
pub(super) fn connections(config: &Config) -> ConnectionSettings {
    let usual = ConnectionSettings::default();
    let wanted = config.server.max_connections.map_or(usual.at_once, NonZeroUsize::get);
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let at_once = wanted.min(usize::try_from(files / 2).unwrap_or(usize::MAX)).max(1);
    if at_once < wanted && config.server.max_connections.is_some() {
        tracing::warn!(
            at_once,
            wanted,
            "fewer connections are taken than set: the process may have {files} files open"
        );
    }
    let stall_within = config
        .server
        .stall_seconds
        .map_or(usual.stall_within, |seconds| Duration::from_secs(u64::from(seconds.get())));
    ConnectionSettings { at_once, stall_within, ..usual }
}

/// What the file says of the HTTP side.
pub(super) fn settings(config: &Config) -> Result<ServerSettings, ConfigError> {
    let file_urls = if config.server.allow_file_urls { FileUrls::Allowed } else { FileUrls::Refused };
    let usual = ServerSettings::default();
    let keep_logs_days = config.server.keep_logs_days.unwrap_or(usual.keep_logs_days);
    let hours = config.server.session_hours.map(|hours| u64::from(hours.get()));
    let session_lasts_ms = hours.map_or(usual.session_lasts_ms, |hours| hours * 60 * 60 * 1_000);
    let (base_path, secure_cookies) = (config.server.base_path()?, config.server.secure_cookies);
    Ok(ServerSettings { file_urls, keep_logs_days, base_path, secure_cookies, session_lasts_ms, ..usual })
}
