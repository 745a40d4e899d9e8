//! The table `token`.

use jobyard_model::ids::TokenId;
use jobyard_model::{Role, Timestamp};
use rusqlite::{Row, params};

use super::audit;
use super::fault::Fault;
use super::scope::Scope;
use crate::encoding::{from_json, inconsistent, to_json};
use crate::{Actor, NewToken, TokenRecord};

const COLUMNS: &str = "SELECT id, name, role, owners, created_ms, expires_ms, revoked_ms FROM token";

/// Keeps a token's hash.
pub(super) fn add(scope: &Scope<'_>, token: &NewToken, by: &Actor) -> Result<(), Fault> {
    let sql = "INSERT INTO token (id, hash, name, role, owners, created_ms, expires_ms) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    scope.execute(
        sql,
        params![
            token.id.0,
            token.hash.as_slice(),
            token.name,
            token.role.as_str(),
            to_json("token", &token.owners)?,
            scope.now().0,
            token.expires_at.map(|at| at.0)
        ],
    )?;
    audit::note(scope, by, "token.create", &token.id.to_string(), &token.name)
}

/// The token with this hash, if it counts.
pub(super) fn by_hash(scope: &Scope<'_>, hash: [u8; 32]) -> Result<Option<TokenRecord>, Fault> {
    let sql = format!(
        "{COLUMNS} WHERE hash = ?1 AND revoked_ms IS NULL AND (expires_ms IS NULL OR expires_ms > ?2)"
    );
    let mut statement = scope.statement(&sql)?;
    let mut rows = statement.query(params![hash.as_slice(), scope.now().0])?;
    rows.next()?.map(record).transpose()
}

/// The token with this id, if it counts.
pub(super) fn by_id(scope: &Scope<'_>, id: uuid::Uuid) -> Result<Option<TokenRecord>, Fault> {
    let sql =
        format!("{COLUMNS} WHERE id = ?1 AND revoked_ms IS NULL AND (expires_ms IS NULL OR expires_ms > ?2)");
    let mut statement = scope.statement(&sql)?;
    let mut rows = statement.query(params![id, scope.now().0])?;
    rows.next()?.map(record).transpose()
}

/// All tokens, newest first.
pub(super) fn all(scope: &Scope<'_>) -> Result<Vec<TokenRecord>, Fault> {
    let mut statement = scope.statement(&format!("{COLUMNS} ORDER BY created_ms DESC, id DESC"))?;
    let mut rows = statement.query([])?;
    let mut tokens = Vec::new();
    while let Some(row) = rows.next()? {
        tokens.push(record(row)?);
    }
    Ok(tokens)
}

fn record(row: &Row<'_>) -> Result<TokenRecord, Fault> {
    let id = TokenId(row.get(0)?);
    let role: String = row.get(2)?;
    Ok(TokenRecord {
        id,
        name: row.get(1)?,
        role: Role::parse(&role).ok_or_else(|| inconsistent("token", id, "no such role"))?,
        owners: from_json("token", id, &row.get::<_, String>(3)?)?,
        created_at: Timestamp(row.get(4)?),
        expires_at: row.get::<_, Option<i64>>(5)?.map(Timestamp),
        revoked_at: row.get::<_, Option<i64>>(6)?.map(Timestamp),
    })
}

/// Revokes a token; one that is revoked stays so.
pub(super) fn revoke(scope: &Scope<'_>, token_id: TokenId, by: &Actor) -> Result<bool, Fault> {
    let sql = "UPDATE token SET revoked_ms = ?2 WHERE id = ?1 AND revoked_ms IS NULL";
    if scope.execute(sql, params![token_id.0, scope.now().0])? == 1 {
        audit::note(scope, by, "token.revoke", &token_id.to_string(), "")?;
        return Ok(true);
    }
    Ok(scope.statement("SELECT 1 FROM token WHERE id = ?1")?.exists([token_id.0])?)
}
