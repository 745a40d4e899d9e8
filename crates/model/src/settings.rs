//! Settings that the rules need.

/// How long a worker's right to an attempt lasts without being renewed, and when those rights may be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseSettings {
    /// From claim to the worker's acceptance; 10 s.
    pub claim_lease_ms: u64,
    /// From one renewal to being lost; 180 s.
    pub lease_ms: u64,
    /// From one heartbeat to the next; 60 s.
    pub heartbeat_ms: u64,
    /// A gap of `report_clock` above which nothing is judged by silence for one lease; 30 s.
    pub report_gap_ms: u64,
    /// How old `report_clock` may be for a verdict by silence; 15 s.
    pub report_fresh_ms: u64,
}

impl Default for LeaseSettings {
    fn default() -> Self {
        Self {
            claim_lease_ms: 10_000,
            lease_ms: 180_000,
            heartbeat_ms: 60_000,
            report_gap_ms: 30_000,
            report_fresh_ms: 15_000,
        }
    }
}

/// How long an artifact may be missing before its job expires, unless the job has a `start_within`; 24 h.
pub const MISSING_ARTIFACT_MS: u64 = 24 * 60 * 60 * 1000;

/// How long after the lease of an `exclusive` attempt that fell silent the next one may be claimed (promise 3).
pub const EXCLUSIVE_PAUSE_MS: u64 = 5_000;
