//! The table `event`, read in order.

use jobyard_model::{JobId, JobSpec, Timestamp};
use rusqlite::{Row, params};

use super::fault::Fault;
use super::scope::Scope;
use crate::encoding::from_json;
use crate::{EventCursor, EventFilter, EventPage, EventRecord};

/// How many events one page looks at, when a filter passes few.
const SCANNED: u32 = 5_000;

/// Events after the cursor. One writer gives out the numbers, so what is committed has no gaps that fill up later.
pub(super) fn after(
    scope: &Scope<'_>,
    cursor: EventCursor,
    filter: &EventFilter,
    limit: u32,
) -> Result<EventPage, Fault> {
    let newest = newest(scope)?;
    let floor: i64 = scope.statement("SELECT number FROM event_floor")?.query_row([], |row| row.get(0))?;
    // A job's own events are kept as long as the job. A cursor beyond the newest is another database's.
    let beyond = cursor > place(newest);
    let expired = filter.job_id.is_none() && cursor.number < floor || beyond;
    let from = if beyond { newest } else { cursor.number };
    let unfiltered = filter.passes_all();
    let scanned = if unfiltered { limit } else { SCANNED };
    let events = scan(scope, from, filter.job_id, scanned)?;
    let whole = events.len() < scanned as usize;
    let last_scanned = events.last().map_or(from, |event| event.cursor.number);
    let mut page = EventPage { items: Vec::new(), next: place(last_scanned.max(from)), expired };
    if whole {
        page.next = place(newest.max(from));
    }
    for event in events {
        if unfiltered || passes(scope, filter, &event)? {
            page.items.push(event);
        }
        if page.items.len() >= limit as usize && !unfiltered {
            page.next = page.items.last().map_or(page.next, |event| event.cursor);
            break;
        }
    }
    Ok(page)
}

fn scan(scope: &Scope<'_>, after: i64, job_id: Option<JobId>, limit: u32) -> Result<Vec<EventRecord>, Fault> {
    let columns = "SELECT number, at_ms, job_id, attempt, who, from_, to_, why FROM event";
    let sql = match job_id {
        Some(_) => format!("{columns} WHERE job_id = ?3 AND number > ?1 ORDER BY number LIMIT ?2"),
        None => format!("{columns} WHERE ?3 IS NULL AND number > ?1 ORDER BY number LIMIT ?2"),
    };
    let mut statement = scope.statement(&sql)?;
    let rows = statement.query_map(params![after, limit, job_id.map(|job_id| job_id.0)], record)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn record(row: &Row<'_>) -> rusqlite::Result<EventRecord> {
    Ok(EventRecord {
        cursor: place(row.get(0)?),
        at: Timestamp(row.get(1)?),
        job_id: JobId(row.get(2)?),
        attempt: row.get(3)?,
        who: row.get(4)?,
        from: row.get(5)?,
        to: row.get(6)?,
        why: row.get(7)?,
    })
}

fn passes(scope: &Scope<'_>, filter: &EventFilter, event: &EventRecord) -> Result<bool, Fault> {
    if !filter.passes_event(event) {
        return Ok(false);
    }
    if filter.label.is_none() && filter.origin.is_none() {
        return Ok(true);
    }
    let job_id = event.job_id;
    let mut statement = scope.statement("SELECT spec FROM job WHERE id = ?1")?;
    let mut rows = statement.query([job_id.0])?;
    let Some(row) = rows.next()? else { return Ok(false) };
    let spec: JobSpec = from_json("job", job_id, &row.get::<_, String>(0)?)?;
    Ok(filter.matches(&spec))
}

/// The cursor after the newest event.
pub(super) fn head(scope: &Scope<'_>) -> Result<EventCursor, Fault> {
    Ok(place(newest(scope)?))
}

/// The newest number ever given out, removed events included.
fn newest(scope: &Scope<'_>) -> Result<i64, Fault> {
    let sql = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'event'), 0)";
    Ok(scope.statement(sql)?.query_row([], |row| row.get(0))?)
}

fn place(number: i64) -> EventCursor {
    EventCursor { transaction: 0, number }
}
