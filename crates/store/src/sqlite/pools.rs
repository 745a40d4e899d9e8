//! The table `pool`.

use jobyard_model::Timestamp;
use rusqlite::{OptionalExtension, params};

use super::audit;
use super::fault::Fault;
use super::scope::Scope;
use crate::{Actor, PoolRecord};

/// A pool's number.
pub(super) fn id(scope: &Scope<'_>, name: &str) -> Result<Option<i32>, Fault> {
    let sql = "SELECT pool_id FROM pool WHERE name = ?1";
    Ok(scope.statement(sql)?.query_row([name], |row| row.get(0)).optional()?)
}

/// The names of all pools, sorted.
pub(super) fn names(scope: &Scope<'_>) -> Result<Vec<String>, Fault> {
    Ok(all(scope)?.into_iter().map(|pool| pool.name).collect())
}

/// All pools, by name.
pub(super) fn all(scope: &Scope<'_>) -> Result<Vec<PoolRecord>, Fault> {
    let mut statement = scope.statement("SELECT name, created_ms FROM pool ORDER BY name")?;
    let rows = statement
        .query_map([], |row| Ok(PoolRecord { name: row.get(0)?, created_at: Timestamp(row.get(1)?) }))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Makes a pool, unless there is one of this name.
pub(super) fn put(scope: &Scope<'_>, name: &str, by: &Actor) -> Result<(), Fault> {
    let sql = "INSERT INTO pool (name, created_ms) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    if scope.execute(sql, params![name, scope.now().0])? == 1 {
        audit::note(scope, by, "pool.put", name, "")?;
    }
    Ok(())
}
