//! What the task process does between its fork and its execve. It allocates nothing, and every step that fails
//! is reported by stage and error number.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Signal;
use rustix::time::Timespec;

use super::image::Image;
use super::sys;

const BUSY_TRIES: u32 = 200;
const BUSY_PAUSE_NS: i64 = 5_000_000;

/// The step that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Namespace,
    Group,
    Streams,
    User,
    Directory,
    Execute,
}

impl Stage {
    const ALL: [Self; 6] =
        [Self::Namespace, Self::Group, Self::Streams, Self::User, Self::Directory, Self::Execute];
}

/// Why there is no task process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) stage: Stage,
    pub(crate) errno: i32,
}

impl Failure {
    pub(crate) const BYTES: usize = 5;

    pub(super) fn new(stage: Stage, error: &io::Error) -> Self {
        Self { stage, errno: error.raw_os_error().unwrap_or(0) }
    }

    pub(super) fn of(stage: Stage) -> impl Fn(Errno) -> Self {
        move |errno| Self { stage, errno: errno.raw_os_error() }
    }

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let errno = self.errno.to_le_bytes();
        let stage = Stage::ALL.iter().position(|stage| *stage == self.stage);
        [u8::try_from(stage.unwrap_or(0)).unwrap_or(0), errno[0], errno[1], errno[2], errno[3]]
    }

    pub(crate) fn from_bytes(bytes: [u8; Self::BYTES]) -> Option<Self> {
        let [stage, errno @ ..] = bytes;
        let stage = Stage::ALL.get(usize::from(stage))?;
        Some(Self { stage: *stage, errno: i32::from_le_bytes(errno) })
    }
}

/// The child's ends of the pipes.
pub(super) struct ChildEnds {
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    /// Closed by the execve; a failure is written to it.
    pub(super) failed: OwnedFd,
}

/// Becomes the program. `joined`: the process is in the unified leaf already.
pub(super) fn become_program(image: &Image, ends: &ChildEnds, joined: bool) -> ! {
    let failure = match before_execute(image, ends, joined) {
        Ok(()) => execute(image),
        Err(failure) => failure,
    };
    give_up(ends.failed.as_fd(), failure)
}

/// Only comes back to say why not. A file that is still open for writing somewhere (a fork of the process that
/// fetched it, say) is a matter of milliseconds.
fn execute(image: &Image) -> Failure {
    let pause = Timespec { tv_sec: 0, tv_nsec: BUSY_PAUSE_NS };
    for _ in 0..BUSY_TRIES {
        // SAFETY: the image laid both arrays out, null-terminated, over strings it owns.
        let error = unsafe {
            sys::execute(image.program.as_ptr(), image.arguments.as_ptr(), image.environment.as_ptr())
        };
        let failure = Failure::new(Stage::Execute, &error);
        if failure.errno != Errno::TXTBSY.raw_os_error() {
            return failure;
        }
        let _ = rustix::thread::nanosleep(&pause);
    }
    Failure { stage: Stage::Execute, errno: Errno::TXTBSY.raw_os_error() }
}

pub(super) fn give_up(failed: BorrowedFd<'_>, failure: Failure) -> ! {
    // The pipe is empty and its reader is our parent; when that is gone nobody is left to tell.
    let _ = rustix::io::write(failed, &failure.to_bytes());
    sys::exit_now(127)
}

fn before_execute(image: &Image, ends: &ChildEnds, joined: bool) -> Result<(), Failure> {
    // A session of its own: signals to its group reach the task and nothing of ours. It can't fail, a new
    // process leads no group.
    let _ = rustix::process::setsid();
    join_groups(image, joined)?;
    replace_streams(ends)?;
    assume_user(image)?;
    // After the user: it is cleared by a change of credentials. The worker clears the rest of the tree.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    rustix::process::chdir(image.directory.as_c_str()).map_err(Failure::of(Stage::Directory))?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    sys::reset_signals();
    Ok(())
}

fn join_groups(image: &Image, joined: bool) -> Result<(), Failure> {
    let skip = usize::from(joined && image.unified.is_some());
    for procs in &image.groups[..image.groups.len() - skip] {
        rustix::fs::open(procs.as_c_str(), OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
            .and_then(|procs| rustix::io::write(&procs, b"0"))
            .map_err(Failure::of(Stage::Group))?;
    }
    Ok(())
}

fn replace_streams(ends: &ChildEnds) -> Result<(), Failure> {
    rustix::fs::open(c"/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .and_then(|null| rustix::stdio::dup2_stdin(&null))
        .and_then(|()| rustix::stdio::dup2_stdout(&ends.stdout))
        .and_then(|()| rustix::stdio::dup2_stderr(&ends.stderr))
        .map_err(Failure::of(Stage::Streams))
}

fn assume_user(image: &Image) -> Result<(), Failure> {
    use rustix::process::{Gid, Uid};
    let Some(user) = image.user else { return Ok(()) };
    // This process has one thread, so that a thread's ids are the process's.
    rustix::thread::set_thread_groups(&[])
        .and_then(|()| rustix::thread::set_thread_gid(Gid::from_raw(user.gid)))
        .and_then(|()| rustix::thread::set_thread_uid(Uid::from_raw(user.uid)))
        .map_err(Failure::of(Stage::User))
}
