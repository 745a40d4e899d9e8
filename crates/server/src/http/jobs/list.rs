//! `GET /jobs`.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use jobyard_api::json::{Job, Page, Problem};
use jobyard_api::strict::FaultCode;
use jobyard_model::{Role, Status};
use jobyard_store::JobQuery;

use super::view;
use crate::authentication::Caller;
use crate::error::ApiError;
use crate::http::query::QueryReader;
use crate::server::Server;

const DEFAULT_LIMIT: u64 = 100;
const MAX_LIMIT: u64 = 500;
const MAX_TEXT_CHARS: usize = 200;

/// Lists jobs, newest first. All filters given must match.
#[utoipa::path(
    get, path = "/api/v1/jobs", tag = "jobs",
    params(
        ("status" = Option<String>, Query, description = "One or more statuses, joined by commas"),
        ("owner" = Option<String>, Query, description = "The owner"),
        ("name" = Option<String>, Query, description = "The exact name"),
        ("label" = Option<Vec<String>>, Query, description = "`key:value`; several must all match"),
        ("origin" = Option<String>, Query, description = "`kind:id` of what made the job"),
        ("idempotency_key" = Option<String>, Query, description = "The key it came with"),
        ("q" = Option<String>, Query, description = "Part of the id, the name or the command line, in any case"),
        ("created_after" = Option<String>, Query, description = "At or after this instant (RFC 3339)"),
        ("created_before" = Option<String>, Query, description = "Before this instant (RFC 3339)"),
        ("limit" = Option<u32>, Query, description = "1–500; 100 when left out"),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before")
    ),
    responses(
        (status = 200, description = "A page; it may be short and still have a next one", body = Page<Job>),
        (status = 400, description = "A filter that can't be read", body = Problem)
    )
)]
pub(crate) async fn list(
    State(server): State<Server>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<Page<Job>>, ApiError> {
    caller.require(Role::Viewer)?;
    let _pass = server.doors().read.enter().await?;
    let query = read_query(&uri)?;
    let page = server.store().jobs(&query).await?;
    let now = server.clock().now();
    let items = page.items.into_iter().map(|record| view::job(record, caller.principal(), now)).collect();
    Ok(Json(Page { items, next_cursor: page.next.map(|id| id.to_string()) }))
}

fn read_query(uri: &Uri) -> Result<JobQuery, ApiError> {
    let mut reader = QueryReader::new(uri);
    let query = JobQuery {
        statuses: statuses(&mut reader),
        owner: reader.text("owner"),
        name: reader.text("name"),
        labels: reader.pairs("label", "`key:value`"),
        origin: reader.pair("origin", "`kind:id`"),
        idempotency_key: reader.text("idempotency_key"),
        text: reader.text("q"),
        created_after: reader.time("created_after"),
        created_before: reader.time("created_before"),
        cursor: reader.parsed("cursor"),
        limit: reader.whole("limit", 1..=MAX_LIMIT).unwrap_or(DEFAULT_LIMIT) as u32,
    };
    for (name, value) in [("q", &query.text), ("name", &query.name), ("owner", &query.owner)] {
        if value.as_ref().is_some_and(|text| text.contains('\0') || text.chars().count() > MAX_TEXT_CHARS) {
            reader.refuse(name, FaultCode::Invalid, "has at most 200 characters, none of them U+0000");
        }
    }
    reader.finish()?;
    Ok(query)
}

fn statuses(reader: &mut QueryReader) -> Vec<Status> {
    let mut statuses = Vec::new();
    for part in reader.text("status").iter().flat_map(|text| text.split(',')) {
        match part.trim().parse() {
            Ok::<Status, String>(status) => statuses.push(status),
            Err(detail) => reader.refuse("status", FaultCode::Invalid, detail),
        }
    }
    statuses
}
