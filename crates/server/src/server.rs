//! A server's parts, put together.

use std::sync::Arc;

use axum::Router;
use jobyard_api::submit::{SecretEnvs, SubmitSettings};
use jobyard_model::Clock;
use jobyard_store::Store;
use tokio_util::sync::CancellationToken;

use crate::artifact_store::ArtifactStore;
use crate::doors::Doors;
use crate::error::ApiError;
use crate::events::EventTail;
use crate::health::Health;
use crate::http;
use crate::ids::JobIds;
use crate::logs::LogRetention;
use crate::metrics::Metrics;
use crate::operations::fleet::FleetView;
use crate::s3::JobBuckets;
use crate::secrets::SecretKeys;
use crate::settings::ServerSettings;

/// What a server is made of.
pub struct ServerParts {
    /// The one source of truth.
    pub store: Arc<dyn Store>,
    /// Where bytes lie.
    pub artifacts: Arc<dyn ArtifactStore>,
    /// The places in S3 that jobs may name.
    pub buckets: Arc<JobBuckets>,
    /// What jobs' secrets are kept with; without keys jobs with secrets are refused.
    pub secret_keys: Option<SecretKeys>,
    /// What can be set.
    pub settings: ServerSettings,
    /// The wall clock, for new ids and for what is shown.
    pub clock: Arc<dyn Clock>,
    /// What `/metrics` shows; other roles of the process may add to it.
    pub metrics: Metrics,
    /// Ends open streams, so that [`crate::serve_http`] can finish.
    pub shutdown: CancellationToken,
}

/// A server. Clones are the same server.
#[derive(Clone)]
pub struct Server {
    inner: Arc<Inner>,
}

struct Inner {
    parts: ServerParts,
    doors: Doors,
    job_ids: JobIds,
    tail: EventTail,
    fleet: FleetView,
    health: Health,
}

impl Server {
    /// Puts a server together. Starts nothing that works by itself.
    #[must_use]
    pub fn new(parts: ServerParts) -> Self {
        let doors = Doors::new(&parts.settings.doors, &parts.metrics);
        let tail = EventTail::new(Arc::clone(&parts.store), parts.shutdown.clone());
        let job_ids = JobIds::new(Arc::clone(&parts.clock));
        let (fleet, health) = (FleetView::default(), Health::default());
        Self { inner: Arc::new(Inner { parts, doors, job_ids, tail, fleet, health }) }
    }

    /// Every route of the HTTP API, behind authentication.
    pub fn router(&self) -> Router {
        http::router(self.clone())
    }

    /// Which logs are kept: for those who write them, and those who drop them.
    #[must_use]
    pub fn log_retention(&self) -> LogRetention {
        let ServerParts { clock, settings, .. } = &self.inner.parts;
        LogRetention::new(Arc::clone(clock), settings.keep_logs_days)
    }

    /// What who asks for a log is told that is no longer kept.
    pub(crate) fn log_dropped(&self) -> ApiError {
        ApiError::LogDropped { keep_days: self.inner.parts.settings.keep_logs_days }
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.inner.parts.store
    }

    pub(crate) fn artifacts(&self) -> &dyn ArtifactStore {
        &*self.inner.parts.artifacts
    }

    pub(crate) fn secret_keys(&self) -> Option<&SecretKeys> {
        self.inner.parts.secret_keys.as_ref()
    }

    pub(crate) fn buckets(&self) -> &JobBuckets {
        &self.inner.parts.buckets
    }

    pub(crate) fn settings(&self) -> &ServerSettings {
        &self.inner.parts.settings
    }

    pub(crate) fn submit_settings(&self) -> SubmitSettings {
        SubmitSettings {
            file_urls: self.settings().file_urls,
            secret_envs: self.secret_keys().map_or(SecretEnvs::Refused, |_| SecretEnvs::Accepted),
            lease_ms: self.store().lease_settings().lease_ms,
        }
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.inner.parts.clock
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.inner.parts.metrics
    }

    pub(crate) fn shutdown(&self) -> &CancellationToken {
        &self.inner.parts.shutdown
    }

    pub(crate) fn doors(&self) -> &Doors {
        &self.inner.doors
    }

    pub(crate) fn job_ids(&self) -> &JobIds {
        &self.inner.job_ids
    }

    pub(crate) fn tail(&self) -> &EventTail {
        &self.inner.tail
    }

    pub(crate) fn health(&self) -> &Health {
        &self.inner.health
    }

    pub(crate) fn fleet(&self) -> &FleetView {
        &self.inner.fleet
    }
}
