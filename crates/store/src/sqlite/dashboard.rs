//! The trait [`Dashboard`], each call handed to a thread that looks over many rows, or to the writer.

use async_trait::async_trait;
use jobyard_model::{JobFilter, JobId, Timestamp};
use uuid::Uuid;

use super::scope::Scope;
use super::{SqliteStore, bulk, listing, minutes, summary, views};
use crate::{
    Actor, BulkRecord, Dashboard, Failing, JobCount, JobPage, JobQuery, JobRowPage, MinutePage, MinuteQuery,
    NewBulk, NewView, RolledUp, StoreError, Summary, ValueKey, ViewChange, ViewRecord,
};

type Stored<T> = Result<T, StoreError>;

#[async_trait]
impl Dashboard for SqliteStore {
    async fn jobs(&self, query: &JobQuery) -> Stored<JobPage> {
        let query = query.clone();
        self.looks.read("listing jobs", move |scope| listing::page(scope, &query)).await
    }

    async fn job_rows(&self, query: &JobQuery) -> Stored<JobRowPage> {
        let query = query.clone();
        self.looks.read("listing jobs", move |scope| listing::rows(scope, &query)).await
    }

    async fn count_jobs(&self, filter: &JobFilter) -> Stored<JobCount> {
        let filter = filter.clone();
        self.looks.read("counting jobs", move |scope| listing::count(scope, &filter)).await
    }

    async fn values(&self, key: &ValueKey, prefix: &str, limit: u32) -> Stored<(Vec<String>, bool)> {
        let (key, prefix) = (key.clone(), prefix.to_owned());
        let values = move |scope: &Scope<'_>| listing::values(scope, &key, &prefix, limit);
        self.looks.read("completing a filter", values).await
    }

    async fn summary(&self) -> Stored<Summary> {
        self.looks.read("summing up", summary::summary).await
    }

    async fn failing(&self, since: Timestamp) -> Stored<Failing> {
        self.looks.read("looking for what fails", move |scope| summary::failing(scope, since)).await
    }

    async fn longest_waiting(&self, limit: u32) -> Stored<Vec<JobId>> {
        let doing = "looking for what waits longest";
        self.looks.read(doing, move |scope| summary::longest_waiting(scope, limit)).await
    }

    async fn minutes(&self, query: &MinuteQuery) -> Stored<MinutePage> {
        let query = *query;
        let doing = "reading what happened by the minute";
        self.looks.read(doing, move |scope| minutes::minutes(scope, &query)).await
    }

    async fn roll_up(&self, limit: u32, keep_from: Timestamp) -> Stored<RolledUp> {
        const DOING: &str = "counting what happened";
        let page = self.looks.read(DOING, move |scope| minutes::read(scope, limit)).await?;
        let Some(page) = page else { return Ok(RolledUp::default()) };
        let rolled_up = page.rolled_up;
        let added = self.writer.write(DOING, move |scope| minutes::add(scope, &page, keep_from)).await?;
        // Or somebody else counted them.
        Ok(if added { rolled_up } else { RolledUp { events: 0, ..rolled_up } })
    }

    async fn start_bulk(&self, bulk: &NewBulk, by: &Actor) -> Stored<(BulkRecord, bool)> {
        let (bulk, by) = (bulk.clone(), by.clone());
        let start = move |scope: &Scope<'_>| bulk::start(scope, &bulk, &by);
        self.writer.write("beginning an action on many jobs", start).await
    }

    async fn bulk(&self, id: Uuid) -> Stored<Option<BulkRecord>> {
        self.readers.read("reading an action", move |scope| bulk::one(scope, id)).await
    }

    async fn bulks(&self, only_running: bool, limit: u32) -> Stored<Vec<BulkRecord>> {
        self.readers.read("listing actions", move |scope| bulk::all(scope, only_running, limit)).await
    }

    async fn stop_bulk(&self, id: Uuid, by: &Actor) -> Stored<Option<BulkRecord>> {
        let by = by.clone();
        self.writer.write("stopping an action", move |scope| bulk::stop(scope, id, &by)).await
    }

    async fn step_bulk(
        &self,
        bulk: &BulkRecord,
        acted_on: Option<&JobFilter>,
        limit: u32,
    ) -> Stored<BulkRecord> {
        const DOING: &str = "acting on many jobs";
        let found = match acted_on {
            Some(filter) => {
                let query = JobQuery { filter: filter.clone(), cursor: bulk.cursor, limit };
                self.looks.read(DOING, move |scope| listing::find(scope, &query)).await?
            }
            None => (Vec::new(), None),
        };
        let seen = bulk.clone();
        let act = move |scope: &Scope<'_>| bulk::act(scope, &seen, (&found.0, found.1));
        let now = self.writer.write(DOING, act).await?;
        Ok(now.unwrap_or_else(|| bulk.clone()))
    }

    async fn views(&self, principal: &str) -> Stored<Vec<ViewRecord>> {
        let principal = principal.to_owned();
        self.readers.read("reading views", move |scope| views::of(scope, &principal)).await
    }

    async fn view(&self, id: Uuid) -> Stored<Option<ViewRecord>> {
        self.readers.read("reading a view", move |scope| views::one(scope, id)).await
    }

    async fn add_view(&self, view: &NewView, by: &Actor) -> Stored<ViewChange> {
        let (view, by) = (view.clone(), by.clone());
        self.writer.write("keeping a view", move |scope| views::add(scope, &view, &by)).await
    }

    async fn change_view(&self, view: &NewView, version: Option<u32>, by: &Actor) -> Stored<ViewChange> {
        let (view, by) = (view.clone(), by.clone());
        let change = move |scope: &Scope<'_>| views::change(scope, &view, version, &by);
        self.writer.write("changing a view", change).await
    }

    async fn remove_view(&self, id: Uuid, version: Option<u32>, by: &Actor) -> Stored<ViewChange> {
        let by = by.clone();
        self.writer.write("removing a view", move |scope| views::remove(scope, id, version, &by)).await
    }
}
