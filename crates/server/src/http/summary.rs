//! The overview over HTTP.

use axum::Json;
use axum::extract::State;
use jobyard_api::json::{StatusCount, Summary, Time};
use jobyard_model::Role;

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::server::Server;

/// Counts the jobs by status (each count stops at a bound) and adds up the fleet.
#[utoipa::path(
    get, path = "/api/v1/summary", tag = "summary",
    responses((status = 200, description = "The overview", body = Summary))
)]
pub(super) async fn read(State(server): State<Server>, caller: Caller) -> Result<Json<Summary>, ApiError> {
    caller.require(Role::Viewer)?;
    let _pass = server.doors().read.enter().await?;
    let summary = server.store().summary().await?;
    let now = server.store().now().await?;
    let count = |count: jobyard_store::StatusCount| StatusCount {
        status: count.status,
        count: count.count,
        capped: count.capped,
    };
    Ok(Json(Summary {
        jobs: summary.counts.into_iter().map(count).collect(),
        oldest_waiting_time: summary.oldest_waiting.map(Time),
        nodes: summary.nodes,
        nodes_heard: summary.nodes_heard,
        capacity: summary.capacity.into(),
        reserved: summary.reserved.into(),
        now: Time(now),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        datastore: server.store().kind().as_str().to_owned(),
    }))
}
