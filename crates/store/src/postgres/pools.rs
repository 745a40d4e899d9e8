//! The table `pool`.

use std::collections::HashMap;

use jobyard_model::Timestamp;

use super::Core;
use super::audit;
use super::fault::Fault;
use super::load::Columns;
use super::query::Query;
use super::session::Session;
use crate::{Actor, PoolRecord, StoreError};

const ALL: &str = "SELECT name, created_ms FROM pool ORDER BY name";
const PUT: &str =
    "INSERT INTO pool (name, created_ms) VALUES ($1, jobyard_now()) ON CONFLICT DO NOTHING RETURNING 1";

/// The numbers of these pools, as far as there are such pools.
pub(super) async fn ids<'a>(
    core: &Core,
    names: impl Iterator<Item = &'a str>,
) -> Result<HashMap<String, i32>, Fault> {
    let mut ids = HashMap::new();
    for name in names {
        if !ids.contains_key(name) {
            let id = core.interned.pool_id(&core.database, name).await?;
            ids.extend(id.map(|id| (name.to_owned(), id)));
        }
    }
    Ok(ids)
}

/// The names of all pools, sorted.
pub(super) async fn names(core: &Core) -> Result<Vec<String>, Fault> {
    Ok(try_all(core).await?.into_iter().map(|pool| pool.name).collect())
}

/// All pools, by name.
pub(super) async fn all(core: &Core) -> Result<Vec<PoolRecord>, StoreError> {
    try_all(core).await.map_err(|fault| fault.during("reading the pools"))
}

async fn try_all(core: &Core) -> Result<Vec<PoolRecord>, Fault> {
    let [rows] = core.database.read(|| [Query::new(ALL)]).await?;
    let record = |row| {
        let mut columns = Columns::of(row);
        Ok(PoolRecord { name: columns.take()?, created_at: Timestamp(columns.take()?) })
    };
    rows.iter().map(record).collect()
}

/// Makes a pool, unless there is one of this name.
pub(super) async fn put(core: &Core, name: &str, by: &Actor) -> Result<(), StoreError> {
    core.database.change("making a pool", |session| try_put(session, name, by)).await
}

async fn try_put(mut session: Session, name: &str, by: &Actor) -> Result<(), Fault> {
    let [made] = session.begin([Query::new(PUT).bind(name.to_owned())]).await?;
    if made.is_empty() {
        return session.roll_back().await;
    }
    let note = audit::Note::new(by, "pool.put", name, "");
    session.commit(vec![audit::insert(&[note])]).await?;
    Ok(())
}
