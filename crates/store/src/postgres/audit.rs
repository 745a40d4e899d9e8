//! The table `audit`: who did what.

use jobyard_model::Timestamp;

use super::Core;
use super::fault::Fault;
use super::load::Columns;
use super::query::Query;
use crate::encoding::clean;
use crate::{Actor, AuditRecord, StoreError};

const INSERT: &str = "INSERT INTO audit (at_ms, who, address, action, target, detail)
    SELECT jobyard_now(), who, address, action, target, detail
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
    AS new(who, address, action, target, detail)";
const NUMBER_AT: &str = "SELECT number FROM audit WHERE at_ms <= $1 ORDER BY at_ms DESC LIMIT 1";
const PAGE: &str = "SELECT number, at_ms, who, address, action, target, detail FROM audit
    WHERE number < $1 ORDER BY number DESC LIMIT $2";

/// A changing call, to be noted in its own transaction.
#[derive(Debug, Clone)]
pub(super) struct Note {
    who: String,
    address: String,
    action: &'static str,
    target: String,
    detail: String,
}

impl Note {
    /// With all text cleaned.
    pub(super) fn new(by: &Actor, action: &'static str, target: &str, detail: &str) -> Self {
        let (who, address) = (clean(&by.name), clean(&by.address));
        Self { who, address, action, target: clean(target), detail: clean(detail) }
    }
}

/// The statement that notes them.
pub(super) fn insert(notes: &[Note]) -> Query {
    Query::new(INSERT)
        .bind_each(notes, |note| note.who.clone())
        .bind_each(notes, |note| note.address.clone())
        .bind_each(notes, |note| note.action)
        .bind_each(notes, |note| note.target.clone())
        .bind_each(notes, |note| note.detail.clone())
}

/// The number of the newest row at this instant.
pub(super) async fn number_at(core: &Core, at: Timestamp) -> Result<Option<i64>, StoreError> {
    const DOING: &str = "reading the audit trail";
    let query = || [Query::new(NUMBER_AT).bind(at.0)];
    let [rows] = core.database.read(query).await.map_err(|fault| fault.during(DOING))?;
    let number = rows.first().map(|row| Columns::of(row).take()).transpose();
    number.map_err(|fault| fault.during(DOING))
}

/// The newest rows below `before`.
pub(super) async fn page(
    core: &Core,
    before: Option<i64>,
    limit: u32,
) -> Result<Vec<AuditRecord>, StoreError> {
    try_page(core, before, limit).await.map_err(|fault| fault.during("reading the audit trail"))
}

async fn try_page(core: &Core, before: Option<i64>, limit: u32) -> Result<Vec<AuditRecord>, Fault> {
    let before = before.unwrap_or(i64::MAX);
    let query = || [Query::new(PAGE).bind(before).bind(i64::from(limit))];
    let [rows] = core.database.read(query).await?;
    let record = |row| {
        let mut columns = Columns::of(row);
        Ok(AuditRecord {
            number: columns.take()?,
            at: Timestamp(columns.take()?),
            who: columns.take()?,
            address: columns.take()?,
            action: columns.take()?,
            target: columns.take()?,
            detail: columns.take()?,
        })
    };
    rows.iter().map(record).collect()
}
