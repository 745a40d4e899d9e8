//! From an image to a child, in the parent.

use std::os::fd::{AsFd, OwnedFd};

use jobyard_handoff::Containment;
use rustix::fs::{Gid, Mode, OFlags, Uid};
use rustix::pipe::{PipeFlags, pipe_with};

use super::child::{ChildEnds, Failure, Stage, become_program};
use super::image::Image;
use super::init::{Outside, be_first};
use super::sys::{self, Forked};

/// The parent's side of a child just made. It has not become the program yet.
pub(crate) struct Spawned {
    /// Our child: the task process itself, or the first process of its namespace.
    pub(crate) pid: i32,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
    /// A [`Failure`], or the end of file once the program is executed.
    pub(crate) failed: OwnedFd,
    /// In a process namespace: a [`super::MainStatus`] when the task process has ended.
    pub(crate) report: Option<OwnedFd>,
}

/// Makes the child. One thread, please.
pub(crate) fn spawn(image: &Image) -> Result<Spawned, Failure> {
    let (stdout, child_stdout) = output_pipe(image)?;
    let (stderr, child_stderr) = output_pipe(image)?;
    let (failed, child_failed) = pipe_with(PipeFlags::CLOEXEC).map_err(Failure::of(Stage::Streams))?;
    let ends = ChildEnds { stdout: child_stdout, stderr: child_stderr, failed: child_failed };
    let (pid, report) = match image.containment {
        Containment::PidNamespace { user_namespace } => {
            let (pid, report) = spawn_namespace(image, ends, user_namespace)?;
            (pid, Some(report))
        }
        Containment::Cgroup | Containment::Subreaper => (spawn_directly(image, &ends)?, None),
    };
    Ok(Spawned { pid, stdout, stderr, failed, report })
}

fn spawn_directly(image: &Image, ends: &ChildEnds) -> Result<i32, Failure> {
    let leaf = image.unified.as_ref().and_then(|leaf| {
        // A leaf that can't be opened can't be joined either; the child reports it.
        rustix::fs::open(leaf.as_c_str(), OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .ok()
    });
    // SAFETY: the sidecar has one thread, and the child ends in become_program.
    let forked = unsafe { sys::clone_process(0, leaf.as_ref().map(AsFd::as_fd)) };
    match forked.map_err(|error| Failure::new(Stage::Namespace, &error))? {
        (Forked::Child, joined) => become_program(image, ends, joined),
        (Forked::Parent(pid), _) => Ok(pid),
    }
}

fn spawn_namespace(image: &Image, ends: ChildEnds, user_namespace: bool) -> Result<(i32, OwnedFd), Failure> {
    let (report, init_report) = pipe_with(PipeFlags::CLOEXEC).map_err(Failure::of(Stage::Namespace))?;
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let outside = user_namespace.then_some(Outside { uid, gid });
    let user_flag = if user_namespace { sys::CLONE_NEWUSER } else { 0 };
    let flags = sys::CLONE_NEWPID | sys::CLONE_NEWNS | user_flag;
    // SAFETY: the sidecar has one thread, and the child ends in be_first.
    match unsafe { sys::clone_process(flags, None) } {
        Ok((Forked::Child, _)) => {
            drop(report);
            be_first(image, ends, &init_report, outside)
        }
        Ok((Forked::Parent(pid), _)) => Ok((pid, report)),
        Err(error) => Err(Failure::new(Stage::Namespace, &error)),
    }
}

/// A pipe whose read end never blocks us, and whose other end the task's user may open again by name
/// (`/dev/stdout`).
fn output_pipe(image: &Image) -> Result<(OwnedFd, OwnedFd), Failure> {
    let failure = Failure::of(Stage::Streams);
    let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC).map_err(&failure)?;
    rustix::io::ioctl_fionbio(&ours, true).map_err(&failure)?;
    if let Some(user) = image.user {
        rustix::fs::fchown(&theirs, Some(Uid::from_raw(user.uid)), Some(Gid::from_raw(user.gid)))
            .map_err(&failure)?;
    }
    Ok((ours, theirs))
}
