//! Gives up on attempts whose lease ran out, when silence may be judged (promise 4).

use std::sync::Arc;

use jobyard_store::{Store, StoreError};

use crate::LoopBoard;
use crate::pace::{Ran, RunOnce};

const BATCH: u32 = 500;

pub(crate) struct ExpireLeasesLoop {
    store: Arc<dyn Store>,
    board: LoopBoard,
}

impl ExpireLeasesLoop {
    pub(crate) fn new(store: Arc<dyn Store>, board: LoopBoard) -> Self {
        Self { store, board }
    }
}

impl RunOnce for ExpireLeasesLoop {
    async fn run_once(&mut self) -> Result<Ran, StoreError> {
        let report = self.store.expire_silent(BATCH).await?;
        self.board.note_held_back(report.held_back);
        if let (Some(paused), true) = (report.paused, report.held_back > 0) {
            tracing::warn!(held_back = report.held_back, paused, "silent attempts are not given up on yet");
        }
        Ok(Ran { changed: report.expired, more: report.expired == u64::from(BATCH), gather: false })
    }
}
