//! The HTTP API: a folder a noun, thin handlers. A handler parses, calls one operation, maps the answer.
//!
//! Owns the routes and their description: [`openapi`] is generated from the same handlers.

mod artifact_batch;
mod artifacts;
mod audit;
mod bulk;
mod events;
pub(crate) mod health;
pub(crate) mod jobs;
pub(crate) mod layers;
mod nodes;
pub mod openapi;
mod pages;
mod pools;
mod query;
mod schemas;
mod sessions;
mod summary;
mod tokens;
mod trees;
mod views;

use axum::Router;
use axum::extract::{Path, Request};
use axum::http::Uri;
use axum::routing::{delete, get, post, put};
use jobyard_api::strict::FaultCode;
use tower::Layer as _;
use tower::util::MapRequestLayer;

use crate::authentication::authenticate;
use crate::error::ApiError;
use crate::server::Server;
use crate::settings::BasePath;

/// Every route, below the base path as well as without it: some proxies take it off, some don't.
pub(crate) fn router(server: Server) -> Router {
    let base_path = server.settings().base_path.clone();
    let routes = routes(server);
    if base_path.as_prefix().is_empty() {
        return routes;
    }
    // Before routing, so that authentication and all else sees the same path either way.
    let strip = MapRequestLayer::new(move |request| without_base_path(&base_path, request));
    Router::new().fallback_service(strip.layer(routes))
}

fn without_base_path(base_path: &BasePath, mut request: Request) -> Request {
    let uri = request.uri();
    let Some(path) = base_path.strip(uri.path()) else { return request };
    let target = uri.query().map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = target.parse().ok();
    if let Ok(stripped) = Uri::from_parts(parts) {
        *request.uri_mut() = stripped;
    }
    request
}

/// Authentication stands in front of every route, and of what is no route; pages alone come before it.
fn routes(server: Server) -> Router {
    let authentication = axum::middleware::from_fn_with_state(server.clone(), authenticate);
    let pages = axum::middleware::from_fn_with_state(server.clone(), pages::serve);
    let measuring = axum::middleware::from_fn_with_state(server.clone(), layers::measure);
    Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(health::metrics))
        .nest("/api/v1", api())
        .fallback(no_such_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(authentication)
        .layer(pages)
        .layer(measuring)
        .layer(axum::middleware::from_fn(layers::harden))
        .with_state(server)
}

fn api() -> Router<Server> {
    Router::new()
        .route("/openapi.json", get(openapi::serve))
        .route("/jobs", post(jobs::submit).get(jobs::list))
        .route("/schemas/job", get(schemas::job))
        .route("/jobs/check", post(jobs::check))
        .route("/jobs/batch", post(jobs::submit_batch))
        .route("/jobs/rows", get(jobs::rows))
        .route("/jobs/count", get(jobs::count))
        .route("/jobs/values", get(jobs::values))
        .route("/jobs/{id}", get(jobs::read))
        .route("/jobs/{id}/attempts", get(jobs::attempts))
        .route("/jobs/{id}/events", get(jobs::history))
        .route("/jobs/{id}/why", get(jobs::why))
        .route("/jobs/{id}/logs", get(jobs::logs))
        .route("/jobs/{id}/logs/sizes", get(jobs::log_sizes))
        .route("/jobs/{id}/logs/pieces", get(jobs::log_pieces))
        .route("/jobs/{id}/logs/search", get(jobs::search_logs))
        .route("/jobs/{id}/cancel", post(jobs::cancel))
        .route("/jobs/{id}/stop", post(jobs::stop))
        .route("/jobs/{id}/retry", post(jobs::retry))
        .route("/artifacts/{sha256}", put(artifacts::upload).get(artifacts::download).head(artifacts::look))
        .route("/artifacts/missing", post(artifacts::missing))
        .route("/artifacts/batch", post(artifact_batch::upload))
        .route("/trees/{sha256}", put(trees::upload).get(trees::download).head(trees::look))
        .route("/nodes", get(nodes::list))
        .route("/nodes/{id}", get(nodes::read))
        .route("/nodes/{id}/attempts", get(nodes::attempts))
        .route("/nodes/{id}/cordon", post(nodes::cordon))
        .route("/nodes/{id}/uncordon", post(nodes::uncordon))
        .route("/nodes/{id}/drain", get(nodes::preview_drain).post(nodes::drain))
        .route("/pools", get(pools::list))
        .route("/pools/{name}", put(pools::make))
        .route("/tokens", get(tokens::list).post(tokens::create))
        .route("/tokens/{id}", delete(tokens::revoke))
        .route("/sessions", post(sessions::begin).delete(sessions::end))
        .route("/sessions/links", post(sessions::link))
        .route("/me", get(tokens::me))
        .route("/bulk", post(bulk::start).get(bulk::list))
        .route("/bulk/{id}", get(bulk::progress))
        .route("/bulk/{id}/stop", post(bulk::stop))
        .route("/views", get(views::list).post(views::create))
        .route("/views/{id}", put(views::change).delete(views::remove))
        .route("/audit", get(audit::list))
        .route("/summary", get(summary::read))
        .route("/summary/minutes", get(summary::minutes))
        .route("/summary/failing", get(summary::failing))
        .route("/summary/waiting", get(summary::waiting))
        .route("/events", get(events::follow))
}

async fn no_such_path() -> ApiError {
    ApiError::NotFound { what: "path; see /api/v1/openapi.json" }
}

async fn wrong_method() -> ApiError {
    ApiError::WrongMethod
}

/// Reads an id from the path; one that is none gets the same care as a body.
pub(crate) fn path_id<T: std::str::FromStr<Err: std::fmt::Display>>(
    Path(text): Path<String>,
) -> Result<T, ApiError> {
    text.parse().map_err(|error| ApiError::fault("path", FaultCode::Invalid, format!("{error}")))
}

/// A list that is never long enough to need pages.
pub(crate) fn whole_list<T>(items: Vec<T>) -> axum::Json<jobyard_api::json::Page<T>>
where
    T: serde::Serialize,
{
    axum::Json(jobyard_api::json::Page { items, next_cursor: None })
}
