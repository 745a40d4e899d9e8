//! `/healthz`, `/readyz`, `/metrics`.

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jobyard_api::json::Problem;
use jobyard_model::Role;

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::metrics::MetricsPage;
use crate::server::Server;

/// Says that the process lives.
#[utoipa::path(
    get, path = "/healthz", tag = "health", security(()),
    responses((status = 200, description = "It lives", body = String, content_type = "text/plain"))
)]
pub(crate) async fn healthz() -> &'static str {
    "alive\n"
}

/// Says whether the server can serve: it reaches its datastore and is not going down.
#[utoipa::path(
    get, path = "/readyz", tag = "health", security(()),
    responses(
        (status = 200, description = "It can serve", body = String, content_type = "text/plain"),
        (status = 503, description = "It can't", body = Problem)
    )
)]
pub(crate) async fn readyz(State(server): State<Server>) -> Result<Response, ApiError> {
    if server.shutdown().is_cancelled() {
        return Err(ApiError::NotReady { why: "the server is going down" });
    }
    if server.health().is_full() {
        return Err(ApiError::NotReady { why: "the datastore was full a moment ago" });
    }
    server.store().event_head().await?;
    Ok("ready\n".into_response())
}

/// The process's metrics, in Prometheus' format.
#[utoipa::path(
    get, path = "/metrics", tag = "health",
    responses((status = 200, description = "OpenMetrics text", body = String, content_type = "text/plain"))
)]
pub(crate) async fn metrics(State(server): State<Server>, caller: Caller) -> Result<Response, ApiError> {
    caller.require(Role::Viewer)?;
    Ok(show(server.metrics().page()))
}

/// A page of metrics as an answer.
pub(crate) fn show(page: &MetricsPage) -> Response {
    let Ok(text) = page.text() else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}
