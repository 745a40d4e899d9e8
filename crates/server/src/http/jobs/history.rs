//! `GET /jobs/{id}/events`.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::Uri;
use jobyard_api::json::{Event, Page, Problem};
use jobyard_store::EventFilter;

use super::view;
use crate::authentication::Caller;
use crate::error::ApiError;
use crate::http::path_id;
use crate::http::query::QueryReader;
use crate::operations::read_job::read_job;
use crate::server::Server;

/// Reads a job's history, oldest first.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/events", tag = "jobs",
    params(
        ("id" = String, Path, description = "The job"),
        ("limit" = Option<u32>, Query, description = "1–500; 500 when left out"),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before")
    ),
    responses(
        (status = 200, description = "A page of events", body = Page<Event>),
        (status = 400, description = "A bad cursor", body = Problem),
        (status = 404, description = "No such job", body = Problem)
    )
)]
pub(crate) async fn history(
    State(server): State<Server>,
    caller: Caller,
    id: Path<String>,
    uri: Uri,
) -> Result<Json<Page<Event>>, ApiError> {
    let _pass = server.doors().read.enter().await?;
    let job_id = path_id(id)?;
    let mut reader = QueryReader::new(&uri);
    let limit = reader.whole("limit", 1..=500).unwrap_or(500) as u32;
    let cursor = reader.parsed("cursor").unwrap_or_default();
    reader.finish()?;
    read_job(&server, &caller, job_id).await?;
    let filter = EventFilter { job_id: Some(job_id), ..EventFilter::default() };
    let page = server.store().events_after(cursor, &filter, limit).await?;
    let more = page.items.len() >= limit as usize;
    let items = page.items.iter().map(view::event).collect();
    Ok(Json(Page { items, next_cursor: more.then(|| page.next.to_string()) }))
}
