//! From the decision to start to the exit record: each step of an attempt's life.

use std::rc::Rc;

use jobyard_handoff::{Decision, EndedBy};

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use super::restarts::Service;
use super::{Ending, Sidecar, State};
use crate::clock::Now;
use crate::exec::{self, Image};
use crate::faults;
use crate::memory::{CpuTime, MemoryWatch};
use crate::task::{Launch, Task};
use crate::timers::{LeaseVerdict, Timer};
use crate::tree::Afterwards;

/// A KILL is repeated this often until it has worked.
const KILL_AGAIN_MS: u64 = 100;
/// After this long the tree is reported with survivors.
const CLEAR_LIMIT_MS: u64 = 30_000;
/// After a memory event the counter may lag: look again this often, this many times.
const MEMORY_LOOK_MS: u64 = 10;
const MEMORY_LOOKS: u32 = 50;
/// Over while the machine goes down: how long the worker may take to acknowledge.
const SHUTDOWN_PATIENCE_MS: u64 = 2_000;
/// Over, but the record could not be written: try again this often.
const WRITE_AGAIN_MS: u64 = 1_000;

impl Sidecar {
    /// Decides `started` and starts. False: a worker decided otherwise, and nothing may be done.
    pub(super) fn begin(&mut self, now: Now) -> bool {
        let environment = match self.directory.environment() {
            Ok(environment) => environment,
            Err(error) => {
                self.fail(faults::unreadable(&error), now);
                return true;
            }
        };
        match self.directory.decide(Decision::Started) {
            Ok(Decision::Started) => {}
            Ok(Decision::NotStarted) => return false,
            Err(error) => {
                self.fail(faults::undecidable(&error), now);
                return true;
            }
        }
        if environment.secret
            && let Err(error) = self.hide_secrets()
        {
            self.fail(faults::not_hidden(&error), now);
            return true;
        }
        match (faults::before_start(&self.plan), Image::new(&self.plan, &environment)) {
            (Some(fault), _) => self.fail(fault, now),
            (None, Ok(image)) => self.start(Rc::new(image), now),
            (None, Err(error)) => self.fail(faults::malformed(error), now),
        }
        // Without secrets it is removed while the child is on its way, which is what takes its time; should it fail,
        // the directory is still closed to the task.
        let _ = self.directory.remove_environment();
        true
    }

    /// Secrets are in our memory alone before anything is started, and that is shown to nobody.
    fn hide_secrets(&self) -> std::io::Result<()> {
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        self.directory.remove_environment()
    }

    fn start(&mut self, image: Rc<Image>, now: Now) {
        if matches!(self.plan.containment, jobyard_handoff::Containment::Subreaper) {
            // Without it orphans go to the machine's first process: best effort gets weaker, not wrong.
            let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        }
        self.cpu_before = CpuTime::of(&self.plan.groups);
        self.spawn(&image, now);
        if let Some(plan) = self.plan.restart.as_ref().filter(|_| self.state == State::Starting) {
            self.service = Some(Service::new(image, plan));
        }
    }

    /// The first time, or again.
    pub(super) fn spawn(&mut self, image: &Image, now: Now) {
        match exec::spawn(image) {
            Ok(spawned) => {
                let (task, stdout, stderr) = Task::new(spawned, self.task.as_ref());
                self.output.attach(stdout, stderr);
                self.task = Some(task);
                self.state = State::Starting;
                if self.memory.is_none() {
                    self.memory = MemoryWatch::of(&self.plan.groups);
                }
            }
            Err(failure) => self.fail(faults::explain(&self.plan, failure), now),
        }
    }

    fn fail(&mut self, fault: jobyard_handoff::Fault, now: Now) {
        self.fault = Some(fault);
        self.finish(now, 0);
    }

    /// The child has executed the program, or says why not.
    pub(super) fn follow_launch(&mut self, now: Now) {
        let Some(task) = &mut self.task else { return };
        match task.launch() {
            Launch::Pending => {}
            // The child is about to end; the rest follows from that.
            Launch::Failed(failure) => self.fault = Some(faults::explain(&self.plan, failure)),
            Launch::Executed => {
                self.state = State::Running;
                if self.started.is_none() {
                    self.note_started(now);
                }
                self.note_up(now);
            }
        }
    }

    fn note_started(&mut self, now: Now) {
        self.started = Some(now);
        let timeout_ms = self.plan.times.timeout_ms;
        if timeout_ms > 0 {
            self.timers.set(Timer::Timeout, now.monotonic_ms.saturating_add(timeout_ms));
        }
        self.tell_started(now);
    }

    /// Takes every ended child; the main one's end is the attempt's, or that of one run of a service.
    pub(super) fn reap(&mut self, now: Now) {
        while let Some(ended) = exec::reap_any() {
            let Some(task) = &mut self.task else { continue };
            if !task.note_end(ended) {
                continue;
            }
            if self.state == State::Starting {
                self.follow_launch(now);
            }
            self.state = State::Clearing { since_ms: now.monotonic_ms, looks: 0 };
            self.timers.cancel(Timer::Timeout);
            self.timers.cancel(Timer::Kill);
            self.clear(now);
        }
    }

    /// Kills what is left of the tree and comes back until nothing is.
    pub(super) fn clear(&mut self, now: Now) {
        let State::Clearing { since_ms, looks } = self.state else { return };
        let left = self.tree.count();
        let is_late = now.monotonic_ms >= since_ms.saturating_add(CLEAR_LIMIT_MS);
        let will_restart = self.will_restart();
        if left == 0 && will_restart {
            self.back_off(now);
            return;
        }
        if left == 0 || (is_late && !will_restart) {
            self.finish(now, left);
            return;
        }
        let since_ms = match is_late {
            // From here on it is cleared for good.
            true => {
                self.fault = Some(faults::not_cleared(left));
                now.monotonic_ms
            }
            false => since_ms,
        };
        self.tree.kill(None, self.afterwards());
        // 1, 2, 4 … 64 ms: most are gone at the first look.
        let pause_ms = 1 << looks.min(6);
        self.state = State::Clearing { since_ms, looks: looks + 1 };
        self.timers.set(Timer::Clear, now.monotonic_ms + pause_ms);
    }

    fn afterwards(&self) -> Afterwards {
        if self.will_restart() { Afterwards::Restart } else { Afterwards::Nothing }
    }

    pub(super) fn finish(&mut self, now: Now, survivors: usize) {
        self.output.drain(now.unix_ms);
        self.output.say_what_is_missing(now.unix_ms);
        self.tell_log_growth();
        let record = Box::new(self.report(now, survivors));
        self.memory = None;
        self.record_is_safe = self.directory.write_exit_record(&record).is_ok();
        self.record = Some(record);
        self.state = State::Over;
        self.lease = None;
        for timer in
            [Timer::Heartbeat, Timer::Timeout, Timer::Kill, Timer::Orphaned, Timer::LogNotice, Timer::Restart]
        {
            self.timers.cancel(timer);
        }
        self.set_leave_timer(now);
        self.tell_end();
    }

    fn set_leave_timer(&mut self, now: Now) {
        if !self.record_is_safe {
            self.timers.set(Timer::Leave, now.monotonic_ms + WRITE_AGAIN_MS);
        } else if self.shutting_down {
            self.timers.set(Timer::Leave, now.monotonic_ms + SHUTDOWN_PATIENCE_MS);
        }
    }

    pub(super) fn leave_or_write_again(&mut self, now: Now) {
        if self.record_is_safe {
            self.acknowledged = true;
            return;
        }
        if self.is_out_of_reach() {
            // Nobody can be told.
            self.acknowledged = true;
            return;
        }
        if let Some(record) = &self.record {
            self.record_is_safe = self.directory.write_exit_record(record).is_ok();
        }
        self.set_leave_timer(now);
    }

    /// TERM now, KILL after the grace. The first reason is the one that is told; a later one can only hurry.
    pub(super) fn end(&mut self, now: Now, grace_ms: u64, ending: Ending) {
        match self.state {
            State::Waiting => {
                // Should a worker have decided in between, it decided the same.
                let _ = self.directory.decide(Decision::NotStarted);
                let _ = self.directory.remove_environment();
                self.ending = Some(ending);
                self.finish(now, 0);
                return;
            }
            State::Starting | State::Running => {}
            State::BackingOff => {
                self.ending = Some(ending);
                self.finish(now, 0);
                return;
            }
            // It is over anyway; now it is not started again.
            State::Clearing { .. } if self.will_restart() => {
                self.ending = Some(ending);
                return;
            }
            State::Clearing { .. } | State::Over => return,
        }
        if self.ending.is_none() {
            self.ending = Some(ending);
            if grace_ms > 0 {
                self.tree.terminate(self.task.as_ref().and_then(Task::child));
            }
        }
        self.timers.bring_forward(Timer::Kill, now.monotonic_ms.saturating_add(grace_ms));
        if grace_ms == 0 {
            self.kill(now);
        }
    }

    pub(super) fn kill(&mut self, now: Now) {
        let child = self.task.as_ref().and_then(Task::child);
        if child.is_some() {
            self.tree.kill(child, self.afterwards());
            self.timers.set(Timer::Kill, now.monotonic_ms + KILL_AGAIN_MS);
        }
    }

    pub(super) fn end_for_timeout(&mut self, now: Now) {
        let limit_ms = self.plan.times.timeout_ms;
        let message = format!("it ran longer than its limit of {}", seconds(limit_ms));
        let ending = Ending { by: EndedBy::Timeout, message: Some(message) };
        self.end(now, self.plan.times.stop_grace_ms, ending);
    }

    pub(super) fn end_as_orphan(&mut self, now: Now) {
        let limit_ms = self.plan.times.orphan_limit_ms;
        let message = format!("no worker came for it in {}, so it was stopped", seconds(limit_ms));
        let ending = Ending { by: EndedBy::Stop, message: Some(message) };
        self.end(now, self.plan.times.stop_grace_ms, ending);
    }

    /// Whoever asks for this attempt can't find us and has it started again, so that it must not go on here.
    pub(super) fn end_out_of_reach(&mut self, now: Now) {
        let message =
            "its attempt directory was removed and its worker is gone, so it was stopped".to_owned();
        let ending = Ending { by: EndedBy::Stop, message: Some(message) };
        self.end(now, self.plan.times.stop_grace_ms, ending);
    }

    pub(super) fn lease_verdict(&self, now: Now) -> Option<LeaseVerdict> {
        let can_end = match self.state {
            State::Waiting | State::Starting | State::Running | State::BackingOff => true,
            State::Clearing { .. } => self.will_restart(),
            State::Over => false,
        };
        let is_ending = self.ending.as_ref().is_some_and(|ending| ending.by == EndedBy::Lease);
        let lease = self.lease.as_ref().filter(|_| can_end && !is_ending)?;
        Some(lease.verdict(now.boottime_ms))
    }

    pub(super) fn end_for_lease(&mut self, now: Now, grace_ms: u64) {
        let message = "it is exclusive, and its lease could not be renewed in time".to_owned();
        // Whatever else is ending it has to be done by then, too.
        self.end(now, grace_ms, Ending { by: EndedBy::Lease, message: Some(message) });
        if self.ending.as_ref().is_some_and(|ending| ending.by != EndedBy::Lease) {
            self.lease = None;
        }
    }

    /// SIGTERM to us: the machine goes down.
    pub(super) fn shut_down(&mut self, now: Now) {
        self.shutting_down = true;
        let message = "the machine is shutting down".to_owned();
        let ending = Ending { by: EndedBy::Shutdown, message: Some(message) };
        self.end(now, self.plan.times.stop_grace_ms, ending);
        if self.state == State::Over && !self.timers.is_set(Timer::Leave) {
            self.set_leave_timer(now);
        }
    }

    /// The kernel says that the group ran out of memory: soon it kills a process of it, and says so in the
    /// counter.
    pub(super) fn look_at_memory_event(&mut self, now: Now) {
        if let Some(memory) = &self.memory {
            memory.acknowledge();
            self.memory_looks = MEMORY_LOOKS;
            self.look_at_memory(now);
        }
    }

    pub(super) fn look_at_memory(&mut self, now: Now) {
        if !matches!(self.state, State::Starting | State::Running) {
            return;
        }
        let was_killed = self.memory.as_ref().is_some_and(MemoryWatch::has_killed);
        if was_killed && self.will_restart() {
            self.note_out_of_memory();
            self.kill(now);
        } else if was_killed {
            let ending = Ending { by: EndedBy::Memory, message: Some(self.memory_message()) };
            self.end(now, 0, ending);
        } else if self.memory_looks > 0 {
            self.memory_looks -= 1;
            self.timers.set(Timer::Memory, now.monotonic_ms + MEMORY_LOOK_MS);
        }
    }

    pub(super) fn memory_message(&self) -> String {
        match self.plan.memory_limit_bytes {
            Some(limit) if limit % (1 << 20) == 0 => {
                format!("it needed more than its memory limit of {} MiB", limit >> 20)
            }
            Some(limit) => format!("it needed more than its memory limit of {limit} bytes"),
            None => String::from("it needed more memory than its group has"),
        }
    }
}

fn seconds(ms: u64) -> String {
    match (ms / 1_000, ms % 1_000) {
        (seconds, 0) => format!("{seconds} s"),
        (seconds, rest) => format!("{seconds}.{rest:03} s"),
    }
}
