//! The tables `minute_count` and `minute_cursor`: what happened in each minute, counted from the events.
//!
//! Events are read beside the writer; it only adds what was counted, while the cursor is where it was.

use jobyard_model::Timestamp;
use rusqlite::{OptionalExtension, params};
use uuid::Uuid;

use super::fault::Fault;
use super::scope::Scope;
use crate::minutes::{Counted, TOUCHED_EACH_MS, Tally, is_placement};
use crate::{MinutePage, MinuteQuery, RolledUp};

pub(super) const PAGE: &str = "SELECT number, at_ms, job_id, from_, to_, why, attempt IS NOT NULL FROM event \
    WHERE number > ?1 ORDER BY number LIMIT ?2";
pub(super) const WAITED: &str = "SELECT at_ms FROM event WHERE job_id = ?1 AND number < ?2 AND to_ = 'waiting' \
    ORDER BY number DESC LIMIT 1";

/// A page of events on its way into the counts.
pub(super) struct Page {
    from: i64,
    to: i64,
    touched_ms: i64,
    counted_ms: i64,
    tally: Tally,
    pub(super) rolled_up: RolledUp,
}

/// The next events, counted; `None` when there is nothing to note.
pub(super) fn read(scope: &Scope<'_>, limit: u32) -> Result<Option<Page>, Fault> {
    let (from, touched_ms) = scope
        .statement("SELECT number, touched_ms FROM minute_cursor")?
        .query_row([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
    let now_ms = scope.now().0;
    let mut page = Page {
        from,
        to: from,
        touched_ms,
        counted_ms: 0,
        tally: Tally::default(),
        rolled_up: RolledUp::default(),
    };
    let mut waited = scope.statement(WAITED)?;
    let mut statement = scope.statement(PAGE)?;
    let mut rows = statement.query(params![from, limit])?;
    while let Some(row) = rows.next()? {
        let (number, at_ms, job_id): (i64, i64, Uuid) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let text = |index| row.get_ref(index)?.as_str().map_err(rusqlite::Error::from);
        let (from, to, why) = (text(3)?, text(4)?, text(5)?);
        let waited_since_ms = match is_placement(from, to) {
            true => waited.query_row(params![job_id, number], |row| row.get(0)).optional()?,
            false => None,
        };
        page.tally.add(&Counted { at_ms, from, to, why, has_attempt: row.get(6)?, waited_since_ms });
        page.to = number;
        page.counted_ms = page.counted_ms.max(at_ms);
        page.rolled_up.events += 1;
    }
    page.rolled_up.more = page.rolled_up.events >= u64::from(limit);
    page.touched_ms = now_ms;
    if !page.rolled_up.more {
        page.counted_ms = now_ms;
    }
    let is_quiet = page.rolled_up.events == 0 && (0..TOUCHED_EACH_MS).contains(&(now_ms - touched_ms));
    Ok((!is_quiet).then_some(page))
}

/// Adds what was counted. `false`: the cursor is not where it was.
pub(super) fn add(scope: &Scope<'_>, page: &Page, keep_from: Timestamp) -> Result<bool, Fault> {
    let moved = scope.execute(
        "UPDATE minute_cursor SET number = ?2, touched_ms = ?3, counted_ms = ?4 WHERE number = ?1",
        params![page.from, page.to, page.touched_ms, page.counted_ms],
    )?;
    if moved == 0 {
        return Ok(false);
    }
    for ((minute_ms, what), count) in &page.tally.counts {
        scope.execute(
            "INSERT INTO minute_count (minute_ms, what, count) VALUES (?1, ?2, ?3) \
             ON CONFLICT (minute_ms, what) DO UPDATE SET count = count + excluded.count",
            params![minute_ms, what, count],
        )?;
    }
    // An hour of minutes at a time.
    scope.execute(
        "DELETE FROM minute_count WHERE minute_ms < ?1 AND minute_ms < \
         (SELECT minute_ms FROM minute_count ORDER BY minute_ms LIMIT 1) + 3600000",
        [keep_from.0],
    )?;
    Ok(true)
}

/// Spans of minutes.
pub(super) fn minutes(scope: &Scope<'_>, query: &MinuteQuery) -> Result<MinutePage, Fault> {
    let (from_ms, step_ms, _) = query.grid();
    let to_ms = query.to.0;
    let sql = "SELECT (minute_ms - ?1) / ?3, what, sum(count) FROM minute_count \
        WHERE minute_ms >= ?1 AND minute_ms < ?2 GROUP BY 1, 2";
    let mut statement = scope.statement(sql)?;
    let rows = statement
        .query_map(params![from_ms, to_ms, step_ms], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let counts = rows.collect::<rusqlite::Result<Vec<(i64, i16, i64)>>>()?;
    let complete_ms =
        scope.statement("SELECT counted_ms FROM minute_cursor")?.query_row([], |row| row.get(0))?;
    Ok(MinutePage { spans: query.spans(counts), complete_until: Timestamp(complete_ms) })
}
