//! The table `saved_view`.

use jobyard_model::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::Core;
use super::audit;
use super::fault::Fault;
use super::load::Columns;
use super::query::Query;
use super::session::Session;
use crate::rows::number;
use crate::{Actor, NewView, StoreError, ViewChange, ViewRecord};

macro_rules! columns {
    () => {
        "id, name, filter, shared, created_by, created_ms, changed_ms, version"
    };
}

const OF: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM saved_view WHERE created_by = $1 UNION SELECT ",
    columns!(),
    " FROM saved_view WHERE shared ORDER BY name, id"
);
const ONE: &str = concat!("SELECT ", columns!(), " FROM saved_view WHERE id = $1");
const LOCK: &str = concat!("SELECT ", columns!(), " FROM saved_view WHERE id = $1 FOR UPDATE");
const TAKEN: &str = "SELECT 1 FROM saved_view WHERE created_by = $1 AND name = $2 AND id <> $3";
const INSERT: &str = concat!(
    "INSERT INTO saved_view (id, created_by, name, filter, shared, created_ms, changed_ms, version)
    VALUES ($1, $2, $3, $4, $5, jobyard_now(), jobyard_now(), 1) ON CONFLICT (created_by, name) DO NOTHING RETURNING ",
    columns!()
);
const UPDATE: &str = concat!(
    "UPDATE saved_view SET name = $2, filter = $3, shared = $4, changed_ms = jobyard_now(), version = version + 1
    WHERE id = $1 RETURNING ",
    columns!()
);
const DELETE: &str = "DELETE FROM saved_view WHERE id = $1";

fn record(row: &Row) -> Result<ViewRecord, Fault> {
    let mut columns = Columns::of(row);
    let view = NewView {
        id: columns.take()?,
        name: columns.take()?,
        filter: columns.take()?,
        shared: columns.take()?,
    };
    Ok(ViewRecord {
        view,
        created_by: columns.take()?,
        created_at: Timestamp(columns.take()?),
        changed_at: Timestamp(columns.take()?),
        version: number(columns.take()?),
    })
}

/// A principal's own views and the shared ones.
pub(super) async fn of(core: &Core, principal: &str) -> Result<Vec<ViewRecord>, StoreError> {
    let rows = core.database.read(|| [Query::new(OF).bind(principal.to_owned())]).await;
    let found = rows.and_then(|[rows]| rows.iter().map(record).collect::<Result<Vec<_>, Fault>>());
    found.map_err(|fault| fault.during("reading views"))
}

/// One view.
pub(super) async fn one(core: &Core, id: Uuid) -> Result<Option<ViewRecord>, StoreError> {
    let rows = core.database.read(|| [Query::new(ONE).bind(id)]).await;
    let found = rows.and_then(|[rows]| rows.first().map(record).transpose());
    found.map_err(|fault| fault.during("reading a view"))
}

/// Keeps a new view.
pub(super) async fn add(core: &Core, view: &NewView, by: &Actor) -> Result<ViewChange, StoreError> {
    let add = async |mut session: Session| {
        let insert = Query::new(INSERT)
            .bind(view.id)
            .bind(by.name.clone())
            .bind(view.name.clone())
            .bind(view.filter.clone())
            .bind(view.shared);
        let [added] = session.begin([insert]).await?;
        let Some(row) = added.first() else {
            session.roll_back().await?;
            return Ok(ViewChange::NameTaken);
        };
        let done = ViewChange::Done(record(row)?);
        commit(session, by, ("view.create", view.id, &view.name)).await?;
        Ok(done)
    };
    core.database.change("keeping a view", add).await
}

async fn commit(
    session: Session,
    by: &Actor,
    (action, id, name): (&'static str, Uuid, &str),
) -> Result<(), Fault> {
    let note = audit::Note::new(by, action, &id.to_string(), name);
    session.commit(vec![audit::insert(&[note])]).await.map(drop)
}

/// The view, locked, if it has this version; else why not.
async fn lock(
    session: &mut Session,
    id: Uuid,
    version: Option<u32>,
) -> Result<Result<ViewRecord, ViewChange>, Fault> {
    let [rows] = session.begin([Query::new(LOCK).bind(id)]).await?;
    let Some(row) = rows.first() else { return Ok(Err(ViewChange::NotFound)) };
    let found = record(row)?;
    match version.is_none_or(|version| version == found.version) {
        true => Ok(Ok(found)),
        false => Ok(Err(ViewChange::ChangedMeanwhile)),
    }
}

/// Changes a view.
pub(super) async fn change(
    core: &Core,
    view: &NewView,
    version: Option<u32>,
    by: &Actor,
) -> Result<ViewChange, StoreError> {
    let change = async |mut session: Session| {
        let found = match lock(&mut session, view.id, version).await? {
            Ok(found) => found,
            Err(refused) => {
                session.roll_back().await?;
                return Ok(refused);
            }
        };
        let taken = Query::new(TAKEN).bind(found.created_by).bind(view.name.clone()).bind(view.id);
        let [taken] = session.query([taken]).await?;
        if !taken.is_empty() {
            session.roll_back().await?;
            return Ok(ViewChange::NameTaken);
        }
        let update = Query::new(UPDATE)
            .bind(view.id)
            .bind(view.name.clone())
            .bind(view.filter.clone())
            .bind(view.shared);
        let [changed] = session.query([update]).await?;
        let done = changed.first().map(record).transpose()?.map_or(ViewChange::NotFound, ViewChange::Done);
        commit(session, by, ("view.change", view.id, &view.name)).await?;
        Ok(done)
    };
    core.database.change("changing a view", change).await
}

/// Removes a view.
pub(super) async fn remove(
    core: &Core,
    id: Uuid,
    version: Option<u32>,
    by: &Actor,
) -> Result<ViewChange, StoreError> {
    let remove = async |mut session: Session| {
        let found = match lock(&mut session, id, version).await? {
            Ok(found) => found,
            Err(refused) => {
                session.roll_back().await?;
                return Ok(refused);
            }
        };
        session.query([Query::new(DELETE).bind(id)]).await?;
        commit(session, by, ("view.delete", id, &found.view.name)).await?;
        Ok(ViewChange::Done(found))
    };
    core.database.change("removing a view", remove).await
}
