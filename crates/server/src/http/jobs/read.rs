//! `GET /jobs/{id}`, its attempts, and why it waits.

use axum::Json;
use axum::extract::{Path, State};
use jobyard_api::json::{Attempt, Job, Page, Problem, Why};

use super::view;
use crate::authentication::Caller;
use crate::error::ApiError;
use crate::http::{path_id, whole_list};
use crate::operations::explain_waiting::explain_waiting;
use crate::operations::read_job::read_job;
use crate::server::Server;

/// Reads a job.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}", tag = "jobs", params(("id" = String, Path, description = "The job")),
    responses(
        (status = 200, description = "The job", body = Job),
        (status = 400, description = "Not an id", body = Problem),
        (status = 404, description = "No such job", body = Problem)
    )
)]
pub(crate) async fn read(
    State(server): State<Server>,
    caller: Caller,
    id: Path<String>,
) -> Result<Json<Job>, ApiError> {
    let _pass = server.doors().read.enter().await?;
    let record = read_job(&server, &caller, path_id(id)?).await?;
    Ok(Json(view::job(record, caller.principal(), server.clock().now())))
}

/// Lists a job's attempts, by number.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/attempts", tag = "jobs", params(("id" = String, Path, description = "The job")),
    responses(
        (status = 200, description = "All attempts", body = Page<Attempt>),
        (status = 404, description = "No such job", body = Problem)
    )
)]
pub(crate) async fn attempts(
    State(server): State<Server>,
    caller: Caller,
    id: Path<String>,
) -> Result<Json<Page<Attempt>>, ApiError> {
    let _pass = server.doors().read.enter().await?;
    let record = read_job(&server, &caller, path_id(id)?).await?;
    let attempts = server.store().attempts(record.job.id).await?;
    Ok(whole_list(attempts.into_iter().map(view::attempt).collect()))
}

/// Explains why a job isn't running yet, and what would change that.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/why", tag = "jobs", params(("id" = String, Path, description = "The job")),
    responses(
        (status = 200, description = "Per gate and per node", body = Why),
        (status = 404, description = "No such job", body = Problem)
    )
)]
pub(crate) async fn why(
    State(server): State<Server>,
    caller: Caller,
    id: Path<String>,
) -> Result<Json<Why>, ApiError> {
    let _pass = server.doors().read.enter().await?;
    let record = read_job(&server, &caller, path_id(id)?).await?;
    let mut nodes = server.store().nodes().await?;
    nodes.retain(|node| node.pool == record.spec.pool);
    let now = server.store().now().await?;
    Ok(Json(explain_waiting(&record, &nodes, now)))
}
