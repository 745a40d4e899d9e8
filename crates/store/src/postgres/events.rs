//! The table `event`, read in order.
//!
//! Numbers are drawn before their transaction commits, so an event may appear below one that was read already. What
//! is handed out lies below the oldest transaction that still runs; nothing can appear there any more.

use jobyard_model::{JobId, Timestamp};
use serde_json::{Value, json};

use super::Core;
use super::fault::Fault;
use super::load::Columns;
use super::query::Query;
use super::session::Rows;
use crate::encoding::{amount, column};
use crate::{EventCursor, EventFilter, EventPage, EventRecord, StoreError};

/// How many events one page looks at, when a filter passes few.
const SCANNED: u32 = 5_000;

// One snapshot for all of it: the horizon is that of the events beside it. `job` is joined for filters only.
const OF_ALL: &str = "WITH horizon AS MATERIALIZED (
    SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin)
  SELECT horizon.xmin, floor.transaction, floor.number, event.transaction, event.number, event.at_ms, event.job_id,
    event.attempt, event.who, event.from_, event.to_, event.why,
    $4::jsonb IS NULL OR EXISTS (SELECT 1 FROM job WHERE job.id = event.job_id AND job.spec @> $4)
  FROM horizon CROSS JOIN event_floor floor LEFT JOIN LATERAL (
    SELECT * FROM event e WHERE (e.transaction, e.number) > ($1, $2) AND e.transaction < horizon.xmin
    ORDER BY e.transaction, e.number LIMIT $3) event ON true
  ORDER BY event.transaction, event.number";
const OF_JOB: &str = "WITH horizon AS MATERIALIZED (
    SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin)
  SELECT horizon.xmin, floor.transaction, floor.number, event.transaction, event.number, event.at_ms, event.job_id,
    event.attempt, event.who, event.from_, event.to_, event.why,
    $4::jsonb IS NULL OR EXISTS (SELECT 1 FROM job WHERE job.id = event.job_id AND job.spec @> $4)
  FROM horizon CROSS JOIN event_floor floor LEFT JOIN LATERAL (
    SELECT * FROM event e WHERE e.job_id = $5 AND (e.transaction, e.number) > ($1, $2)
      AND e.transaction < horizon.xmin
    ORDER BY e.transaction, e.number LIMIT $3) event ON true
  ORDER BY event.transaction, event.number";
const HEAD: &str = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint";

/// Events after the cursor.
pub(super) async fn after(
    core: &Core,
    cursor: EventCursor,
    filter: &EventFilter,
    limit: u32,
) -> Result<EventPage, StoreError> {
    try_after(core, cursor, filter, limit).await.map_err(|fault| fault.during("reading events"))
}

async fn try_after(
    core: &Core,
    cursor: EventCursor,
    filter: &EventFilter,
    limit: u32,
) -> Result<EventPage, Fault> {
    let contained = contained(filter);
    let scanned = if contained.is_some() { SCANNED } else { limit };
    let query = || {
        let sql = if filter.job_id.is_some() { OF_JOB } else { OF_ALL };
        let query = Query::new(sql)
            .bind(column(cursor.transaction))
            .bind(cursor.number)
            .bind(i64::from(scanned))
            .bind(contained.clone());
        match filter.job_id {
            Some(job_id) => [query.bind(job_id.0)],
            None => [query],
        }
    };
    let [rows] = core.database.read(query).await?;
    let scan = Scan::read(&rows)?;
    // A cursor beyond the horizon is another datastore's: this one never handed it out.
    if cursor > scan.horizon {
        return Ok(EventPage { items: Vec::new(), next: scan.horizon, expired: true });
    }
    // A job's own events are kept as long as the job.
    let expired = filter.job_id.is_none() && cursor < scan.floor;
    let whole = scan.events.len() < scanned as usize;
    let last = scan.events.last().map_or(cursor, |(event, _)| event.cursor);
    let mut page = EventPage { items: Vec::new(), next: if whole { scan.horizon } else { last }, expired };
    for (event, passes) in scan.events {
        if passes {
            page.items.push(event);
        }
        if page.items.len() == limit as usize {
            page.next = page.items.last().map_or(page.next, |event| event.cursor);
            break;
        }
    }
    Ok(page)
}

/// What a job's spec must contain.
fn contained(filter: &EventFilter) -> Option<Value> {
    let mut contained = serde_json::Map::new();
    if let Some((key, value)) = &filter.label {
        contained.insert("labels".to_owned(), json!({ key: value }));
    }
    if let Some((kind, id)) = &filter.origin {
        contained.insert("origin".to_owned(), json!({ "kind": kind, "id": id }));
    }
    (!contained.is_empty()).then_some(Value::Object(contained))
}

struct Scan {
    /// Everything below is there to be read.
    horizon: EventCursor,
    /// Up to here events may be gone.
    floor: EventCursor,
    /// Each with whether it passes the filter.
    events: Vec<(EventRecord, bool)>,
}

impl Scan {
    fn read(rows: &Rows) -> Result<Self, Fault> {
        let mut scan =
            Self { horizon: EventCursor::default(), floor: EventCursor::default(), events: Vec::new() };
        for row in rows {
            let mut columns = Columns::of(row);
            scan.horizon = EventCursor { transaction: amount(columns.take()?), number: 0 };
            scan.floor = EventCursor { transaction: amount(columns.take()?), number: columns.take()? };
            let Some(transaction) = columns.take::<Option<i64>>()? else { break };
            let event = EventRecord {
                cursor: EventCursor { transaction: amount(transaction), number: columns.take()? },
                at: Timestamp(columns.take()?),
                job_id: JobId(columns.take()?),
                attempt: columns.take::<Option<i32>>()?.map(crate::rows::number),
                who: columns.take()?,
                from: columns.take()?,
                to: columns.take()?,
                why: columns.take()?,
            };
            scan.events.push((event, columns.take()?));
        }
        Ok(scan)
    }
}

/// The cursor below which all is there to be read.
pub(super) async fn head(core: &Core) -> Result<EventCursor, StoreError> {
    try_head(core).await.map_err(|fault| fault.during("looking for the newest event"))
}

async fn try_head(core: &Core) -> Result<EventCursor, Fault> {
    let [rows] = core.database.read(|| [Query::new(HEAD)]).await?;
    Ok(match rows.first() {
        Some(row) => EventCursor { transaction: amount(Columns::of(row).take()?), number: 0 },
        None => EventCursor::default(),
    })
}
