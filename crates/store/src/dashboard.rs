//! What looks over many jobs needs of the datastore: lists, counts, overviews.

use async_trait::async_trait;
use jobyard_model::{JobFilter, JobId, Timestamp};
use uuid::Uuid;

use crate::{
    Actor, BulkRecord, Failing, JobCount, JobPage, JobQuery, JobRowPage, MinutePage, MinuteQuery, NewBulk,
    NewView, RolledUp, StoreError, Summary, ValueKey, ViewChange, ViewRecord,
};

/// Looking over many jobs, beside all that a [`crate::Store`] does with single ones.
///
/// Looks are carried out on connections of their own, each with a limit of time, so that what is placed and reported never
/// waits for them; [`StoreError::TooSlow`] at the limit. What they tell may be a moment old where the settings name a standby.
#[async_trait]
pub trait Dashboard: Send + Sync + 'static {
    /// A page of jobs, newest first, bounded in what it looks at.
    async fn jobs(&self, query: &JobQuery) -> Result<JobPage, StoreError>;

    /// As [`Self::jobs`], without what was submitted to be executed.
    async fn job_rows(&self, query: &JobQuery) -> Result<JobRowPage, StoreError>;

    /// How many jobs the filter passes, up to a bound, looking at a bounded number of them.
    async fn count_jobs(&self, filter: &JobFilter) -> Result<JobCount, StoreError>;

    /// The first values of this key that begin with `prefix`, in the order of their bytes, at most `limit`, and whether there
    /// are more.
    async fn values(
        &self,
        key: &ValueKey,
        prefix: &str,
        limit: u32,
    ) -> Result<(Vec<String>, bool), StoreError>;

    /// Bounded counts by status, and what the fleet offers and has reserved.
    async fn summary(&self) -> Result<Summary, StoreError>;

    /// Jobs that failed for good since then and were not retried, grouped by how; looks at a bounded number of the newest.
    async fn failing(&self, since: Timestamp) -> Result<Failing, StoreError>;

    /// Jobs that have waited longest, the longest first: one of each pool, lane, owner, shape and priority.
    async fn longest_waiting(&self, limit: u32) -> Result<Vec<JobId>, StoreError>;

    /// What happened in each span of minutes.
    async fn minutes(&self, query: &MinuteQuery) -> Result<MinutePage, StoreError>;

    /// Counts the next events, at most `limit`, into their minutes, each once; removes minutes before `keep_from`.
    async fn roll_up(&self, limit: u32, keep_from: Timestamp) -> Result<RolledUp, StoreError>;

    // Actions on many jobs.

    /// Begins an action, unless its principal's key did before; says which it is, and whether it is new. Forgets those that
    /// ended long ago.
    async fn start_bulk(&self, bulk: &NewBulk, by: &Actor) -> Result<(BulkRecord, bool), StoreError>;

    /// One action.
    async fn bulk(&self, id: Uuid) -> Result<Option<BulkRecord>, StoreError>;

    /// The newest actions; or only those that are running, the oldest first.
    async fn bulks(&self, only_running: bool, limit: u32) -> Result<Vec<BulkRecord>, StoreError>;

    /// Stops an action; one that is over stays as it is. `None`: no such action.
    async fn stop_bulk(&self, id: Uuid, by: &Actor) -> Result<Option<BulkRecord>, StoreError>;

    /// Acts on the next jobs, at most `limit`, that `acted_on` passes, and moves the action on, in one transaction guarded by
    /// where it was: whoever else does the same meanwhile does nothing. Gives it as it is then.
    async fn step_bulk(
        &self,
        bulk: &BulkRecord,
        acted_on: Option<&JobFilter>,
        limit: u32,
    ) -> Result<BulkRecord, StoreError>;

    // Saved views.

    /// The views that this principal made, and those that are shared, by name.
    async fn views(&self, principal: &str) -> Result<Vec<ViewRecord>, StoreError>;

    /// One view.
    async fn view(&self, id: Uuid) -> Result<Option<ViewRecord>, StoreError>;

    /// Keeps a new view.
    async fn add_view(&self, view: &NewView, by: &Actor) -> Result<ViewChange, StoreError>;

    /// Changes a view; with `version` only while it has that one, else whatever it is now.
    async fn change_view(
        &self,
        view: &NewView,
        version: Option<u32>,
        by: &Actor,
    ) -> Result<ViewChange, StoreError>;

    /// Removes a view; `version` as in [`Self::change_view`].
    async fn remove_view(&self, id: Uuid, version: Option<u32>, by: &Actor)
    -> Result<ViewChange, StoreError>;
}
