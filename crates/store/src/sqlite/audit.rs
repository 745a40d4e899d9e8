//! The table `audit`: who did what.

use jobyard_model::Timestamp;
use rusqlite::{OptionalExtension, params};

use super::fault::Fault;
use super::scope::Scope;
use crate::encoding::clean;
use crate::{Actor, AuditRecord};

/// Notes a changing call, in its own transaction.
pub(super) fn note(
    scope: &Scope<'_>,
    by: &Actor,
    action: &str,
    target: &str,
    detail: &str,
) -> Result<(), Fault> {
    let sql =
        "INSERT INTO audit (at_ms, who, address, action, target, detail) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let (who, address) = (clean(&by.name), clean(&by.address));
    scope.execute(sql, params![scope.now().0, who, address, action, clean(target), clean(detail)])?;
    Ok(())
}

/// The number of the newest row at this instant.
pub(super) fn number_at(scope: &Scope<'_>, at: Timestamp) -> Result<Option<i64>, Fault> {
    let sql = "SELECT number FROM audit WHERE at_ms <= ?1 ORDER BY at_ms DESC LIMIT 1";
    Ok(scope.statement(sql)?.query_row([at.0], |row| row.get(0)).optional()?)
}

/// The newest rows below `before`.
pub(super) fn page(scope: &Scope<'_>, before: Option<i64>, limit: u32) -> Result<Vec<AuditRecord>, Fault> {
    let sql = "SELECT number, at_ms, who, address, action, target, detail FROM audit \
        WHERE number < ?1 ORDER BY number DESC LIMIT ?2";
    let mut statement = scope.statement(sql)?;
    let rows = statement.query_map(params![before.unwrap_or(i64::MAX), limit], |row| {
        Ok(AuditRecord {
            number: row.get(0)?,
            at: Timestamp(row.get(1)?),
            who: row.get(2)?,
            address: row.get(3)?,
            action: row.get(4)?,
            target: row.get(5)?,
            detail: row.get(6)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
