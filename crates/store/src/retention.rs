//! What is old enough to go.

use jobyard_model::Timestamp;

/// Older than these is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cutoffs {
    /// Jobs that ended before, with their attempts, events and log index.
    pub jobs: Timestamp,
    /// Idempotency keys of ended jobs.
    pub keys: Timestamp,
    /// Audit rows.
    pub audit: Timestamp,
}

/// What one batch removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Removed {
    /// Jobs.
    pub jobs: u64,
    /// Idempotency keys.
    pub keys: u64,
    /// Audit rows.
    pub audit: u64,
}
