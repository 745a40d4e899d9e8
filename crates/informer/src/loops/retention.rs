//! Removes what is older than the settings keep, a batch at a time.

use std::sync::Arc;

use jobyard_model::Timestamp;
use jobyard_store::{Cutoffs, Store, StoreError};

use crate::InformerSettings;
use crate::pace::{Ran, RunOnce};

const BATCH: u32 = 500;

pub(crate) struct RetentionLoop {
    store: Arc<dyn Store>,
    settings: InformerSettings,
}

impl RetentionLoop {
    pub(crate) fn new(store: Arc<dyn Store>, settings: InformerSettings) -> Self {
        Self { store, settings }
    }
}

impl RunOnce for RetentionLoop {
    async fn run_once(&mut self) -> Result<Ran, StoreError> {
        let now = self.store.now().await?;
        let before = |keep_ms: u64| Timestamp(now.0.saturating_sub_unsigned(keep_ms));
        let cutoffs = Cutoffs {
            jobs: before(self.settings.keep_jobs_ms),
            keys: before(self.settings.keep_keys_ms),
            audit: before(self.settings.keep_audit_ms),
        };
        let removed = self.store.remove_old(cutoffs, BATCH).await?;
        let most = removed.jobs.max(removed.keys).max(removed.audit);
        Ok(Ran {
            changed: removed.jobs + removed.keys + removed.audit,
            more: most == u64::from(BATCH),
            gather: false,
        })
    }
}
