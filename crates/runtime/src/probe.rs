//! What this machine can do, found by doing it.

use std::ffi::{c_int, c_long};
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use jobyard_handoff::Containment;

use crate::groups::Hierarchies;

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

/// Which namespaces a process of ours can be started in, with the help of a user namespace where it needs one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Namespaces {
    /// Process ids of its own.
    pub pid: bool,
    /// User ids of its own.
    pub user: bool,
    /// Network devices of its own.
    pub network: bool,
}

impl Namespaces {
    pub(crate) fn tried() -> Self {
        let starts = |flags| namespace_starts(flags) || namespace_starts(flags | CLONE_NEWUSER);
        Self {
            pid: starts(CLONE_NEWPID),
            user: namespace_starts(CLONE_NEWUSER),
            network: starts(CLONE_NEWNET),
        }
    }
}

const PATIENCE: Duration = Duration::from_secs(2);

/// Makes a group, puts a process in it and kills it; failing that a process namespace; failing that: subreaper.
/// `parents` are the node's groups.
pub(crate) fn probe(parents: &Hierarchies) -> Abilities {
    let containment = if group_kills(parents) {
        Containment::Cgroup
    } else if namespace_starts(CLONE_NEWPID | CLONE_NEWNS) {
        Containment::PidNamespace { user_namespace: false }
    } else if namespace_starts(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUSER) {
        Containment::PidNamespace { user_namespace: true }
    } else {
        Containment::Subreaper
    };
    let grouped = containment == Containment::Cgroup;
    Abilities {
        containment,
        memory: if grouped { parents.memory_limits() } else { "none" },
        pids: grouped && (parents.pids_v1.is_some() || parents.pids),
        cpu: grouped && (parents.cpu_v1.is_some() || parents.cpu),
        users: rustix::process::geteuid().is_root(),
    }
}

/// A process put into a leaf of the hierarchy that will kill dies by it.
fn group_kills(parents: &Hierarchies) -> bool {
    let Some(parent) = parents.unified.as_deref().or_else(|| parents.directories().next()) else {
        return false;
    };
    let leaf = parent.join(format!("probe-{}", std::process::id()));
    let killed = try_group(&leaf).unwrap_or(false);
    killed & remove_leaf(&leaf)
}

fn try_group(leaf: &Path) -> io::Result<bool> {
    fs::create_dir(leaf)?;
    // Waits for a line that never comes, and for the end of file should we die.
    let mut child = Command::new("/bin/sh").args(["-c", "read line"]).stdin(Stdio::piped()).spawn()?;
    let killed = kill_by_group(leaf, &mut child);
    // Already dead, if it worked.
    let _ = child.kill();
    child.wait()?;
    killed
}

fn kill_by_group(leaf: &Path, child: &mut Child) -> io::Result<bool> {
    fs::write(leaf.join("cgroup.procs"), child.id().to_string())?;
    let members = fs::read_to_string(leaf.join("cgroup.procs"))?;
    if members.trim() != child.id().to_string() {
        return Ok(false);
    }
    match fs::OpenOptions::new().write(true).open(leaf.join("cgroup.kill")) {
        Ok(mut kill) => io::Write::write_all(&mut kill, b"1")?,
        // Version 1: members are killed one by one, for which listing them is enough.
        Err(_) => child.kill()?,
    }
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            return Ok(status.signal() == Some(9));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(false)
}

fn remove_leaf(leaf: &Path) -> bool {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if fs::remove_dir(leaf).is_ok() || !leaf.exists() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

const CLONE_NEWNS: u64 = 0x0002_0000;
const CLONE_NEWUSER: u64 = 0x1000_0000;
const CLONE_NEWPID: u64 = 0x2000_0000;
const CLONE_NEWNET: u64 = 0x4000_0000;
const SYS_CLONE3: c_long = 435;
const SIGCHLD: u64 = 17;

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn _exit(status: c_int) -> !;
}

/// A child in such namespaces comes up and ends.
fn namespace_starts(flags: u64) -> bool {
    // `struct clone_args`, version 0: flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls.
    let arguments: [u64; 8] = [flags, 0, 0, 0, SIGCHLD, 0, 0, 0];
    // SAFETY: without a stack and CLONE_VM this is a fork. The child, of whatever threads we have, runs nothing
    // but _exit, which is safe after any fork.
    let pid = unsafe {
        match syscall(SYS_CLONE3, arguments.as_ptr(), size_of_val(&arguments)) {
            0 => _exit(0),
            pid => pid,
        }
    };
    let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) else { return false };
    let options = rustix::process::WaitOptions::empty();
    let ended = rustix::io::retry_on_intr(|| rustix::process::waitpid(Some(pid), options));
    matches!(ended, Ok(Some((_, status))) if status.exit_status() == Some(0))
}
