//! The table `follower`: who outside is told of events, and how far.

use jobyard_model::SessionId;
use rusqlite::{OptionalExtension, params};

use super::fault::Fault;
use super::scope::Scope;
use crate::EventCursor;

/// Takes it, when nobody else has it. A hold that lies further ahead than holds last is left from before a step back of
/// the clock.
const HOLD: &str = "INSERT INTO follower (name, number, holder, held_until_ms) VALUES (?1, ?2, ?3, ?4 + ?5)
    ON CONFLICT (name) DO UPDATE SET holder = ?3, held_until_ms = ?4 + ?5
    WHERE holder = ?3 OR held_until_ms <= ?4 OR held_until_ms > ?4 + ?5
    RETURNING number";
const TOLD: &str = "UPDATE follower SET number = max(number, ?3) WHERE name = ?1 AND holder = ?2";

/// Its place; `None`: somebody else has it.
pub(super) fn hold(
    scope: &Scope<'_>,
    name: &str,
    (holder, hold_ms): (SessionId, u64),
    begin: EventCursor,
) -> Result<Option<EventCursor>, Fault> {
    let hold_ms = i64::try_from(hold_ms).unwrap_or(i64::MAX / 2);
    let values = params![name, begin.number, holder.0, scope.now().0, hold_ms];
    let number: Option<i64> = scope.statement(HOLD)?.query_row(values, |row| row.get(0)).optional()?;
    Ok(number.map(|number| EventCursor { transaction: 0, number }))
}

/// Whether it was still the holder's.
pub(super) fn told(
    scope: &Scope<'_>,
    name: &str,
    holder: SessionId,
    told: EventCursor,
) -> Result<bool, Fault> {
    Ok(scope.execute(TOLD, params![name, holder.0, told.number])? == 1)
}
