//! The trait [`Dashboard`], each call handed to its file.

use async_trait::async_trait;
use jobyard_model::{JobFilter, JobId, Timestamp};
use uuid::Uuid;

use super::{PostgresStore, bulk, listing, minutes, summary, views};
use crate::{
    Actor, BulkRecord, Dashboard, Failing, JobCount, JobPage, JobQuery, JobRowPage, MinutePage, MinuteQuery,
    NewBulk, NewView, RolledUp, StoreError, Summary, ValueKey, ViewChange, ViewRecord,
};

type Stored<T> = Result<T, StoreError>;

#[async_trait]
impl Dashboard for PostgresStore {
    async fn jobs(&self, query: &JobQuery) -> Stored<JobPage> {
        listing::page(&self.core, query).await
    }

    async fn job_rows(&self, query: &JobQuery) -> Stored<JobRowPage> {
        listing::rows(&self.core, query).await
    }

    async fn count_jobs(&self, filter: &JobFilter) -> Stored<JobCount> {
        listing::count(&self.core, filter).await
    }

    async fn values(&self, key: &ValueKey, prefix: &str, limit: u32) -> Stored<(Vec<String>, bool)> {
        listing::values(&self.core, key, prefix, limit).await
    }

    async fn summary(&self) -> Stored<Summary> {
        summary::summary(&self.core).await
    }

    async fn failing(&self, since: Timestamp) -> Stored<Failing> {
        summary::failing(&self.core, since).await
    }

    async fn longest_waiting(&self, limit: u32) -> Stored<Vec<JobId>> {
        summary::longest_waiting(&self.core, limit).await
    }

    async fn minutes(&self, query: &MinuteQuery) -> Stored<MinutePage> {
        minutes::minutes(&self.core, query).await
    }

    async fn roll_up(&self, limit: u32, keep_from: Timestamp) -> Stored<RolledUp> {
        minutes::roll_up(&self.core, limit, keep_from).await
    }

    async fn start_bulk(&self, bulk: &NewBulk, by: &Actor) -> Stored<(BulkRecord, bool)> {
        bulk::start(&self.core, bulk, by).await
    }

    async fn bulk(&self, id: Uuid) -> Stored<Option<BulkRecord>> {
        bulk::one(&self.core, id).await
    }

    async fn bulks(&self, only_running: bool, limit: u32) -> Stored<Vec<BulkRecord>> {
        bulk::all(&self.core, only_running, limit).await
    }

    async fn stop_bulk(&self, id: Uuid, by: &Actor) -> Stored<Option<BulkRecord>> {
        bulk::stop(&self.core, id, by).await
    }

    async fn step_bulk(
        &self,
        bulk: &BulkRecord,
        acted_on: Option<&JobFilter>,
        limit: u32,
    ) -> Stored<BulkRecord> {
        bulk::step(&self.core, bulk, acted_on, limit).await
    }

    async fn views(&self, principal: &str) -> Stored<Vec<ViewRecord>> {
        views::of(&self.core, principal).await
    }

    async fn view(&self, id: Uuid) -> Stored<Option<ViewRecord>> {
        views::one(&self.core, id).await
    }

    async fn add_view(&self, view: &NewView, by: &Actor) -> Stored<ViewChange> {
        views::add(&self.core, view, by).await
    }

    async fn change_view(&self, view: &NewView, version: Option<u32>, by: &Actor) -> Stored<ViewChange> {
        views::change(&self.core, view, version, by).await
    }

    async fn remove_view(&self, id: Uuid, version: Option<u32>, by: &Actor) -> Stored<ViewChange> {
        views::remove(&self.core, id, version, by).await
    }
}
