//! Moves jobs whose time has come back into the queue, and ends those that waited too long to start.

use std::sync::Arc;

use jobyard_store::{Store, StoreError};

use crate::pace::{Ran, RunOnce};

const BATCH: u32 = 1_000;

pub(crate) struct ReleaseDueLoop {
    store: Arc<dyn Store>,
}

impl ReleaseDueLoop {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }
}

impl RunOnce for ReleaseDueLoop {
    async fn run_once(&mut self) -> Result<Ran, StoreError> {
        let changed = self.store.release_due(BATCH).await?;
        Ok(Ran { changed, more: changed >= u64::from(BATCH), gather: false })
    }
}
