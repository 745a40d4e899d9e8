//! What a listener answers while its server can't be there yet, and the server from then on.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::routing::get;

use crate::error::ApiError;
use crate::http::health::{healthz, show};
use crate::http::layers;
use crate::metrics::MetricsPage;

/// What stands behind a listener. Clones are the same front.
#[derive(Debug, Clone)]
pub struct Front {
    waiting: Router,
    server: Arc<OnceLock<Router>>,
}

impl Front {
    /// Alive and not ready, until [`Self::begin`]: the datastore is not there yet.
    #[must_use]
    pub fn waiting() -> Self {
        let waiting = only_alive(|| ApiError::NotReady { why: "the server waits for its datastore" });
        Self { waiting, server: Arc::default() }
    }

    /// What a role has that is no server: whether it lives, and its metrics. Open to whoever reaches the listener.
    #[must_use]
    pub fn of_role(page: MetricsPage) -> Self {
        let metrics = get(async move || show(&page));
        let router = Router::new()
            .route("/healthz", get(healthz))
            .route("/metrics", metrics)
            .fallback(async || ApiError::NotFound { what: "path; there are /healthz and /metrics" })
            .layer(axum::middleware::from_fn(layers::harden));
        Self::open(router)
    }

    /// A router that is there from the beginning.
    #[must_use]
    pub(crate) fn open(router: Router) -> Self {
        Self { waiting: Router::new(), server: Arc::new(OnceLock::from(router)) }
    }

    /// Answers with this router from now on. It stays the first one that was given.
    pub fn begin(&self, server: Router) {
        let _first = self.server.get_or_init(|| server);
    }

    pub(crate) fn router(&self) -> &Router {
        self.server.get().unwrap_or(&self.waiting)
    }
}

/// A router that says that the process lives, and answers every other call with the error.
pub(crate) fn only_alive(error: fn() -> ApiError) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .fallback(move || std::future::ready(error()))
        .layer(axum::middleware::from_fn(layers::harden))
}
