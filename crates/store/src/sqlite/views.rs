//! The table `saved_view`.

use jobyard_model::Timestamp;
use rusqlite::{OptionalExtension, Row, params};
use uuid::Uuid;

use super::audit;
use super::fault::Fault;
use super::scope::Scope;
use crate::{Actor, NewView, ViewChange, ViewRecord};

const COLUMNS: &str =
    "SELECT id, name, filter, shared, created_by, created_ms, changed_ms, version FROM saved_view";

fn record(row: &Row<'_>) -> rusqlite::Result<ViewRecord> {
    Ok(ViewRecord {
        view: NewView { id: row.get(0)?, name: row.get(1)?, filter: row.get(2)?, shared: row.get(3)? },
        created_by: row.get(4)?,
        created_at: Timestamp(row.get(5)?),
        changed_at: Timestamp(row.get(6)?),
        version: row.get(7)?,
    })
}

/// A principal's own views and the shared ones.
pub(super) fn of(scope: &Scope<'_>, principal: &str) -> Result<Vec<ViewRecord>, Fault> {
    let sql = format!("{COLUMNS} WHERE created_by = ?1 UNION {COLUMNS} WHERE shared ORDER BY name, id");
    let mut statement = scope.statement(&sql)?;
    let rows = statement.query_map([principal], record)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// One view.
pub(super) fn one(scope: &Scope<'_>, id: Uuid) -> Result<Option<ViewRecord>, Fault> {
    let sql = format!("{COLUMNS} WHERE id = ?1");
    Ok(scope.statement(&sql)?.query_row([id], record).optional()?)
}

fn is_taken(scope: &Scope<'_>, by: &str, view: &NewView) -> Result<bool, Fault> {
    let sql = "SELECT 1 FROM saved_view WHERE created_by = ?1 AND name = ?2 AND id <> ?3";
    Ok(scope.statement(sql)?.exists(params![by, view.name, view.id])?)
}

/// Keeps a new view.
pub(super) fn add(scope: &Scope<'_>, view: &NewView, by: &Actor) -> Result<ViewChange, Fault> {
    if is_taken(scope, &by.name, view)? {
        return Ok(ViewChange::NameTaken);
    }
    let sql = "INSERT INTO saved_view (id, created_by, name, filter, shared, created_ms, changed_ms, version) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, 1)";
    scope.execute(sql, params![view.id, by.name, view.name, view.filter, view.shared, scope.now().0])?;
    done(scope, (view.id, "view.create", &view.name), by)
}

fn done(scope: &Scope<'_>, (id, action, name): (Uuid, &str, &str), by: &Actor) -> Result<ViewChange, Fault> {
    audit::note(scope, by, action, &id.to_string(), name)?;
    Ok(one(scope, id)?.map_or(ViewChange::NotFound, ViewChange::Done))
}

/// The view, if it has this version; else why not.
fn with_version(
    scope: &Scope<'_>,
    id: Uuid,
    version: Option<u32>,
) -> Result<Result<ViewRecord, ViewChange>, Fault> {
    let Some(found) = one(scope, id)? else { return Ok(Err(ViewChange::NotFound)) };
    match version.is_none_or(|version| version == found.version) {
        true => Ok(Ok(found)),
        false => Ok(Err(ViewChange::ChangedMeanwhile)),
    }
}

/// Changes a view.
pub(super) fn change(
    scope: &Scope<'_>,
    view: &NewView,
    version: Option<u32>,
    by: &Actor,
) -> Result<ViewChange, Fault> {
    let found = match with_version(scope, view.id, version)? {
        Ok(found) => found,
        Err(refused) => return Ok(refused),
    };
    if is_taken(scope, &found.created_by, view)? {
        return Ok(ViewChange::NameTaken);
    }
    let sql = "UPDATE saved_view SET name = ?2, filter = ?3, shared = ?4, changed_ms = ?5, version = version + 1 \
        WHERE id = ?1";
    scope.execute(sql, params![view.id, view.name, view.filter, view.shared, scope.now().0])?;
    done(scope, (view.id, "view.change", &view.name), by)
}

/// Removes a view.
pub(super) fn remove(
    scope: &Scope<'_>,
    id: Uuid,
    version: Option<u32>,
    by: &Actor,
) -> Result<ViewChange, Fault> {
    let found = match with_version(scope, id, version)? {
        Ok(found) => found,
        Err(refused) => return Ok(refused),
    };
    scope.execute("DELETE FROM saved_view WHERE id = ?1", [id])?;
    audit::note(scope, by, "view.delete", &id.to_string(), &found.view.name)?;
    Ok(ViewChange::Done(found))
}
