//! What is due when, on the monotonic clock, and an exclusive attempt's lease on the boot-time clock. No clock
//! is read here.

use jobyard_handoff::Times;

/// Everything the sidecar waits for besides descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timer {
    /// Tell the worker that we watch.
    Heartbeat,
    /// Tell the worker that the log grew.
    LogNotice,
    /// The run-time limit is over.
    Timeout,
    /// The grace is over; also: the last KILL did not help.
    Kill,
    /// No worker for too long.
    Orphaned,
    /// Look whether the rest of the tree is gone.
    Clear,
    /// Look at the memory group's counter again.
    Memory,
    /// Over, and no answer from the worker: leave, or try to write the record again.
    Leave,
    /// A service's delay is over: start its program again.
    Restart,
}

const COUNT: usize = 9;

/// At most one instant for each timer.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    at_ms: [Option<u64>; COUNT],
}

impl Timers {
    const ALL: [Timer; COUNT] = [
        Timer::Heartbeat,
        Timer::LogNotice,
        Timer::Timeout,
        Timer::Kill,
        Timer::Orphaned,
        Timer::Clear,
        Timer::Memory,
        Timer::Leave,
        Timer::Restart,
    ];

    pub(crate) fn set(&mut self, timer: Timer, at_ms: u64) {
        self.at_ms[timer as usize] = Some(at_ms);
    }

    /// Sets it unless it is set to something earlier.
    pub(crate) fn bring_forward(&mut self, timer: Timer, at_ms: u64) {
        let set = &mut self.at_ms[timer as usize];
        *set = Some(set.map_or(at_ms, |earlier| earlier.min(at_ms)));
    }

    pub(crate) fn cancel(&mut self, timer: Timer) {
        self.at_ms[timer as usize] = None;
    }

    pub(crate) fn is_set(&self, timer: Timer) -> bool {
        self.at_ms[timer as usize].is_some()
    }

    /// One that is due; it is not set any more.
    pub(crate) fn take_due(&mut self, now_ms: u64) -> Option<Timer> {
        let due =
            Self::ALL.into_iter().find(|timer| self.at_ms[*timer as usize].is_some_and(|at| at <= now_ms))?;
        self.cancel(due);
        Some(due)
    }

    /// Until the next one.
    pub(crate) fn wait_ms(&self, now_ms: u64) -> Option<u64> {
        let next = self.at_ms.iter().flatten().min()?;
        Some(next.saturating_sub(now_ms))
    }
}

/// What the lease of an exclusive attempt asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseVerdict {
    /// Nothing before this many ms from now.
    Fine { for_ms: u64 },
    /// TERM now, KILL after this many ms.
    End { grace_ms: u64 },
}

/// The lease counts from the *send* of the last accepted renewal. TERM at lease − grace − margin, so that the
/// task is gone a margin before anybody else may start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lease {
    renewed_at_boottime_ms: u64,
    kill_after_ms: u64,
    grace_ms: u64,
}

impl Lease {
    pub(crate) fn new(times: &Times, sent_at_boottime_ms: u64) -> Self {
        Self {
            renewed_at_boottime_ms: sent_at_boottime_ms,
            kill_after_ms: times.lease_ms.saturating_sub(times.lease_margin_ms),
            grace_ms: times.stop_grace_ms,
        }
    }

    /// A renewal sent then was accepted; answers come in any order.
    pub(crate) fn renew(&mut self, sent_at_boottime_ms: u64) {
        self.renewed_at_boottime_ms = self.renewed_at_boottime_ms.max(sent_at_boottime_ms);
    }

    pub(crate) fn verdict(&self, now_boottime_ms: u64) -> LeaseVerdict {
        let kill_at = self.renewed_at_boottime_ms.saturating_add(self.kill_after_ms);
        let end_at = kill_at.saturating_sub(self.grace_ms);
        if now_boottime_ms < end_at {
            LeaseVerdict::Fine { for_ms: end_at - now_boottime_ms }
        } else {
            LeaseVerdict::End { grace_ms: kill_at.saturating_sub(now_boottime_ms) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_once_and_the_next_one_sets_the_wait() {
        let mut timers = Timers::default();
        timers.set(Timer::Kill, 50);
        timers.set(Timer::Heartbeat, 20);
        timers.bring_forward(Timer::Kill, 70);
        assert_eq!(timers.wait_ms(5), Some(15));
        assert_eq!(timers.take_due(19), None);
        assert_eq!(timers.take_due(20), Some(Timer::Heartbeat));
        assert_eq!(timers.take_due(20), None);
        timers.bring_forward(Timer::Kill, 30);
        assert_eq!(timers.take_due(60), Some(Timer::Kill));
        assert_eq!(timers.wait_ms(60), None);
    }

    #[test]
    fn a_lease_ends_a_grace_and_a_margin_early_and_never_runs_backwards() {
        let times =
            Times { lease_ms: 180_000, lease_margin_ms: 10_000, stop_grace_ms: 10_000, ..Times::default() };
        let mut lease = Lease::new(&times, 1_000);
        assert_eq!(lease.verdict(1_000), LeaseVerdict::Fine { for_ms: 160_000 });
        assert_eq!(lease.verdict(161_000), LeaseVerdict::End { grace_ms: 10_000 });
        assert_eq!(lease.verdict(170_000), LeaseVerdict::End { grace_ms: 1_000 });
        assert_eq!(lease.verdict(999_000), LeaseVerdict::End { grace_ms: 0 });
        lease.renew(61_000);
        lease.renew(31_000);
        assert_eq!(lease.verdict(161_000), LeaseVerdict::Fine { for_ms: 60_000 });
    }
}
