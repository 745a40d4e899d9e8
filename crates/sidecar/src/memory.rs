//! Was it the memory limit? Only the counter of the attempt's own group is proof; a signal 9 or an exit code
//! 137 is not.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use jobyard_handoff::{Groups, MemoryGroup};
use rustix::event::{EventfdFlags, PollFlags, eventfd};
use rustix::fs::{Mode, OFlags};

pub(crate) struct MemoryWatch {
    /// Holds the line `oom_kill N`.
    counter: PathBuf,
    peak: PathBuf,
    /// What the counter said when the process that runs was started.
    killed_before: u64,
    /// Becomes readable when the kernel runs out of memory for the group.
    event: Option<OwnedFd>,
    event_flags: PollFlags,
}

impl MemoryWatch {
    pub(crate) fn of(groups: &Groups) -> Option<Self> {
        match groups.memory()? {
            MemoryGroup::V1(directory) => {
                let counter = directory.join("memory.oom_control");
                let event = register(&counter, &directory.join("cgroup.event_control")).ok();
                let peak = directory.join("memory.max_usage_in_bytes");
                Some(Self { counter, peak, killed_before: 0, event, event_flags: PollFlags::IN })
            }
            MemoryGroup::Unified(directory) => {
                let counter = directory.join("memory.events");
                let event = rustix::fs::open(&counter, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok();
                let peak = directory.join("memory.peak");
                Some(Self { counter, peak, killed_before: 0, event, event_flags: PollFlags::PRI })
            }
        }
    }

    /// What to poll, and for what.
    pub(crate) fn descriptor(&self) -> Option<(&OwnedFd, PollFlags)> {
        Some((self.event.as_ref()?, self.event_flags))
    }

    /// Makes the descriptor quiet again.
    pub(crate) fn acknowledge(&self) {
        if let Some(event) = &self.event {
            let mut buffer = [0; 512];
            if self.event_flags == PollFlags::PRI {
                let _ = rustix::io::pread(event, &mut buffer, 0);
            } else {
                let _ = rustix::io::read(event, &mut buffer);
            }
        }
    }

    /// The kernel has killed a process of the group for its memory since [`MemoryWatch::begin_anew`]. Groups in which
    /// that happened are never another attempt's.
    pub(crate) fn has_killed(&self) -> bool {
        self.killed() > self.killed_before
    }

    /// Before a service is started again: what was killed so far was killed for the process before.
    pub(crate) fn begin_anew(&mut self) {
        self.killed_before = self.killed();
    }

    fn killed(&self) -> u64 {
        let text = fs::read(&self.counter).unwrap_or_default();
        field(&text, b"oom_kill ").unwrap_or(0)
    }

    pub(crate) fn peak_bytes(&self) -> Option<u64> {
        field(&fs::read(&self.peak).ok()?, b"")
    }
}

/// Asks the kernel to signal an eventfd when the group runs out of memory (version 1).
fn register(counter: &PathBuf, control: &PathBuf) -> rustix::io::Result<OwnedFd> {
    use std::os::fd::AsRawFd;
    let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let counter = rustix::fs::open(counter, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let control = rustix::fs::open(control, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    let line = format!("{} {}", event.as_raw_fd(), counter.as_raw_fd());
    rustix::io::write(&control, line.as_bytes())?;
    Ok(event)
}

/// The number after `name` at the start of a line.
pub(crate) fn field(text: &[u8], name: &[u8]) -> Option<u64> {
    let mut lines = text.split(|byte| *byte == b'\n');
    let value = lines.find_map(|line| line.strip_prefix(name))?;
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

/// CPU time in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CpuTime {
    user_us: u64,
    system_us: u64,
}

impl CpuTime {
    /// Of all that was ever in the groups, where their unified leaf counts it. They may have been another attempt's.
    pub(crate) fn of(groups: &Groups) -> Option<Self> {
        let text = fs::read(groups.unified.as_ref()?.join("cpu.stat")).ok()?;
        Some(Self { user_us: field(&text, b"user_usec ")?, system_us: field(&text, b"system_usec ")? })
    }

    /// Since then, in ms: (user, system).
    pub(crate) fn since_ms(self, before: Self) -> (u64, u64) {
        let ms = |now: u64, before: u64| now.saturating_sub(before) / 1_000;
        (ms(self.user_us, before.user_us), ms(self.system_us, before.system_us))
    }
}
