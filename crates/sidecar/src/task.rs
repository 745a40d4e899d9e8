//! The task process as the sidecar sees it: our child, what it reports on its way to the program, and how it
//! ended.

use std::os::fd::OwnedFd;

use jobyard_handoff::TaskExit;

use crate::exec::{Failure, MainStatus, Reaped, Spawned};

/// What the descriptor of a child on its way says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Launch {
    /// Nothing new.
    Pending,
    /// The program runs.
    Executed,
    /// It doesn't, and won't.
    Failed(Failure),
}

/// From the fork on.
pub(crate) struct Task {
    /// Until it is reaped.
    child: Option<i32>,
    /// Until the program is executed.
    failed: Option<OwnedFd>,
    report: Option<OwnedFd>,
    exit: Option<TaskExit>,
    user_ms: u64,
    system_ms: u64,
    largest_resident_bytes: u64,
}

impl Task {
    /// `before`: of a service, the process that it is started again after; what that one used is counted on.
    pub(crate) fn new(spawned: Spawned, before: Option<&Self>) -> (Self, OwnedFd, OwnedFd) {
        let task = Self {
            child: Some(spawned.pid),
            failed: Some(spawned.failed),
            report: spawned.report,
            exit: None,
            user_ms: before.map_or(0, |before| before.user_ms),
            system_ms: before.map_or(0, |before| before.system_ms),
            largest_resident_bytes: before.map_or(0, |before| before.largest_resident_bytes),
        };
        (task, spawned.stdout, spawned.stderr)
    }

    /// Our child, until it is reaped.
    pub(crate) fn child(&self) -> Option<i32> {
        self.child
    }

    /// The main process as the node sees it: our child, or in a namespace its child.
    pub(crate) fn main_pid(&self) -> u32 {
        let Some(child) = self.child else { return 0 };
        let first = self.report.as_ref().and_then(|_| {
            let children = std::fs::read_to_string(format!("/proc/{child}/task/{child}/children")).ok()?;
            children.split_ascii_whitespace().next()?.parse().ok()
        });
        first.or_else(|| u32::try_from(child).ok()).unwrap_or(0)
    }

    /// To poll while the program is not executed yet.
    pub(crate) fn launch_descriptor(&self) -> Option<&OwnedFd> {
        self.failed.as_ref()
    }

    /// Reads what the child says of its launch. Called when the descriptor is readable or the child is gone, so
    /// it doesn't block.
    pub(crate) fn launch(&mut self) -> Launch {
        let Some(failed) = &self.failed else { return Launch::Pending };
        let mut bytes = [0; Failure::BYTES];
        let launch = match rustix::io::read(failed, &mut bytes) {
            Ok(0) => Launch::Executed,
            Ok(Failure::BYTES) => Failure::from_bytes(bytes).map_or(Launch::Executed, Launch::Failed),
            Err(rustix::io::Errno::INTR) => Launch::Pending,
            Ok(_) | Err(_) => Launch::Executed,
        };
        if launch != Launch::Pending {
            self.failed = None;
        }
        launch
    }

    /// Notes an ended process; true when it was our child, and with it the task process.
    pub(crate) fn note_end(&mut self, ended: Reaped) -> bool {
        self.user_ms += ended.user_ms;
        self.system_ms += ended.system_ms;
        self.largest_resident_bytes = self.largest_resident_bytes.max(ended.largest_resident_bytes);
        if self.child != Some(ended.pid) {
            return false;
        }
        self.child = None;
        self.exit = Some(exit_of(self.reported_status().unwrap_or(ended.status)));
        true
    }

    /// In a namespace, what its first process reported; nothing when it was killed along with the rest.
    fn reported_status(&mut self) -> Option<i32> {
        let report = self.report.take()?;
        let mut bytes = [0; MainStatus::BYTES];
        let read = rustix::io::retry_on_intr(|| rustix::io::read(&report, &mut bytes)).ok()?;
        (read == MainStatus::BYTES).then(|| MainStatus::from_bytes(bytes).0)
    }

    pub(crate) fn exit(&self) -> Option<TaskExit> {
        self.exit
    }

    /// CPU time of what was waited for, ms: (user, system).
    pub(crate) fn cpu_ms(&self) -> (u64, u64) {
        (self.user_ms, self.system_ms)
    }

    pub(crate) fn largest_resident_bytes(&self) -> u64 {
        self.largest_resident_bytes
    }
}

/// The encoding of wait(2): the low seven bits are the signal, the next byte the code.
fn exit_of(status: i32) -> TaskExit {
    match status & 0x7f {
        0 => TaskExit::Code((status >> 8) & 0xff),
        signal => TaskExit::Signal(signal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_signals_are_told_apart() {
        assert_eq!(exit_of(0), TaskExit::Code(0));
        assert_eq!(exit_of(137 << 8), TaskExit::Code(137));
        assert_eq!(exit_of(9), TaskExit::Signal(9));
        assert_eq!(exit_of(0x80 | 11), TaskExit::Signal(11));
    }
}
