//! The tables `minute_count` and `minute_cursor`: what happened in each minute, counted from the events.

use jobyard_model::Timestamp;
use tokio_postgres::types::Type;

use super::Core;
use super::fault::{Fault, Shared};
use super::load::Columns;
use super::looks::Look;
use super::query::Query;
use super::session::{Rows, Session};
use crate::minutes::{Counted, TOUCHED_EACH_MS, Tally};
use crate::{MinutePage, MinuteQuery, RolledUp, StoreError};

const CURSOR: &str = "SELECT transaction, number, touched_ms, jobyard_now() FROM minute_cursor";

/// As in `events`: what is counted lies below the oldest transaction that still runs.
const PAGE: &str = "WITH horizon AS MATERIALIZED (
    SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin)
  SELECT e.transaction, e.number, e.at_ms, e.from_, e.to_, e.why, e.attempt IS NOT NULL,
    CASE WHEN e.from_ = 'waiting' AND e.to_ = 'running' THEN (
      SELECT p.at_ms FROM event p WHERE p.job_id = e.job_id
        AND (p.transaction, p.number) < (e.transaction, e.number) AND p.to_ = 'waiting'
      ORDER BY p.transaction DESC, p.number DESC LIMIT 1) END
  FROM horizon CROSS JOIN LATERAL (
    SELECT * FROM event WHERE (event.transaction, event.number) > ($1, $2) AND event.transaction < horizon.xmin
    ORDER BY event.transaction, event.number LIMIT $3) e
  ORDER BY e.transaction, e.number";

const MOVE: &str = "UPDATE minute_cursor SET transaction = $3, number = $4, touched_ms = $5, counted_ms = $6
    WHERE transaction = $1 AND number = $2 RETURNING 1";
const ADD: &str = "INSERT INTO minute_count (minute_ms, what, count)
    SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::bigint[])
    ON CONFLICT (minute_ms, what) DO UPDATE SET count = minute_count.count + excluded.count";
// An hour of minutes at a time.
const REMOVE: &str = "DELETE FROM minute_count WHERE minute_ms < $1
    AND minute_ms < (SELECT minute_ms FROM minute_count ORDER BY minute_ms LIMIT 1) + 3600000";

const SPANS: &str = "SELECT (minute_ms - $1) / $3, what, sum(count)::bigint FROM minute_count
    WHERE minute_ms >= $1 AND minute_ms < $2 GROUP BY 1, 2";
const COMPLETE: &str = "SELECT counted_ms FROM minute_cursor";

/// A page of events on its way into the counts.
struct Page {
    from: (i64, i64),
    to: (i64, i64),
    touched_ms: i64,
    counted_ms: i64,
    tally: Tally,
    events: u64,
    more: bool,
}

/// Counts the next events, and removes the counts of minutes before `keep_from`.
pub(super) async fn roll_up(core: &Core, limit: u32, keep_from: Timestamp) -> Result<RolledUp, StoreError> {
    const DOING: &str = "counting what happened";
    let Some(page) = read(core, limit).await.map_err(|fault| fault.during(DOING))? else {
        return Ok(RolledUp::default());
    };
    let add = |session| add(session, &page, keep_from);
    let added = core.database.change(DOING, add).await?;
    // Somebody else counted them.
    if !added {
        return Ok(RolledUp { events: 0, more: page.more });
    }
    Ok(RolledUp { events: page.events, more: page.more })
}

async fn read(core: &Core, limit: u32) -> Result<Option<Page>, Fault> {
    let [rows] = core.own_looks.look(|| [Look::new(CURSOR)]).await?;
    let row = rows.first().ok_or_else(|| Fault::Statement(Shared::new("there is no cursor of minutes")))?;
    let mut columns = Columns::of(row);
    let from: (i64, i64) = (columns.take()?, columns.take()?);
    let (touched_ms, now_ms): (i64, i64) = (columns.take()?, columns.take()?);
    let look = || {
        let look = Look::new(PAGE).bind(from.0, Type::INT8).bind(from.1, Type::INT8);
        [look.bind(i64::from(limit), Type::INT8)]
    };
    let [events] = core.own_looks.look(look).await?;
    let mut page = page_of(&events, from)?;
    page.more = events.len() >= limit as usize;
    page.touched_ms = now_ms;
    if !page.more {
        page.counted_ms = now_ms;
    }
    let is_quiet = events.is_empty() && (0..TOUCHED_EACH_MS).contains(&(now_ms - touched_ms));
    Ok((!is_quiet).then_some(page))
}

fn page_of(events: &Rows, from: (i64, i64)) -> Result<Page, Fault> {
    let mut page = Page {
        from,
        to: from,
        touched_ms: 0,
        counted_ms: 0,
        tally: Tally::default(),
        events: events.len() as u64,
        more: false,
    };
    for row in events {
        let mut columns = Columns::of(row);
        page.to = (columns.take()?, columns.take()?);
        let at_ms: i64 = columns.take()?;
        let (from, to, why): (String, String, String) = (columns.take()?, columns.take()?, columns.take()?);
        let (has_attempt, waited_since_ms) = (columns.take()?, columns.take()?);
        page.counted_ms = page.counted_ms.max(at_ms);
        page.tally.add(&Counted { at_ms, from: &from, to: &to, why: &why, has_attempt, waited_since_ms });
    }
    Ok(page)
}

/// `false`: the cursor is not where it was.
async fn add(mut session: Session, page: &Page, keep_from: Timestamp) -> Result<bool, Fault> {
    let cursor = Query::new(MOVE)
        .bind(page.from.0)
        .bind(page.from.1)
        .bind(page.to.0)
        .bind(page.to.1)
        .bind(page.touched_ms)
        .bind(page.counted_ms);
    let [moved] = session.begin([cursor]).await?;
    if moved.is_empty() {
        session.roll_back().await?;
        return Ok(false);
    }
    let counts: Vec<_> = page.tally.counts.iter().collect();
    let add = Query::new(ADD)
        .bind_each(&counts, |((minute_ms, _), _)| *minute_ms)
        .bind_each(&counts, |((_, what), _)| *what)
        .bind_each(&counts, |(_, count)| **count);
    session.commit(vec![add, Query::new(REMOVE).bind(keep_from.0)]).await?;
    Ok(true)
}

/// Spans of minutes.
pub(super) async fn minutes(core: &Core, query: &MinuteQuery) -> Result<MinutePage, StoreError> {
    try_minutes(core, query).await.map_err(|fault| fault.during("reading what happened by the minute"))
}

async fn try_minutes(core: &Core, query: &MinuteQuery) -> Result<MinutePage, Fault> {
    let (from_ms, step_ms, _) = query.grid();
    let to_ms = query.to.0;
    let looks = || {
        let look = Look::new(SPANS).bind(from_ms, Type::INT8).bind(to_ms, Type::INT8);
        [Look::new(COMPLETE), look.bind(step_ms, Type::INT8)]
    };
    let [complete, rows] = core.looks.look(looks).await?;
    let complete_ms: i64 = match complete.first() {
        Some(row) => Columns::of(row).take()?,
        None => 0,
    };
    let count = |row| {
        let mut columns = Columns::of(row);
        Ok((columns.take()?, columns.take()?, columns.take()?))
    };
    let counts = rows.iter().map(count).collect::<Result<Vec<(i64, i16, i64)>, Fault>>()?;
    Ok(MinutePage { spans: query.spans(counts), complete_until: Timestamp(complete_ms) })
}
