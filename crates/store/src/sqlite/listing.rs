//! Lists and counts of jobs: ids from the narrowest source that the filter allows, newest first, each looked at by its own
//! rows until a page is full or enough were looked at.

use std::collections::BTreeMap;

use jobyard_model::{JobFilter, JobId, Status};
use rusqlite::types::{ToSqlOutput, Value as Cell};
use rusqlite::{CachedStatement, Row, Rows, ToSql, params, params_from_iter};
use uuid::Uuid;

use super::fault::Fault;
use super::jobs;
use super::scope::Scope;
use crate::encoding::amount;
use crate::filter::{self, STATUS, Source, Text, Uses, Value, Words};
use crate::jobs::COUNT_BOUND;
use crate::listing::{self, Line, MEASURED, SCANNED, SCANNED_TEXT};
use crate::{JobCount, JobPage, JobQuery, JobRow, JobRowPage, StoreError, ValueKey};

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Text(text) => text.as_str().into(),
            Self::Int(number) => ToSqlOutput::Owned(Cell::Integer(*number)),
            Self::Id(id) => ToSqlOutput::Owned(Cell::Blob(id.as_bytes().to_vec())),
        })
    }
}

/// A page of jobs, newest first.
pub(super) fn page(scope: &Scope<'_>, query: &JobQuery) -> Result<JobPage, Fault> {
    let (ids, next) = find(scope, query)?;
    let mut items = Vec::with_capacity(ids.len());
    for job_id in ids {
        items.extend(sound(jobs::one(scope, job_id))?.flatten());
    }
    Ok(JobPage { items, next })
}

/// A page of lines, newest first.
pub(super) fn rows(scope: &Scope<'_>, query: &JobQuery) -> Result<JobRowPage, Fault> {
    let (ids, next) = find(scope, query)?;
    let sql = format!("{} WHERE job.id = ?1", listing::columns(Words::Sqlite));
    let mut statement = scope.statement(&sql)?;
    let mut items = Vec::with_capacity(ids.len());
    for job_id in ids {
        let mut rows = statement.query([job_id.0])?;
        if let Some(row) = rows.next()? {
            items.extend(sound(row_of(scope, row))?);
        }
    }
    Ok(JobRowPage { items, next })
}

/// One job whose rows make no sense must not hide the others.
fn sound<T>(record: Result<T, Fault>) -> Result<Option<T>, Fault> {
    match record {
        Ok(record) => Ok(Some(record)),
        Err(Fault::Store(StoreError::Inconsistent { table, id, what })) => {
            tracing::error!(table, id, what, "a job is left out of a list");
            Ok(None)
        }
        Err(fault) => Err(fault),
    }
}

fn row_of(scope: &Scope<'_>, row: &Row<'_>) -> Result<JobRow, Fault> {
    let line = Line {
        id: row.get(0)?,
        owner: row.get(1)?,
        name: row.get(2)?,
        kind: row.get(3)?,
        submitted_by: row.get(4)?,
        pool: row.get(5)?,
        priority: row.get(6)?,
        labels: row.get(7)?,
        max_retries: row.get(8)?,
        created_ms: row.get(9)?,
        status: row.get(10)?,
        wait_since_ms: row.get(11)?,
        artifact_missing: row.get(12)?,
        phase: row.get(13)?,
        is_restarting: row.get(14)?,
        fail_reason: row.get(15)?,
        intent: row.get(16)?,
        started_ms: row.get(17)?,
        finished_ms: row.get(18)?,
        retry_count: row.get(19)?,
        round: row.get(20)?,
        attempt: row.get(21)?,
        node_id: row.get(22)?,
        node_name: row.get(23)?,
        ended: row.get(24)?,
        outcome: row.get(25)?,
        end: row.get(26)?,
    };
    Ok(line.into_row(scope.now())?)
}

/// The ids of a page, newest first, and where the next one goes on.
pub(super) fn find(scope: &Scope<'_>, query: &JobQuery) -> Result<(Vec<JobId>, Option<JobId>), Fault> {
    let limit = query.limit.clamp(1, 500) as usize;
    let below = query.cursor.map_or(Uuid::max(), |cursor| cursor.0);
    let driver = narrowest(scope, &query.filter, below)?;
    let mut ids = Vec::with_capacity(limit);
    let scan = scan(scope, &query.filter, &driver, (below, Uses::default()), |job_id, _| {
        ids.push(job_id);
        ids.len() < limit
    })?;
    let next = if scan.was_whole { None } else { scan.last };
    Ok((ids, next))
}

/// Of the sources that would do, those that have the fewest jobs below an id.
fn narrowest(scope: &Scope<'_>, filter: &JobFilter, below: Uuid) -> Result<Vec<Source>, Fault> {
    let mut drivers = filter::drivers(filter);
    if drivers.len() < 2 {
        return Ok(drivers.pop().unwrap_or_else(|| vec![Source::All]));
    }
    let mut best = (usize::MAX, 0);
    for (place, driver) in drivers.iter().enumerate() {
        let mut size = 0;
        for source in driver {
            let (sql, text) = source_sql(source, below);
            let sql = format!("SELECT count(*) FROM ({sql} LIMIT {MEASURED})");
            let counted: i64 =
                scope.statement(&sql)?.query_row(params_from_iter(&text.values), |row| row.get(0))?;
            size += usize::try_from(counted).unwrap_or(usize::MAX);
        }
        best = best.min((size, place));
    }
    Ok(drivers.swap_remove(best.1))
}

pub(super) fn source_sql(source: &Source, below: Uuid) -> (String, Text) {
    let mut text = Text::new(Words::Sqlite);
    let below = text.mark(Value::Id(below));
    let sql = source.sql(&mut text, &below);
    (sql, text)
}

/// How a scan ended.
struct Scanned {
    /// The last id that was looked at.
    last: Option<JobId>,
    /// There is nothing below it.
    was_whole: bool,
}

/// Looks at ids, newest first, and hands over those that pass the filter, each with its status if that was looked at, for as
/// long as `wants_more` says so.
fn scan(
    scope: &Scope<'_>,
    filter: &JobFilter,
    driver: &[Source],
    (below, more): (Uuid, Uses),
    mut wants_more: impl FnMut(JobId, Option<i16>) -> bool,
) -> Result<Scanned, Fault> {
    let test = Test::new(scope, filter, driver, more);
    let mut test_statement = scope.statement(&test.sql)?;
    let mut statements = Vec::with_capacity(driver.len());
    for source in driver {
        let (sql, text) = source_sql(source, below);
        statements.push((scope.statement(&sql)?, text));
    }
    let mut merge = Merge::start(&mut statements)?;
    let bound = if filter.text.is_some() { SCANNED_TEXT } else { SCANNED };
    let mut last = None;
    for _ in 0..bound {
        let Some(job_id) = merge.next()? else { return Ok(Scanned { last, was_whole: true }) };
        last = Some(job_id);
        let passed = match test.is_plain {
            true => Some(None),
            false => test.passes(&mut test_statement, filter, job_id)?,
        };
        if let Some(status) = passed
            && !wants_more(job_id, status)
        {
            break;
        }
    }
    Ok(Scanned { last, was_whole: merge.next()?.is_none() })
}

/// What is asked of each id.
struct Test {
    sql: String,
    values: Vec<Value>,
    /// Nothing is: every id passes.
    is_plain: bool,
}

impl Test {
    fn new(scope: &Scope<'_>, filter: &JobFilter, driver: &[Source], more: Uses) -> Self {
        let rest = filter::settled_by(filter, driver);
        let mut text = Text::new(Words::Sqlite);
        let id = text.mark(Value::Id(Uuid::nil()));
        let now = text.mark(Value::Int(scope.now().0));
        let conditions = filter::conditions(&rest, &mut text, &now);
        let mut uses = conditions.uses;
        uses.hot |= more.hot;
        uses.end |= more.end;
        let is_plain = conditions.sql.is_empty() && uses == Uses::default() && filter.text.is_none();
        let status = if uses.hot && uses.end { STATUS } else { "NULL" };
        let texts = match filter.text {
            Some(_) => format!("job.name, {}", filter::command(&text)),
            None => "NULL, NULL".to_owned(),
        };
        let and = if conditions.sql.is_empty() { String::new() } else { format!(" AND {}", conditions.sql) };
        let joins = uses.joins(Words::Sqlite);
        let sql = format!(
            "SELECT {status}, {texts} FROM job{joins} WHERE job.id = {id} AND {now} IS NOT NULL{and}"
        );
        Self { sql, values: text.values, is_plain }
    }

    /// Its status, if it passes.
    fn passes(
        &self,
        statement: &mut CachedStatement<'_>,
        filter: &JobFilter,
        job_id: JobId,
    ) -> Result<Option<Option<i16>>, Fault> {
        let id = Value::Id(job_id.0);
        let values = std::iter::once(&id).chain(self.values.iter().skip(1));
        let mut rows = statement.query(params_from_iter(values))?;
        let Some(row) = rows.next()? else { return Ok(None) };
        if filter.text.is_some() {
            let (name, command): (String, String) = (row.get(1)?, row.get(2)?);
            if !filter.holds_text(job_id, &name, &listing::command_line(&command)) {
                return Ok(None);
            }
        }
        Ok(Some(row.get(0)?))
    }
}

/// Several ordered sources as one.
struct Merge<'s> {
    sources: Vec<(Rows<'s>, Option<JobId>)>,
}

impl<'s> Merge<'s> {
    fn start(statements: &'s mut [(CachedStatement<'_>, Text)]) -> Result<Self, Fault> {
        let mut sources = Vec::with_capacity(statements.len());
        for (statement, text) in statements {
            let mut rows = statement.query(params_from_iter(&text.values))?;
            let head = id_of(rows.next()?)?;
            sources.push((rows, head));
        }
        Ok(Self { sources })
    }

    fn next(&mut self) -> Result<Option<JobId>, Fault> {
        let Some(highest) = self.sources.iter().filter_map(|(_, head)| *head).max() else { return Ok(None) };
        for (rows, head) in self.sources.iter_mut().filter(|(_, head)| *head == Some(highest)) {
            *head = id_of(rows.next()?)?;
        }
        Ok(Some(highest))
    }
}

fn id_of(row: Option<&Row<'_>>) -> rusqlite::Result<Option<JobId>> {
    row.map(|row| row.get(0).map(JobId)).transpose()
}

/// How many jobs the filter passes.
pub(super) fn count(scope: &Scope<'_>, filter: &JobFilter) -> Result<JobCount, Fault> {
    if filter.is_of_statuses() {
        return count_statuses(scope, filter);
    }
    let below = Uuid::max();
    let driver = narrowest(scope, filter, below)?;
    let (mut counted, mut total): (BTreeMap<i16, u64>, u64) = (BTreeMap::new(), 0);
    let more = Uses { hot: true, end: true, ..Uses::default() };
    let scan = scan(scope, filter, &driver, (below, more), |_, status| {
        if let Some(status) = status {
            *counted.entry(status).or_default() += 1;
            total += 1;
        }
        total <= COUNT_BOUND
    })?;
    Ok(listing::counted(&counted, scan.was_whole))
}

/// Along the index of each status, as far as the bound.
fn count_statuses(scope: &Scope<'_>, filter: &JobFilter) -> Result<JobCount, Fault> {
    let statuses = &filter.statuses;
    let mut counted = BTreeMap::new();
    for status in Status::ALL {
        if statuses.is_empty() || statuses.values.contains(&status) != statuses.negated {
            let code = status.code();
            let rows = match status {
                Status::Running => "SELECT 1 FROM attempt_live".to_owned(),
                Status::Ready | Status::Waiting | Status::Retry => {
                    format!("SELECT 1 FROM job_live WHERE status = {code}")
                }
                Status::Success | Status::FinalFailed | Status::Cancelled => {
                    format!("SELECT 1 FROM job_end WHERE current AND status = {code}")
                }
            };
            let sql = format!("SELECT count(*) FROM ({rows} LIMIT {})", COUNT_BOUND + 1);
            let count: i64 = scope.statement(&sql)?.query_row([], |row| row.get(0))?;
            counted.insert(code, amount(count));
        }
    }
    Ok(listing::counted(&counted, true))
}

/// The first name of a job above another, and the same of labels.
pub(super) const NEXT_NAME: &str = "SELECT name FROM job WHERE name > ?1 ORDER BY name LIMIT 1";
pub(super) const NEXT_KEY: &str = "SELECT key FROM job_label WHERE key > ?1 ORDER BY key LIMIT 1";
pub(super) const NEXT_VALUE: &str =
    "SELECT value FROM job_label WHERE key = ?2 AND value > ?1 ORDER BY value LIMIT 1";

/// The first values of a key that begin with `prefix`.
pub(super) fn values(
    scope: &Scope<'_>,
    key: &ValueKey,
    prefix: &str,
    limit: u32,
) -> Result<(Vec<String>, bool), Fault> {
    let limit = limit.clamp(1, 50) as usize;
    let of_table = |table: &str| -> Result<Vec<String>, Fault> {
        let sql = format!(
            "SELECT DISTINCT name FROM {table} WHERE substr(name, 1, length(?1)) = ?1 ORDER BY name LIMIT ?2"
        );
        let mut statement = scope.statement(&sql)?;
        let rows = statement.query_map(params![prefix, limit as i64 + 1], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    };
    let mut values = match key {
        ValueKey::Owner => of_table("owner")?,
        ValueKey::Pool => of_table("pool")?,
        ValueKey::Node => of_table("node")?,
        ValueKey::Name => steps(scope, (NEXT_NAME, None), prefix, limit + 1)?,
        ValueKey::LabelKey => steps(scope, (NEXT_KEY, None), prefix, limit + 1)?,
        ValueKey::Label(key) => steps(scope, (NEXT_VALUE, Some(key)), prefix, limit + 1)?,
    };
    let more = values.len() > limit;
    values.truncate(limit);
    Ok((values, more))
}

/// From one value to the next above it, an index step each.
fn steps(
    scope: &Scope<'_>,
    (next, of): (&str, Option<&String>),
    prefix: &str,
    limit: usize,
) -> Result<Vec<String>, Fault> {
    let step = |sql: &str, from: &str| -> Result<Option<String>, Fault> {
        let mut statement = scope.statement(sql)?;
        let mut rows = match of {
            Some(of) => statement.query([from, of.as_str()])?,
            None => statement.query([from])?,
        };
        Ok(rows.next()?.map(|row| row.get(0)).transpose()?)
    };
    let mut values: Vec<String> = Vec::new();
    // The prefix itself may be a value.
    let mut value = step(&next.replace("> ?1", ">= ?1"), prefix)?;
    while let Some(found) = value.filter(|found| found.starts_with(prefix) && values.len() < limit) {
        value = step(next, &found)?;
        values.push(found);
    }
    Ok(values)
}
