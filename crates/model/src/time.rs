//! Instants, and where they come from.

use serde::{Deserialize, Serialize};

/// An instant: milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This instant plus a duration in milliseconds; stays at the ends of the range instead of wrapping.
    #[must_use]
    pub fn plus_ms(self, duration_ms: u64) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration_ms).unwrap_or(i64::MAX)))
    }

    /// Milliseconds from `earlier` to this instant; 0 when `earlier` is later (a clock that stepped back).
    #[must_use]
    pub fn ms_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

/// Where a room gets the time from. The only implementation that reads the machine's clock stands in `cli`.
pub trait Clock: Send + Sync + 'static {
    /// The wall clock. Never used to judge a lease on PostgreSQL: there the datastore's clock counts.
    fn now(&self) -> Timestamp;
}

/// What a transition needs from outside: when it happens, and one draw of chance for its jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The datastore's clock.
    pub now: Timestamp,
    /// Uniform over all values of the type.
    pub chance: u32,
}
