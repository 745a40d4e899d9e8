//! The audit trail over HTTP.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use jobyard_api::json::{Audit, Page, Problem, Time};
use jobyard_model::Role;
use jobyard_store::AuditRecord;

use super::query::QueryReader;
use crate::authentication::Caller;
use crate::error::ApiError;
use crate::operations::search_audit::{AuditSearch, search_audit};
use crate::server::Server;

/// Lists who did what, newest first.
///
/// A page looks at a bounded part of the trail: with filters it may be short, even empty, and still have a next one.
#[utoipa::path(
    get, path = "/api/v1/audit", tag = "audit",
    params(
        ("who" = Option<String>, Query, description = "Of this principal"),
        ("action" = Option<String>, Query, description = "Of these kinds, joined by commas, such as `job.submit,job.cancel`; one that ends with a dot, such as `job.`, means all that begin so"),
        ("target" = Option<String>, Query, description = "About this id or name"),
        ("address" = Option<String>, Query, description = "From this address"),
        ("since" = Option<String>, Query, description = "At this instant (RFC 3339) or later"),
        ("until" = Option<String>, Query, description = "Before this instant"),
        ("limit" = Option<u32>, Query, description = "1–500; 100 when left out"),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before")
    ),
    responses(
        (status = 200, description = "A page", body = Page<Audit>),
        (status = 400, description = "A bad cursor or filter", body = Problem)
    )
)]
pub(super) async fn list(
    State(server): State<Server>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<Page<Audit>>, ApiError> {
    caller.require(Role::Admin)?;
    let _pass = server.doors().read.enter().await?;
    let mut reader = QueryReader::new(&uri);
    let limit = reader.whole("limit", 1..=500).unwrap_or(100) as usize;
    let before = reader.whole("cursor", 0..=i64::MAX as u64).and_then(|number| i64::try_from(number).ok());
    let actions = reader.text("action").unwrap_or_default();
    let search = AuditSearch {
        who: reader.text("who"),
        actions: actions.split(',').filter(|action| !action.is_empty()).map(str::to_owned).collect(),
        target: reader.text("target"),
        address: reader.text("address"),
        since: reader.time("since"),
        until: reader.time("until"),
    };
    reader.finish()?;
    let found = search_audit(server.store(), &search, before, limit).await?;
    let next_cursor = found.next.map(|number| number.to_string());
    Ok(Json(Page { items: found.records.into_iter().map(view).collect(), next_cursor }))
}

fn view(record: AuditRecord) -> Audit {
    Audit {
        number: record.number,
        time: Time(record.at),
        who: record.who,
        address: record.address,
        action: record.action,
        target: record.target,
        detail: record.detail,
    }
}
