//! The tables `session` and `login`.

use std::collections::HashMap;
use std::sync::Arc;

use jobyard_model::Timestamp;
use tokio_postgres::Row;

use super::Core;
use super::audit;
use super::fault::Fault;
use super::load::Columns;
use super::query::Query;
use super::session::Session;
use super::tokens;
use crate::encoding::column;
use crate::sessions::SWEPT_WITH_EACH;
use crate::{Actor, NewLogin, NewSession, SessionKey, SessionRecord, StoreError};

const ADD_LOGIN: &str = "INSERT INTO login (hash, token_id, expires_ms) VALUES ($1, $2, jobyard_now() + $3)";
// A session never outlives its token.
const BEGIN_BY_TOKEN: &str = "WITH begun AS (
    INSERT INTO session (hash, token_id, created_ms, expires_ms)
    SELECT $2, t.id, jobyard_now(), least(jobyard_now() + $3, t.expires_ms) FROM token t
    WHERE t.hash = $1 AND t.revoked_ms IS NULL AND (t.expires_ms IS NULL OR t.expires_ms > jobyard_now())
    RETURNING token_id, expires_ms)
  SELECT t.id, t.name, t.role, t.owners, t.created_ms, t.expires_ms, t.revoked_ms, begun.expires_ms AS ends_ms
  FROM begun JOIN token t ON t.id = begun.token_id";
// Of two that come with one code, the second waits for the first's row and finds it gone.
const BEGIN_BY_LOGIN: &str = "WITH used AS (
    DELETE FROM login WHERE hash = $1 AND expires_ms > jobyard_now() RETURNING token_id),
  begun AS (
    INSERT INTO session (hash, token_id, created_ms, expires_ms)
    SELECT $2, t.id, jobyard_now(), least(jobyard_now() + $3, t.expires_ms) FROM used JOIN token t ON t.id = used.token_id
    WHERE t.revoked_ms IS NULL AND (t.expires_ms IS NULL OR t.expires_ms > jobyard_now())
    RETURNING token_id, expires_ms)
  SELECT t.id, t.name, t.role, t.owners, t.created_ms, t.expires_ms, t.revoked_ms, begun.expires_ms AS ends_ms
  FROM begun JOIN token t ON t.id = begun.token_id";
const BY_HASH: &str = "SELECT t.id, t.name, t.role, t.owners, t.created_ms, t.expires_ms, t.revoked_ms,
    s.expires_ms AS ends_ms, s.hash
  FROM session s JOIN token t ON t.id = s.token_id
  WHERE s.hash = ANY($1) AND s.expires_ms > jobyard_now()
    AND t.revoked_ms IS NULL AND (t.expires_ms IS NULL OR t.expires_ms > jobyard_now())";
const END: &str = "DELETE FROM session WHERE hash = $1 RETURNING token_id";
const SWEEP_SESSIONS: &str = "DELETE FROM session WHERE hash IN (SELECT hash FROM session
    WHERE expires_ms <= jobyard_now() ORDER BY expires_ms LIMIT $1 FOR UPDATE SKIP LOCKED)";
const SWEEP_LOGINS: &str = "DELETE FROM login WHERE hash IN (SELECT hash FROM login
    WHERE expires_ms <= jobyard_now() ORDER BY expires_ms LIMIT $1 FOR UPDATE SKIP LOCKED)";

/// Keeps a login code's hash; whose it is stands in the audit trail.
pub(super) async fn add_login(core: &Core, login: &NewLogin, by: &Actor) -> Result<(), StoreError> {
    core.database.change("keeping a login code", |session| try_add_login(session, login, by)).await
}

async fn try_add_login(mut session: Session, login: &NewLogin, by: &Actor) -> Result<(), Fault> {
    let add =
        Query::new(ADD_LOGIN).bind(login.hash.to_vec()).bind(login.token_id.0).bind(column(login.lasts_ms));
    session.begin([Query::new(SWEEP_LOGINS).bind(SWEPT_WITH_EACH), add]).await?;
    let note = audit::Note::new(by, "login.create", &login.token_id.to_string(), "");
    session.commit(vec![audit::insert(&[note])]).await?;
    Ok(())
}

/// Begins a session.
pub(super) async fn begin(
    core: &Core,
    key: SessionKey,
    session: NewSession,
    address: &str,
) -> Result<Option<SessionRecord>, StoreError> {
    let work = |connection| try_begin(connection, key, session, address);
    core.database.change("beginning a session", work).await
}

async fn try_begin(
    mut session: Session,
    key: SessionKey,
    new: NewSession,
    address: &str,
) -> Result<Option<SessionRecord>, Fault> {
    let (sql, hash) = match key {
        SessionKey::Token(hash) => (BEGIN_BY_TOKEN, hash),
        SessionKey::Login(hash) => (BEGIN_BY_LOGIN, hash),
    };
    let begin = Query::new(sql).bind(hash.to_vec()).bind(new.hash.to_vec()).bind(column(new.lasts_ms));
    let [_, rows] = session.begin([Query::new(SWEEP_SESSIONS).bind(SWEPT_WITH_EACH), begin]).await?;
    let Some(begun) = rows.first().map(record).transpose()? else {
        // A code that was used for a token that no longer counts is used up all the same.
        session.commit(Vec::new()).await?;
        return Ok(None);
    };
    let by = Actor { name: begun.token.name.clone(), address: address.to_owned() };
    let note = audit::Note::new(&by, "session.begin", &begun.token.id.to_string(), "");
    session.commit(vec![audit::insert(&[note])]).await?;
    Ok(Some(begun))
}

/// A session that was looked for; `None` when there is none that goes on.
pub(super) type Found = Result<Option<SessionRecord>, Fault>;

/// The sessions with these hashes, in order.
pub(super) async fn find(core: Arc<Core>, hashes: Vec<[u8; 32]>) -> Vec<Found> {
    let mut wanted = hashes.clone();
    wanted.sort_unstable();
    wanted.dedup();
    let query = || [Query::new(BY_HASH).bind_each(&wanted, |hash| hash.to_vec())];
    let rows = match core.database.read(query).await {
        Ok([rows]) => rows,
        Err(fault) => return vec![Err(fault); hashes.len()],
    };
    let row_of: HashMap<Vec<u8>, &Row> = rows.iter().map(|row| (row.get("hash"), row)).collect();
    hashes.iter().map(|hash| row_of.get(hash.as_slice()).map(|row| record(row)).transpose()).collect()
}

fn record(row: &Row) -> Result<SessionRecord, Fault> {
    let mut columns = Columns::of(row);
    let token = tokens::record(&mut columns)?;
    Ok(SessionRecord { token, expires_at: Timestamp(columns.take()?) })
}

/// Ends a session.
pub(super) async fn end(core: &Core, hash: [u8; 32], by: &Actor) -> Result<bool, StoreError> {
    core.database.change("ending a session", |session| try_end(session, hash, by)).await
}

async fn try_end(mut session: Session, hash: [u8; 32], by: &Actor) -> Result<bool, Fault> {
    let [ended] = session.begin([Query::new(END).bind(hash.to_vec())]).await?;
    let Some(token_id) = ended.first().map(|row| row.get::<_, uuid::Uuid>(0)) else {
        session.roll_back().await?;
        return Ok(false);
    };
    let note = audit::Note::new(by, "session.end", &token_id.to_string(), "");
    session.commit(vec![audit::insert(&[note])]).await?;
    Ok(true)
}
