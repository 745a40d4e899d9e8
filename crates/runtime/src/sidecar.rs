//! Starting a sidecar beside an attempt directory.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use jobyard_handoff::AttemptDirectory;

/// A sidecar just started.
#[derive(Debug)]
pub struct SpawnedSidecar {
    /// Reap it after `AckOutcome` (or when its connection ends). Its pid is no proof of life; the lock is.
    pub process: Child,
    /// The worker's end of the first connection, in blocking mode.
    pub connection: UnixStream,
}

/// Starts the sidecar with an empty environment and no descriptor but its end of the connection.
pub fn spawn_sidecar(binary: &Path, directory: &AttemptDirectory) -> io::Result<SpawnedSidecar> {
    let (connection, theirs) = UnixStream::pair()?;
    let process = Command::new(binary)
        .arg(directory.path())
        .env_clear()
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(SpawnedSidecar { process, connection })
}
