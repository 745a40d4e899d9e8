//! `POST /jobs` and `POST /jobs/batch`.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use jobyard_api::json::{BatchAccepted, BatchItem, BatchSubmit, Job, JobCheck, JobSubmit, Problem};
use jobyard_api::strict::FaultCode;
use jobyard_api::submit::{ParsedJob, check_key, parse_batch, parse_job};
use jobyard_model::Role;

use super::view;
use crate::authentication::Caller;
use crate::body::{self, BodyLimit};
use crate::error::ApiError;
use crate::operations::accept_jobs::{Accepted, Shape, accept_jobs};
use crate::operations::check_job::check_job;
use crate::server::Server;

const KEY_HEADER: &str = "Idempotency-Key";

/// Submits a job.
///
/// With an idempotency key (a field or the header) the call can be repeated: the same job gives 200 and the job it
/// made the first time.
#[utoipa::path(
    post, path = "/api/v1/jobs", tag = "jobs", request_body = JobSubmit,
    params(("Idempotency-Key" = Option<String>, Header, description = "Instead of the field `idempotency_key`")),
    responses(
        (status = 201, description = "Accepted and durable", body = Job),
        (status = 200, description = "Accepted before, with the same key", body = Job),
        (status = 400, description = "Faults, all of them named", body = Problem),
        (status = 403, description = "The token does not act for the owner", body = Problem),
        (status = 409, description = "The key was used for another job", body = Problem),
        (status = 413, description = "Too large", body = Problem),
        (status = 429, description = "Too many submissions at a time, or too many jobs of the owner", body = Problem)
    )
)]
pub(crate) async fn submit(
    State(server): State<Server>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Role::Submitter)?;
    let _pass = server.doors().submit.enter().await?;
    let settings = server.settings();
    let limit = BodyLimit { most_bytes: settings.body_bytes, within: settings.body_within };
    let bytes = body::read(&headers, body, limit).await?;
    let job = with_header_key(parse_job(&bytes, &server.submit_settings())?, &headers)?;
    let Accepted { items, warnings } = accept_jobs(&server, &caller, vec![job], Shape::Single).await?;
    let accepted = items.into_iter().next().ok_or(ApiError::NotFound { what: "job" })?;
    let record = server.store().job(accepted.id).await?.ok_or(ApiError::NotFound { what: "job" })?;
    let job = Job { warnings, ..view::job(record, caller.principal(), server.clock().now()) };
    let status = if accepted.created { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(job)).into_response())
}

/// Checks a job as a submit would, and says what it would wait for. Keeps nothing.
///
/// Idempotency keys and the number of the owner's jobs are not looked at.
#[utoipa::path(
    post, path = "/api/v1/jobs/check", tag = "jobs", request_body = JobSubmit,
    responses(
        (status = 200, description = "It would be accepted", body = JobCheck),
        (status = 400, description = "Faults, all of them named", body = Problem),
        (status = 403, description = "The token does not act for the owner", body = Problem),
        (status = 413, description = "Too large", body = Problem)
    )
)]
pub(crate) async fn check(
    State(server): State<Server>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<JobCheck>, ApiError> {
    caller.require(Role::Submitter)?;
    let _pass = server.doors().read.enter().await?;
    let settings = server.settings();
    let limit = BodyLimit { most_bytes: settings.body_bytes, within: settings.body_within };
    let bytes = body::read(&headers, body, limit).await?;
    let job = parse_job(&bytes, &server.submit_settings())?;
    Ok(Json(check_job(&server, &caller, job).await?))
}

/// The key may stand in the header instead; both must say the same.
fn with_header_key(mut job: ParsedJob, headers: &HeaderMap) -> Result<ParsedJob, ApiError> {
    let mut values = headers.get_all(KEY_HEADER).iter();
    let Some(value) = values.next() else { return Ok(job) };
    let fault = |code, detail: String| ApiError::fault(KEY_HEADER, code, detail);
    if values.next().is_some() {
        return Err(fault(FaultCode::DuplicateField, "this header stands there more than once".to_owned()));
    }
    let key = value.to_str().map_err(|_| fault(FaultCode::Invalid, "must be plain ASCII".to_owned()))?;
    check_key(key).map_err(|(code, detail)| fault(code, detail))?;
    match &job.submit.idempotency_key {
        Some(own) if own != key => {
            let detail = "differs from the field `idempotency_key`; send one of them".to_owned();
            return Err(fault(FaultCode::NotAllowed, detail));
        }
        _ => job.submit.idempotency_key = Some(key.to_owned()),
    }
    Ok(job)
}

/// Submits up to 10,000 jobs, all or none.
#[utoipa::path(
    post, path = "/api/v1/jobs/batch", tag = "jobs", request_body = BatchSubmit,
    responses(
        (status = 201, description = "All accepted and durable; one item a job, in order", body = BatchAccepted),
        (status = 400, description = "Nothing accepted; faults name index and field", body = Problem),
        (status = 403, description = "The token does not act for an owner", body = Problem),
        (status = 409, description = "A key was used for another job", body = Problem),
        (status = 413, description = "Too large", body = Problem),
        (status = 429, description = "Too many batches at a time, or too many jobs of an owner", body = Problem)
    )
)]
pub(crate) async fn submit_batch(
    State(server): State<Server>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Role::Submitter)?;
    let _pass = server.doors().batch.enter().await?;
    let settings = server.settings();
    let limit = BodyLimit { most_bytes: settings.batch_body_bytes, within: settings.body_within };
    let bytes = body::read(&headers, body, limit).await?;
    if headers.contains_key(KEY_HEADER) {
        let detail = "a batch has a key an item: put `idempotency_key` into the jobs";
        return Err(ApiError::fault(KEY_HEADER, FaultCode::NotAllowed, detail));
    }
    let jobs = parse_batch(&bytes, &server.submit_settings())?;
    drop(bytes);
    let Accepted { items, warnings } = accept_jobs(&server, &caller, jobs, Shape::Batch).await?;
    let items = items.into_iter().map(|item| BatchItem { id: item.id, created: item.created });
    let accepted = BatchAccepted { items: items.collect(), warnings };
    Ok((StatusCode::CREATED, Json(accepted)).into_response())
}
