//! Carries out actions on many jobs, a batch at a time.
//!
//! Where an action is lies in the datastore, and moves on with what was done: any informer goes on where another stopped.

use std::sync::Arc;

use jobyard_api::filter;
use jobyard_model::bulk::acted_on;
use jobyard_store::{Actor, BulkRecord, BulkStatus, Store, StoreError};

use crate::pace::{Ran, RunOnce};

/// Actions that take turns.
const AT_ONCE: u32 = 8;
/// Jobs of a batch: a transaction that is over within a few milliseconds.
const BATCH: u32 = 200;

pub(crate) struct CarryOutBulkLoop {
    store: Arc<dyn Store>,
}

impl CarryOutBulkLoop {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    async fn step(&self, bulk: &BulkRecord) -> Result<BulkRecord, StoreError> {
        let jobs = match filter::parse(&bulk.filter, "/filter") {
            Ok(jobs) => acted_on(&jobs, bulk.action, bulk.owners.as_deref(), bulk.created_at),
            Err(faults) => {
                tracing::error!(id = %bulk.id, filter = bulk.filter, ?faults, "an action's filter can't be read; it is stopped");
                let stopped = self.store.stop_bulk(bulk.id, &Actor::role("informer")).await?;
                return Ok(stopped.unwrap_or_else(|| bulk.clone()));
            }
        };
        self.store.step_bulk(bulk, jobs.as_ref(), BATCH).await
    }
}

impl RunOnce for CarryOutBulkLoop {
    async fn run_once(&mut self) -> Result<Ran, StoreError> {
        let mut ran = Ran::default();
        for bulk in self.store.bulks(true, AT_ONCE).await? {
            let now = self.step(&bulk).await?;
            let changed = now.changed.saturating_sub(bulk.changed);
            ran = ran.and(Ran { changed, more: now.status == BulkStatus::Running, gather: false });
        }
        Ok(ran)
    }
}
