//! The informer as a process of its own.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use jobyard_api::doors::WorkerDoor;
use jobyard_api::grpc::WorkerDoorClient;
use jobyard_informer::{InformerParts, InformerSettings, LoopBoard, WorkerDoors};
use jobyard_model::{NodeId, SessionId};
use jobyard_server::LoopMetrics;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::config::{Config, InformerConfig, RoleArguments};
use super::shutdown::EndSignals;
use super::{RoleError, datastore, metrics};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

pub(super) async fn run(arguments: RoleArguments) -> Result<(), RoleError> {
    let config = arguments.load()?;
    let webhook = config.webhook.webhook()?;
    let signals =
        EndSignals::catch().map_err(|source| RoleError::Process { doing: "catch signals", source })?;
    let shutdown = CancellationToken::new();
    signals.cancel_on_first(shutdown.clone());
    let (board, loops, tasks) = (LoopBoard::default(), LoopMetrics::default(), TaskTracker::new());
    metrics::serve(&config, loops.page(), &tasks, &shutdown).await?;
    tasks.spawn(metrics::feed_loops(board.clone(), loops, shutdown.clone()));
    if let Some(store) = datastore::wait_for(&config, &shutdown).await? {
        let doors = Arc::new(SocketDoors::default());
        let id = SessionId(Uuid::new_v4());
        let parts =
            InformerParts { store: store.clone(), doors, settings: settings(&config), board, webhook, id };
        tracing::info!("informer runs");
        jobyard_informer::run(parts, shutdown).await;
        store.close().await;
    }
    tasks.close();
    tasks.wait().await;
    Ok(())
}

/// The informer's settings from the file.
pub(super) fn settings(config: &Config) -> InformerSettings {
    let InformerConfig {
        pools,
        keep_jobs_days,
        keep_keys_days,
        keep_audit_days,
        keep_artifacts_days,
        keep_minutes_days,
    } = config.informer.clone();
    let usual = InformerSettings::default();
    let days = |days: Option<u64>, usual_ms| days.map_or(usual_ms, |days| days.saturating_mul(DAY_MS));
    InformerSettings {
        pools,
        keep_jobs_ms: days(keep_jobs_days, usual.keep_jobs_ms),
        keep_keys_ms: days(keep_keys_days, usual.keep_keys_ms),
        keep_audit_ms: days(keep_audit_days, usual.keep_audit_ms),
        keep_artifacts_ms: days(keep_artifacts_days, usual.keep_artifacts_ms),
        keep_minutes_ms: days(keep_minutes_days, usual.keep_minutes_ms),
    }
}

/// Connections to the sockets that workers registered, one an address.
#[derive(Default)]
struct SocketDoors {
    doors: Mutex<HashMap<String, Arc<dyn WorkerDoor>>>,
}

impl WorkerDoors for SocketDoors {
    fn door(&self, _node_id: NodeId, address: &str) -> Arc<dyn WorkerDoor> {
        let mut doors = self.doors.lock().unwrap_or_else(PoisonError::into_inner);
        doors
            .entry(address.to_owned())
            .or_insert_with(|| Arc::new(WorkerDoorClient::new(PathBuf::from(address))))
            .clone()
    }
}
