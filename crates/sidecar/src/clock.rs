//! The only place that looks at a clock. Everything else is handed milliseconds.

use rustix::time::{ClockId, clock_gettime};

/// All three clocks at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Now {
    /// For people.
    pub(crate) unix_ms: u64,
    /// For every duration but the lease's.
    pub(crate) monotonic_ms: u64,
    /// Counts while the machine sleeps: for leases.
    pub(crate) boottime_ms: u64,
}

pub(crate) fn now() -> Now {
    Now {
        unix_ms: milliseconds(ClockId::Realtime),
        monotonic_ms: milliseconds(ClockId::Monotonic),
        boottime_ms: milliseconds(ClockId::Boottime),
    }
}

fn milliseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds * 1_000 + nanoseconds / 1_000_000
}
