//! Counts events into the minutes they happened in, for overviews.
//!
//! Takes at most a fifth of the time: what it has not counted yet it counts when there is less to do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jobyard_model::Timestamp;
use jobyard_store::{Store, StoreError};

use crate::pace::{Ran, RunOnce};

const BATCH: u32 = 5_000;
/// How much longer it rests than a batch took.
const REST: u32 = 4;
/// A run goes on for about this long.
const RUN: Duration = Duration::from_millis(800);

pub(crate) struct CountMinutesLoop {
    store: Arc<dyn Store>,
    keep_ms: u64,
}

impl CountMinutesLoop {
    pub(crate) fn new(store: Arc<dyn Store>, keep_ms: u64) -> Self {
        Self { store, keep_ms }
    }
}

impl RunOnce for CountMinutesLoop {
    async fn run_once(&mut self) -> Result<Ran, StoreError> {
        let run = Instant::now();
        let now = self.store.now().await?;
        let keep_from = Timestamp(now.0.saturating_sub_unsigned(self.keep_ms));
        let mut changed = 0;
        loop {
            let batch = Instant::now();
            let rolled_up = self.store.roll_up(BATCH, keep_from).await?;
            changed += rolled_up.events;
            if !rolled_up.more || run.elapsed() > RUN {
                return Ok(Ran { changed, more: rolled_up.more, gather: false });
            }
            tokio::time::sleep(batch.elapsed().saturating_mul(REST).min(RUN)).await;
        }
    }
}
