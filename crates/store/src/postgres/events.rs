//! The table `event`, read in order.
//!
//! Numbers are drawn before their transaction commits, so an event may appear below one that was read already. What
//! is handed out lies below the oldest transaction that still runs; nothing can appear there any more. A cursor's
//! transaction is shifted against the table's where another datastore was imported.

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

/// Where the reading ends: one snapshot for the horizon, the newest event below it, and what follows in the statement.
macro_rules! horizon {
    () => {
        "WITH horizon AS MATERIALIZED (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin),
        ends AS MATERIALIZED (
          SELECT horizon.xmin, floor.shift, floor.transaction AS floor_transaction, floor.number AS floor_number,
            newest.transaction AS newest_transaction, newest.number AS newest_number
          FROM horizon CROSS JOIN event_floor floor LEFT JOIN LATERAL (
            SELECT e.transaction, e.number FROM event e WHERE e.transaction < horizon.xmin
            ORDER BY e.transaction DESC, e.number DESC LIMIT 1) newest ON true)
        SELECT ends.floor_transaction + ends.shift, ends.floor_number,
          ends.newest_transaction + ends.shift, ends.newest_number"
    };
}

/// The events themselves; `job` is looked at for filters only.
macro_rules! events {
    ($of:literal) => {
        concat!(
            horizon!(),
            ", event.transaction + ends.shift, event.number, event.at_ms, event.job_id, event.attempt, event.who, event.from_,
            event.to_, event.why,
            $4::jsonb IS NULL OR EXISTS (SELECT 1 FROM job WHERE job.id = event.job_id AND job.spec::jsonb @> $4)
            FROM ends LEFT JOIN LATERAL (
              SELECT * FROM event e WHERE ",
            $of,
            "(e.transaction, e.number) > ($1 - ends.shift, $2) AND e.transaction < ends.xmin
              ORDER BY e.transaction, e.number LIMIT $3) event ON true
            ORDER BY event.transaction, event.number"
        )
    };
}
const OF_ALL: &str = events!("");
const OF_JOB: &str = events!("e.job_id = $5 AND ");
const HEAD: &str = concat!(horizon!(), " FROM ends");

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
    let scanned = if filter.passes_all() { limit } else { SCANNED };
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
    // A cursor beyond the newest is another datastore's: this one never handed it out.
    if cursor > scan.ends.newest {
        return Ok(EventPage { items: Vec::new(), next: scan.ends.newest, expired: true });
    }
    // A job's own events are kept as long as the job.
    let expired = filter.job_id.is_none() && cursor < scan.ends.floor;
    let whole = scan.events.len() < scanned as usize;
    let last = scan.events.last().map_or(cursor, |(event, _)| event.cursor);
    let mut page =
        EventPage { items: Vec::new(), next: if whole { scan.ends.newest } else { last }, expired };
    for (event, passes) in scan.events {
        if passes && filter.passes_event(&event) {
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
    ends: Ends,
    /// Each with whether it passes the filter.
    events: Vec<(EventRecord, bool)>,
}

/// What there is to be read.
#[derive(Debug, Clone, Copy, Default)]
struct Ends {
    /// Up to here events may be gone.
    floor: EventCursor,
    /// The newest below which nothing can appear any more, removed ones included.
    newest: EventCursor,
}

impl Ends {
    fn read(columns: &mut Columns<'_>) -> Result<Self, Fault> {
        let floor = EventCursor { transaction: amount(columns.take()?), number: columns.take()? };
        let newest = match (columns.take::<Option<i64>>()?, columns.take::<Option<i64>>()?) {
            (Some(transaction), Some(number)) => EventCursor { transaction: amount(transaction), number },
            _ => EventCursor::default(),
        };
        Ok(Self { floor, newest: newest.max(floor) })
    }
}

impl Scan {
    fn read(rows: &Rows) -> Result<Self, Fault> {
        let mut scan = Self { ends: Ends::default(), events: Vec::new() };
        for row in rows {
            let mut columns = Columns::of(row);
            scan.ends = Ends::read(&mut columns)?;
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

/// The cursor after the newest event that can be read.
pub(super) async fn head(core: &Core) -> Result<EventCursor, StoreError> {
    try_head(core).await.map_err(|fault| fault.during("looking for the newest event"))
}

async fn try_head(core: &Core) -> Result<EventCursor, Fault> {
    let [rows] = core.database.read(|| [Query::new(HEAD)]).await?;
    match rows.first() {
        Some(row) => Ok(Ends::read(&mut Columns::of(row))?.newest),
        None => Ok(EventCursor::default()),
    }
}
