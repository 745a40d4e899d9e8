//! Sidecars: starting them, keeping a few warm, and putting one beside an attempt directory.
//!
//! Owns: the sidecars that have no attempt. Never: one that has; who began it watches it, and gives it back or reaps it.
//! Invariant: an idle sidecar is nobody's attempt: it holds no lock, is in no group of an attempt, and ends when its
//! connection closes, with the worker at the latest.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jobyard_handoff::{AttemptDirectory, ToSidecar};

/// Kept warm when nothing is going on.
const KEPT_IDLE: usize = 4;
/// Kept for the next attempts while many end; each is about 200 KiB.
const MAX_IDLE: usize = 32;

/// A sidecar and the worker's end of its first connection.
#[derive(Debug)]
pub struct Sidecar {
    /// Reap it when its connection has ended, unless it is given back. Its pid is no proof of life; the lock is.
    pub process: Child,
    /// In blocking mode.
    pub connection: UnixStream,
}

/// The sidecars of a worker that have no attempt, so that the start of one costs a frame instead of a process.
#[derive(Debug)]
pub struct SidecarPool {
    binary: PathBuf,
    idle: Mutex<Vec<Sidecar>>,
}

impl SidecarPool {
    /// Starts nothing yet.
    #[must_use]
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        Self { binary: binary.into(), idle: Mutex::default() }
    }

    /// The program it starts.
    #[must_use]
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// Puts a sidecar beside an attempt: one that is idle, or else a new one.
    pub fn begin(&self, directory: &AttemptDirectory) -> io::Result<Sidecar> {
        let mut begin = Vec::new();
        ToSidecar::Begin { directory: directory.path().to_owned() }.encode(&mut begin);
        while let Some(mut sidecar) = self.take() {
            match sidecar.connection.write_all(&begin) {
                Ok(()) => return Ok(sidecar),
                // Somebody killed it.
                Err(_) => end(sidecar),
            }
        }
        let mut sidecar = start(&self.binary)?;
        match sidecar.connection.write_all(&begin) {
            Ok(()) => Ok(sidecar),
            Err(error) => {
                end(sidecar);
                Err(error)
            }
        }
    }

    /// Takes back one that has said `Idle` and whose every frame was read. When there are enough it is let go, and its
    /// process is given back to be reaped.
    #[must_use]
    pub fn give_back(&self, sidecar: Sidecar) -> Option<Child> {
        // It comes back in whatever mode its watcher used.
        let is_usable = sidecar.connection.set_nonblocking(false).is_ok();
        let mut idle = self.idle();
        if is_usable && idle.len() < MAX_IDLE {
            idle.push(sidecar);
            return None;
        }
        Some(sidecar.process)
    }

    /// Starts as many as are kept when nothing is going on. Repeatable; call it off the path of a launch.
    pub fn fill(&self) -> io::Result<()> {
        while self.is_low() {
            let sidecar = start(&self.binary)?;
            self.idle().push(sidecar);
        }
        Ok(())
    }

    /// Ends those above what is kept when nothing is going on.
    pub fn trim(&self) {
        let above = {
            let mut idle = self.idle();
            let kept = idle.len().min(KEPT_IDLE);
            idle.split_off(kept)
        };
        above.into_iter().for_each(end);
    }

    /// Ends all that are idle.
    pub fn close(&self) {
        let all = std::mem::take(&mut *self.idle());
        all.into_iter().for_each(end);
    }

    /// Whether a launch may find none that is warm.
    #[must_use]
    pub fn is_low(&self) -> bool {
        self.idle().len() < KEPT_IDLE
    }

    fn take(&self) -> Option<Sidecar> {
        // The last one that came back is the one whose memory is nearest.
        self.idle().pop()
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Sidecar>> {
        // The list is whole before anything can panic.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SidecarPool {
    fn drop(&mut self) {
        self.close();
    }
}

/// With an empty environment and no descriptor but its end of the connection.
fn start(binary: &Path) -> io::Result<Sidecar> {
    let (connection, theirs) = UnixStream::pair()?;
    let process = Command::new(binary)
        .env_clear()
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(Sidecar { process, connection })
}

/// Ends one that has no attempt. It would leave by itself, but who stopped it (SIGSTOP) must not stop us.
fn end(mut sidecar: Sidecar) {
    // It is our child until we have reaped it, so that neither can miss.
    let _ = sidecar.process.kill();
    let _ = sidecar.process.wait();
}
