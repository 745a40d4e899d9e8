//! How often something that may have become slow is done.

use std::time::{Duration, Instant};

/// What is slow rests for so many times as long as it took,
const RESTS: u32 = 9;
/// but not longer than this: a job that only it can find starts within 10 s all the same.
const LONGEST_REST: Duration = Duration::from_secs(4);

/// Remembers how long it took last time, by the server's clock, so that a busy machine on our side doesn't count.
#[derive(Debug, Default)]
pub(super) struct Pacing {
    took_us: i64,
    running: bool,
    ended: Option<Instant>,
}

impl Pacing {
    /// Whether it took at most so long last time, and so may be done each time that its answer is wanted. Before the
    /// first time it counts as quick.
    pub(super) fn is_quick(&self, quick_us: i64) -> bool {
        self.took_us <= quick_us
    }

    /// `true` when it is to be begun now, by whoever asks: it is not on its way, and has rested since it last was.
    /// Whoever begins it says [`Self::end`].
    pub(super) fn begin_if_rested(&mut self) -> bool {
        let took = Duration::from_micros(u64::try_from(self.took_us).unwrap_or(0));
        let rest = (took * RESTS).min(LONGEST_REST);
        let rested = self.ended.is_none_or(|ended| ended.elapsed() >= rest);
        let begin = !self.running && rested;
        self.running |= begin;
        begin
    }

    /// It is over; `Some`: it took so long, in microseconds.
    pub(super) fn end(&mut self, took_us: Option<i64>) {
        self.running = false;
        self.ended = Some(Instant::now());
        self.took_us = took_us.unwrap_or(self.took_us);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_slow_is_done_by_one_at_a_time_and_rests() {
        let mut pacing = Pacing::default();
        assert!(pacing.is_quick(1_000));
        assert!(pacing.begin_if_rested());
        assert!(!pacing.begin_if_rested(), "it is on its way");
        pacing.end(Some(3_600_000_000));
        assert!(!pacing.is_quick(1_000));
        assert!(!pacing.begin_if_rested(), "it has not rested");
        pacing.ended = pacing.ended.and_then(|ended| ended.checked_sub(LONGEST_REST));
        assert!(pacing.begin_if_rested());
        pacing.end(None);
        assert!(!pacing.is_quick(1_000), "a failure says nothing of how long it takes");
        pacing.end(Some(0));
        assert!(pacing.is_quick(1_000));
        assert!(pacing.begin_if_rested());
    }
}
