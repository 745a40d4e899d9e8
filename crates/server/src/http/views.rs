//! Saved views over HTTP.
//!
//! Invariant: a view is changed by its maker, or by an admin. With `If-Match` only as it was seen; without, the last write
//! wins.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jobyard_api::filter;
use jobyard_api::json::{Page, Problem, Time, View, ViewWrite};
use jobyard_api::strict::{self, FaultCode, Faults, Pointer};
use jobyard_api::submit::check_name;
use jobyard_model::Role;
use jobyard_store::{NewView, ViewChange, ViewRecord};
use uuid::Uuid;

use super::{path_id, whole_list};
use crate::authentication::Caller;
use crate::body::{self, BodyLimit};
use crate::error::ApiError;
use crate::server::Server;

/// Lists one's own views and the shared ones, by name.
#[utoipa::path(
    get, path = "/api/v1/views", tag = "views",
    responses((status = 200, description = "All that the caller sees", body = Page<View>))
)]
pub(super) async fn list(State(server): State<Server>, caller: Caller) -> Result<Json<Page<View>>, ApiError> {
    caller.require(Role::Viewer)?;
    let _pass = server.doors().read.enter().await?;
    let views = server.store().views(&caller.principal().name).await?;
    Ok(whole_list(views.into_iter().map(view).collect()))
}

/// Keeps a view.
#[utoipa::path(
    post, path = "/api/v1/views", tag = "views", request_body = ViewWrite,
    responses(
        (status = 201, description = "It is kept; `ETag` says which version it has", body = View),
        (status = 400, description = "Faults, all of them named", body = Problem),
        (status = 409, description = "One of the caller's views has that name", body = Problem)
    )
)]
pub(super) async fn create(
    State(server): State<Server>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Role::Viewer)?;
    let _pass = server.doors().change.enter().await?;
    let view = read(&server, &headers, body, Uuid::new_v4()).await?;
    answer(StatusCode::CREATED, server.store().add_view(&view, caller.actor()).await?)
}

/// Changes a view. With `If-Match` only if it still has that `ETag`; without, the last write wins.
#[utoipa::path(
    put, path = "/api/v1/views/{id}", tag = "views", request_body = ViewWrite,
    params(
        ("id" = String, Path, description = "The view"),
        ("If-Match" = Option<String>, Header, description = "The `ETag` it was seen with")
    ),
    responses(
        (status = 200, description = "As it is now", body = View),
        (status = 400, description = "Faults, all of them named", body = Problem),
        (status = 403, description = "Somebody else's", body = Problem),
        (status = 404, description = "No such view", body = Problem),
        (status = 409, description = "Another view of its maker has that name", body = Problem),
        (status = 412, description = "It was changed since", body = Problem)
    )
)]
pub(super) async fn change(
    State(server): State<Server>,
    caller: Caller,
    id: Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let _pass = server.doors().change.enter().await?;
    let id = path_id(id)?;
    allow(&server, &caller, id).await?;
    let version = seen_version(&headers)?;
    let view = read(&server, &headers, body, id).await?;
    answer(StatusCode::OK, server.store().change_view(&view, version, caller.actor()).await?)
}

/// Removes a view; `If-Match` as when it is changed.
#[utoipa::path(
    delete, path = "/api/v1/views/{id}", tag = "views",
    params(
        ("id" = String, Path, description = "The view"),
        ("If-Match" = Option<String>, Header, description = "The `ETag` it was seen with")
    ),
    responses(
        (status = 204, description = "It is gone"),
        (status = 403, description = "Somebody else's", body = Problem),
        (status = 404, description = "No such view", body = Problem),
        (status = 412, description = "It was changed since", body = Problem)
    )
)]
pub(super) async fn remove(
    State(server): State<Server>,
    caller: Caller,
    id: Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let _pass = server.doors().change.enter().await?;
    let id = path_id(id)?;
    allow(&server, &caller, id).await?;
    let removed = server.store().remove_view(id, seen_version(&headers)?, caller.actor()).await?;
    answer(StatusCode::NO_CONTENT, removed)?;
    Ok(StatusCode::NO_CONTENT)
}

const NO_SUCH: ApiError = ApiError::NotFound { what: "view" };

/// A private view of somebody else is not there.
async fn allow(server: &Server, caller: &Caller, id: Uuid) -> Result<(), ApiError> {
    caller.require(Role::Viewer)?;
    let found = server.store().view(id).await?.ok_or(NO_SUCH)?;
    let is_own = found.created_by == caller.principal().name;
    match caller.require(Role::Admin) {
        Err(_) if !is_own && !found.view.shared => Err(NO_SUCH),
        Err(refused) if !is_own => Err(refused),
        _ => Ok(()),
    }
}

fn answer(status: StatusCode, change: ViewChange) -> Result<Response, ApiError> {
    match change {
        ViewChange::Done(record) => {
            let version = HeaderValue::from_str(&format!("\"{}\"", record.version));
            let mut response = (status, Json(view(record))).into_response();
            if let Ok(version) = version {
                response.headers_mut().insert(header::ETAG, version);
            }
            Ok(response)
        }
        ViewChange::NameTaken => Err(ApiError::NameTaken),
        ViewChange::ChangedMeanwhile => Err(ApiError::ChangedMeanwhile),
        ViewChange::NotFound => Err(NO_SUCH),
    }
}

/// The version that `If-Match` names; `*` names any.
fn seen_version(headers: &HeaderMap) -> Result<Option<u32>, ApiError> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    if value == "*" {
        return Ok(None);
    }
    let text = value.to_str().ok().and_then(|text| text.strip_prefix('"')?.strip_suffix('"'));
    let version = text.and_then(|text| text.parse().ok());
    let refuse =
        || ApiError::fault("If-Match", FaultCode::Invalid, "expected the `ETag` of the view as it was read");
    version.map(Some).ok_or_else(refuse)
}

fn view(record: ViewRecord) -> View {
    View {
        id: record.view.id.to_string(),
        name: record.view.name,
        filter: record.view.filter,
        shared: record.view.shared,
        created_by: record.created_by,
        created_time: Time(record.created_at),
        changed_time: Time(record.changed_at),
    }
}

async fn read(server: &Server, headers: &HeaderMap, body: Body, id: Uuid) -> Result<NewView, ApiError> {
    let settings = server.settings();
    let limit = BodyLimit { most_bytes: settings.body_bytes, within: settings.body_within };
    let bytes = body::read(headers, body, limit).await?;
    let tree = strict::parse(&bytes).map_err(Faults::from)?;
    let mut faults = Faults::default();
    let mut view = NewView { id, name: String::new(), filter: String::new(), shared: false };
    let what = "an object with `name`, `filter` and `shared`";
    if let Some(mut fields) = strict::object(&tree, what, &Pointer::Root, &mut faults) {
        let name = fields.needed_text("name", &mut faults);
        if let Some(Err((code, detail))) = name.as_deref().map(check_name) {
            faults.add(&Pointer::Root.field("name"), code, detail);
        }
        view.name = name.unwrap_or_default();
        view.filter = fields.needed_text("filter", &mut faults).unwrap_or_default();
        if let Err(found) = filter::parse(&view.filter, "/filter") {
            found.listed().iter().for_each(|fault| faults.push(fault.clone()));
        }
        let at = Pointer::Root.field("shared");
        let shared = fields.take("shared", &mut faults);
        view.shared = shared.and_then(|value| strict::flag(value, &at, &mut faults)).unwrap_or_default();
        fields.finish(&mut faults);
    }
    if faults.is_empty() { Ok(view) } else { Err(faults.into()) }
}
