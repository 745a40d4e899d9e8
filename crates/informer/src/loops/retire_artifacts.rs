//! Lets artifacts go that nobody has needed for long, a batch at a time. Their bytes are the servers' to remove.

use std::sync::Arc;

use jobyard_model::Timestamp;
use jobyard_store::{ArtifactCutoffs, Store, StoreError};

use crate::InformerSettings;
use crate::pace::{Ran, RunOnce};

const BATCH: u32 = 500;
/// From the moment when an artifact is found to be needed by nobody to its going: longer than any submit takes that saw
/// it before.
const DOOMED_FOR_MS: u64 = 10 * 60 * 1000;

pub(crate) struct RetireArtifactsLoop {
    store: Arc<dyn Store>,
    settings: InformerSettings,
}

impl RetireArtifactsLoop {
    pub(crate) fn new(store: Arc<dyn Store>, settings: InformerSettings) -> Self {
        Self { store, settings }
    }
}

impl RunOnce for RetireArtifactsLoop {
    async fn run_once(&mut self) -> Result<Ran, StoreError> {
        let now = self.store.now().await?;
        let before = |keep_ms: u64| Timestamp(now.0.saturating_sub_unsigned(keep_ms));
        let cutoffs = ArtifactCutoffs {
            unused: before(self.settings.keep_artifacts_ms),
            doomed: before(DOOMED_FOR_MS),
        };
        let retired = self.store.retire_artifacts(cutoffs, BATCH).await?;
        let looked_at = retired.doomed + retired.removed + retired.needed;
        Ok(Ran {
            changed: retired.doomed + retired.removed,
            more: looked_at >= u64::from(BATCH),
            ..Ran::default()
        })
    }
}
