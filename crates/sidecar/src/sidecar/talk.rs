//! What the sidecar says to the worker and does on its word.

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use jobyard_handoff::{EndedBy, FromSidecar, Hello, SidecarPhase, StopReason, ToSidecar};

use super::{Ending, Sidecar, State};
use crate::clock::{self, Now};
use crate::connection::Connection;
use crate::task::Task;
use crate::timers::{Lease, Timer};

/// Between two notices that the log grew.
const LOG_NOTICE_MS: u64 = 50;

impl Sidecar {
    pub(super) fn say(&mut self, frame: &FromSidecar) {
        if let Some(connection) = &mut self.connection {
            connection.send(frame);
        }
    }

    /// The first words on a connection, and what a worker that comes late has missed.
    pub(super) fn greet(&mut self) {
        let hello = Hello {
            identity: self.plan.identity.clone(),
            phase: self.phase(),
            started_at_ms: self.started.map(|started| started.unix_ms),
            main_pid: self.task.as_ref().map_or(0, Task::main_pid),
            log_file_bytes: self.output.file_bytes(),
        };
        self.told_file_bytes = hello.log_file_bytes;
        self.say(&FromSidecar::Hello(hello));
        self.tell_service();
        self.tell_end();
    }

    fn phase(&self) -> SidecarPhase {
        match self.state {
            State::Waiting => SidecarPhase::Waiting,
            State::Starting => SidecarPhase::Starting,
            State::Running if self.ending.is_none() => SidecarPhase::Running,
            State::Clearing { .. } if self.will_restart() => SidecarPhase::BackingOff,
            State::BackingOff => SidecarPhase::BackingOff,
            State::Running | State::Clearing { .. } => SidecarPhase::Ending,
            State::Over => SidecarPhase::Ended,
        }
    }

    pub(super) fn tell_started(&mut self, now: Now) {
        let main_pid = self.task.as_ref().map_or(0, Task::main_pid);
        self.say(&FromSidecar::Started { started_at_ms: now.unix_ms, main_pid });
        self.heartbeat(now);
    }

    pub(super) fn tell_end(&mut self) {
        if let Some(record) = &self.record {
            let ended = FromSidecar::Ended(record.clone());
            self.say(&ended);
        }
    }

    /// Says that we watch, and when to say it again: up to a tenth early, so that a thousand sidecars started
    /// together don't stay together.
    pub(super) fn heartbeat(&mut self, now: Now) {
        let interval_ms = self.plan.times.heartbeat_ms.max(1);
        let chance = now.boottime_ms.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(std::process::id());
        let early_ms = (chance >> 16) % (interval_ms / 10 + 1);
        self.timers.set(Timer::Heartbeat, now.monotonic_ms.saturating_add(interval_ms - early_ms));
        self.say(&FromSidecar::Heartbeat { sent_at_boottime_ms: now.boottime_ms });
        if self.is_out_of_reach() {
            self.end_out_of_reach(now);
        }
    }

    /// No worker is there, and none can come: what leads to us is gone.
    pub(super) fn is_out_of_reach(&self) -> bool {
        self.connection.is_none() && self.lock.metadata().is_ok_and(|lock| lock.nlink() == 0)
    }

    /// The first bytes are told at once, what follows is gathered.
    pub(super) fn note_log_growth(&mut self, now: Now) {
        if self.output.file_bytes() == self.told_file_bytes || self.timers.is_set(Timer::LogNotice) {
            return;
        }
        self.tell_log_growth();
        self.timers.set(Timer::LogNotice, now.monotonic_ms + LOG_NOTICE_MS);
    }

    pub(super) fn tell_log_growth(&mut self) {
        let file_bytes = self.output.file_bytes();
        if file_bytes != self.told_file_bytes {
            self.told_file_bytes = file_bytes;
            self.say(&FromSidecar::LogGrew { file_bytes });
        }
    }

    pub(super) fn listen_to_worker(&mut self, now: Now) {
        if let Some(connection) = &mut self.connection {
            connection.flush();
            connection.fill();
        }
        while let Some(frame) = self.connection.as_mut().and_then(Connection::next_frame) {
            self.obey(&frame, now);
        }
    }

    fn obey(&mut self, frame: &ToSidecar, now: Now) {
        match *frame {
            ToSidecar::Go { sent_at_boottime_ms } => self.go(sent_at_boottime_ms, now),
            ToSidecar::Renewed { sent_at_boottime_ms } => {
                // Before Go nothing has been accepted that could be renewed.
                if let Some(lease) = self.lease.as_mut().filter(|_| self.state != State::Waiting) {
                    lease.renew(sent_at_boottime_ms);
                }
            }
            ToSidecar::Stop { reason, grace_ms } => {
                let message = stop_message(reason).map(str::to_owned);
                self.end(now, grace_ms, Ending { by: EndedBy::Stop, message });
            }
            ToSidecar::AckOutcome => self.acknowledged |= self.record.is_some(),
            // It has one.
            ToSidecar::Begin { .. } => {}
        }
    }

    fn go(&mut self, sent_at_boottime_ms: u64, now: Now) {
        if self.state != State::Waiting {
            return;
        }
        self.lease = Some(Lease::new(&self.plan.times, sent_at_boottime_ms));
        if matches!(self.lease_verdict(now), Some(crate::timers::LeaseVerdict::End { .. })) {
            // Too late to start: the loop ends it.
            return;
        }
        if !self.begin(now) {
            // A worker decided against it while we waited; it needs no record.
            self.acknowledged = true;
            self.state = State::Over;
        }
    }

    /// A restarted worker: the newest connection is the worker.
    pub(super) fn accept(&mut self, now: Now) {
        if let Ok((stream, _)) = self.listener.accept() {
            self.connection = Some(Connection::new(OwnedFd::from(stream)));
            self.timers.cancel(Timer::Orphaned);
            self.greet();
            if matches!(self.state, State::Running | State::Clearing { .. } | State::BackingOff) {
                self.heartbeat(now);
            }
        }
    }

    pub(super) fn drop_dead_connection(&mut self) {
        if self.connection.as_ref().is_some_and(|connection| !connection.is_open()) {
            self.connection = None;
            self.note_lonely(clock::now());
        }
    }

    pub(super) fn note_lonely(&mut self, now: Now) {
        if self.state != State::Over {
            let limit_ms = self.plan.times.orphan_limit_ms;
            self.timers.set(Timer::Orphaned, now.monotonic_ms.saturating_add(limit_ms));
        }
    }
}

fn stop_message(reason: StopReason) -> Option<&'static str> {
    match reason {
        StopReason::Stop | StopReason::Cancel => None,
        StopReason::Evict => Some("it was asked to leave this node"),
        StopReason::Stale => Some("its lease belonged to another attempt by then"),
    }
}
