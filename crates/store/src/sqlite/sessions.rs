//! The tables `session` and `login`.

use jobyard_model::Timestamp;
use rusqlite::{OptionalExtension, params};

use super::audit;
use super::fault::Fault;
use super::scope::Scope;
use super::tokens;
use crate::sessions::SWEPT_WITH_EACH;
use crate::{Actor, NewLogin, NewSession, SessionKey, SessionRecord};

/// Keeps a login code's hash; whose it is stands in the audit trail.
pub(super) fn add_login(scope: &Scope<'_>, login: &NewLogin, by: &Actor) -> Result<(), Fault> {
    sweep(scope, "login")?;
    let expires_at = scope.now().plus_ms(login.lasts_ms);
    let sql = "INSERT INTO login (hash, token_id, expires_ms) VALUES (?1, ?2, ?3)";
    scope.execute(sql, params![login.hash.as_slice(), login.token_id.0, expires_at.0])?;
    audit::note(scope, by, "login.create", &login.token_id.to_string(), "")
}

/// Begins a session.
pub(super) fn begin(
    scope: &Scope<'_>,
    key: SessionKey,
    session: NewSession,
    address: &str,
) -> Result<Option<SessionRecord>, Fault> {
    let found = match key {
        SessionKey::Token(hash) => tokens::by_hash(scope, hash)?,
        SessionKey::Login(hash) => use_login(scope, hash)?,
    };
    let Some(token) = found else { return Ok(None) };
    sweep(scope, "session")?;
    let end = scope.now().plus_ms(session.lasts_ms);
    let expires_at = token.expires_at.map_or(end, |token_end| token_end.min(end));
    let sql = "INSERT INTO session (hash, token_id, created_ms, expires_ms) VALUES (?1, ?2, ?3, ?4)";
    scope.execute(sql, params![session.hash.as_slice(), token.id.0, scope.now().0, expires_at.0])?;
    let by = Actor { name: token.name.clone(), address: address.to_owned() };
    audit::note(scope, &by, "session.begin", &token.id.to_string(), "")?;
    Ok(Some(SessionRecord { token, expires_at }))
}

/// The token of a login code, which is used up by it.
fn use_login(scope: &Scope<'_>, hash: [u8; 32]) -> Result<Option<crate::TokenRecord>, Fault> {
    let sql = "DELETE FROM login WHERE hash = ?1 AND expires_ms > ?2 RETURNING token_id";
    let token_id: Option<uuid::Uuid> = scope
        .statement(sql)?
        .query_row(params![hash.as_slice(), scope.now().0], |row| row.get(0))
        .optional()?;
    token_id.map_or(Ok(None), |id| tokens::by_id(scope, id))
}

/// The session with this hash, if it goes on.
pub(super) fn by_hash(scope: &Scope<'_>, hash: [u8; 32]) -> Result<Option<SessionRecord>, Fault> {
    let sql = "SELECT token_id, expires_ms FROM session WHERE hash = ?1 AND expires_ms > ?2";
    let found: Option<(uuid::Uuid, i64)> = scope
        .statement(sql)?
        .query_row(params![hash.as_slice(), scope.now().0], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((token_id, expires_ms)) = found else { return Ok(None) };
    let token = tokens::by_id(scope, token_id)?;
    Ok(token.map(|token| SessionRecord { token, expires_at: Timestamp(expires_ms) }))
}

/// Ends a session.
pub(super) fn end(scope: &Scope<'_>, hash: [u8; 32], by: &Actor) -> Result<bool, Fault> {
    let sql = "DELETE FROM session WHERE hash = ?1 RETURNING token_id";
    let token_id: Option<uuid::Uuid> =
        scope.statement(sql)?.query_row([hash.as_slice()], |row| row.get(0)).optional()?;
    let Some(token_id) = token_id else { return Ok(false) };
    audit::note(scope, by, "session.end", &token_id.to_string(), "")?;
    Ok(true)
}

/// Removes some that are past their end.
fn sweep(scope: &Scope<'_>, table: &'static str) -> Result<(), Fault> {
    let sql = format!(
        "DELETE FROM {table} WHERE hash IN (SELECT hash FROM {table} WHERE expires_ms <= ?1 \
         ORDER BY expires_ms LIMIT ?2)"
    );
    scope.execute(&sql, params![scope.now().0, SWEPT_WITH_EACH])?;
    Ok(())
}
