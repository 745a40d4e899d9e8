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
use crate::server::Server;

/// Lists who did what, newest first.
#[utoipa::path(
    get, path = "/api/v1/audit", tag = "audit",
    params(
        ("limit" = Option<u32>, Query, description = "1–500; 100 when left out"),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before")
    ),
    responses(
        (status = 200, description = "A page", body = Page<Audit>),
        (status = 400, description = "A bad cursor", body = Problem)
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
    let limit = reader.whole("limit", 1..=500).unwrap_or(100) as u32;
    let before = reader.whole("cursor", 0..=i64::MAX as u64).and_then(|number| i64::try_from(number).ok());
    reader.finish()?;
    let records = server.store().audit(before, limit).await?;
    let more = records.len() >= limit as usize;
    let next_cursor = records.last().filter(|_| more).map(|record| record.number.to_string());
    Ok(Json(Page { items: records.into_iter().map(view).collect(), next_cursor }))
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
