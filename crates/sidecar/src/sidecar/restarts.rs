//! A service: its task process leaves, the rest of its tree is cleared, and after a delay the program is started again.

use std::rc::Rc;

use jobyard_handoff::{FromSidecar, RestartPlan, ServiceState, TaskExit};

use super::{Sidecar, State};
use crate::clock::Now;
use crate::exec::Image;
use crate::memory::MemoryWatch;
use crate::task::Task;
use crate::timers::{LeaseVerdict, Timer};

/// What a service needs besides its plan.
pub(super) struct Service {
    /// Holds the environment, which is on no disk any more.
    image: Rc<Image>,
    delays: Delays,
    out_of_memory: bool,
    told: Option<ServiceState>,
}

impl Service {
    pub(super) fn new(image: Rc<Image>, plan: &RestartPlan) -> Self {
        Self { image, delays: Delays::new(plan), out_of_memory: false, told: None }
    }
}

/// How long to wait before each restart.
struct Delays {
    next_ms: u64,
    /// When the process that runs, or ran last, was started; monotonic.
    up_since_ms: u64,
}

impl Delays {
    fn new(plan: &RestartPlan) -> Self {
        Self { next_ms: plan.first_delay_ms, up_since_ms: 0 }
    }

    /// The delay before the next start; the one after that is twice as long.
    fn take(&mut self, plan: &RestartPlan, now: Now) -> u64 {
        if now.monotonic_ms.saturating_sub(self.up_since_ms) >= plan.calm_ms {
            self.next_ms = plan.first_delay_ms;
        }
        let delay_ms = self.next_ms.min(plan.longest_delay_ms);
        self.next_ms = delay_ms.saturating_mul(2);
        delay_ms
    }
}

impl Sidecar {
    /// Whether the end of the task process that runs, or of the one that is being cleared, is followed by a restart.
    pub(super) fn will_restart(&self) -> bool {
        let (Some(plan), Some(_)) = (&self.plan.restart, &self.service) else { return false };
        let is_final = match self.task.as_ref().and_then(Task::exit) {
            Some(TaskExit::Code(code)) => plan.final_exit_codes.contains(&code),
            Some(TaskExit::Signal(_)) | None => false,
        };
        self.ending.is_none() && self.fault.is_none() && !is_final
    }

    /// The memory limit is why the process that runs is about to end.
    pub(super) fn note_out_of_memory(&mut self) {
        if let Some(service) = &mut self.service {
            service.out_of_memory = true;
        }
    }

    /// Nothing of the process is left.
    pub(super) fn back_off(&mut self, now: Now) {
        self.output.drain(now.unix_ms);
        self.tell_log_growth();
        self.timers.cancel(Timer::Memory);
        self.state = State::BackingOff;
        let exit = self.task.as_ref().and_then(Task::exit);
        let was_killed = self.memory.as_ref().is_some_and(MemoryWatch::has_killed);
        let (Some(exit), Some(plan), Some(service)) = (exit, &self.plan.restart, &mut self.service) else {
            // Not reached: only an end that was seen is followed by a restart.
            return self.finish(now, 0);
        };
        let delay_ms = service.delays.take(plan, now);
        let ended_badly = exit != TaskExit::Code(0);
        service.told = Some(ServiceState {
            restarts: service.told.map_or(0, |told| told.restarts),
            last_exit: exit,
            out_of_memory: service.out_of_memory || (ended_badly && was_killed),
            last_exit_at_ms: now.unix_ms,
            next_start_at_ms: Some(now.unix_ms.saturating_add(delay_ms)),
        });
        service.out_of_memory = false;
        self.timers.set(Timer::Restart, now.monotonic_ms.saturating_add(delay_ms));
        self.tell_service();
    }

    pub(super) fn start_again(&mut self, now: Now) {
        // An exclusive one whose lease is about to end is ended by the loop instead.
        let is_too_late = matches!(self.lease_verdict(now), Some(LeaseVerdict::End { .. }));
        if self.state != State::BackingOff || is_too_late {
            return;
        }
        let Some(image) = self.service.as_ref().map(|service| Rc::clone(&service.image)) else { return };
        if let Some(memory) = &mut self.memory {
            memory.begin_anew();
        }
        self.spawn(&image, now);
    }

    /// The program was executed, for the first time or again.
    pub(super) fn note_up(&mut self, now: Now) {
        let Some(service) = &mut self.service else { return };
        service.delays.up_since_ms = now.monotonic_ms;
        if let Some(told) = &mut service.told {
            told.restarts = told.restarts.saturating_add(1);
            told.next_start_at_ms = None;
            self.tell_service();
        }
    }

    pub(super) fn tell_service(&mut self) {
        if let Some(told) = self.service.as_ref().and_then(|service| service.told) {
            self.say(&FromSidecar::Service(told));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(monotonic_ms: u64) -> Now {
        Now { unix_ms: 0, monotonic_ms, boottime_ms: 0 }
    }

    #[test]
    fn delays_double_to_the_longest_and_begin_anew_after_a_calm_time() {
        let plan = RestartPlan::default();
        let mut delays = Delays::new(&plan);
        let seconds: Vec<u64> = (0..9).map(|_| delays.take(&plan, at(599_999)) / 1_000).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        delays.up_since_ms = 1_000_000;
        assert_eq!(delays.take(&plan, at(1_599_999)), 60_000);
        assert_eq!(delays.take(&plan, at(1_600_000)), 1_000);
        delays.up_since_ms = 1_601_000;
        assert_eq!(delays.take(&plan, at(1_601_001)), 2_000);
    }
}
