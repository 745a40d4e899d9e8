//! The table `bulk`: actions on every job that a filter passes.
//!
//! Invariant: an action moves on in the transaction that acts on the jobs it moves over, and only from where it was seen. So
//! each job is acted on once, whoever else carries it out and whatever dies in between.

use jobyard_model::{BulkAction, Intent, JobEvent, JobId, Timestamp};
use rusqlite::{OptionalExtension, Row, params};
use uuid::Uuid;

use super::fault::Fault;
use super::scope::Scope;
use super::{audit, load, writes};
use crate::bulk::KEPT_MS;
use crate::encoding::{amount, column, from_json, inconsistent, to_json};
use crate::ledger::Ledger;
use crate::{Actor, BulkRecord, BulkStatus, NewBulk};

const COLUMNS: &str = "SELECT id, filter, action, owners, created_by, created_ms, status, cursor, changed, unchanged, \
    finished_ms FROM bulk";

fn record(row: &Row<'_>) -> Result<BulkRecord, Fault> {
    let id: Uuid = row.get(0)?;
    let bad = |what: &str| Fault::from(inconsistent("bulk", id, what));
    let (action, owners): (String, Option<String>) = (row.get(2)?, row.get(3)?);
    Ok(BulkRecord {
        id,
        filter: row.get(1)?,
        action: BulkAction::parse(&action).ok_or_else(|| bad("no such action"))?,
        owners: owners.map(|owners| from_json("bulk", id, &owners)).transpose()?,
        created_by: row.get(4)?,
        created_at: Timestamp(row.get(5)?),
        status: BulkStatus::from_code(row.get(6)?).ok_or_else(|| bad("no such status"))?,
        cursor: row.get::<_, Option<Uuid>>(7)?.map(JobId),
        changed: amount(row.get(8)?),
        unchanged: amount(row.get(9)?),
        finished_at: row.get::<_, Option<i64>>(10)?.map(Timestamp),
    })
}

/// Begins an action, unless its principal's key did before.
pub(super) fn start(scope: &Scope<'_>, bulk: &NewBulk, by: &Actor) -> Result<(BulkRecord, bool), Fault> {
    scope.execute("DELETE FROM bulk WHERE created_ms < ?1 AND status <> 0", [scope.now().0 - KEPT_MS])?;
    let sql = "SELECT id FROM bulk WHERE id = ?1 OR created_by = ?2 AND idempotency_key = ?3";
    let before = scope
        .statement(sql)?
        .query_row(params![bulk.id, by.name, bulk.idempotency_key], |row| row.get::<_, Uuid>(0))
        .optional()?;
    let id = before.unwrap_or(bulk.id);
    if before.is_none() {
        let owners = bulk.owners.as_ref().map(|owners| to_json("bulk", owners)).transpose()?;
        let sql = "INSERT INTO bulk (id, filter, action, owners, created_by, idempotency_key, created_ms, status, \
            changed, unchanged) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0, 0)";
        scope.execute(
            sql,
            params![
                bulk.id,
                bulk.filter,
                bulk.action.as_str(),
                owners,
                by.name,
                bulk.idempotency_key,
                scope.now().0
            ],
        )?;
        let action = format!("bulk.{}", bulk.action.as_str());
        audit::note(scope, by, &action, &bulk.id.to_string(), &bulk.filter)?;
    }
    let record = one(scope, id)?.ok_or_else(|| inconsistent("bulk", id, "it is gone again"))?;
    Ok((record, before.is_none()))
}

/// One action.
pub(super) fn one(scope: &Scope<'_>, id: Uuid) -> Result<Option<BulkRecord>, Fault> {
    let mut statement = scope.statement(&format!("{COLUMNS} WHERE id = ?1"))?;
    let mut rows = statement.query([id])?;
    rows.next()?.map(record).transpose()
}

/// The newest, or those that are running, the oldest first.
pub(super) fn all(scope: &Scope<'_>, only_running: bool, limit: u32) -> Result<Vec<BulkRecord>, Fault> {
    let which = match only_running {
        true => "WHERE status = 0 ORDER BY created_ms",
        false => "ORDER BY created_ms DESC",
    };
    let mut statement = scope.statement(&format!("{COLUMNS} {which} LIMIT ?1"))?;
    let mut rows = statement.query([limit])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(record(row)?);
    }
    Ok(all)
}

/// Stops an action.
pub(super) fn stop(scope: &Scope<'_>, id: Uuid, by: &Actor) -> Result<Option<BulkRecord>, Fault> {
    let sql = "UPDATE bulk SET status = 2, finished_ms = ?2 WHERE id = ?1 AND status = 0";
    if scope.execute(sql, params![id, scope.now().0])? > 0 {
        audit::note(scope, by, "bulk.stop", &id.to_string(), "")?;
    }
    one(scope, id)
}

/// Acts on these jobs and moves on to `next`, or to the end. An action that is not where it was seen is left alone.
pub(super) fn act(
    scope: &Scope<'_>,
    bulk: &BulkRecord,
    (ids, next): (&[JobId], Option<JobId>),
) -> Result<Option<BulkRecord>, Fault> {
    let place = params![bulk.id, bulk.cursor.map(|cursor| cursor.0)];
    let held =
        scope.statement("SELECT 1 FROM bulk WHERE id = ?1 AND status = 0 AND cursor IS ?2")?.exists(place)?;
    if !held {
        return one(scope, bulk.id);
    }
    let mut ledger = Ledger::new(scope.terms);
    let mut changed = 0_u64;
    for job_id in ids {
        let event = match bulk.action {
            BulkAction::Cancel => JobEvent::Raise(Intent::Cancel),
            BulkAction::Retry => JobEvent::RetryByHand { after_attempt: None },
        };
        // What is refused is so already, or has moved on since it was found.
        let known = load::any_into_ledger(scope, &mut ledger, *job_id)?;
        changed += u64::from(known && ledger.apply(*job_id, event, &bulk.created_by).is_ok());
    }
    writes::carry_out(scope, ledger)?;
    let finished_ms = next.is_none().then_some(scope.now().0);
    scope.execute(
        "UPDATE bulk SET cursor = ?2, changed = changed + ?3, unchanged = unchanged + ?4, status = ?5, \
         finished_ms = ?6 WHERE id = ?1",
        params![
            bulk.id,
            next.or(bulk.cursor).map(|cursor| cursor.0),
            column(changed),
            column(ids.len() as u64 - changed),
            i16::from(next.is_none()),
            finished_ms
        ],
    )?;
    one(scope, bulk.id)
}
