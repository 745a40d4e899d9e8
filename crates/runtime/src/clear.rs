//! Ends every process of an attempt whose sidecar is gone, with nothing but its plan.
//!
//! Found by the attempt's group; besides that (what had not joined yet, or where there are no groups) by the
//! attempt's own user, and by the two variables every task process is given. Invariant: a process that shows none of
//! these is never touched.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use jobyard_handoff::{Containment, ExecPlan};
use rustix::process::{Pid, Signal, kill_process};

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cleared {
    /// Processes killed.
    pub killed: u32,
    /// Processes still there after all tries (unkillable, in a system call that doesn't return).
    pub survivors: u32,
}

const PATIENCE: Duration = Duration::from_secs(5);

/// Kills all processes of the attempt and waits until they are gone (5 s at most; it blocks). Repeatable; call
/// it only when no sidecar holds the attempt's lock.
pub fn clear_tree(plan: &ExecPlan) -> io::Result<Cleared> {
    let deadline = Instant::now() + PATIENCE;
    let mut killed: Vec<i32> = Vec::new();
    let mut pause = Duration::from_millis(1);
    loop {
        let members = kill_members(plan)?;
        killed.extend(members.iter().filter(|pid| !killed.contains(pid)).copied().collect::<Vec<_>>());
        if members.is_empty() || Instant::now() > deadline {
            return Ok(Cleared { killed: count(&killed), survivors: count(&members) });
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Only the groups, for the way where a sidecar has cleared up already. The number of processes seen.
pub(crate) fn kill_group_members(plan: &ExecPlan) -> usize {
    let Some(directory) = plan.groups.members() else { return 0 };
    let members = group_members(directory);
    if !members.is_empty() {
        kill_group(directory, &members);
    }
    members.len()
}

fn count(pids: &[i32]) -> u32 {
    u32::try_from(pids.len()).unwrap_or(u32::MAX)
}

/// The living processes of the attempt, each of which was sent a KILL.
fn kill_members(plan: &ExecPlan) -> io::Result<Vec<i32>> {
    let mut members = Vec::new();
    if let Some(directory) = plan.groups.members() {
        members = group_members(directory);
        if !members.is_empty() {
            kill_group(directory, &members);
        }
    }
    let marks = Marks::of(plan);
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = number(name.as_bytes()) else { continue };
        if !members.contains(&pid) && marks.fit(pid) {
            kill(pid);
            members.push(pid);
        }
    }
    Ok(members)
}

fn kill_group(directory: &Path, members: &[i32]) {
    let kill_file = fs::OpenOptions::new().write(true).open(directory.join("cgroup.kill"));
    if kill_file.and_then(|mut file| io::Write::write_all(&mut file, b"1")).is_err() {
        members.iter().for_each(|pid| kill(*pid));
    }
}

fn kill(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        // Gone in the meantime is what we want.
        let _ = kill_process(pid, Signal::KILL);
    }
}

fn group_members(directory: &Path) -> Vec<i32> {
    let listing = fs::read(directory.join("cgroup.procs")).unwrap_or_default();
    listing.split(|byte| *byte == b'\n').filter_map(number).collect()
}

fn number(digits: &[u8]) -> Option<i32> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// What tells a process of this attempt from all others.
struct Marks {
    private_uid: Option<u32>,
    any_uid: Option<u32>,
    job: Vec<u8>,
    attempt: Vec<u8>,
    /// A group that works leaves nothing for the slower marks to find but what had not joined yet.
    own_pid: i32,
}

impl Marks {
    fn of(plan: &ExecPlan) -> Self {
        let identity = &plan.identity;
        // Without root a task in a user namespace may change what it is outside to nothing else.
        let any_uid = match plan.containment {
            Containment::PidNamespace { user_namespace: true } => None,
            _ => plan.user.map(|user| user.uid),
        };
        Self {
            private_uid: plan.user.filter(|user| user.private).map(|user| user.uid),
            any_uid,
            job: format!("JOBYARD_JOB_ID={}", identity.job_id).into_bytes(),
            attempt: format!("JOBYARD_ATTEMPT={}", identity.attempt).into_bytes(),
            own_pid: rustix::process::getpid().as_raw_nonzero().get(),
        }
    }

    fn fit(&self, pid: i32) -> bool {
        if pid == self.own_pid {
            return false;
        }
        let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = |name: &[u8]| status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name));
        let is_dead =
            line(b"State:\t").is_none_or(|state| state.starts_with(b"Z") || state.starts_with(b"X"));
        if is_dead {
            return false;
        }
        let uids: Vec<u32> = line(b"Uid:\t")
            .map(|uids| uids.split(|byte| *byte == b'\t').filter_map(number))
            .into_iter()
            .flatten()
            .filter_map(|uid| u32::try_from(uid).ok())
            .collect();
        if self.private_uid.is_some_and(|uid| uids.contains(&uid)) {
            return true;
        }
        self.any_uid.is_none_or(|uid| uids.contains(&uid)) && self.fit_environment(pid)
    }

    fn fit_environment(&self, pid: i32) -> bool {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let has = |wanted: &[u8]| environment.split(|byte| *byte == 0).any(|variable| variable == wanted);
        has(&self.job) && has(&self.attempt)
    }
}
