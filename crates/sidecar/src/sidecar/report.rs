//! The facts of the end, gathered.

use jobyard_handoff::{EndedBy, ExitRecord, TaskExit, Usage};

use super::{Ending, Sidecar};
use crate::clock::Now;
use crate::memory::{CpuTime, MemoryWatch};
use crate::task::Task;

impl Sidecar {
    pub(super) fn report(&self, now: Now, survivors: usize) -> ExitRecord {
        let exit = self.task.as_ref().and_then(Task::exit).filter(|_| self.fault.is_none());
        let (ended_by, message) = self.reason(exit);
        ExitRecord {
            ended_by,
            exit,
            fault: self.fault.clone(),
            message: message.or_else(|| self.missing_output()),
            started_at_ms: self.started.map(|started| started.unix_ms),
            ended_at_ms: now.unix_ms,
            usage: self.usage(now),
            limits: self.plan.groups.limits().to_owned(),
            survivors: u32::try_from(survivors).unwrap_or(u32::MAX),
        }
    }

    fn reason(&self, exit: Option<TaskExit>) -> (EndedBy, Option<String>) {
        if let Some(Ending { by, message }) = &self.ending {
            return (*by, message.clone());
        }
        // It may have died of it before the notice came. A main process that ended well did its work anyway.
        let ended_badly = exit.is_some_and(|exit| exit != TaskExit::Code(0));
        if ended_badly && self.memory.as_ref().is_some_and(MemoryWatch::has_killed) {
            return (EndedBy::Memory, Some(self.memory_message()));
        }
        (EndedBy::Itself, None)
    }

    /// What the log could not say itself.
    fn missing_output(&self) -> Option<String> {
        let missing = self.output.missing_bytes();
        (missing > 0).then(|| format!("the disk was full: {missing} bytes of its output are missing"))
    }

    fn usage(&self, now: Now) -> Usage {
        let task = self.task.as_ref();
        let waited_for = task.map_or((0, 0), Task::cpu_ms);
        let counted = self.cpu_before.zip(CpuTime::of(&self.plan.groups));
        let (cpu_user_ms, cpu_system_ms) = counted.map_or(waited_for, |(before, now)| now.since_ms(before));
        let peak = self.memory.as_ref().and_then(MemoryWatch::peak_bytes);
        Usage {
            wall_ms: self.started.map_or(0, |started| now.monotonic_ms - started.monotonic_ms),
            cpu_user_ms,
            cpu_system_ms,
            peak_memory_bytes: peak.unwrap_or_else(|| task.map_or(0, Task::largest_resident_bytes)),
            stdout_bytes: self.output.stdout_bytes(),
            stderr_bytes: self.output.stderr_bytes(),
            log_file_bytes: self.output.file_bytes(),
            log_truncated: self.output.is_truncated(),
        }
    }
}
