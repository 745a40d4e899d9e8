//! This machine's worker as a process of its own, or as a part of `up`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jobyard_api::doors::ReportDoor;
use jobyard_api::grpc::{ReportDoorClient, bind_door, serve_worker_door};
use jobyard_server::MetricsPage;
use jobyard_server::metrics::Gauge;
use jobyard_worker::{Worker, WorkerParts, WorkerSettings, WorkerTimes};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::clock::SystemClock;
use super::config::{Config, RoleArguments, WorkerConfig, needed};
use super::shutdown::EndSignals;
use super::{RoleError, metrics};

pub(super) async fn run(arguments: RoleArguments) -> Result<(), RoleError> {
    let config = arguments.load()?;
    let signals =
        EndSignals::catch().map_err(|source| RoleError::Process { doing: "catch signals", source })?;
    let data_dir = needed(config.worker.data_dir.clone(), "worker.data_dir", "--worker-data-dir")?;
    let door_socket = needed(config.worker.door_socket.clone(), "worker.door_socket", "--door-socket")?;
    let report_sockets = config.worker.report_sockets.clone();
    if report_sockets.is_empty() {
        needed(None::<()>, "worker.report_sockets", "--report-socket")?;
    }
    let listener = bind_door(&door_socket).await?;
    let report = Arc::new(ReportDoorClient::new(report_sockets));
    let settings = settings(&config, &data_dir, &door_socket.display().to_string())?;
    let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
    let attempts = Gauge::default();
    metrics::serve(&config, MetricsPage::of_worker(&attempts), &tasks, &shutdown).await?;
    let stop = CancellationToken::new();
    let worker = Arc::new(start(report, settings, stop.clone()).await?);
    signals.cancel_on_first(stop);
    tasks.spawn(show_attempts(worker.clone(), attempts, shutdown.clone()));
    let door = tokio::spawn(serve_worker_door(listener, worker.clone(), shutdown.clone().cancelled_owned()));
    tracing::info!(door_socket = %door_socket.display(), "worker runs");
    let ended = worker.ended().await;
    shutdown.cancel();
    if let Ok(Err(error)) = door.await {
        tracing::warn!(error = &error as &dyn std::error::Error, "the door was closed by an error");
    }
    tasks.close();
    tasks.wait().await;
    let handed_over = ended?;
    tracing::info!(attempts = handed_over.attempts, "worker ended; attempts run on under their sidecars");
    Ok(())
}

async fn show_attempts(worker: Arc<Worker>, attempts: Gauge, shutdown: CancellationToken) {
    metrics::each_second(&shutdown, || {
        attempts.set(i64::try_from(worker.attempts()).unwrap_or(i64::MAX));
    })
    .await;
}

/// Starts a worker that runs until `stop`.
pub(super) async fn start(
    report: Arc<dyn ReportDoor>,
    settings: WorkerSettings,
    stop: CancellationToken,
) -> Result<Worker, RoleError> {
    Ok(Worker::start(WorkerParts { report, settings, clock: Arc::new(SystemClock) }, stop).await?)
}

/// The worker's settings from the file; `door` is empty when informer and worker are one process.
pub(crate) fn settings(config: &Config, data_dir: &Path, door: &str) -> Result<WorkerSettings, RoleError> {
    let WorkerConfig {
        state_dir,
        task_dir,
        pool,
        name,
        cpu,
        memory_bytes,
        max_attempts,
        labels,
        sidecar,
        log_limit_bytes,
        output_limit_bytes,
        cache_limit_bytes,
        upload_seconds,
        ..
    } = config.worker.clone();
    let sidecar_path = sidecar.map_or_else(sidecar_beside_us, Ok)?;
    let usual = WorkerSettings::new(data_dir, sidecar_path);
    Ok(WorkerSettings {
        state_dir,
        task_dir,
        door: door.to_owned(),
        pool: pool.unwrap_or(usual.pool),
        name,
        // A negative or absurd number of cores saturates; the registration shows what came of it.
        cpu_milli: cpu.map(|cores| (cores * 1000.0) as u64),
        memory_bytes,
        max_attempts: max_attempts.unwrap_or(usual.max_attempts),
        labels,
        log_limit_bytes: log_limit_bytes.unwrap_or(usual.log_limit_bytes),
        output_limit_bytes: output_limit_bytes.unwrap_or(usual.output_limit_bytes),
        cache_limit_bytes: cache_limit_bytes.unwrap_or(usual.cache_limit_bytes),
        times: WorkerTimes {
            upload_ms: upload_seconds.map_or(usual.times.upload_ms, |seconds| seconds.saturating_mul(1_000)),
            ..usual.times
        },
        ..usual
    })
}

fn sidecar_beside_us() -> Result<PathBuf, RoleError> {
    let own =
        std::env::current_exe().map_err(|source| RoleError::Process { doing: "find own binary", source })?;
    Ok(own.with_file_name("jobyard-sidecar"))
}
