//! Whether the server can do its work, beyond being alive.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long the server counts as not ready after the datastore was full. Then it is tried again: only a call that
/// writes can find out whether there is room.
const FULL_FOR: Duration = Duration::from_secs(10);

/// What the answers of the last seconds said about the datastore.
#[derive(Debug, Default)]
pub(crate) struct Health {
    full_at: Mutex<Option<Instant>>,
}

impl Health {
    /// A call was refused since the datastore is full.
    pub(crate) fn note_full(&self) {
        *self.full_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Whether the datastore was full a moment ago.
    pub(crate) fn is_full(&self) -> bool {
        let full_at = *self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        full_at.is_some_and(|at| at.elapsed() < FULL_FOR)
    }
}
