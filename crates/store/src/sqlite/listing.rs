//! Which jobs a page looks at: ids from the narrowest index that the filters allow, newest first, and not too many.

use jobyard_model::{JobId, Status};
use rusqlite::params;

use super::fault::Fault;
use super::load;
use super::scope::Scope;
use crate::JobQuery;

/// How many rows one page looks at, when the filters may pass few.
const SCANNED: usize = 5_000;

pub(super) const BY_ID: &str = "SELECT id FROM job WHERE id < ?1 ORDER BY id DESC LIMIT ?2";
pub(super) const BY_OWNER: &str = "SELECT id FROM job WHERE owner_id = (SELECT owner_id FROM owner \
    WHERE name = ?3) AND id < ?1 ORDER BY id DESC LIMIT ?2";
pub(super) const BY_KEY: &str =
    "SELECT id FROM job WHERE idempotency_key = ?3 AND id < ?1 ORDER BY id DESC LIMIT ?2";
pub(super) const BY_RUNNING: &str =
    "SELECT job_id FROM attempt_live WHERE job_id < ?1 ORDER BY job_id DESC LIMIT ?2";
/// Waiting jobs are most of the hot table when there are many: it is read along its key, without a sort.
pub(super) const BY_HOT_ROW: &str =
    "SELECT id, status = 2 FROM job_live WHERE id < ?1 ORDER BY id DESC LIMIT ?2";

/// Ids to look at, newest first.
pub(super) struct Scan {
    pub(super) ids: Vec<JobId>,
    /// Where the next page goes on when all of these have been looked at; `None` at the end.
    pub(super) next: Option<JobId>,
}

/// From where down, and how far.
#[derive(Clone, Copy)]
struct Reach {
    below: [u8; 16],
    rows: usize,
}

impl Reach {
    fn of(query: &JobQuery) -> Self {
        let below = query.cursor.map_or([0xff; 16], |cursor| *cursor.0.as_bytes());
        let all_pass = query.name.is_none()
            && query.owner.is_none()
            && query.labels.is_empty()
            && query.origin.is_none()
            && query.idempotency_key.is_none()
            && query.text.is_none()
            && query.created_after.is_none()
            && query.created_before.is_none();
        let rows = if all_pass { query.limit.clamp(1, 500) as usize + 1 } else { SCANNED };
        Self { below, rows }
    }
}

/// The jobs that a page looks at.
pub(super) fn candidates(scope: &Scope<'_>, query: &JobQuery) -> Result<Scan, Fault> {
    let reach = Reach::of(query);
    match (&query.idempotency_key, query.statuses.is_empty(), &query.owner) {
        (Some(key), ..) => by_word(scope, BY_KEY, key, reach),
        (None, true, Some(owner)) => by_word(scope, BY_OWNER, owner, reach),
        (None, true, None) => by_place(scope, BY_ID, reach),
        (None, false, _) => by_statuses(scope, &query.statuses, reach),
    }
}

fn by_word(scope: &Scope<'_>, sql: &str, word: &str, reach: Reach) -> Result<Scan, Fault> {
    let page = params![reach.below.as_slice(), reach.rows as i64, word];
    Ok(cut(load::ids(scope, sql, page)?, reach))
}

fn by_place(scope: &Scope<'_>, sql: &str, reach: Reach) -> Result<Scan, Fault> {
    Ok(cut(load::ids(scope, sql, params![reach.below.as_slice(), reach.rows as i64])?, reach))
}

fn cut(ids: Vec<JobId>, reach: Reach) -> Scan {
    let next = if ids.len() == reach.rows { ids.last().copied() } else { None };
    Scan { ids, next }
}

fn by_statuses(scope: &Scope<'_>, statuses: &[Status], reach: Reach) -> Result<Scan, Fault> {
    let mut ids = Vec::new();
    // Below the highest of these a source may have more that were not read.
    let mut horizon = None;
    for status in statuses {
        let scan = match status {
            Status::Waiting => waiting(scope, reach)?,
            Status::Running => by_place(scope, BY_RUNNING, reach)?,
            Status::Ready | Status::Retry => by_place(scope, &outstanding_sql(*status), reach)?,
            Status::Success | Status::FinalFailed | Status::Cancelled => {
                by_place(scope, &ended_sql(*status), reach)?
            }
        };
        horizon = horizon.max(scan.next);
        ids.extend(scan.ids);
    }
    ids.retain(|job_id| horizon.is_none_or(|horizon| *job_id >= horizon));
    ids.sort_unstable_by(|left, right| right.cmp(left));
    ids.dedup();
    Ok(Scan { ids, next: horizon })
}

/// The number is a literal, so that the partial index is seen; so in [`ended_sql`].
pub(super) fn outstanding_sql(status: Status) -> String {
    let code = status.code();
    format!("SELECT id FROM job_live WHERE status = {code} AND id < ?1 ORDER BY id DESC LIMIT ?2")
}

pub(super) fn ended_sql(status: Status) -> String {
    let code = status.code();
    format!(
        "SELECT job_id FROM job_end WHERE current AND status = {code} AND job_id < ?1 \
        ORDER BY job_id DESC LIMIT ?2"
    )
}

fn waiting(scope: &Scope<'_>, reach: Reach) -> Result<Scan, Fault> {
    let mut statement = scope.statement(BY_HOT_ROW)?;
    let mut rows = statement.query(params![reach.below.as_slice(), SCANNED as i64])?;
    let (mut ids, mut seen, mut last) = (Vec::new(), 0, None);
    while ids.len() < reach.rows
        && let Some(row) = rows.next()?
    {
        let job_id = JobId(row.get(0)?);
        (seen, last) = (seen + 1, Some(job_id));
        if row.get::<_, bool>(1)? {
            ids.push(job_id);
        }
    }
    let is_cut = ids.len() == reach.rows || seen == SCANNED;
    Ok(Scan { ids, next: last.filter(|_| is_cut) })
}
