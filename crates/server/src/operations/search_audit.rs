//! Looking through the audit trail, a bounded part of it a call.

use jobyard_model::Timestamp;
use jobyard_store::{AuditRecord, Store, StoreError};

/// Rows that one call looks at before it hands out a cursor.
const SCAN_ROWS: u32 = 20_000;
const STEP_ROWS: u32 = 2_000;
/// Rows are numbered when they are written and timed when their transaction began: so far apart they may be in time and
/// not in number.
const SKEW_MS: u64 = 60_000;

/// What is looked for; nothing of a kind admits all.
#[derive(Debug, Clone, Default)]
pub(crate) struct AuditSearch {
    pub(crate) who: Option<String>,
    /// Whole, or beginnings that end with a dot.
    pub(crate) actions: Vec<String>,
    pub(crate) target: Option<String>,
    pub(crate) address: Option<String>,
    pub(crate) since: Option<Timestamp>,
    /// Not at this instant any more.
    pub(crate) until: Option<Timestamp>,
}

/// What was found, newest first, and where to go on.
#[derive(Debug, Default)]
pub(crate) struct AuditFound {
    pub(crate) records: Vec<AuditRecord>,
    pub(crate) next: Option<i64>,
}

impl AuditSearch {
    fn admits(&self, record: &AuditRecord) -> bool {
        let is =
            |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        let action = |wanted: &String| match wanted.strip_suffix('.') {
            Some(_) => record.action.starts_with(wanted),
            None => record.action == *wanted,
        };
        is(&self.who, &record.who)
            && is(&self.target, &record.target)
            && is(&self.address, &record.address)
            && (self.actions.is_empty() || self.actions.iter().any(action))
            && self.since.is_none_or(|since| record.at >= since)
            && self.until.is_none_or(|until| record.at < until)
    }
}

/// Looks on below the row numbered `before`.
pub(crate) async fn search_audit(
    store: &dyn Store,
    search: &AuditSearch,
    before: Option<i64>,
    limit: usize,
) -> Result<AuditFound, StoreError> {
    let Some(mut before) = begin(store, search, before).await? else { return Ok(AuditFound::default()) };
    let too_old = search.since.map(|since| Timestamp(since.0.saturating_sub_unsigned(SKEW_MS)));
    let mut found = AuditFound::default();
    for _ in 0..SCAN_ROWS / STEP_ROWS {
        let records = store.audit(Some(before), STEP_ROWS).await?;
        let is_last = records.len() < STEP_ROWS as usize;
        for record in records {
            before = record.number;
            if too_old.is_some_and(|too_old| record.at < too_old) {
                return Ok(found);
            }
            if search.admits(&record) {
                found.records.push(record);
                if found.records.len() == limit {
                    found.next = Some(before);
                    return Ok(found);
                }
            }
        }
        if is_last {
            return Ok(found);
        }
    }
    found.next = Some(before);
    Ok(found)
}

/// The number below which to look; `None`: there is nothing so old.
async fn begin(
    store: &dyn Store,
    search: &AuditSearch,
    before: Option<i64>,
) -> Result<Option<i64>, StoreError> {
    let before = before.unwrap_or(i64::MAX);
    let Some(until) = search.until else { return Ok(Some(before)) };
    let newest = store.audit_number_at(until.plus_ms(SKEW_MS)).await?;
    Ok(newest.map(|newest| before.min(newest.saturating_add(1))))
}
