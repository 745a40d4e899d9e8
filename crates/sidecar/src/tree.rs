//! All processes of the attempt, by its containment: telling them to end, killing them, counting them.
//!
//! Invariant: never signals a process that is not of this attempt: members come from its group, or are our own
//! descendants, or are reached through a child we have not reaped.

use std::fs;
use std::path::{Path, PathBuf};

use jobyard_handoff::{Containment, ExecPlan};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};

/// What comes after a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Afterwards {
    /// The attempt's end.
    Nothing,
    /// A service is started again in the same group. Some kernels kill at once whatever is cloned into a group in which
    /// `cgroup.kill` was ever written, so its members are killed one by one.
    Restart,
}

pub(crate) enum Tree {
    /// A directory whose `cgroup.procs` names them all.
    Group { directory: PathBuf },
    /// Our child is the first process of a namespace.
    Namespace,
    /// Our descendants, we being their reaper.
    Descendants,
}

impl Tree {
    pub(crate) fn of(plan: &ExecPlan) -> Self {
        match (plan.containment, plan.groups.members()) {
            (Containment::Cgroup, Some(directory)) => Self::Group { directory: directory.to_path_buf() },
            (Containment::PidNamespace { .. }, _) => Self::Namespace,
            (Containment::Cgroup | Containment::Subreaper, _) => Self::Descendants,
        }
    }

    /// TERM to each. `child` is our child until we have reaped it.
    pub(crate) fn terminate(&self, child: Option<i32>) {
        match self {
            Self::Group { directory } => signal_all(&members(directory), Signal::TERM),
            Self::Namespace => signal_all(child.as_slice(), Signal::TERM),
            Self::Descendants => signal_all(&descendants(), Signal::TERM),
        }
    }

    /// KILL to each; call again until [`Tree::count`] is 0.
    pub(crate) fn kill(&self, child: Option<i32>, afterwards: Afterwards) {
        match self {
            Self::Group { directory } => {
                // The child may not be in its group yet.
                signal_all(child.as_slice(), Signal::KILL);
                let may_mark = afterwards == Afterwards::Nothing;
                if !may_mark || fs::write(directory.join("cgroup.kill"), "1").is_err() {
                    // Stopped first, so that they don't multiply while we go through the list.
                    signal_all(&members(directory), Signal::STOP);
                    signal_all(&members(directory), Signal::KILL);
                }
            }
            Self::Namespace => signal_all(child.as_slice(), Signal::KILL),
            Self::Descendants => {
                if let Some(child) = child.and_then(Pid::from_raw) {
                    let _ = kill_process_group(child, Signal::KILL);
                }
                let all = descendants();
                // Stopped first, so that they don't multiply while we go through the list.
                signal_all(&all, Signal::STOP);
                signal_all(&descendants(), Signal::KILL);
            }
        }
    }

    /// How many are left, once our child is reaped.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Group { directory } => match fs::read(directory.join("cgroup.events")) {
                Ok(events) if has_line(&events, b"populated 0") => 0,
                Ok(_) | Err(_) => members(directory).len(),
            },
            // The kernel ends the first process of a namespace when all others are gone.
            Self::Namespace => 0,
            // A list is old when it is read: what forks and ends meanwhile passes its child by. That we have no child,
            // though, is the kernel's word for having no descendant, orphans being ours.
            Self::Descendants if !has_child() => 0,
            Self::Descendants => descendants().len().max(1),
        }
    }
}

/// Living, or ended and not yet reaped.
fn has_child() -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, look), Err(Errno::CHILD))
}

fn signal_all(pids: &[i32], signal: Signal) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        // Gone in the meantime is what we want.
        let _ = kill_process(pid, signal);
    }
}

fn members(directory: &Path) -> Vec<i32> {
    let listing = fs::read(directory.join("cgroup.procs")).unwrap_or_default();
    listing.split(|byte| *byte == b'\n').filter_map(number).collect()
}

pub(crate) fn has_line(text: &[u8], line: &[u8]) -> bool {
    text.split(|byte| *byte == b'\n').any(|found| found == line)
}

fn number(digits: &[u8]) -> Option<i32> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Everything below this process, found by parents' numbers: as their reaper we are the parent of orphans.
fn descendants() -> Vec<i32> {
    let all: Vec<(i32, i32)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| number(entry.ok()?.file_name().as_encoded_bytes()))
        .filter_map(|pid| Some((pid, living_parent(pid)?)))
        .collect();
    let mut found = vec![rustix::process::getpid().as_raw_nonzero().get()];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(all.iter().filter(|(_, its)| *its == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.remove(0);
    found
}

/// The parent of a process that is not a zombie. The command's name before it may hold anything, so count from
/// its closing bracket.
fn living_parent(pid: i32) -> Option<i32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let after_name = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = stat[after_name + 1..].split(|byte| *byte == b' ').filter(|field| !field.is_empty());
    let state = fields.next()?;
    let parent = number(fields.next()?)?;
    (state != b"Z" && state != b"X").then_some(parent)
}
