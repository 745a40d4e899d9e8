//! The table `token`.

use std::collections::HashMap;
use std::sync::Arc;

use jobyard_model::ids::TokenId;
use jobyard_model::{Role, Timestamp};
use tokio_postgres::Row;

use super::Core;
use super::audit;
use super::fault::Fault;
use super::load::Columns;
use super::query::Query;
use super::session::Session;
use crate::encoding::{from_json, inconsistent, to_json};
use crate::{Actor, NewToken, StoreError, TokenRecord};

const INSERT: &str = "INSERT INTO token (id, hash, name, role, owners, created_ms, expires_ms)
    VALUES ($1, $2, $3, $4, $5, jobyard_now(), $6)";
const BY_HASH: &str = "SELECT id, name, role, owners, created_ms, expires_ms, revoked_ms, hash FROM token
    WHERE hash = ANY($1) AND revoked_ms IS NULL AND (expires_ms IS NULL OR expires_ms > jobyard_now())";
const ALL: &str = "SELECT id, name, role, owners, created_ms, expires_ms, revoked_ms FROM token
    ORDER BY created_ms DESC, id DESC";
const REVOKE: &str =
    "UPDATE token SET revoked_ms = jobyard_now() WHERE id = $1 AND revoked_ms IS NULL RETURNING 1";
const FIND: &str = "SELECT 1 FROM token WHERE id = $1";

/// Keeps a token's hash.
pub(super) async fn add(core: &Core, token: &NewToken, by: &Actor) -> Result<(), StoreError> {
    core.database.change("keeping a token", |session| try_add(session, token, by)).await
}

async fn try_add(mut session: Session, token: &NewToken, by: &Actor) -> Result<(), Fault> {
    let insert = Query::new(INSERT)
        .bind(token.id.0)
        .bind(token.hash.to_vec())
        .bind(token.name.clone())
        .bind(token.role.as_str())
        .bind(to_json("token", &token.owners)?)
        .bind(token.expires_at.map(|at| at.0));
    session.begin([insert]).await?;
    let note = audit::Note::new(by, "token.create", &token.id.to_string(), &token.name);
    session.commit(vec![audit::insert(&[note])]).await?;
    Ok(())
}

/// A token that was looked for; `None` when there is none that counts.
pub(super) type Found = Result<Option<TokenRecord>, Fault>;

/// The tokens with these hashes, in order.
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
    hashes
        .iter()
        .map(|hash| row_of.get(hash.as_slice()).map(|row| record(&mut Columns::of(row))).transpose())
        .collect()
}

/// All tokens, newest first.
pub(super) async fn all(core: &Core) -> Result<Vec<TokenRecord>, StoreError> {
    const DOING: &str = "reading the tokens";
    let rows = core.database.read(|| [Query::new(ALL)]).await;
    let [rows] = rows.map_err(|fault| fault.during(DOING))?;
    rows.iter()
        .map(|row| record(&mut Columns::of(row)))
        .collect::<Result<_, _>>()
        .map_err(|fault| fault.during(DOING))
}

/// A token from the columns of its table, without the hash.
pub(super) fn record(columns: &mut Columns<'_>) -> Result<TokenRecord, Fault> {
    let id = TokenId(columns.take()?);
    let (name, role, owners): (String, String, String) = (columns.take()?, columns.take()?, columns.take()?);
    Ok(TokenRecord {
        id,
        name,
        role: Role::parse(&role).ok_or_else(|| inconsistent("token", id, "no such role"))?,
        owners: from_json("token", id, &owners)?,
        created_at: Timestamp(columns.take()?),
        expires_at: columns.take::<Option<i64>>()?.map(Timestamp),
        revoked_at: columns.take::<Option<i64>>()?.map(Timestamp),
    })
}

/// Revokes a token; one that is revoked stays so.
pub(super) async fn revoke(core: &Core, token_id: TokenId, by: &Actor) -> Result<bool, StoreError> {
    core.database.change("revoking a token", |session| try_revoke(session, token_id, by)).await
}

async fn try_revoke(mut session: Session, token_id: TokenId, by: &Actor) -> Result<bool, Fault> {
    let queries = [Query::new(REVOKE).bind(token_id.0), Query::new(FIND).bind(token_id.0)];
    let [revoked, found] = session.begin(queries).await?;
    if revoked.is_empty() {
        session.roll_back().await?;
        return Ok(!found.is_empty());
    }
    let note = audit::Note::new(by, "token.revoke", &token_id.to_string(), "");
    session.commit(vec![audit::insert(&[note])]).await?;
    Ok(true)
}
