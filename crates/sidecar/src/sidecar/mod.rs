//! The sidecar's one loop: descriptors and timers in, one small step out. Each step is bounded, so that a
//! heartbeat never waits for the task.
//!
//! Invariant: `decided` says `started` before anything is started; the exit record is written before `Ended`
//! is sent; the first reason to end is the one that is told; nothing is started again while there is one, or beside
//! anything that is left.

mod report;
mod restarts;
mod steps;
mod talk;

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;

use jobyard_handoff::{AttemptDirectory, EndedBy, ExecPlan, ExitRecord, Fault};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::time::Timespec;

use crate::clock::{self, Now};
use crate::connection::Connection;
use crate::exec::{self, SignalQueue};
use crate::idle::Link;
use crate::log::Kind;
use crate::memory::{CpuTime, MemoryWatch};
use crate::output::Output;
use crate::task::Task;
use crate::timers::{Lease, LeaseVerdict, Timer, Timers};
use crate::tree::Tree;
use restarts::Service;

/// An exclusive attempt looks at the boot-time clock this often; poll counts on one that stands still while the
/// machine sleeps.
const LEASE_LOOK_MS: u64 = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// For `Go`.
    Waiting,
    /// The child is on its way to the program.
    Starting,
    Running,
    /// The main process is gone; the rest is being killed.
    Clearing {
        since_ms: u64,
        looks: u32,
    },
    /// A service waits for its next start; none of its processes is left.
    BackingOff,
    Over,
}

/// Why it ends, when it is not by itself.
struct Ending {
    by: EndedBy,
    message: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Signals,
    Launch,
    Memory,
    Output,
    Connection,
    Listener,
}

pub(crate) struct Sidecar {
    directory: AttemptDirectory,
    /// Held as long as we watch the attempt; nothing else says so.
    lock: File,
    listener: UnixListener,
    signals: SignalQueue,
    connection: Option<Connection>,
    plan: ExecPlan,
    state: State,
    timers: Timers,
    lease: Option<Lease>,
    task: Option<Task>,
    /// From the first start of a service on.
    service: Option<Service>,
    tree: Tree,
    output: Output,
    cpu_before: Option<CpuTime>,
    memory: Option<MemoryWatch>,
    memory_looks: u32,
    started: Option<Now>,
    ending: Option<Ending>,
    fault: Option<Fault>,
    told_file_bytes: u64,
    record: Option<Box<ExitRecord>>,
    record_is_safe: bool,
    acknowledged: bool,
    shutting_down: bool,
}

impl Sidecar {
    pub(crate) fn new(
        (directory, lock): (AttemptDirectory, File),
        plan: ExecPlan,
        listener: UnixListener,
        link: Link,
    ) -> Self {
        Self {
            directory,
            lock,
            listener,
            signals: link.signals,
            connection: Some(link.connection),
            state: State::Waiting,
            timers: Timers::default(),
            lease: None,
            task: None,
            service: None,
            tree: Tree::of(&plan),
            output: Output::new(plan.log.clone(), log_kind(&plan)),
            cpu_before: None,
            memory: None,
            memory_looks: 0,
            started: None,
            ending: None,
            fault: None,
            told_file_bytes: 0,
            record: None,
            record_is_safe: false,
            acknowledged: false,
            shutting_down: false,
            plan,
        }
    }

    /// Until there is nothing left to say. The answer is what the next attempt needs, when there may be one.
    pub(crate) fn run(mut self) -> Option<Link> {
        let now = clock::now();
        if self.plan.exclusive {
            // Without a renewal the wait itself is the lease.
            self.lease = Some(Lease::new(&self.plan.times, now.boottime_ms));
        } else if !self.begin(now) {
            return None;
        }
        self.greet();
        // What came together with `Begin` is read already and makes nothing ready.
        self.listen_to_worker(now);
        loop {
            let now = clock::now();
            self.act_on_time(now);
            if self.is_done() {
                break;
            }
            if let Some(connection) = &mut self.connection {
                connection.flush();
            }
            for source in self.wait(now) {
                self.act_on(source);
            }
            self.drop_dead_connection();
        }
        self.part()
    }

    /// Lets go of the attempt and its lock. A sidecar is used again only when nothing of this attempt can come up in
    /// the next one.
    fn part(self) -> Option<Link> {
        // Orphans that died at the last moment, whose time is not the next attempt's.
        while exec::reap_any().is_some() {}
        let is_clean = self.record.as_ref().is_some_and(|record| record.survivors == 0);
        let Self { signals, connection, shutting_down, service, .. } = self;
        // With it goes the last copy of secrets there may have been, and the reason to hide our memory.
        drop(service);
        let _ = set_dumpable_behavior(DumpableBehavior::Dumpable);
        let connection = connection.filter(|_| is_clean && !shutting_down)?;
        Some(Link { signals, connection })
    }

    fn is_done(&self) -> bool {
        let told = self.acknowledged || (self.record_is_safe && self.connection.is_none());
        matches!(self.state, State::Over) && told
    }

    /// What became ready. What the child says of its launch and what the kernel says of memory come before its
    /// end, because they explain it.
    fn wait(&self, now: Now) -> Vec<Source> {
        let interests = self.interests();
        let mut fds: Vec<PollFd<'_>> =
            interests.iter().map(|(_, fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
        let timeout = self.wait_ms(now).map(|wait_ms| Timespec {
            tv_sec: i64::try_from(wait_ms / 1_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(wait_ms % 1_000).unwrap_or(0) * 1_000_000,
        });
        if poll(&mut fds, timeout.as_ref()).is_err() {
            return Vec::new();
        }
        let ready = interests.iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
        ready.map(|((source, ..), _)| *source).collect()
    }

    fn wait_ms(&self, now: Now) -> Option<u64> {
        let timers = self.timers.wait_ms(now.monotonic_ms);
        match self.lease_verdict(now) {
            Some(LeaseVerdict::Fine { for_ms }) => {
                let lease = for_ms.min(LEASE_LOOK_MS);
                Some(timers.map_or(lease, |timers| timers.min(lease)))
            }
            Some(LeaseVerdict::End { .. }) | None => timers,
        }
    }

    fn interests(&self) -> Vec<(Source, BorrowedFd<'_>, PollFlags)> {
        let mut all = Vec::with_capacity(8);
        if let Some(fd) = self.task.as_ref().and_then(Task::launch_descriptor) {
            all.push((Source::Launch, fd.as_fd(), PollFlags::IN));
        }
        if let Some((fd, flags)) = self.memory.as_ref().and_then(MemoryWatch::descriptor) {
            all.push((Source::Memory, fd.as_fd(), flags));
        }
        for fd in self.output.descriptors().into_iter().flatten() {
            all.push((Source::Output, fd.as_fd(), PollFlags::IN));
        }
        all.push((Source::Signals, self.signals.as_fd(), PollFlags::IN));
        if let Some(connection) = &self.connection {
            let write = if connection.wants_to_write() { PollFlags::OUT } else { PollFlags::empty() };
            all.push((Source::Connection, connection.as_fd(), PollFlags::IN | write));
        }
        all.push((Source::Listener, self.listener.as_fd(), PollFlags::IN));
        all
    }

    fn act_on(&mut self, source: Source) {
        let now = clock::now();
        match source {
            Source::Launch => self.follow_launch(now),
            Source::Memory => self.look_at_memory_event(now),
            Source::Output => {
                self.output.take(now.unix_ms);
                self.note_log_growth(now);
            }
            Source::Signals => {
                if self.signals.take() {
                    self.shut_down(now);
                }
                self.reap(now);
            }
            Source::Connection => self.listen_to_worker(now),
            Source::Listener => self.accept(now),
        }
    }

    fn act_on_time(&mut self, now: Now) {
        while let Some(timer) = self.timers.take_due(now.monotonic_ms) {
            match timer {
                Timer::Heartbeat => self.heartbeat(now),
                Timer::LogNotice => self.tell_log_growth(),
                Timer::Timeout => self.end_for_timeout(now),
                Timer::Kill => self.kill(now),
                Timer::Orphaned => self.end_as_orphan(now),
                Timer::Clear => self.clear(now),
                Timer::Memory => self.look_at_memory(now),
                Timer::Leave => self.leave_or_write_again(now),
                Timer::Restart => self.start_again(now),
            }
        }
        if let Some(LeaseVerdict::End { grace_ms }) = self.lease_verdict(now) {
            self.end_for_lease(now, grace_ms);
        }
    }
}

/// A service says as much as it likes, in its time.
fn log_kind(plan: &ExecPlan) -> Kind {
    if plan.restart.is_some() { Kind::InParts } else { Kind::Whole }
}
