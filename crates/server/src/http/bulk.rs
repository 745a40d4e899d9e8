//! Actions on many jobs over HTTP. An informer carries them out.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use jobyard_api::filter;
use jobyard_api::json::{Bulk, BulkPreview, BulkRequest, Page, Problem, Time};
use jobyard_api::strict::{self, FaultCode, Faults, Pointer};
use jobyard_api::submit::check_key;
use jobyard_model::bulk::acted_on;
use jobyard_model::{BulkAction, JobFilter, Principal, Role};
use jobyard_store::{BulkRecord, NewBulk};
use uuid::Uuid;

use super::{path_id, whole_list};
use crate::authentication::Caller;
use crate::body::{self, BodyLimit};
use crate::error::ApiError;
use crate::server::Server;

/// The most actions of a list.
const LISTED: u32 = 100;

/// Cancels or retries every job that a filter passes, in the background; with `dry_run` only counts them.
///
/// Touches jobs of owners that the token acts for, and none that is created later. May be repeated without harm: a job
/// that was cancelled already is left as it is, and one that was retried is not found again.
#[utoipa::path(
    post, path = "/api/v1/bulk", tag = "bulk", request_body = BulkRequest,
    responses(
        (status = 200, description = "With `dry_run`: how many it would act on. Else: the key began this one before", body = BulkPreview),
        (status = 202, description = "It has begun", body = Bulk),
        (status = 400, description = "Faults, all of them named", body = Problem)
    )
)]
pub(super) async fn start(
    State(server): State<Server>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Role::Submitter)?;
    let _pass = server.doors().change.enter().await?;
    let settings = server.settings();
    let limit = BodyLimit { most_bytes: settings.body_bytes, within: settings.body_within };
    let Wanted { filter, text, action, dry_run, idempotency_key } =
        read(&body::read(&headers, body, limit).await?)?;
    let owners = owners_of(caller.principal());
    if dry_run {
        let preview = preview(&server, &filter, action, owners.as_deref()).await?;
        return Ok(Json(preview).into_response());
    }
    let bulk = NewBulk { id: Uuid::new_v4(), filter: text, action, owners, idempotency_key };
    let (record, created) = server.store().start_bulk(&bulk, caller.actor()).await?;
    let status = if created { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok((status, Json(view(record))).into_response())
}

async fn preview(
    server: &Server,
    filter: &JobFilter,
    action: BulkAction,
    owners: Option<&[String]>,
) -> Result<BulkPreview, ApiError> {
    let _pass = server.doors().look.enter().await?;
    let before = server.store().now().await?.plus_ms(1);
    let Some(filter) = acted_on(filter, action, owners, before) else {
        return Ok(BulkPreview { matching: 0, capped: false, complete: true });
    };
    let counted = server.store().count_jobs(&filter).await?;
    Ok(BulkPreview { matching: counted.count, capped: counted.capped, complete: counted.complete })
}

/// `None`: everybody's jobs.
fn owners_of(principal: &Principal) -> Option<Vec<String>> {
    (principal.role < Role::Operator).then(|| principal.owners.clone())
}

/// Lists the newest actions.
#[utoipa::path(
    get, path = "/api/v1/bulk", tag = "bulk",
    responses((status = 200, description = "At most 100, the newest first; they are kept for 30 days", body = Page<Bulk>))
)]
pub(super) async fn list(State(server): State<Server>, caller: Caller) -> Result<Json<Page<Bulk>>, ApiError> {
    caller.require(Role::Viewer)?;
    let _pass = server.doors().read.enter().await?;
    let bulks = server.store().bulks(false, LISTED).await?;
    Ok(whole_list(bulks.into_iter().map(view).collect()))
}

/// Tells how far an action is.
#[utoipa::path(
    get, path = "/api/v1/bulk/{id}", tag = "bulk", params(("id" = String, Path, description = "The action")),
    responses(
        (status = 200, description = "As it is now", body = Bulk),
        (status = 404, description = "No such action", body = Problem)
    )
)]
pub(super) async fn progress(
    State(server): State<Server>,
    caller: Caller,
    id: Path<String>,
) -> Result<Json<Bulk>, ApiError> {
    caller.require(Role::Viewer)?;
    let _pass = server.doors().read.enter().await?;
    let found = server.store().bulk(path_id(id)?).await?;
    found.map(|record| Json(view(record))).ok_or(NO_SUCH)
}

const NO_SUCH: ApiError = ApiError::NotFound { what: "action" };

/// Stops an action; what it did stays done. Its maker may, and operators.
#[utoipa::path(
    post, path = "/api/v1/bulk/{id}/stop", tag = "bulk", params(("id" = String, Path, description = "The action")),
    responses(
        (status = 200, description = "As it is now", body = Bulk),
        (status = 403, description = "Somebody else's", body = Problem),
        (status = 404, description = "No such action", body = Problem)
    )
)]
pub(super) async fn stop(
    State(server): State<Server>,
    caller: Caller,
    id: Path<String>,
) -> Result<Json<Bulk>, ApiError> {
    caller.require(Role::Submitter)?;
    let _pass = server.doors().change.enter().await?;
    let id = path_id(id)?;
    let record = server.store().bulk(id).await?.ok_or(NO_SUCH)?;
    if record.created_by != caller.principal().name {
        caller.require(Role::Operator)?;
    }
    let stopped = server.store().stop_bulk(id, caller.actor()).await?;
    stopped.map(|record| Json(view(record))).ok_or(NO_SUCH)
}

fn view(record: BulkRecord) -> Bulk {
    Bulk {
        id: record.id.to_string(),
        filter: record.filter,
        action: record.action.as_str().to_owned(),
        created_by: record.created_by,
        created_time: Time(record.created_at),
        status: record.status.as_str().to_owned(),
        looked_at: record.changed + record.unchanged,
        changed: record.changed,
        unchanged: record.unchanged,
        finished_time: record.finished_at.map(Time),
    }
}

struct Wanted {
    filter: JobFilter,
    text: String,
    action: BulkAction,
    dry_run: bool,
    idempotency_key: Option<String>,
}

fn read(bytes: &[u8]) -> Result<Wanted, ApiError> {
    let tree = strict::parse(bytes).map_err(Faults::from)?;
    let mut faults = Faults::default();
    let mut wanted = (None, None, false, None);
    let what = "an object with `filter` and `action`";
    if let Some(mut fields) = strict::object(&tree, what, &Pointer::Root, &mut faults) {
        wanted.0 = fields.needed_text("filter", &mut faults);
        wanted.1 = fields.needed_text("action", &mut faults);
        let at = Pointer::Root.field("dry_run");
        let dry_run = fields.take("dry_run", &mut faults);
        wanted.2 = dry_run.and_then(|value| strict::flag(value, &at, &mut faults)).unwrap_or_default();
        let at = Pointer::Root.field("idempotency_key");
        let key = fields.take("idempotency_key", &mut faults);
        wanted.3 = key.and_then(|value| strict::text(value, &at, &mut faults)).map(str::to_owned);
        fields.finish(&mut faults);
    }
    let (text, action, dry_run, idempotency_key) = wanted;
    let filter = text.as_deref().map(|text| filter::parse(text, "/filter"));
    if let Some(Err(found)) = &filter {
        found.listed().iter().for_each(|fault| faults.push(fault.clone()));
    }
    let filter = filter.and_then(Result::ok);
    if filter.as_ref().is_some_and(JobFilter::is_empty) {
        let detail = "names no condition: an action on every job there is would be a mistake too easily made";
        faults.add(&Pointer::Root.field("filter"), FaultCode::Missing, detail);
    }
    let known = action.as_deref().map(BulkAction::parse);
    if known == Some(None) {
        faults.add(&Pointer::Root.field("action"), FaultCode::Invalid, "expected `cancel` or `retry`");
    }
    if let Some(Err((code, detail))) = idempotency_key.as_deref().map(check_key) {
        faults.add(&Pointer::Root.field("idempotency_key"), code, detail);
    }
    match (filter, text, known.flatten()) {
        (Some(filter), Some(text), Some(action)) if faults.is_empty() => {
            Ok(Wanted { filter, text, action, dry_run, idempotency_key })
        }
        _ => Err(faults.into()),
    }
}
