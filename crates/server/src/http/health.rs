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
        (status = 200, description = "It can serve; a second line says what is wrong with the artifact store, if something is", body = String, content_type = "text/plain"),
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
    // Jobs are taken and run without it, so it takes no server out of service.
    Ok(match server.artifacts().trouble() {
        None => "ready\n".into_response(),
        Some(why) => format!("ready\nthe artifact store can't be used: {}\n", one_line(&why)).into_response(),
    })
}

/// What another server said, made fit for a line of ours.
fn one_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(1_000).collect()
}

/// The process's metrics, in Prometheus' format.
#[utoipa::path(
    get, path = "/metrics", tag = "health",
    responses((status = 200, description = "OpenMetrics text", body = String, content_type = "text/plain"))
)]
pub(crate) async fn metrics(State(server): State<Server>, caller: Caller) -> Result<Response, ApiError> {
    caller.require(Role::Viewer)?;
    let is_usable = server.artifacts().trouble().is_none();
    server.metrics().artifact_store_usable.set(i64::from(is_usable));
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
