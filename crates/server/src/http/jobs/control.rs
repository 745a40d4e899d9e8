//! `POST /jobs/{id}/cancel`, `/stop` and `/retry`.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use jobyard_api::json::{Job, Problem, RetryRequest};
use jobyard_api::strict::{self, Faults, Pointer, Range};

use super::view;
use crate::authentication::Caller;
use crate::body::{self, BodyLimit};
use crate::error::ApiError;
use crate::http::path_id;
use crate::operations::control_job::{cancel_job, retry_job, stop_job};
use crate::server::Server;

const ATTEMPTS: Range = Range { of: 0..=i32::MAX as i64, what: "an attempt's number" };

/// Cancels a job: at once when nothing runs, else its attempt is stopped. A job that is over stays as it is.
#[utoipa::path(
    post, path = "/api/v1/jobs/{id}/cancel", tag = "jobs", params(("id" = String, Path, description = "The job")),
    responses(
        (status = 200, description = "Wanted; the job as it is now", body = Job),
        (status = 403, description = "The token does not act for the owner", body = Problem),
        (status = 404, description = "No such job", body = Problem)
    )
)]
pub(crate) async fn cancel(
    State(server): State<Server>,
    caller: Caller,
    id: Path<String>,
) -> Result<Json<Job>, ApiError> {
    let _pass = server.doors().change.enter().await?;
    let record = cancel_job(&server, &caller, path_id(id)?).await?;
    Ok(Json(view::job(record, caller.principal(), server.clock().now())))
}

/// Stops a service, which ends well then: at once when nothing runs, else after TERM and its grace. One that is over
/// stays as it is.
#[utoipa::path(
    post, path = "/api/v1/jobs/{id}/stop", tag = "jobs", params(("id" = String, Path, description = "The job")),
    responses(
        (status = 200, description = "Wanted; the job as it is now", body = Job),
        (status = 403, description = "The token does not act for the owner", body = Problem),
        (status = 404, description = "No such job", body = Problem),
        (status = 409, description = "The job is a task", body = Problem)
    )
)]
pub(crate) async fn stop(
    State(server): State<Server>,
    caller: Caller,
    id: Path<String>,
) -> Result<Json<Job>, ApiError> {
    let _pass = server.doors().change.enter().await?;
    let record = stop_job(&server, &caller, path_id(id)?).await?;
    Ok(Json(view::job(record, caller.principal(), server.clock().now())))
}

/// Starts a new round of a job that failed or was cancelled. When there is a newer attempt than `after_attempt`,
/// nothing is done.
#[utoipa::path(
    post, path = "/api/v1/jobs/{id}/retry", tag = "jobs", params(("id" = String, Path, description = "The job")),
    request_body = Option<RetryRequest>,
    responses(
        (status = 200, description = "The job as it is now", body = Job),
        (status = 403, description = "The token does not act for the owner", body = Problem),
        (status = 404, description = "No such job", body = Problem),
        (status = 409, description = "The job is not over, or ended well", body = Problem)
    )
)]
pub(crate) async fn retry(
    State(server): State<Server>,
    caller: Caller,
    id: Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Job>, ApiError> {
    let _pass = server.doors().change.enter().await?;
    let job_id = path_id(id)?;
    let settings = server.settings();
    let limit = BodyLimit { most_bytes: settings.body_bytes, within: settings.body_within };
    let bytes = body::read(&headers, body, limit).await?;
    let request = read_retry(&bytes)?;
    let record = retry_job(&server, &caller, job_id, request.after_attempt).await?;
    Ok(Json(view::job(record, caller.principal(), server.clock().now())))
}

/// An empty body asks for nothing in particular.
fn read_retry(bytes: &[u8]) -> Result<RetryRequest, ApiError> {
    let mut request = RetryRequest::default();
    if bytes.is_empty() {
        return Ok(request);
    }
    let tree = strict::parse(bytes).map_err(Faults::from)?;
    let mut faults = Faults::default();
    if let Some(mut fields) =
        strict::object(&tree, "an object with `after_attempt`", &Pointer::Root, &mut faults)
    {
        if let Some(value) = fields.take("after_attempt", &mut faults) {
            let at = Pointer::Root.field("after_attempt");
            let number = strict::whole(value, &ATTEMPTS, &at, &mut faults);
            request.after_attempt = number.and_then(|number| u32::try_from(number).ok());
        }
        fields.finish(&mut faults);
    }
    if faults.is_empty() { Ok(request) } else { Err(faults.into()) }
}
