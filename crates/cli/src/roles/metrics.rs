//! What a role without an HTTP door of its own shows of itself, and what the informer's loops show in any process.

use std::time::Duration;

use jobyard_informer::LoopBoard;
use jobyard_server::metrics::LoopFigures;
use jobyard_server::{ConnectionSettings, Front, LoopMetrics, MetricsPage, serve_http};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::config::Config;
use super::{RoleError, server};

/// A scraper or two, and somebody who looks.
const CONNECTIONS: usize = 32;

/// Serves the page where the settings say so, until `shutdown`.
pub(super) async fn serve(
    config: &Config,
    page: MetricsPage,
    tasks: &TaskTracker,
    shutdown: &CancellationToken,
) -> Result<(), RoleError> {
    if let Some(address) = config.metrics.listen {
        let listener = server::listen(address, "--metrics-listen").await?;
        let connections = ConnectionSettings { at_once: CONNECTIONS, ..ConnectionSettings::default() };
        tasks.spawn(serve_http(listener, Front::of_role(page), connections, shutdown.clone()));
        tracing::info!(%address, "metrics are served");
    }
    Ok(())
}

/// Shows how the loops fare, once a second.
pub(super) async fn feed_loops(board: LoopBoard, metrics: LoopMetrics, shutdown: CancellationToken) {
    each_second(&shutdown, || {
        metrics.reaping_paused_seconds.set(board.reaping_paused_seconds());
        metrics.leases_held_back.set(board.leases_held_back());
        for (name, reading) in board.readings() {
            let last_ok_seconds = reading.last_ok.elapsed().as_secs_f64();
            let (runs, errors, changed) = (reading.runs, reading.errors, reading.changed);
            metrics.show(name, LoopFigures { runs, errors, changed, last_ok_seconds });
        }
    })
    .await;
}

/// Does it now, and once a second until `shutdown`.
pub(super) async fn each_second(shutdown: &CancellationToken, what: impl Fn()) {
    while !shutdown.is_cancelled() {
        what();
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
            () = shutdown.cancelled() => {}
        }
    }
}
