//! The table `follower`: who outside is told of events, and how far.

use jobyard_model::SessionId;

use super::Core;
use super::fault::Fault;
use super::load::Columns;
use super::query::Query;
use super::session::Rows;
use crate::encoding::{amount, column};
use crate::{EventCursor, StoreError};

/// Takes it, when nobody else has it. A hold that lies further ahead than holds last is left from before a step back of
/// the clock.
const HOLD: &str = "INSERT INTO follower (name, transaction, number, holder, held_until_ms)
    VALUES ($1, $2, $3, $4, jobyard_now() + $5)
    ON CONFLICT (name) DO UPDATE SET holder = $4, held_until_ms = jobyard_now() + $5
    WHERE follower.holder = $4 OR follower.held_until_ms <= jobyard_now()
      OR follower.held_until_ms > jobyard_now() + $5
    RETURNING transaction, number";
const TOLD: &str = "UPDATE follower SET transaction = $3, number = $4
    WHERE name = $1 AND holder = $2 AND (transaction, number) <= ($3, $4) RETURNING 1";

/// Its place; `None`: somebody else has it.
pub(super) async fn hold(
    core: &Core,
    name: &str,
    (holder, hold_ms): (SessionId, u64),
    begin: EventCursor,
) -> Result<Option<EventCursor>, StoreError> {
    let query = || {
        Query::new(HOLD)
            .bind(name.to_owned())
            .bind(column(begin.transaction))
            .bind(begin.number)
            .bind(holder.0)
            .bind(column(hold_ms))
    };
    const DOING: &str = "taking a follower in hand";
    let held = core.database.change_once(|| [query()]).await;
    let [rows] = held.map_err(|fault| fault.during(DOING))?;
    place(&rows).map_err(|fault| fault.during(DOING))
}

fn place(rows: &Rows) -> Result<Option<EventCursor>, Fault> {
    let Some(row) = rows.first() else { return Ok(None) };
    let mut columns = Columns::of(row);
    Ok(Some(EventCursor { transaction: amount(columns.take()?), number: columns.take()? }))
}

/// Whether it was still the holder's.
pub(super) async fn told(
    core: &Core,
    name: &str,
    holder: SessionId,
    told: EventCursor,
) -> Result<bool, StoreError> {
    let query = || {
        Query::new(TOLD).bind(name.to_owned()).bind(holder.0).bind(column(told.transaction)).bind(told.number)
    };
    let moved = core.database.change_once(|| [query()]).await;
    let [rows] = moved.map_err(|fault| fault.during("moving a follower"))?;
    Ok(!rows.is_empty())
}
