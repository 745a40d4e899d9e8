//! The first process of a process namespace: it makes the task process, reaps what is orphaned, and takes the
//! whole namespace with it when the task process or the sidecar ends.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::process::{DumpableBehavior, Signal, dumpable_behavior, set_dumpable_behavior};

use super::child::{ChildEnds, Failure, Stage, become_program, give_up};
use super::image::Image;
use super::sys::{self, Forked, SignalQueue};

/// How the task process ended, as its namespace's first process tells the sidecar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MainStatus(pub(crate) i32);

impl MainStatus {
    pub(crate) const BYTES: usize = 4;

    pub(crate) fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(i32::from_le_bytes(bytes))
    }
}

/// Who we are outside, for the maps of a user namespace.
#[derive(Clone, Copy)]
pub(super) struct Outside {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// Runs as process 1 of the new namespace. `report` takes a [`MainStatus`].
pub(super) fn be_first(image: &Image, ends: ChildEnds, report: &OwnedFd, outside: Option<Outside>) -> ! {
    if let Err(failure) = prepare_namespace(report, outside) {
        give_up(ends.failed.as_fd(), failure)
    }
    let Ok(signals) = SignalQueue::install() else { sys::exit_now(1) };
    // SAFETY: one thread; the child ends in become_program.
    let main = match unsafe { sys::clone_process(0, None) } {
        Ok((Forked::Child, _)) => become_program(image, &ends, false),
        Ok((Forked::Parent(pid), _)) => pid,
        Err(error) => give_up(ends.failed.as_fd(), Failure::new(Stage::Namespace, &error)),
    };
    drop(ends);
    let Ok((report, signals)) = keep_only(report, &signals) else { sys::exit_now(1) };
    watch(main, &report, &signals)
}

fn prepare_namespace(report: &OwnedFd, outside: Option<Outside>) -> Result<(), Failure> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(Failure::of(Stage::Namespace))?;
    // The sidecar may have died before we asked to be told: then nobody reads our report.
    let mut fds = [PollFd::new(report, PollFlags::empty())];
    if poll(&mut fds, Some(&rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0) {
        sys::exit_now(1);
    }
    if let Some(outside) = outside {
        // Of a process that the kernel keeps to itself, these files are root's.
        let behavior = dumpable_behavior().map_err(Failure::of(Stage::Namespace))?;
        set_dumpable_behavior(DumpableBehavior::Dumpable).map_err(Failure::of(Stage::Namespace))?;
        map_ids(outside).map_err(|error| Failure::new(Stage::Namespace, &error))?;
        set_dumpable_behavior(behavior).map_err(Failure::of(Stage::Namespace))?;
    }
    // A /proc that shows this namespace. Where that is not allowed, the task sees the node's: pids there are not
    // its own, but nothing it could not see before.
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let _ = rustix::mount::mount_change(c"/", private)
        .and_then(|()| rustix::mount::mount(c"proc", c"/proc", c"proc", flags, None::<&CStr>));
    Ok(())
}

/// The same ids inside as outside, and no others.
fn map_ids(outside: Outside) -> io::Result<()> {
    write_file(c"/proc/self/setgroups", b"deny")?;
    let mut line = [0; 32];
    write_file(c"/proc/self/uid_map", identity_map(outside.uid, &mut line)?)?;
    write_file(c"/proc/self/gid_map", identity_map(outside.gid, &mut line)?)
}

fn identity_map(id: u32, line: &mut [u8; 32]) -> io::Result<&[u8]> {
    use std::io::Write;
    let mut rest = line.as_mut_slice();
    write!(rest, "{id} {id} 1")?;
    let unused = rest.len();
    Ok(&line[..line.len() - unused])
}

fn write_file(path: &CStr, bytes: &[u8]) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, bytes)?;
    Ok(())
}

/// Closes everything of the sidecar's that came along (its lock above all: held by us, it would say that the
/// sidecar lives), keeping the two we need.
fn keep_only(report: &OwnedFd, signals: &SignalQueue) -> io::Result<(OwnedFd, SignalQueue)> {
    const ABOVE_ALL: i32 = 512;
    let report = rustix::io::fcntl_dupfd_cloexec(report, ABOVE_ALL)?;
    let signals = signals.duplicate(report.as_raw_fd() + 1)?;
    // SAFETY: this process uses only the two duplicates from here on and never returns, so that no owner of a
    // closed descriptor is used or dropped.
    unsafe { sys::close_span(0, report.as_raw_fd() - 1) };
    Ok((report, signals))
}

fn watch(main: i32, report: &OwnedFd, signals: &SignalQueue) -> ! {
    loop {
        while let Some(ended) = sys::reap_any() {
            if ended.pid == main {
                // All that is left in the namespace is killed by the kernel as we end.
                let _ = rustix::io::write(report, &ended.status.to_le_bytes());
                sys::exit_now(0);
            }
        }
        let mut fds = [PollFd::new(signals, PollFlags::IN)];
        let _ = poll(&mut fds, None);
        if signals.take() {
            // TERM is for everybody here.
            sys::signal_everybody(Signal::TERM);
        }
    }
}
