//! The HTTP API: a folder a noun, thin handlers. A handler parses, calls one operation, maps the answer.
//!
//! Owns the routes and their description: [`openapi`] is generated from the same handlers.

mod artifact_batch;
mod artifacts;
mod audit;
mod events;
pub(crate) mod health;
pub(crate) mod jobs;
pub(crate) mod layers;
mod nodes;
pub mod openapi;
mod pools;
mod query;
mod summary;
mod tokens;
mod trees;

use axum::Router;
use axum::extract::Path;
use axum::routing::{delete, get, post, put};
use jobyard_api::strict::FaultCode;

use crate::authentication::authenticate;
use crate::error::ApiError;
use crate::server::Server;

/// Every route. Authentication stands in front of all of them, and of what is no route.
pub(crate) fn router(server: Server) -> Router {
    let authentication = axum::middleware::from_fn_with_state(server.clone(), authenticate);
    let measuring = axum::middleware::from_fn_with_state(server.clone(), layers::measure);
    Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(health::metrics))
        .nest("/api/v1", api())
        .fallback(no_such_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(authentication)
        .layer(measuring)
        .layer(axum::middleware::from_fn(layers::harden))
        .with_state(server)
}

fn api() -> Router<Server> {
    Router::new()
        .route("/openapi.json", get(openapi::serve))
        .route("/jobs", post(jobs::submit).get(jobs::list))
        .route("/jobs/batch", post(jobs::submit_batch))
        .route("/jobs/{id}", get(jobs::read))
        .route("/jobs/{id}/attempts", get(jobs::attempts))
        .route("/jobs/{id}/events", get(jobs::history))
        .route("/jobs/{id}/why", get(jobs::why))
        .route("/jobs/{id}/logs", get(jobs::logs))
        .route("/jobs/{id}/cancel", post(jobs::cancel))
        .route("/jobs/{id}/stop", post(jobs::stop))
        .route("/jobs/{id}/retry", post(jobs::retry))
        .route("/artifacts/{sha256}", put(artifacts::upload).get(artifacts::download).head(artifacts::look))
        .route("/artifacts/missing", post(artifacts::missing))
        .route("/artifacts/batch", post(artifact_batch::upload))
        .route("/trees/{sha256}", put(trees::upload).get(trees::download).head(trees::look))
        .route("/nodes", get(nodes::list))
        .route("/nodes/{id}/cordon", post(nodes::cordon))
        .route("/nodes/{id}/uncordon", post(nodes::uncordon))
        .route("/nodes/{id}/drain", post(nodes::drain))
        .route("/pools", get(pools::list))
        .route("/pools/{name}", put(pools::make))
        .route("/tokens", get(tokens::list).post(tokens::create))
        .route("/tokens/{id}", delete(tokens::revoke))
        .route("/me", get(tokens::me))
        .route("/audit", get(audit::list))
        .route("/summary", get(summary::read))
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
