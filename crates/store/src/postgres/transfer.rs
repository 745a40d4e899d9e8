//! All that is here, for another datastore; and all of another one, into this one while it is empty.
//!
//! Both by COPY, in one transaction on a connection of its own: rows stream through, however many there are.
//!
//! Cursors of events stay what they were, and what is appended later lies above them: see `event_floor.shift`.

use std::collections::HashMap;
use std::hash::Hash;
use std::pin::pin;

use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::mpsc;
use tokio_postgres::types::FromSqlOwned;
use tokio_postgres::{Client, CopyInSink};

use super::config::PostgresConfig;
use super::fault::{Fault, Stage};
use super::migrate::connect;
use crate::StoreError;
use crate::encoding::inconsistent;
use crate::transfer::file::{hex, of_hex};
use crate::transfer::{Cell, EVENT, EVENT_FLOOR, Gathered, Kind, POOL, Part, TABLES, Table, quoted};

/// The driver's plans for single rows don't suit whole tables, and those take their time.
const SETTINGS: &str = "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0;
    SET enable_seqscan = on; SET enable_hashjoin = on; SET enable_mergejoin = on; SET plan_cache_mode = auto";
const EXPORTING: &str = "exporting";
const IMPORTING: &str = "importing";
/// What an older binary would misread.
const SHIFTED: &str = "UPDATE schema_version SET oldest_binary = greatest(oldest_binary, 8)";

fn failed(doing: &'static str, stage: Stage) -> impl Fn(tokio_postgres::Error) -> StoreError {
    move |error| Fault::new(error, stage).during(doing)
}

/// Says all there is, from one snapshot.
pub(super) async fn dump(
    config: &PostgresConfig,
    with_running: bool,
    into: &mpsc::Sender<Part>,
) -> Result<(), StoreError> {
    let failed = failed(EXPORTING, Stage::BeforeCommit);
    let client = connect(config, EXPORTING).await?;
    client.batch_execute(SETTINGS).await.map_err(&failed)?;
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    client.batch_execute(begin).await.map_err(&failed)?;
    let running = client.query_one("SELECT count(*) FROM attempt_live", &[]).await.map_err(&failed)?;
    let attempts = running.get::<_, i64>(0).unsigned_abs();
    if attempts > 0 && !with_running {
        return Err(StoreError::StillRunning { attempts });
    }
    for (place, table) in TABLES.iter().enumerate() {
        dump_table(&client, (place, table), into).await?;
    }
    say(into, Part::End).await
}

async fn say(into: &mpsc::Sender<Part>, part: Part) -> Result<(), StoreError> {
    into.send(part).await.map_err(|_| StoreError::CutOff { doing: EXPORTING })
}

async fn dump_table(
    client: &Client,
    (place, table): (usize, &Table),
    into: &mpsc::Sender<Part>,
) -> Result<(), StoreError> {
    let failed = failed(EXPORTING, Stage::BeforeCommit);
    let copy = format!("COPY ({}) TO STDOUT", select(place, table));
    let mut stream = pin!(client.copy_out(&copy).await.map_err(&failed)?);
    let (mut gathered, mut text) = (Gathered::default(), BytesMut::new());
    while let Some(piece) = stream.next().await {
        text.extend_from_slice(&piece.map_err(&failed)?);
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line = text.split_to(end + 1);
            let row = cells(table, &line[..end]);
            let row = row.ok_or_else(|| inconsistent(table.name, "a row", "it can't be read"))?;
            if let Some(rows) = gathered.push(row) {
                say(into, Part::Rows { table: place, rows }).await?;
            }
        }
    }
    say(into, Part::Rows { table: place, rows: gathered.take() }).await
}

fn select(place: usize, table: &Table) -> String {
    let shift = "(SELECT shift FROM event_floor)";
    let expression = |(name, kind): &(&str, Kind)| match (place, *name, kind) {
        (EVENT_FLOOR | EVENT, "transaction", _) => format!("t.transaction + {shift}"),
        (EVENT_FLOOR, "newest", _) => {
            format!("pg_snapshot_xmax(pg_current_snapshot())::text::bigint + {shift}")
        }
        (_, name, Kind::Owner) => format!("(SELECT name FROM owner WHERE owner_id = t.{name})"),
        (_, name, Kind::Pool) => format!("(SELECT name FROM pool WHERE pool_id = t.{name})"),
        (_, name, Kind::Shape) => format!("(SELECT digest FROM shape WHERE shape_id = t.{name})"),
        (_, name, _) => format!("t.\"{name}\""),
    };
    let columns: Vec<String> = table.columns.iter().map(expression).collect();
    let is_text = |name: &str| table.columns.contains(&(name, Kind::Text));
    let in_order = |name: &&str| match is_text(name) {
        true => format!("t.\"{name}\" COLLATE \"C\""),
        false => format!("t.\"{name}\""),
    };
    let order: Vec<String> = table.order.iter().map(in_order).collect();
    let order = if order.is_empty() { String::new() } else { format!(" ORDER BY {}", order.join(", ")) };
    format!("SELECT {} FROM {} t{order}", columns.join(", "), table.name)
}

/// A line of COPY's text form.
fn cells(table: &Table, line: &[u8]) -> Option<Vec<Cell>> {
    let mut fields = line.split(|byte| *byte == b'\t');
    let cells = table.columns.iter().map(|(_, kind)| {
        let field = fields.next()?;
        if field == b"\\N" {
            return Some(Cell::Null);
        }
        let text = unescaped(field)?;
        match kind {
            Kind::Int => text.parse().ok().map(Cell::Int),
            Kind::Flag => Some(Cell::Flag(text == "t")),
            Kind::Text | Kind::Owner | Kind::Pool => Some(Cell::Text(text)),
            Kind::Bytes | Kind::Shape => of_hex(text.strip_prefix("\\x")?).map(Cell::Bytes),
            Kind::Id => text.parse().ok().map(Cell::Id),
        }
    });
    cells.collect()
}

fn unescaped(field: &[u8]) -> Option<String> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.iter();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next()? {
                b'b' => 8,
                b't' => b'\t',
                b'n' => b'\n',
                b'v' => 11,
                b'f' => 12,
                b'r' => b'\r',
                other => *other,
            },
            byte => *byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Takes all there is of another datastore, or nothing.
pub(super) async fn load(config: &PostgresConfig, mut from: mpsc::Receiver<Part>) -> Result<(), StoreError> {
    let failed = failed(IMPORTING, Stage::BeforeCommit);
    let client = connect(config, IMPORTING).await?;
    client.batch_execute(SETTINGS).await.map_err(&failed)?;
    // Whatever ends this early takes the connection along, and with it the transaction.
    client.batch_execute("BEGIN").await.map_err(&failed)?;
    refuse_unless_empty(&client).await?;
    let mut loading = Loading { client: &client, ids: None, shift: 0, copy: None };
    loop {
        match from.recv().await {
            Some(Part::Rows { table, rows }) => loading.rows(table, rows).await?,
            Some(Part::End) => break,
            None => return Err(StoreError::CutOff { doing: IMPORTING }),
        }
    }
    loading.finish().await?;
    client.batch_execute("COMMIT").await.map_err(self::failed(IMPORTING, Stage::Commit))
}

async fn refuse_unless_empty(client: &Client) -> Result<(), StoreError> {
    let failed = failed(IMPORTING, Stage::BeforeCommit);
    let names: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
    // Nobody else writes until this is over.
    let lock = format!("LOCK TABLE {} IN EXCLUSIVE MODE", names.join(", "));
    client.batch_execute(&lock).await.map_err(&failed)?;
    for (place, table) in TABLES.iter().enumerate() {
        let there = match place {
            // One row each from the beginning.
            EVENT_FLOOR => "SELECT 1 FROM event_floor WHERE number <> 0".to_owned(),
            POOL => "SELECT 1 FROM pool WHERE name <> 'default'".to_owned(),
            _ => format!("SELECT 1 FROM {} LIMIT 1", table.name),
        };
        if client.query_opt(&there, &[]).await.map_err(&failed)?.is_some() {
            return Err(StoreError::NotEmpty { table: table.name });
        }
    }
    Ok(())
}

struct Loading<'c> {
    client: &'c Client,
    ids: Option<Ids>,
    shift: i64,
    /// Into the table at this place.
    copy: Option<(usize, std::pin::Pin<Box<CopyInSink<Bytes>>>)>,
}

/// The numbers of what is interned.
struct Ids {
    owners: HashMap<String, i32>,
    pools: HashMap<String, i32>,
    shapes: HashMap<Vec<u8>, i32>,
}

impl Loading<'_> {
    async fn rows(&mut self, place: usize, rows: Vec<Vec<Cell>>) -> Result<(), StoreError> {
        let failed = failed(IMPORTING, Stage::BeforeCommit);
        if self.copy.as_ref().is_some_and(|(open, _)| *open != place) {
            self.close_copy().await?;
        }
        match place {
            EVENT_FLOOR => return self.place_events(&rows).await,
            POOL => return self.pools(&rows).await,
            _ => {}
        }
        let table = &TABLES[place];
        if table.columns.iter().any(|(_, kind)| matches!(kind, Kind::Owner | Kind::Pool | Kind::Shape))
            && self.ids.is_none()
        {
            self.ids = Some(Ids::read(self.client).await.map_err(&failed)?);
        }
        let mut text = String::new();
        for row in rows {
            self.line(place, &row, &mut text)?;
        }
        if self.copy.is_none() {
            let copy = format!("COPY {} ({}) FROM STDIN", table.name, quoted(table));
            self.copy = Some((place, Box::pin(self.client.copy_in(&copy).await.map_err(&failed)?)));
        }
        if let Some((_, copy)) = &mut self.copy {
            copy.send(text.into()).await.map_err(&failed)?;
        }
        Ok(())
    }

    async fn close_copy(&mut self) -> Result<(), StoreError> {
        if let Some((_, mut copy)) = self.copy.take() {
            copy.as_mut().finish().await.map_err(failed(IMPORTING, Stage::BeforeCommit))?;
        }
        Ok(())
    }

    /// A running role may know the pool `default` by its number, so it stays.
    async fn pools(&self, rows: &[Vec<Cell>]) -> Result<(), StoreError> {
        for row in rows {
            let [Cell::Text(name), Cell::Int(created_ms)] = row.as_slice() else {
                return Err(inconsistent("pool", "a row", "a cell is of another kind"));
            };
            let sql = "INSERT INTO pool (name, created_ms) VALUES ($1, $2)
                ON CONFLICT (name) DO UPDATE SET created_ms = excluded.created_ms";
            let done = self.client.execute(sql, &[name, created_ms]).await;
            done.map_err(failed(IMPORTING, Stage::BeforeCommit))?;
        }
        Ok(())
    }

    /// Far enough down that all that is appended from now on lies above.
    async fn place_events(&mut self, rows: &[Vec<Cell>]) -> Result<(), StoreError> {
        let failed = failed(IMPORTING, Stage::BeforeCommit);
        for row in rows {
            let [Cell::Int(transaction), Cell::Int(number), Cell::Int(newest)] = row.as_slice() else {
                return Err(inconsistent("event_floor", "a row", "a cell is of another kind"));
            };
            let now = self.client.query_one("SELECT pg_current_xact_id()::text::bigint", &[]).await;
            let now: i64 = now.map_err(&failed)?.get(0);
            self.shift = (newest - now + 1).max(0);
            if self.shift > 0 {
                self.client.batch_execute(SHIFTED).await.map_err(&failed)?;
            }
            let sql = "UPDATE event_floor SET transaction = $1, number = $2, shift = $3";
            let floor = transaction - self.shift;
            self.client.execute(sql, &[&floor, number, &self.shift]).await.map_err(&failed)?;
        }
        Ok(())
    }

    fn line(&self, place: usize, row: &[Cell], text: &mut String) -> Result<(), StoreError> {
        let table = &TABLES[place];
        for (index, ((name, kind), cell)) in table.columns.iter().zip(row).enumerate() {
            if index > 0 {
                text.push('\t');
            }
            let known = self.number_of(*kind, cell);
            let unknown = || inconsistent(table.name, "a row", format!("`{name}` names nothing"));
            match (kind, cell) {
                (Kind::Owner | Kind::Pool | Kind::Shape, _) => {
                    text.push_str(&known.ok_or_else(unknown)?.to_string());
                }
                (_, Cell::Int(transaction)) if place == EVENT && *name == "transaction" => {
                    text.push_str(&(transaction - self.shift).to_string());
                }
                _ => push_cell(cell, text),
            }
        }
        text.push('\n');
        Ok(())
    }

    fn number_of(&self, kind: Kind, cell: &Cell) -> Option<i32> {
        let ids = self.ids.as_ref()?;
        match (kind, cell) {
            (Kind::Owner, Cell::Text(name)) => ids.owners.get(name).copied(),
            (Kind::Pool, Cell::Text(name)) => ids.pools.get(name).copied(),
            (Kind::Shape, Cell::Bytes(digest)) => ids.shapes.get(digest).copied(),
            _ => None,
        }
    }

    async fn finish(mut self) -> Result<(), StoreError> {
        self.close_copy().await?;
        // Numbers go on above those that came.
        let sql = "SELECT setval(pg_get_serial_sequence('event', 'number'), coalesce(max(number), 0) + 1) FROM event;
            SELECT setval(pg_get_serial_sequence('audit', 'number'), coalesce(max(number), 0) + 1) FROM audit;
            INSERT INTO job_label SELECT label.key, label.value, job.id
              FROM job CROSS JOIN LATERAL json_each_text(job.spec -> 'labels') label;";
        self.client.batch_execute(sql).await.map_err(failed(IMPORTING, Stage::BeforeCommit))
    }
}

fn push_cell(cell: &Cell, text: &mut String) {
    match cell {
        Cell::Null => text.push_str("\\N"),
        Cell::Int(number) => text.push_str(&number.to_string()),
        Cell::Flag(flag) => text.push(if *flag { 't' } else { 'f' }),
        Cell::Id(id) => text.push_str(&id.to_string()),
        Cell::Bytes(bytes) => {
            text.push_str("\\\\x");
            text.push_str(&hex(bytes));
        }
        Cell::Text(value) => {
            for character in value.chars() {
                match character {
                    '\\' => text.push_str("\\\\"),
                    '\t' => text.push_str("\\t"),
                    '\n' => text.push_str("\\n"),
                    '\r' => text.push_str("\\r"),
                    // PostgreSQL has no NUL; elsewhere, too, it is made visible.
                    '\0' => text.push(char::REPLACEMENT_CHARACTER),
                    other => text.push(other),
                }
            }
        }
    }
}

impl Ids {
    async fn read(client: &Client) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            owners: interned(client, "SELECT name, owner_id FROM owner").await?,
            pools: interned(client, "SELECT name, pool_id FROM pool").await?,
            shapes: interned(client, "SELECT digest, shape_id FROM shape").await?,
        })
    }
}

async fn interned<K: Hash + Eq + FromSqlOwned>(
    client: &Client,
    sql: &str,
) -> Result<HashMap<K, i32>, tokio_postgres::Error> {
    let rows = client.query(sql, &[]).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}
