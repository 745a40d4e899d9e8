//! What happened in each minute, derived from the events.
//!
//! A page of events becomes counts ([`Tally`]); the dialects add those and move the cursor in one transaction, guarded by the
//! cursor as it was read. So each event is counted once, whoever else rolls up and whatever dies in between.

use std::collections::BTreeMap;

use jobyard_model::{Outcome, Phase, Status, Timestamp};

use crate::encoding::amount;

/// A minute in milliseconds.
pub const MINUTE_MS: i64 = 60_000;
/// The cursor's row is touched at least this often, so that it also tells that somebody rolls up.
pub(crate) const TOUCHED_EACH_MS: i64 = 15_000;

/// What happened in a span of time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MinuteCounts {
    /// Jobs that were accepted.
    pub submitted: u64,
    /// Attempts whose task process began.
    pub started: u64,
    /// Jobs that came to an end, by their status then.
    pub ended: BTreeMap<Status, u64>,
    /// Attempts that ended, by how.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// How long jobs had waited when they were placed.
    pub waits: Waits,
}

/// How long jobs waited: a histogram.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Waits {
    /// How many had waited at most [`Waits::bound_ms`] of the key, and longer than that of the key below.
    steps: BTreeMap<i16, u64>,
}

impl Waits {
    /// The highest step: about 12 days.
    const LAST: i16 = 60;

    /// The upper bound of a step: powers of the square root of 2, in milliseconds.
    fn bound_ms(step: i16) -> u64 {
        let power = 1_u64 << (step / 2).clamp(0, 30);
        // 181 / 128 is √2 to four digits.
        if step % 2 == 0 { power } else { power * 181 / 128 }
    }

    fn step_of(wait_ms: i64) -> i16 {
        (0..Self::LAST).find(|step| amount(wait_ms) <= Self::bound_ms(*step)).unwrap_or(Self::LAST)
    }

    /// How many jobs were placed.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.steps.values().sum()
    }

    /// So many of a hundred had waited at most this long, to the upper bound of a step: up to 42 % too much. `None` when
    /// nothing was placed.
    #[must_use]
    pub fn percentile_ms(&self, percent: u64) -> Option<u64> {
        let wanted = (self.count() * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let reached = self.steps.iter().find(|(_, count)| {
            seen += **count;
            seen >= wanted
        });
        reached.map(|(step, _)| Self::bound_ms(*step))
    }
}

/// What came of rolling up a page of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RolledUp {
    /// Events that were counted.
    pub events: u64,
    /// There are more.
    pub more: bool,
}

/// Minutes, or spans of several.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MinutePage {
    /// The beginning of each span, and what happened in it; none is left out.
    pub spans: Vec<(Timestamp, MinuteCounts)>,
    /// Up to when everything is counted; what happened later is counted in part.
    pub complete_until: Timestamp,
}

/// Which spans of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinuteQuery {
    /// From this minute on.
    pub from: Timestamp,
    /// Up to this one, which is left out.
    pub to: Timestamp,
    /// How many minutes a span has; 1 or more.
    pub step_minutes: u32,
}

/// An event as far as it is counted.
#[derive(Debug)]
pub(crate) struct Counted<'e> {
    pub(crate) at_ms: i64,
    pub(crate) from: &'e str,
    pub(crate) to: &'e str,
    pub(crate) why: &'e str,
    pub(crate) has_attempt: bool,
    /// Of a placement: when the job began to wait.
    pub(crate) waited_since_ms: Option<i64>,
}

/// What is counted, as the column `what` says it: a job's new status by its code, an outcome from 100 on, the step of a
/// wait from 200 on.
const SUBMITTED: i16 = 0;
const STARTED: i16 = 1;
const ENDED: i16 = 10;
const OUTCOMES: i16 = 100;
const WAITS: i16 = 200;

/// Counts by minute and by what was counted.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) counts: BTreeMap<(i64, i16), i64>,
}

impl Tally {
    pub(crate) fn add(&mut self, event: &Counted<'_>) {
        let minute_ms = event.at_ms.div_euclid(MINUTE_MS) * MINUTE_MS;
        let mut count = |what: i16| *self.counts.entry((minute_ms, what)).or_default() += 1;
        let (from, to) = (event.from, event.to);
        let is_status = |word: &str, status: Status| word == status.as_str();
        if from.is_empty() {
            count(SUBMITTED);
        }
        if is_placement(from, to)
            && let Some(since_ms) = event.waited_since_ms
        {
            count(WAITS + Waits::step_of(event.at_ms - since_ms));
        }
        let before_start = [Phase::Placed, Phase::Starting].map(Phase::as_str).contains(&from);
        if before_start && [Phase::Running, Phase::Finishing].map(Phase::as_str).contains(&to) {
            count(STARTED);
        }
        let over = [Status::Success, Status::FinalFailed, Status::Cancelled];
        let end = over.into_iter().find(|status| is_status(to, *status));
        if let Some(status) = end {
            count(ENDED + status.code());
        }
        let left = end.is_some() || is_status(to, Status::Waiting) || is_status(to, Status::Retry);
        if is_status(from, Status::Running)
            && left
            && event.has_attempt
            && let Some(outcome) = Outcome::ALL.into_iter().find(|outcome| outcome.as_str() == event.why)
        {
            count(OUTCOMES + outcome.code());
        }
    }
}

/// Whether an event of this move is a placement.
pub(crate) fn is_placement(from: &str, to: &str) -> bool {
    from == Status::Waiting.as_str() && to == Status::Running.as_str()
}

impl MinuteCounts {
    /// Adds what a row counts; a number that nothing has is of a newer binary.
    pub(crate) fn add(&mut self, what: i16, count: u64) {
        match what {
            SUBMITTED => self.submitted += count,
            STARTED => self.started += count,
            WAITS.. => *self.waits.steps.entry(what - WAITS).or_default() += count,
            OUTCOMES.. => {
                if let Some(outcome) = Outcome::from_code(what - OUTCOMES) {
                    *self.outcomes.entry(outcome).or_default() += count;
                }
            }
            _ => {
                if let Some(status) = Status::from_code(what - ENDED) {
                    *self.ended.entry(status).or_default() += count;
                }
            }
        }
    }
}

impl MinuteQuery {
    /// How many spans it asks for.
    #[must_use]
    pub fn spans_asked(&self) -> usize {
        self.grid().2
    }

    /// The first minute's beginning, the length of a span, and how many there are.
    pub(crate) fn grid(&self) -> (i64, i64, usize) {
        let step_ms = i64::from(self.step_minutes.max(1)) * MINUTE_MS;
        let from_ms = self.from.0.div_euclid(MINUTE_MS) * MINUTE_MS;
        let length_ms = (self.to.0 - from_ms).max(0);
        let spans = length_ms.div_euclid(step_ms) + i64::from(length_ms.rem_euclid(step_ms) > 0);
        (from_ms, step_ms, usize::try_from(spans).unwrap_or(0))
    }

    /// The spans, from rows of (place of the span, what, count).
    pub(crate) fn spans(
        &self,
        rows: impl IntoIterator<Item = (i64, i16, i64)>,
    ) -> Vec<(Timestamp, MinuteCounts)> {
        let (from_ms, step_ms, spans) = self.grid();
        let begins = (0_i64..).take(spans).map(|place| Timestamp(from_ms + place * step_ms));
        let mut spans: Vec<(Timestamp, MinuteCounts)> =
            begins.map(|begin| (begin, MinuteCounts::default())).collect();
        for (place, what, count) in rows {
            if let Some((_, counts)) = usize::try_from(place).ok().and_then(|place| spans.get_mut(place)) {
                counts.add(what, amount(count));
            }
        }
        spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_waits_ascend_and_hold_what_falls_into_them() {
        let bounds: Vec<u64> = (0..=Waits::LAST).map(Waits::bound_ms).collect();
        assert!(bounds.windows(2).all(|pair| pair[0] <= pair[1]), "{bounds:?}");
        for wait_ms in [-5, 0, 1, 2, 3, 999, 1_000, 60_000, 86_400_000, i64::MAX] {
            let step = Waits::step_of(wait_ms);
            assert!(step == Waits::LAST || amount(wait_ms) <= Waits::bound_ms(step), "{wait_ms}");
            assert!(step == 0 || amount(wait_ms) > Waits::bound_ms(step - 1), "{wait_ms}");
        }
    }

    #[test]
    fn percentiles_are_upper_bounds() {
        let mut waits = Waits::default();
        assert_eq!(waits.percentile_ms(50), None);
        for wait_ms in 1..=100 {
            *waits.steps.entry(Waits::step_of(wait_ms)).or_default() += 1;
        }
        assert_eq!((waits.percentile_ms(50), waits.percentile_ms(95)), (Some(64), Some(128)));
    }

    #[test]
    fn spans_cover_the_time_asked_for_and_nothing_else() {
        let query =
            |from, to, step_minutes| MinuteQuery { from: Timestamp(from), to: Timestamp(to), step_minutes };
        assert_eq!(query(61_000, 180_000, 1).grid(), (60_000, 60_000, 2));
        assert_eq!(query(0, 180_001, 2).grid(), (0, 120_000, 2));
        assert_eq!(query(180_000, 0, 1).grid().2, 0);
        let spans = query(0, 120_000, 1).spans([(0, 0, 3), (1, 100, 2), (5, 0, 9), (1, 15, 1), (1, 999, 4)]);
        assert_eq!((spans.len(), spans[0].1.submitted), (2, 3));
        assert_eq!(spans[1].1.outcomes, BTreeMap::from([(Outcome::Succeeded, 2)]));
        assert_eq!(spans[1].1.ended, BTreeMap::from([(Status::Success, 1)]));
    }
}
