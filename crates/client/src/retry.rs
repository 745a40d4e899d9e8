//! When a call is made again, and after how long.
//!
//! Owns the delays. Never decides whether a call *may* be repeated: each call says so itself (`Repeat`).

use std::time::Duration;

/// How patient a client is. The delays double from `first_delay` to `longest_delay`, with jitter.
///
/// ```
/// use std::time::Duration;
/// use jobyard_client::RetryPolicy;
///
/// let impatient = RetryPolicy { unreachable_for: Duration::from_secs(2), ..RetryPolicy::default() };
/// assert!(impatient.unreachable_for < RetryPolicy::default().unreachable_for);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The delay before the first repetition; 50 ms.
    pub first_delay: Duration,
    /// No delay of ours is longer; 5 s. A server's `Retry-After` may be.
    pub longest_delay: Duration,
    /// For how long one call is repeated while the server can't be reached; 30 s.
    pub unreachable_for: Duration,
    /// For how long one call is repeated while the server answers that it is busy (429, 502, 503, 504); 60 s.
    pub busy_for: Duration,
    /// For how long waiting, watching and following outlast an outage; 15 min.
    pub outage_for: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            first_delay: Duration::from_millis(50),
            longest_delay: Duration::from_secs(5),
            unreachable_for: Duration::from_secs(30),
            busy_for: Duration::from_secs(60),
            outage_for: Duration::from_secs(15 * 60),
        }
    }
}

impl RetryPolicy {
    /// The delay before repetition number `repetition` (from 0): between half and all of the doubled delay, so that
    /// clients that failed together don't come back together. `chance` is uniform over its type.
    pub(crate) fn delay(&self, repetition: u32, chance: u32) -> Duration {
        let doubled =
            self.first_delay.saturating_mul(2_u32.saturating_pow(repetition)).min(self.longest_delay);
        doubled / 2 + (doubled / 2).mul_f64(f64::from(chance) / f64::from(u32::MAX))
    }
}

/// Whether a call may be sent again when its fate is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// A key or its own nature absorbs the repetition.
    Safe,
    /// It would be done twice.
    Unsafe,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest_and_jitter_takes_at_most_half() {
        let policy = RetryPolicy::default();
        for (repetition, full_ms) in [(0, 50), (1, 100), (4, 800), (6, 3_200), (7, 5_000), (40, 5_000)] {
            let full = Duration::from_millis(full_ms);
            assert_eq!(policy.delay(repetition, u32::MAX), full, "{repetition}");
            assert_eq!(policy.delay(repetition, 0), full / 2, "{repetition}");
        }
    }
}
