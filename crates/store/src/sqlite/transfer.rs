//! All that is here, for another datastore; and all of another one, into this one while it is empty.
//!
//! Events have one number here and a transaction besides on PostgreSQL. What comes from here has the transaction 0. What
//! goes in with one keeps its order and gets numbers of its own; cursors of before lie beyond all of them and are told to
//! have expired.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Row, params_from_iter};
use tokio::sync::mpsc;

use super::fault::Fault;
use super::scope::Scope;
use crate::StoreError;
use crate::encoding::inconsistent;
use crate::transfer::{
    Cell, EVENT, EVENT_FLOOR, FOLLOWER, Gathered, Kind, POOL, Part, TABLES, Table, quoted,
};

/// Says all there is, from one snapshot.
pub(super) fn dump(scope: &Scope<'_>, with_running: bool, into: &mpsc::Sender<Part>) -> Result<(), Fault> {
    let running: i64 =
        scope.statement("SELECT count(*) FROM attempt_live")?.query_row([], |row| row.get(0))?;
    if running > 0 && !with_running {
        return Err(StoreError::StillRunning { attempts: running.unsigned_abs() }.into());
    }
    for (place, table) in TABLES.iter().enumerate() {
        let mut statement = scope.statement(&select(place, table))?;
        let mut rows = statement.query([])?;
        let mut gathered = Gathered::default();
        while let Some(row) = rows.next()? {
            if let Some(rows) = gathered.push(cells(table, row)?) {
                say(into, Part::Rows { table: place, rows })?;
            }
        }
        say(into, Part::Rows { table: place, rows: gathered.take() })?;
    }
    say(into, Part::End)
}

fn say(into: &mpsc::Sender<Part>, part: Part) -> Result<(), Fault> {
    into.blocking_send(part).map_err(|_| StoreError::CutOff { doing: "exporting" }.into())
}

fn select(place: usize, table: &Table) -> String {
    let expression = |(name, kind): &(&str, Kind)| match (place, *name, kind) {
        (EVENT_FLOOR | FOLLOWER | EVENT, "transaction", _) | (EVENT_FLOOR, "newest", _) => "0".to_owned(),
        (_, name, Kind::Owner) => format!("(SELECT name FROM owner WHERE owner_id = t.{name})"),
        (_, name, Kind::Pool) => format!("(SELECT name FROM pool WHERE pool_id = t.{name})"),
        (_, name, Kind::Shape) => format!("(SELECT digest FROM shape WHERE shape_id = t.{name})"),
        (_, name, _) => format!("t.\"{name}\""),
    };
    let columns: Vec<String> = table.columns.iter().map(expression).collect();
    let order: Vec<String> = match place {
        EVENT => vec!["t.number".to_owned()],
        _ => table.order.iter().map(|name| format!("t.\"{name}\"")).collect(),
    };
    let order = if order.is_empty() { String::new() } else { format!(" ORDER BY {}", order.join(", ")) };
    format!("SELECT {} FROM {} t{order}", columns.join(", "), table.name)
}

fn cells(table: &Table, row: &Row<'_>) -> Result<Vec<Cell>, Fault> {
    let mut cells = Vec::with_capacity(table.columns.len());
    for (index, (name, kind)) in table.columns.iter().enumerate() {
        let bad = || inconsistent(table.name, "a row", format!("`{name}` is of another kind"));
        cells.push(match (kind, row.get_ref(index)?) {
            (_, ValueRef::Null) => Cell::Null,
            (Kind::Int, ValueRef::Integer(number)) => Cell::Int(number),
            (Kind::Flag, ValueRef::Integer(flag)) => Cell::Flag(flag != 0),
            (Kind::Text | Kind::Owner | Kind::Pool, ValueRef::Text(text)) => {
                Cell::Text(String::from_utf8(text.to_vec()).map_err(|_| bad())?)
            }
            (Kind::Bytes | Kind::Shape, ValueRef::Blob(bytes)) => Cell::Bytes(bytes.to_vec()),
            (Kind::Id, ValueRef::Blob(bytes)) => Cell::Id(uuid::Uuid::from_slice(bytes).map_err(|_| bad())?),
            _ => return Err(bad().into()),
        });
    }
    Ok(cells)
}

/// Takes all there is of another datastore, or nothing. What comes can be had once: done again, it is cut off.
pub(super) fn load(scope: &Scope<'_>, from: &Mutex<Option<mpsc::Receiver<Part>>>) -> Result<(), Fault> {
    for (place, table) in TABLES.iter().enumerate() {
        let there = match place {
            // One row each from the beginning.
            EVENT_FLOOR => "SELECT 1 FROM event_floor WHERE number <> 0".to_owned(),
            POOL => "SELECT 1 FROM pool WHERE name <> 'default'".to_owned(),
            _ => format!("SELECT 1 FROM {}", table.name),
        };
        if scope.statement(&there)?.exists([])? {
            return Err(StoreError::NotEmpty { table: table.name }.into());
        }
    }
    let from = from.lock().unwrap_or_else(PoisonError::into_inner).take();
    let mut from = from.ok_or(StoreError::CutOff { doing: "importing" })?;
    let mut loading = Loading { scope, ids: None, places: Places::default() };
    loop {
        match from.blocking_recv() {
            Some(Part::Rows { table, rows }) => loading.rows(table, rows)?,
            Some(Part::End) => return loading.finish(),
            None => return Err(StoreError::CutOff { doing: "importing" }.into()),
        }
    }
}

struct Loading<'s, 'c> {
    scope: &'s Scope<'c>,
    ids: Option<Ids>,
    places: Places,
}

/// The numbers of what is interned.
struct Ids {
    owners: HashMap<String, i64>,
    pools: HashMap<String, i64>,
    shapes: HashMap<Vec<u8>, i64>,
}

/// Where events and those who follow them come to lie.
#[derive(Default)]
struct Places {
    newest: i64,
    floor: i64,
    /// Where each follower was, and is now.
    followers: Vec<(Vec<Cell>, (i64, i64), i64)>,
}

impl Loading<'_, '_> {
    fn rows(&mut self, place: usize, rows: Vec<Vec<Cell>>) -> Result<(), Fault> {
        let table = &TABLES[place];
        for row in rows {
            match place {
                EVENT_FLOOR => self.places.begin(&row),
                FOLLOWER => self.places.follow(row),
                EVENT => {
                    let number = self.places.next(transaction_and_number(&row, 0));
                    let mut values = vec![Value::Integer(number)];
                    values.extend(self.values(table, row)?.into_iter().skip(2));
                    self.insert("event", "number, at_ms, job_id, attempt, who, from_, to_, why", values)?;
                }
                POOL => {
                    let sql = "INSERT INTO pool (name, created_ms) VALUES (?1, ?2) \
                        ON CONFLICT (name) DO UPDATE SET created_ms = excluded.created_ms";
                    self.scope.execute(sql, params_from_iter(self.values(table, row)?))?;
                }
                _ => {
                    let values = self.values(table, row)?;
                    self.insert(table.name, &quoted(table), values)?;
                }
            }
        }
        Ok(())
    }

    fn insert(&self, table: &str, columns: &str, values: Vec<Value>) -> Result<(), Fault> {
        let marks = vec!["?"; values.len()].join(", ");
        self.scope.execute(
            &format!("INSERT INTO {table} ({columns}) VALUES ({marks})"),
            params_from_iter(values),
        )?;
        Ok(())
    }

    fn values(&mut self, table: &Table, row: Vec<Cell>) -> Result<Vec<Value>, Fault> {
        let columns = table.columns.iter().zip(row);
        columns.map(|((name, kind), cell)| self.value((table.name, name), *kind, cell)).collect()
    }

    fn value(&mut self, at: (&'static str, &str), kind: Kind, cell: Cell) -> Result<Value, Fault> {
        let unknown = || inconsistent(at.0, "a row", format!("`{}` names nothing", at.1));
        let known = |id: Option<&i64>| id.copied().map(Value::Integer).ok_or_else(|| unknown().into());
        match (kind, cell) {
            (Kind::Owner, Cell::Text(name)) => known(self.ids()?.owners.get(&name)),
            (Kind::Pool, Cell::Text(name)) => known(self.ids()?.pools.get(&name)),
            (Kind::Shape, Cell::Bytes(digest)) => known(self.ids()?.shapes.get(&digest)),
            (_, Cell::Null) => Ok(Value::Null),
            (_, Cell::Int(number)) => Ok(Value::Integer(number)),
            (_, Cell::Flag(flag)) => Ok(Value::Integer(i64::from(flag))),
            (_, Cell::Text(text)) => Ok(Value::Text(text)),
            (_, Cell::Bytes(bytes)) => Ok(Value::Blob(bytes)),
            (_, Cell::Id(id)) => Ok(Value::Blob(id.as_bytes().to_vec())),
        }
    }

    /// Owners, pools and shapes came before all that name them.
    fn ids(&mut self) -> Result<&Ids, Fault> {
        if self.ids.is_none() {
            self.ids = Some(Ids {
                owners: interned(self.scope, "SELECT name, owner_id FROM owner")?,
                pools: interned(self.scope, "SELECT name, pool_id FROM pool")?,
                shapes: interned(self.scope, "SELECT digest, shape_id FROM shape")?,
            });
        }
        self.ids.as_ref().ok_or_else(|| StoreError::CutOff { doing: "importing" }.into())
    }

    fn finish(self) -> Result<(), Fault> {
        let Self { scope, places, .. } = self;
        scope.execute("UPDATE event_floor SET number = ?1", [places.floor])?;
        // Numbers go on above all that were ever given out.
        scope.execute("DELETE FROM sqlite_sequence WHERE name = 'event'", [])?;
        scope.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('event', ?1)", [places.newest])?;
        for (row, _, number) in places.followers {
            let [Cell::Text(name), _, _, Cell::Id(holder), Cell::Int(held_until_ms)] = row.as_slice() else {
                return Err(inconsistent("follower", "a row", "a cell is of another kind").into());
            };
            let sql = "INSERT INTO follower (name, number, holder, held_until_ms) VALUES (?1, ?2, ?3, ?4)";
            scope.execute(sql, rusqlite::params![name, number, holder, held_until_ms])?;
        }
        let sql = "UPDATE owner SET unended = (SELECT count(*) FROM job_live WHERE job_live.owner_id = owner.owner_id)";
        scope.execute(sql, [])?;
        let sql = "INSERT INTO job_label SELECT label.key, label.value, job.id \
            FROM job, json_each(job.spec, '$.labels') label";
        scope.execute(sql, [])?;
        Ok(())
    }
}

fn interned<K: std::hash::Hash + Eq + rusqlite::types::FromSql>(
    scope: &Scope<'_>,
    sql: &str,
) -> Result<HashMap<K, i64>, Fault> {
    let mut statement = scope.statement(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The two cells from `first` on.
fn transaction_and_number(row: &[Cell], first: usize) -> (i64, i64) {
    let number = |index: usize| match row.get(index) {
        Some(Cell::Int(number)) => *number,
        _ => 0,
    };
    (number(first), number(first + 1))
}

impl Places {
    /// Up to the floor events may be gone, so their numbers are not given out again.
    fn begin(&mut self, row: &[Cell]) {
        self.floor = transaction_and_number(row, 0).1;
        self.newest = self.floor;
    }

    fn follow(&mut self, row: Vec<Cell>) {
        let was = transaction_and_number(&row, 1);
        let begins = if was.0 == 0 { was.1 } else { self.floor };
        self.followers.push((row, was, begins));
    }

    /// The number of the event that was at this place. One that had only a number keeps it; those come before all others.
    fn next(&mut self, was: (i64, i64)) -> i64 {
        let number = match was {
            (0, number) => number,
            _ => self.newest + 1,
        };
        self.newest = self.newest.max(number);
        for (_, told, place) in &mut self.followers {
            if *told >= was {
                *place = number;
            }
        }
        number
    }
}
