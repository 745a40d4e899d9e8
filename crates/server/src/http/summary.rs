//! The overview over HTTP.

use std::time::Instant;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use jobyard_api::filter::escape;
use jobyard_api::json::units::parse_duration_ms;
use jobyard_api::json::{
    Failing, FailingGroup, Health, MinuteSpan, Minutes, Page, PoolSummary, Problem, StatusCount, Summary,
    Time, WaitTimes, WaitingJob,
};
use jobyard_api::strict::FaultCode;
use jobyard_model::{JobState, Role, Status, Timestamp};
use jobyard_store::minutes::MINUTE_MS;
use jobyard_store::{MinuteCounts, MinuteQuery};

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::http::query::QueryReader;
use crate::operations::explain_waiting::explain_waiting;
use crate::server::Server;

/// Counts the jobs by status (each count stops at a bound) and adds up the fleet.
#[utoipa::path(
    get, path = "/api/v1/summary", tag = "summary",
    responses((status = 200, description = "The overview", body = Summary))
)]
pub(super) async fn read(State(server): State<Server>, caller: Caller) -> Result<Json<Summary>, ApiError> {
    caller.require(Role::Viewer)?;
    let _pass = server.doors().look.enter().await?;
    let summary = server.store().summary().await?;
    let asked = Instant::now();
    let now = server.store().now().await?;
    let reading_ms = u64::try_from(asked.elapsed().as_millis()).unwrap_or(u64::MAX);
    let pool = |pool: jobyard_store::PoolSummary| PoolSummary {
        name: pool.name,
        nodes: pool.nodes,
        nodes_heard: pool.nodes_heard,
        capacity: pool.capacity.into(),
        reserved: pool.reserved.into(),
    };
    let health = Health {
        report_door_time: summary.report_clock.map(Time),
        informer_time: summary.counted.map(Time),
        reading_ms,
    };
    let count = |count: jobyard_store::StatusCount| StatusCount {
        status: count.status,
        count: count.count,
        capped: count.capped,
    };
    Ok(Json(Summary {
        jobs: summary.counts.into_iter().map(count).collect(),
        oldest_waiting_time: summary.oldest_waiting.map(Time),
        nodes: summary.nodes,
        nodes_heard: summary.nodes_heard,
        capacity: summary.capacity.into(),
        reserved: summary.reserved.into(),
        pools: summary.pools.into_iter().map(pool).collect(),
        health,
        now: Time(now),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        datastore: server.store().kind().as_str().to_owned(),
    }))
}

/// The most spans of one answer.
const MAX_SPANS: usize = 1_500;
const HOUR_MS: i64 = 60 * MINUTE_MS;

/// Tells what happened by the minute: jobs submitted, started and ended, and how long they had waited.
#[utoipa::path(
    get, path = "/api/v1/summary/minutes", tag = "summary",
    params(
        ("from" = Option<String>, Query, description = "From the minute of this instant (RFC 3339); an hour before `to` when left out"),
        ("to" = Option<String>, Query, description = "Before this instant; now when left out"),
        ("step" = Option<u32>, Query, description = "How many minutes are added up into one item, 1–1,440; 1 when left out")
    ),
    responses(
        (status = 200, description = "At most 1,500 items", body = Minutes),
        (status = 400, description = "Not a span of time, or too many items", body = Problem),
        (status = 503, description = "It took longer than it may: `read_too_slow`", body = Problem)
    )
)]
pub(super) async fn minutes(
    State(server): State<Server>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<Minutes>, ApiError> {
    caller.require(Role::Viewer)?;
    let mut reader = QueryReader::new(&uri);
    let (from, to) = (reader.time("from"), reader.time("to"));
    let step_minutes = reader.whole("step", 1..=1_440).unwrap_or(1) as u32;
    let _pass = server.doors().look.enter().await?;
    let to = match to {
        Some(to) => to,
        None => server.store().now().await?,
    };
    let query = MinuteQuery { from: from.unwrap_or(Timestamp(to.0 - HOUR_MS)), to, step_minutes };
    match query.spans_asked() {
        0 => reader.refuse("to", FaultCode::Invalid, "lies before `from`"),
        spans if spans > MAX_SPANS => {
            let detail = format!("asks for {spans} items, the most is {MAX_SPANS}; take a larger `step`");
            reader.refuse("step", FaultCode::OutOfRange, detail);
        }
        _ => {}
    }
    reader.finish()?;
    let page = server.store().minutes(&query).await?;
    let items = page.spans.into_iter().map(|(begin, counts)| span(begin, &counts)).collect();
    Ok(Json(Minutes { items, complete_until_time: Time(page.complete_until) }))
}

fn span(begin: Timestamp, counts: &MinuteCounts) -> MinuteSpan {
    let ended = [Status::Success, Status::FinalFailed, Status::Cancelled]
        .map(|status| (status.as_str().to_owned(), counts.ended.get(&status).copied().unwrap_or(0)));
    MinuteSpan {
        time: Time(begin),
        submitted: counts.submitted,
        started: counts.started,
        ended: ended.into(),
        outcomes: counts
            .outcomes
            .iter()
            .map(|(outcome, count)| (outcome.as_str().to_owned(), *count))
            .collect(),
        waits: WaitTimes {
            count: counts.waits.count(),
            p50_ms: counts.waits.percentile_ms(50),
            p95_ms: counts.waits.percentile_ms(95),
        },
    }
}

/// Looked at when nothing else is asked for.
const FAILING_WITHIN_MS: u64 = 24 * 60 * 60 * 1_000;

/// Tells what fails: jobs that failed for good lately and were not retried, grouped by name, owner and how they ended.
#[utoipa::path(
    get, path = "/api/v1/summary/failing", tag = "summary",
    params(("within" = Option<String>, Query, description = "How long ago at most, such as `90s`, `1h` or `7d`; 24 h when left out")),
    responses(
        (status = 200, description = "The most frequent first", body = Failing),
        (status = 400, description = "Not a duration", body = Problem),
        (status = 503, description = "It took longer than it may: `read_too_slow`", body = Problem)
    )
)]
pub(super) async fn failing(
    State(server): State<Server>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<Failing>, ApiError> {
    caller.require(Role::Viewer)?;
    let mut reader = QueryReader::new(&uri);
    let within_ms = match reader.text("within").map(|text| parse_duration_ms(&text)) {
        None => FAILING_WITHIN_MS,
        Some(Ok(within_ms)) => within_ms,
        Some(Err(detail)) => {
            reader.refuse("within", FaultCode::Invalid, detail);
            0
        }
    };
    reader.finish()?;
    let _pass = server.doors().look.enter().await?;
    let now = server.store().now().await?;
    let failing = server.store().failing(Timestamp(now.0.saturating_sub_unsigned(within_ms))).await?;
    Ok(Json(Failing { items: failing.groups.into_iter().map(group).collect(), complete: failing.complete }))
}

fn group(group: jobyard_store::FailingGroup) -> FailingGroup {
    let print = group.print;
    let mut filter = form_urlencoded::Serializer::new(String::new());
    filter.append_pair("status", Status::FinalFailed.as_str());
    filter.append_pair("name", &escape(&print.name)).append_pair("owner", &escape(&print.owner));
    filter.append_pair("reason", print.reason.as_str());
    if let Some(outcome) = print.outcome {
        filter.append_pair("outcome", outcome.as_str());
    }
    for (name, number) in [("exit", print.exit_code), ("signal", print.signal)] {
        if let Some(number) = number {
            filter.append_pair(name, &number.to_string());
        }
    }
    FailingGroup {
        filter: filter.finish(),
        name: print.name,
        owner_id: print.owner,
        reason: print.reason.as_str().to_owned(),
        outcome: print.outcome,
        exit_code: print.exit_code,
        signal: print.signal,
        count: group.count,
        last_job_id: group.last_job,
        last_time: Time(group.last_at),
    }
}

/// Lists the jobs that have waited longest, and why: of each pool, owner, shape and priority the first in turn.
#[utoipa::path(
    get, path = "/api/v1/summary/waiting", tag = "summary",
    params(("limit" = Option<u32>, Query, description = "1–20; 10 when left out")),
    responses(
        (status = 200, description = "The longest first", body = Page<WaitingJob>),
        (status = 503, description = "It took longer than it may: `read_too_slow`", body = Problem)
    )
)]
pub(super) async fn waiting(
    State(server): State<Server>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<Page<WaitingJob>>, ApiError> {
    caller.require(Role::Viewer)?;
    let mut reader = QueryReader::new(&uri);
    let limit = reader.whole("limit", 1..=20).unwrap_or(10) as u32;
    reader.finish()?;
    let _pass = server.doors().look.enter().await?;
    let store = server.store();
    let ids = store.longest_waiting(limit).await?;
    let nodes = store.nodes().await?;
    let now = store.now().await?;
    let mut items = Vec::with_capacity(ids.len());
    for job_id in ids {
        // It may have found its place meanwhile.
        let Some(record) = store.job(job_id).await? else { continue };
        let JobState::Waiting { since } = record.job.state else { continue };
        let of_pool: Vec<_> = nodes.iter().filter(|node| node.pool == record.spec.pool).cloned().collect();
        let why = explain_waiting(&record, &of_pool, now);
        items.push(WaitingJob {
            id: job_id,
            waiting_since_time: Time(since),
            reason: why.reason,
            summary: why.summary,
            remedy: why.remedy,
            name: record.spec.name,
            owner_id: record.spec.owner,
            pool: record.spec.pool,
        });
    }
    Ok(Json(Page { items, next_cursor: None }))
}
