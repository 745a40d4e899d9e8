//! Lists and counts of jobs: ids from the narrowest source that the filter allows, and conditions on what is left.
//!
//! One statement finds the ids of a page and says where the next one goes on, so that nothing can move in between.

use std::collections::BTreeMap;

use jobyard_model::{JobFilter, JobId, Status, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::Core;
use super::fault::Fault;
use super::load::{self, Columns};
use super::looks::{Look, Looks};
use super::{jobs, load::NOW};
use crate::encoding::amount;
use crate::filter::{self, STATUS, Source, Text, Uses, Value, Words};
use crate::jobs::COUNT_BOUND;
use crate::listing::{self, Line, MEASURED, SCANNED, SCANNED_TEXT};
use crate::{JobCount, JobPage, JobQuery, JobRow, JobRowPage, StoreError, ValueKey};

/// Whole records are read so many at a time.
const CHUNK: usize = 100;
const CLOCK: &str = "(SELECT jobyard_now())";

/// A page of jobs, newest first.
pub(super) async fn page(core: &Core, query: &JobQuery) -> Result<JobPage, StoreError> {
    try_page(core, query).await.map_err(|fault| fault.during("listing jobs"))
}

async fn try_page(core: &Core, query: &JobQuery) -> Result<JobPage, Fault> {
    let found = find(&core.looks, query).await?;
    let mut page = JobPage { items: Vec::with_capacity(found.ids.len()), next: found.next };
    for chunk in found.ids.chunks(CHUNK) {
        let look = || [Look::new(jobs::RECORDS).bind(chunk.to_vec(), Type::UUID_ARRAY)];
        let [rows] = core.looks.look(look).await?;
        page.items.extend(sound(rows.iter().map(jobs::record))?);
    }
    // It was found in one of these a moment ago, and may have moved on.
    let statuses = &query.filter.statuses;
    page.items.retain(|record| {
        statuses.is_empty() || statuses.values.contains(&record.job.status()) != statuses.negated
    });
    Ok(page)
}

/// A page of lines, newest first.
pub(super) async fn rows(core: &Core, query: &JobQuery) -> Result<JobRowPage, StoreError> {
    try_rows(core, query).await.map_err(|fault| fault.during("listing jobs"))
}

async fn try_rows(core: &Core, query: &JobQuery) -> Result<JobRowPage, Fault> {
    let found = find(&core.looks, query).await?;
    let sql = format!("{} WHERE job.id = ANY($1) ORDER BY job.id DESC", listing::columns(Words::Postgres));
    let looks = || [Look::new(NOW), Look::new(sql.clone()).bind(found.ids.clone(), Type::UUID_ARRAY)];
    let [now, rows] = core.looks.look(looks).await?;
    let now = load::clock(&now)?;
    let mut items = sound(rows.iter().map(|row| line(row, now)))?;
    let statuses = &query.filter.statuses;
    items.retain(|row| statuses.is_empty() || statuses.values.contains(&row.status) != statuses.negated);
    Ok(JobRowPage { items, next: found.next })
}

/// One job whose rows make no sense must not hide the others.
fn sound<T>(records: impl Iterator<Item = Result<T, Fault>>) -> Result<Vec<T>, Fault> {
    let mut sound = Vec::new();
    for record in records {
        match record {
            Ok(record) => sound.push(record),
            Err(Fault::Inconsistent { table, id, what }) => {
                tracing::error!(table, id, what, "a job is left out of a list");
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(sound)
}

fn line(row: &Row, now: Timestamp) -> Result<JobRow, Fault> {
    let mut columns = Columns::of(row);
    let line = Line {
        id: columns.take()?,
        owner: columns.take()?,
        name: columns.take()?,
        kind: columns.take()?,
        submitted_by: columns.take()?,
        pool: columns.take()?,
        priority: columns.take()?,
        labels: columns.take()?,
        max_retries: columns.take()?,
        created_ms: columns.take()?,
        status: columns.take()?,
        wait_since_ms: columns.take()?,
        artifact_missing: columns.take()?,
        phase: columns.take()?,
        is_restarting: columns.take()?,
        fail_reason: columns.take()?,
        intent: columns.take()?,
        started_ms: columns.take()?,
        finished_ms: columns.take()?,
        retry_count: columns.take()?,
        round: columns.take()?,
        attempt: columns.take()?,
        node_id: columns.take()?,
        node_name: columns.take()?,
        ended: columns.take()?,
        outcome: columns.take()?,
        end: columns.take()?,
    };
    Ok(line.into_row(now)?)
}

/// The ids of a page, newest first.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) ids: Vec<Uuid>,
    /// Where the next page goes on; `None` at the end.
    pub(super) next: Option<JobId>,
}

/// The ids of a page.
pub(super) async fn find(looks: &Looks, query: &JobQuery) -> Result<Found, Fault> {
    let limit = query.limit.clamp(1, 500) as usize;
    let below = query.cursor.map_or(Uuid::max(), |cursor| cursor.0);
    let driver = narrowest(looks, &query.filter, below).await?;
    match query.filter.text {
        Some(_) => find_by_text(looks, &query.filter, &driver, (below, limit)).await,
        None => find_by_rows(looks, &query.filter, &driver, (below, limit)).await,
    }
}

/// Of the sources that would do, those that have the fewest jobs below an id.
async fn narrowest(looks: &Looks, filter: &JobFilter, below: Uuid) -> Result<Vec<Source>, Fault> {
    let mut drivers = filter::drivers(filter);
    if drivers.len() < 2 {
        return Ok(drivers.pop().unwrap_or_else(|| vec![Source::All]));
    }
    let measure = || {
        let mut text = Text::new(Words::Postgres);
        let below = text.mark(Value::Id(below));
        let counts: Vec<String> = drivers
            .iter()
            .map(|driver| {
                format!("(SELECT count(*) FROM ({}) measured)", merged(driver, &mut text, &below, MEASURED))
            })
            .collect();
        [Look::of(format!("SELECT {}", counts.join(", ")), text)]
    };
    let [rows] = looks.look(measure).await?;
    let mut sizes = Vec::with_capacity(drivers.len());
    for row in &rows {
        let mut columns = Columns::of(row);
        for _ in &drivers {
            sizes.push(columns.take::<i64>()?);
        }
    }
    let fewest = sizes.iter().enumerate().min_by_key(|(place, size)| (**size, *place));
    Ok(drivers.swap_remove(fewest.map_or(0, |(place, _)| place)))
}

/// The newest `limit` ids of all these sources.
fn merged(sources: &[Source], text: &mut Text, below: &str, limit: usize) -> String {
    let each: Vec<String> =
        sources.iter().map(|source| format!("{} LIMIT {limit}", source.sql(text, below))).collect();
    match each.as_slice() {
        // No status is left to be wanted.
        [] => format!("SELECT id FROM job WHERE false AND id < {below}"),
        [one] => one.clone(),
        several => {
            let union: Vec<String> = several.iter().map(|source| format!("({source})")).collect();
            format!("SELECT id FROM ({}) merged ORDER BY id DESC LIMIT {limit}", union.join(" UNION ALL "))
        }
    }
}

/// `FROM` the ids that drive a page, with the rows that its conditions look at, and the conditions.
struct Scan {
    text: Text,
    driver: String,
    from: String,
}

impl Scan {
    fn new(filter: &JobFilter, driver: &[Source], (below, scanned): (Uuid, usize), more: Uses) -> Self {
        let mut text = Text::new(Words::Postgres);
        let below = text.mark(Value::Id(below));
        let driver_sql = merged(driver, &mut text, &below, scanned);
        let rest = filter::settled_by(filter, driver);
        let conditions = filter::conditions(&rest, &mut text, CLOCK);
        let mut uses = conditions.uses;
        uses.hot |= more.hot;
        uses.end |= more.end;
        // With nothing else to look at, the ids alone are the answer.
        let is_plain = conditions.sql.is_empty() && uses == Uses::default() && filter.text.is_none();
        let from = match is_plain {
            true => format!("({driver_sql}) scanned"),
            false => format!(
                "({driver_sql}) scanned JOIN LATERAL (SELECT * FROM job WHERE job.id = scanned.id OFFSET 0) job ON true{}{}",
                uses.joins(Words::Postgres),
                if conditions.sql.is_empty() { String::new() } else { format!(" WHERE {}", conditions.sql) },
            ),
        };
        Self { text, driver: driver_sql, from }
    }
}

async fn find_by_rows(
    looks: &Looks,
    filter: &JobFilter,
    driver: &[Source],
    (below, limit): (Uuid, usize),
) -> Result<Found, Fault> {
    let look = || {
        let Scan { text, driver, from } = Scan::new(filter, driver, (below, SCANNED), Uses::default());
        // The last that was looked at is asked for only when that was not enough for a page.
        let sql = format!(
            "WITH found AS MATERIALIZED (SELECT scanned.id FROM {from} ORDER BY scanned.id DESC LIMIT {})
            SELECT id, true FROM found
            UNION ALL (SELECT last.id, false FROM (SELECT id FROM ({driver}) driven OFFSET {} LIMIT 1) last
              WHERE (SELECT count(*) FROM found) <= {limit})",
            limit + 1,
            SCANNED - 1,
        );
        [Look::of(sql, text)]
    };
    let [rows] = looks.look(look).await?;
    let mut found = Found::default();
    let mut last_scanned = None;
    for row in &rows {
        let mut columns = Columns::of(row);
        let (id, passes): (Uuid, bool) = (columns.take()?, columns.take()?);
        match passes {
            true => found.ids.push(id),
            false => last_scanned = Some(JobId(id)),
        }
    }
    found.cut(limit, last_scanned);
    Ok(found)
}

impl Found {
    /// Keeps a page of what was found, and notes where the next one goes on.
    fn cut(&mut self, limit: usize, last_scanned: Option<JobId>) {
        self.ids.sort_unstable_by(|left, right| right.cmp(left));
        self.next = last_scanned;
        if self.ids.len() > limit {
            self.ids.truncate(limit);
            self.next = self.ids.last().copied().map(JobId);
        }
    }
}

/// What the text is compared with comes from the datastore: its own idea of case is another.
async fn find_by_text(
    looks: &Looks,
    filter: &JobFilter,
    driver: &[Source],
    (below, limit): (Uuid, usize),
) -> Result<Found, Fault> {
    let (texts, last_scanned) = texts(looks, filter, driver, below).await?;
    let mut found = Found { ids: texts.into_iter().map(|(id, _)| id).collect(), next: None };
    found.cut(limit, last_scanned);
    Ok(found)
}

type Texts = (Vec<(Uuid, Option<i16>)>, Option<JobId>);

/// Ids and statuses of jobs that hold the filter's text, and the last that was looked at if there may be more.
async fn texts(looks: &Looks, filter: &JobFilter, driver: &[Source], below: Uuid) -> Result<Texts, Fault> {
    let look = || {
        let more = Uses { hot: true, end: true, ..Uses::default() };
        let Scan { text, driver, from } = Scan::new(filter, driver, (below, SCANNED_TEXT), more);
        let command = filter::command(&text);
        let sql = format!(
            "SELECT scanned.id, {STATUS}, job.name, {command} FROM {from}
            UNION ALL (SELECT id, NULL, NULL, NULL FROM ({driver}) driven OFFSET {} LIMIT 1)",
            SCANNED_TEXT - 1,
        );
        [Look::of(sql, text)]
    };
    let [rows] = looks.look(look).await?;
    let (mut found, mut last_scanned) = (Vec::new(), None);
    for row in &rows {
        let mut columns = Columns::of(row);
        let (id, status): (Uuid, Option<i16>) = (columns.take()?, columns.take()?);
        let Some(name) = columns.take::<Option<String>>()? else {
            last_scanned = Some(JobId(id));
            continue;
        };
        let command: String = columns.take()?;
        if filter.holds_text(JobId(id), &name, &listing::command_line(&command)) {
            found.push((id, status));
        }
    }
    Ok((found, last_scanned))
}

/// How many jobs the filter passes.
pub(super) async fn count(core: &Core, filter: &JobFilter) -> Result<JobCount, StoreError> {
    try_count(core, filter).await.map_err(|fault| fault.during("counting jobs"))
}

async fn try_count(core: &Core, filter: &JobFilter) -> Result<JobCount, Fault> {
    if filter.is_of_statuses() {
        return count_statuses(core, filter).await;
    }
    let below = Uuid::max();
    let driver = narrowest(&core.looks, filter, below).await?;
    let mut counted: BTreeMap<i16, u64> = BTreeMap::new();
    if filter.text.is_some() {
        let (texts, last_scanned) = texts(&core.looks, filter, &driver, below).await?;
        for status in texts.into_iter().filter_map(|(_, status)| status) {
            *counted.entry(status).or_default() += 1;
        }
        return Ok(listing::counted(&counted, last_scanned.is_none()));
    }
    let looks = || {
        let more = Uses { hot: true, end: true, ..Uses::default() };
        let Scan { text, driver, from } = Scan::new(filter, &driver, (below, SCANNED), more);
        let sql = format!(
            "SELECT status, count(*), (SELECT true FROM ({driver}) driven OFFSET {} LIMIT 1)
            FROM (SELECT {STATUS} AS status FROM {from} LIMIT {}) passing GROUP BY status
            UNION ALL SELECT NULL, 0, (SELECT true FROM ({driver}) driven OFFSET {} LIMIT 1)",
            SCANNED - 1,
            COUNT_BOUND + 1,
            SCANNED - 1,
        );
        [Look::of(sql, text)]
    };
    let [rows] = core.looks.look(looks).await?;
    let mut was_whole = true;
    for row in &rows {
        let mut columns = Columns::of(row);
        let (status, count): (Option<i16>, i64) = (columns.take()?, columns.take()?);
        was_whole &= columns.take::<Option<bool>>()? != Some(true);
        if let Some(status) = status {
            *counted.entry(status).or_default() += amount(count);
        }
    }
    Ok(listing::counted(&counted, was_whole))
}

/// Along the index of each status, as far as the bound.
async fn count_statuses(core: &Core, filter: &JobFilter) -> Result<JobCount, Fault> {
    let statuses = &filter.statuses;
    let wanted =
        |status: &Status| statuses.is_empty() || statuses.values.contains(status) != statuses.negated;
    let wanted: Vec<Status> = Status::ALL.into_iter().filter(wanted).collect();
    let one = |status: &Status| {
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
        format!("(SELECT count(*) FROM ({rows} LIMIT {}) n)", COUNT_BOUND + 1)
    };
    if wanted.is_empty() {
        return Ok(listing::counted(&BTreeMap::new(), true));
    }
    let sql = format!("SELECT {}", wanted.iter().map(one).collect::<Vec<_>>().join(", "));
    let [rows] = core.looks.look(|| [Look::new(sql.clone())]).await?;
    let mut counted = BTreeMap::new();
    for row in &rows {
        let mut columns = Columns::of(row);
        for status in &wanted {
            counted.insert(status.code(), amount(columns.take()?));
        }
    }
    Ok(listing::counted(&counted, true))
}

/// The first values of a key that begin with `prefix`.
pub(super) async fn values(
    core: &Core,
    key: &ValueKey,
    prefix: &str,
    limit: u32,
) -> Result<(Vec<String>, bool), StoreError> {
    try_values(core, key, prefix, limit).await.map_err(|fault| fault.during("completing a filter"))
}

async fn try_values(
    core: &Core,
    key: &ValueKey,
    prefix: &str,
    limit: u32,
) -> Result<(Vec<String>, bool), Fault> {
    let limit = limit.clamp(1, 50) as usize;
    let of_table = |table: &str| {
        format!(
            "SELECT DISTINCT name COLLATE \"C\" AS name FROM {table} WHERE starts_with(name, $1) ORDER BY 1 LIMIT {}",
            limit + 1
        )
    };
    // From one value to the next above it, an index step each.
    let steps = |column: &str, of: &str| {
        let next = |bound: &str| {
            format!("SELECT {column} AS value FROM {of} {column} {bound} ORDER BY {column} LIMIT 1")
        };
        format!(
            "WITH RECURSIVE step AS (({}) UNION ALL
              SELECT next.value FROM step CROSS JOIN LATERAL ({}) next WHERE starts_with(step.value, $1))
            SELECT value FROM step WHERE starts_with(value, $1) LIMIT {}",
            next(">= $1"),
            next("> step.value"),
            limit + 1,
        )
    };
    let sql = match key {
        ValueKey::Owner => of_table("owner"),
        ValueKey::Pool => of_table("pool"),
        ValueKey::Node => of_table("node"),
        ValueKey::Name => steps("name COLLATE \"C\"", "job WHERE"),
        ValueKey::LabelKey => steps("key", "job_label WHERE"),
        ValueKey::Label(_) => steps("value", "job_label WHERE key = $2 AND"),
    };
    let look = || {
        let look = Look::new(sql.clone()).bind(prefix.to_owned(), Type::TEXT);
        match key {
            ValueKey::Label(key) => [look.bind(key.clone(), Type::TEXT)],
            _ => [look],
        }
    };
    let [rows] = core.looks.look(look).await?;
    let mut values: Vec<String> = rows.iter().map(|row| Columns::of(row).take()).collect::<Result<_, _>>()?;
    let more = values.len() > limit;
    values.truncate(limit);
    Ok((values, more))
}
