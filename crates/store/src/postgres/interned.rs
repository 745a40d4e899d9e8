//! Owners, pools and shapes: words that become numbers, remembered by each process.
//!
//! Rows of these tables are never changed and never removed, so what was read once stays true, until the connections
//! are given up: the server behind the next ones may have lost the newest.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jobyard_model::{Shape, ShapeId};
use tokio_postgres::types::FromSqlOwned;

use super::database::Database;
use super::fault::Fault;
use super::load::Columns;
use super::query::Query;
use super::session::Rows;
use crate::encoding::from_json;

// Sorted, so that two that make the same rows don't wait for each other in a circle.
const MAKE_OWNERS: &str = "INSERT INTO owner (name) SELECT name FROM unnest($1::text[]) name ORDER BY name
    ON CONFLICT DO NOTHING";
const FIND_OWNERS: &str = "SELECT name, owner_id FROM owner WHERE name = ANY($1)";
const MAKE_SHAPES: &str = "INSERT INTO shape (digest, spec)
    SELECT digest, spec FROM unnest($1::bytea[], $2::text[]) AS new(digest, spec) ORDER BY digest
    ON CONFLICT DO NOTHING";
const FIND_SHAPES: &str = "SELECT digest, shape_id FROM shape WHERE digest = ANY($1)";
const READ_SHAPES: &str = "SELECT shape_id, spec FROM shape WHERE shape_id = ANY($1)";
const READ_POOLS: &str = "SELECT name, pool_id FROM pool ORDER BY name";

/// What is remembered.
#[derive(Debug, Default)]
pub(super) struct Interned(Mutex<Memory>);

#[derive(Debug, Default)]
struct Memory {
    generation: u64,
    owners: HashMap<String, i32>,
    pools: HashMap<String, i32>,
    shape_ids: HashMap<[u8; 32], i32>,
    shapes: HashMap<i32, Shape>,
}

impl Interned {
    /// The numbers of these owners; those that are new get one.
    pub(super) async fn owners<'a>(
        &self,
        database: &Database,
        names: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<HashMap<String, i32>, Fault> {
        let missing: Vec<String> = {
            let memory = self.memory(database);
            let unknown = names.clone().filter(|name| !memory.owners.contains_key(*name));
            unique(unknown.map(str::to_owned))
        };
        if !missing.is_empty() {
            let rows = make(database, || {
                [Query::new(MAKE_OWNERS).bind(missing.clone()), Query::new(FIND_OWNERS).bind(missing.clone())]
            });
            let found = pairs::<String>(&rows.await?)?;
            self.memory(database).owners.extend(found);
        }
        let memory = self.memory(database);
        Ok(names.filter_map(|name| Some((name.to_owned(), *memory.owners.get(name)?))).collect())
    }

    /// The numbers of these shapes, by digest; those that are new get one. Each is (JSON, digest).
    pub(super) async fn shape_ids<'a>(
        &self,
        database: &Database,
        shapes: impl Iterator<Item = (&'a str, [u8; 32])> + Clone,
    ) -> Result<HashMap<[u8; 32], i32>, Fault> {
        let missing: Vec<([u8; 32], String)> = {
            let memory = self.memory(database);
            let unknown = shapes.clone().filter(|(_, digest)| !memory.shape_ids.contains_key(digest));
            unique(unknown.map(|(json, digest)| (digest, json.to_owned())))
        };
        if !missing.is_empty() {
            let rows = make(database, || {
                [
                    Query::new(MAKE_SHAPES)
                        .bind_each(&missing, |(digest, _)| digest.to_vec())
                        .bind_each(&missing, |(_, json)| json.clone()),
                    Query::new(FIND_SHAPES).bind_each(&missing, |(digest, _)| digest.to_vec()),
                ]
            });
            let found = pairs::<Vec<u8>>(&rows.await?)?;
            let by_digest = found.into_iter().filter_map(|(digest, id)| Some((digest.try_into().ok()?, id)));
            self.memory(database).shape_ids.extend(by_digest);
        }
        let memory = self.memory(database);
        Ok(shapes.filter_map(|(_, digest)| Some((digest, *memory.shape_ids.get(&digest)?))).collect())
    }

    /// The number of a pool, if there is one of this name.
    pub(super) async fn pool_id(&self, database: &Database, name: &str) -> Result<Option<i32>, Fault> {
        if let Some(pool_id) = self.memory(database).pools.get(name) {
            return Ok(Some(*pool_id));
        }
        let [rows] = database.read(|| [Query::new(READ_POOLS)]).await?;
        let found = pairs::<String>(&rows)?;
        let mut memory = self.memory(database);
        memory.pools.extend(found);
        Ok(memory.pools.get(name).copied())
    }

    /// These shapes.
    pub(super) async fn shapes(
        &self,
        database: &Database,
        shape_ids: &[i32],
    ) -> Result<HashMap<ShapeId, Shape>, Fault> {
        let missing: Vec<i32> = {
            let memory = self.memory(database);
            unique(shape_ids.iter().copied().filter(|id| !memory.shapes.contains_key(id)))
        };
        if !missing.is_empty() {
            let [rows] = database.read(|| [Query::new(READ_SHAPES).bind(missing.clone())]).await?;
            let found: Vec<(i32, Shape)> = rows
                .iter()
                .map(|row| {
                    let mut columns = Columns::of(row);
                    let (id, spec): (i32, String) = (columns.take()?, columns.take()?);
                    Ok((id, from_json("shape", id, &spec)?))
                })
                .collect::<Result<_, Fault>>()?;
            self.memory(database).shapes.extend(found);
        }
        let memory = self.memory(database);
        Ok(shape_ids.iter().filter_map(|id| Some((ShapeId(*id), memory.shapes.get(id)?.clone()))).collect())
    }

    fn memory(&self, database: &Database) -> MutexGuard<'_, Memory> {
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if memory.generation != database.generation() {
            *memory = Memory { generation: database.generation(), ..Memory::default() };
        }
        memory
    }
}

/// Makes what isn't there, then reads what is; each statement commits by itself, so that a number is never taken back.
async fn make(database: &Database, queries: impl Fn() -> [Query; 2]) -> Result<Rows, Fault> {
    let [_, found] = database.change_once(queries).await?;
    Ok(found)
}

fn pairs<K: FromSqlOwned>(rows: &Rows) -> Result<Vec<(K, i32)>, Fault> {
    let pair = |row| {
        let mut columns = Columns::of(row);
        Ok((columns.take()?, columns.take()?))
    };
    rows.iter().map(pair).collect()
}

fn unique<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort_unstable();
    items.dedup();
    items
}
