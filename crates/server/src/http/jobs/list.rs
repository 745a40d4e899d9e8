//! Lists, counts and completions: looks over many jobs, all by the same filter.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use jobyard_api::json::{FilterValues, Job, JobCount, JobRow, Page, Problem, StatusCount};
use jobyard_api::strict::FaultCode;
use jobyard_model::Role;
use jobyard_store::{JobQuery, ValueKey};

use super::view;
use crate::authentication::Caller;
use crate::error::ApiError;
use crate::http::query::QueryReader;
use crate::server::Server;

const DEFAULT_LIMIT: u64 = 100;
const MAX_LIMIT: u64 = 500;
const MAX_TEXT_CHARS: usize = 200;

/// The conditions of a filter, for the description.
#[derive(Debug, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only described; `jobyard_api::filter` reads them")]
pub(crate) struct FilterParameters {
    /// One or more statuses, joined by commas; a leading `!` means none of them, here and in every other condition
    status: Option<String>,
    /// Owners, joined by commas; `\` takes the next character as it is, here and in every other condition
    owner: Option<String>,
    /// Names, joined by commas; `train*` begins with, `*train*` holds
    name: Option<String>,
    /// `key:value`, `key:one,other`, `key:begins*`, or `key` alone: has the label; several must all match
    label: Option<Vec<String>>,
    /// Names or ids of nodes: where the newest attempt is or was
    node: Option<String>,
    /// How the newest ended attempt ended, such as `failed,timed_out`
    outcome: Option<String>,
    /// The exit code of the newest ended attempt, 0–255
    exit: Option<String>,
    /// The signal that the newest ended attempt died of
    signal: Option<String>,
    /// The `reason` as shown, such as `retries_exhausted` or `backing_off`
    reason: Option<String>,
    /// `task` or `service`
    kind: Option<String>,
    /// Pools
    pool: Option<String>,
    /// Bands of priority, 0–4: 0–19, 20–39, 40–59, 60–79, 80–100
    lane: Option<String>,
    /// Who submitted it
    submitted_by: Option<String>,
    /// `kind:id` of what made the job
    origin: Option<String>,
    /// The key it came with
    idempotency_key: Option<String>,
    /// Part of the id, the name or the command line, in any case
    q: Option<String>,
    /// At or after this instant (RFC 3339)
    created_after: Option<String>,
    /// Before this instant (RFC 3339)
    created_before: Option<String>,
}

/// Lists jobs, newest first. All conditions given must hold.
#[utoipa::path(
    get, path = "/api/v1/jobs", tag = "jobs",
    params(
        FilterParameters,
        ("limit" = Option<u32>, Query, description = "1–500; 100 when left out"),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before")
    ),
    responses(
        (status = 200, description = "A page; it may be short and still have a next one", body = Page<Job>),
        (status = 400, description = "A filter that can't be read", body = Problem),
        (status = 503, description = "It took longer than it may: `read_too_slow`", body = Problem)
    )
)]
pub(crate) async fn list(
    State(server): State<Server>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<Page<Job>>, ApiError> {
    caller.require(Role::Viewer)?;
    let query = read_query(&uri)?;
    let _pass = server.doors().look.enter().await?;
    let page = server.store().jobs(&query).await?;
    let now = server.clock().now();
    let items = page.items.into_iter().map(|record| view::job(record, caller.principal(), now)).collect();
    Ok(Json(Page { items, next_cursor: page.next.map(|id| id.to_string()) }))
}

/// Lists jobs as lines, newest first: what a table shows, without what was submitted to be executed.
#[utoipa::path(
    get, path = "/api/v1/jobs/rows", tag = "jobs",
    params(
        FilterParameters,
        ("limit" = Option<u32>, Query, description = "1–500; 100 when left out"),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before")
    ),
    responses(
        (status = 200, description = "A page; it may be short and still have a next one", body = Page<JobRow>),
        (status = 400, description = "A filter that can't be read", body = Problem),
        (status = 503, description = "It took longer than it may: `read_too_slow`", body = Problem)
    )
)]
pub(crate) async fn rows(
    State(server): State<Server>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<Page<JobRow>>, ApiError> {
    caller.require(Role::Viewer)?;
    let query = read_query(&uri)?;
    let _pass = server.doors().look.enter().await?;
    let page = server.store().job_rows(&query).await?;
    let items = page.items.into_iter().map(view::row).collect();
    Ok(Json(Page { items, next_cursor: page.next.map(|id| id.to_string()) }))
}

/// Counts the jobs that a filter passes, up to 10,000.
#[utoipa::path(
    get, path = "/api/v1/jobs/count", tag = "jobs", params(FilterParameters),
    responses(
        (status = 200, description = "How many", body = JobCount),
        (status = 400, description = "A filter that can't be read", body = Problem),
        (status = 503, description = "It took longer than it may: `read_too_slow`", body = Problem)
    )
)]
pub(crate) async fn count(
    State(server): State<Server>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<JobCount>, ApiError> {
    caller.require(Role::Viewer)?;
    let mut reader = QueryReader::new(&uri);
    let filter = reader.filter();
    reader.finish()?;
    let _pass = server.doors().look.enter().await?;
    let counted = server.store().count_jobs(&filter).await?;
    let by_status = counted.by_status.into_iter();
    Ok(Json(JobCount {
        count: counted.count,
        capped: counted.capped,
        complete: counted.complete,
        by_status: by_status
            .map(|count| StatusCount { status: count.status, count: count.count, capped: count.capped })
            .collect(),
    }))
}

/// Lists values that a condition of a filter can have.
#[utoipa::path(
    get, path = "/api/v1/jobs/values", tag = "jobs",
    params(
        ("key" = String, Query, description = "`owner`, `name`, `pool`, `node`, `label` for the keys of labels, `label:<key>` for the values of one"),
        ("prefix" = Option<String>, Query, description = "What they begin with"),
        ("limit" = Option<u32>, Query, description = "1–50; 20 when left out")
    ),
    responses(
        (status = 200, description = "The first of them", body = FilterValues),
        (status = 400, description = "No such key", body = Problem),
        (status = 503, description = "It took longer than it may: `read_too_slow`", body = Problem)
    )
)]
pub(crate) async fn values(
    State(server): State<Server>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<FilterValues>, ApiError> {
    caller.require(Role::Viewer)?;
    let mut reader = QueryReader::new(&uri);
    let key = value_key(&mut reader);
    let prefix = reader.text("prefix").unwrap_or_default();
    let limit = reader.whole("limit", 1..=50).unwrap_or(20) as u32;
    if prefix.contains('\0') || prefix.chars().count() > MAX_TEXT_CHARS {
        reader.refuse("prefix", FaultCode::Invalid, "has at most 200 characters, none of them U+0000");
    }
    reader.finish()?;
    // Without a key the reading has ended above.
    let Some(key) = key else { return Err(ApiError::NotFound { what: "key" }) };
    let _pass = server.doors().look.enter().await?;
    let (items, more) = server.store().values(&key, &prefix, limit).await?;
    Ok(Json(FilterValues { items, more }))
}

fn value_key(reader: &mut QueryReader) -> Option<ValueKey> {
    let text = reader.text("key");
    let key = match text.as_deref() {
        Some("owner") => Some(ValueKey::Owner),
        Some("name") => Some(ValueKey::Name),
        Some("pool") => Some(ValueKey::Pool),
        Some("node") => Some(ValueKey::Node),
        Some("label") => Some(ValueKey::LabelKey),
        Some(text) => {
            let label = text.strip_prefix("label:").filter(|key| !key.is_empty() && !key.contains('\0'));
            label.map(|key| ValueKey::Label(key.to_owned()))
        }
        None => None,
    };
    if key.is_none() {
        let expected = "expected `owner`, `name`, `pool`, `node`, `label` or `label:<key>`";
        reader.refuse("key", if text.is_none() { FaultCode::Missing } else { FaultCode::Invalid }, expected);
    }
    key
}

fn read_query(uri: &Uri) -> Result<JobQuery, ApiError> {
    let mut reader = QueryReader::new(uri);
    let query = JobQuery {
        filter: reader.filter(),
        cursor: reader.parsed("cursor"),
        limit: reader.whole("limit", 1..=MAX_LIMIT).unwrap_or(DEFAULT_LIMIT) as u32,
    };
    reader.finish()?;
    Ok(query)
}
