//! Pools over HTTP.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use jobyard_api::json::{Page, Pool, Problem, Time};
use jobyard_api::submit::check_name;
use jobyard_model::Role;

use super::whole_list;
use crate::authentication::Caller;
use crate::error::ApiError;
use crate::server::Server;

/// Lists the pools.
#[utoipa::path(
    get, path = "/api/v1/pools", tag = "pools",
    responses((status = 200, description = "Every pool, by name", body = Page<Pool>))
)]
pub(super) async fn list(State(server): State<Server>, caller: Caller) -> Result<Json<Page<Pool>>, ApiError> {
    caller.require(Role::Viewer)?;
    let _pass = server.doors().read.enter().await?;
    let pools = server.store().pools().await?;
    let view =
        |pool: jobyard_store::PoolRecord| Pool { name: pool.name, created_time: Time(pool.created_at) };
    Ok(whole_list(pools.into_iter().map(view).collect()))
}

/// Makes a pool; one that exists is left as it is.
#[utoipa::path(
    put, path = "/api/v1/pools/{name}", tag = "pools", params(("name" = String, Path, description = "Its name")),
    responses(
        (status = 204, description = "It exists"),
        (status = 400, description = "Not a name", body = Problem)
    )
)]
pub(super) async fn make(
    State(server): State<Server>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<StatusCode, ApiError> {
    caller.require(Role::Operator)?;
    let _pass = server.doors().change.enter().await?;
    check_name(&name).map_err(|(code, detail)| ApiError::fault("path", code, detail))?;
    server.store().put_pool(&name, caller.actor()).await?;
    Ok(StatusCode::NO_CONTENT)
}
