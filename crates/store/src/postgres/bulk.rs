//! The table `bulk`: actions on every job that a filter passes.
//!
//! Invariant: an action moves on in the transaction that acts on the jobs it moves over, and only from where it was seen. So
//! each job is acted on once, whoever else carries it out and whatever dies in between.

use jobyard_model::{BulkAction, Intent, JobEvent, JobFilter, JobId, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

use super::Core;
use super::audit;
use super::control;
use super::fault::{Fault, Shared};
use super::listing;
use super::load::{self, Columns};
use super::query::Query;
use super::session::Session;
use super::writes;
use crate::bulk::KEPT_MS;
use crate::encoding::{amount, column, from_json, inconsistent, to_json};
use crate::{Actor, BulkRecord, BulkStatus, JobQuery, NewBulk, StoreError};

macro_rules! columns {
    () => {
        "id, filter, action, owners, created_by, created_ms, status, cursor, changed, unchanged, finished_ms"
    };
}

const INSERT: &str = concat!(
    "INSERT INTO bulk (id, filter, action, owners, created_by, idempotency_key, created_ms, status, changed, unchanged)
    VALUES ($1, $2, $3, $4, $5, $6, jobyard_now(), 0, 0, 0) ON CONFLICT DO NOTHING RETURNING ",
    columns!()
);
const FORGET: &str = "DELETE FROM bulk WHERE created_ms < jobyard_now() - $1 AND status <> 0";
const BY_KEY: &str =
    concat!("SELECT ", columns!(), " FROM bulk WHERE id = $1 OR created_by = $2 AND idempotency_key = $3");
const ONE: &str = concat!("SELECT ", columns!(), " FROM bulk WHERE id = $1");
const NEWEST: &str = concat!("SELECT ", columns!(), " FROM bulk ORDER BY created_ms DESC LIMIT $1");
const RUNNING: &str =
    concat!("SELECT ", columns!(), " FROM bulk WHERE status = 0 ORDER BY created_ms LIMIT $1");
const STOP: &str =
    "UPDATE bulk SET status = 2, finished_ms = jobyard_now() WHERE id = $1 AND status = 0 RETURNING 1";
/// Only from where it was seen.
const HOLD: &str =
    "SELECT 1 FROM bulk WHERE id = $1 AND status = 0 AND cursor IS NOT DISTINCT FROM $2 FOR NO KEY UPDATE";
const MOVE: &str = "UPDATE bulk SET cursor = $2, changed = changed + $3, unchanged = unchanged + $4,
    status = CASE WHEN $5 THEN 1 ELSE 0 END, finished_ms = CASE WHEN $5 THEN jobyard_now() END WHERE id = $1";

fn record(row: &Row) -> Result<BulkRecord, Fault> {
    let mut columns = Columns::of(row);
    let id: Uuid = columns.take()?;
    let bad = |what: &str| Fault::from(inconsistent("bulk", id, what));
    let filter = columns.take()?;
    let action: String = columns.take()?;
    let owners: Option<String> = columns.take()?;
    Ok(BulkRecord {
        id,
        filter,
        action: BulkAction::parse(&action).ok_or_else(|| bad("no such action"))?,
        owners: owners.map(|owners| from_json("bulk", id, &owners)).transpose()?,
        created_by: columns.take()?,
        created_at: Timestamp(columns.take()?),
        status: BulkStatus::from_code(columns.take()?).ok_or_else(|| bad("no such status"))?,
        cursor: columns.take::<Option<Uuid>>()?.map(JobId),
        changed: amount(columns.take()?),
        unchanged: amount(columns.take()?),
        finished_at: columns.take::<Option<i64>>()?.map(Timestamp),
    })
}

/// Begins an action, unless its principal's key did before.
pub(super) async fn start(core: &Core, bulk: &NewBulk, by: &Actor) -> Result<(BulkRecord, bool), StoreError> {
    core.database.change("beginning an action on many jobs", |session| try_start(session, bulk, by)).await
}

async fn try_start(mut session: Session, bulk: &NewBulk, by: &Actor) -> Result<(BulkRecord, bool), Fault> {
    let owners = bulk.owners.as_ref().map(|owners| to_json("bulk", owners)).transpose()?;
    let insert = Query::new(INSERT)
        .bind(bulk.id)
        .bind(bulk.filter.clone())
        .bind(bulk.action.as_str())
        .bind(owners)
        .bind(by.name.clone())
        .bind(bulk.idempotency_key.clone());
    let [_, begun] = session.begin([Query::new(FORGET).bind(KEPT_MS), insert]).await?;
    if let Some(row) = begun.first() {
        let record = record(row)?;
        let action = match bulk.action {
            BulkAction::Cancel => "bulk.cancel",
            BulkAction::Retry => "bulk.retry",
        };
        let note = audit::Note::new(by, action, &bulk.id.to_string(), &bulk.filter);
        session.commit(vec![audit::insert(&[note])]).await?;
        return Ok((record, true));
    }
    let find = Query::new(BY_KEY).bind(bulk.id).bind(by.name.clone()).bind(bulk.idempotency_key.clone());
    let [before] = session.query([find]).await?;
    let record = before.first().map(record).transpose()?;
    session.roll_back().await?;
    let gone = || Fault::Again(Shared::new("the action with this key is gone again"));
    Ok((record.ok_or_else(gone)?, false))
}

/// One action.
pub(super) async fn one(core: &Core, id: Uuid) -> Result<Option<BulkRecord>, StoreError> {
    let rows = core.database.read(|| [Query::new(ONE).bind(id)]).await;
    let found = rows.and_then(|[rows]| rows.first().map(record).transpose());
    found.map_err(|fault| fault.during("reading an action"))
}

/// The newest, or those that are running, the oldest first.
pub(super) async fn all(core: &Core, only_running: bool, limit: u32) -> Result<Vec<BulkRecord>, StoreError> {
    let sql = if only_running { RUNNING } else { NEWEST };
    let rows = core.database.read(|| [Query::new(sql).bind(i64::from(limit))]).await;
    let found = rows.and_then(|[rows]| rows.iter().map(record).collect::<Result<Vec<_>, Fault>>());
    found.map_err(|fault| fault.during("listing actions"))
}

/// Stops an action.
pub(super) async fn stop(core: &Core, id: Uuid, by: &Actor) -> Result<Option<BulkRecord>, StoreError> {
    let stop = async |mut session: Session| {
        let [stopped] = session.begin([Query::new(STOP).bind(id)]).await?;
        match stopped.is_empty() {
            true => session.roll_back().await,
            false => {
                let note = audit::Note::new(by, "bulk.stop", &id.to_string(), "");
                session.commit(vec![audit::insert(&[note])]).await.map(drop)
            }
        }
    };
    core.database.change("stopping an action", stop).await?;
    one(core, id).await
}

/// Acts on the next jobs.
pub(super) async fn step(
    core: &Core,
    bulk: &BulkRecord,
    acted_on: Option<&JobFilter>,
    limit: u32,
) -> Result<BulkRecord, StoreError> {
    const DOING: &str = "acting on many jobs";
    let found = match acted_on {
        Some(filter) => {
            let query = JobQuery { filter: filter.clone(), cursor: bulk.cursor, limit };
            listing::find(&core.own_looks, &query).await.map_err(|fault| fault.during(DOING))?
        }
        None => listing::Found::default(),
    };
    let act = |session| act(core, session, bulk, &found);
    core.database.change(DOING, act).await?;
    let now = one(core, bulk.id).await?;
    Ok(now.unwrap_or_else(|| bulk.clone()))
}

async fn act(
    core: &Core,
    mut session: Session,
    bulk: &BulkRecord,
    found: &listing::Found,
) -> Result<(), Fault> {
    let hold = Query::new(HOLD).bind(bulk.id).bind(bulk.cursor.map(|cursor| cursor.0));
    let [held] = session.begin([hold]).await?;
    if held.is_empty() {
        return session.roll_back().await;
    }
    let mut ledger = load::lock_more(&mut session, found.ids.clone(), core.leases).await?;
    if bulk.action == BulkAction::Retry {
        control::lock_all_ended(&mut session, &mut ledger, &found.ids).await?;
    }
    let mut changed = 0_u64;
    for id in &found.ids {
        let event = match bulk.action {
            BulkAction::Cancel => JobEvent::Raise(Intent::Cancel),
            BulkAction::Retry => JobEvent::RetryByHand { after_attempt: None },
        };
        // What is refused is so already, or has moved on since it was found.
        changed += u64::from(ledger.apply(JobId(*id), event, &bulk.created_by).is_ok());
    }
    let (mut queries, wakes) = writes::of(ledger)?;
    let moved = Query::new(MOVE)
        .bind(bulk.id)
        .bind(found.next.or(bulk.cursor).map(|cursor| cursor.0))
        .bind(column(changed))
        .bind(column(found.ids.len() as u64 - changed))
        .bind(found.next.is_none());
    queries.push(moved);
    session.commit(queries).await?;
    core.wakes.bump(wakes);
    Ok(())
}
