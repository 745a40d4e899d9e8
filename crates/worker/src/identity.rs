//! Who this node is: an id made once in the data directory, held by a lock, and a session new at each start.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use jobyard_model::{NodeId, SessionId};
use uuid::Uuid;

use crate::error::{StartError, failed};

/// Held as long as the worker lives.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) node_id: NodeId,
    pub(crate) session: SessionId,
    _lock: File,
}

impl Identity {
    /// Takes the data directory; a second worker is refused.
    pub(crate) fn take(data_dir: &Path) -> Result<Self, StartError> {
        let path = data_dir.join("worker.lock");
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed("open the lock", &path))?;
        match try_lock(&lock) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StartError::AlreadyRunning(data_dir.to_owned())),
            Err(TryLockError::Error(source)) => return Err(failed("lock", path)(source)),
        }
        let node_id = node_id(&data_dir.join("node-id"))?;
        Ok(Self { node_id, session: SessionId(Uuid::new_v4()), _lock: lock })
    }

    /// Names this node's groups and directories: short, and its own among the workers of a machine.
    pub(crate) fn short_name(&self) -> String {
        let mut name = self.node_id.0.simple().to_string();
        name.truncate(12);
        name
    }
}

/// A worker that is killed while it starts a sidecar leaves a child that holds the lock until it runs its program: a
/// lock that is taken is tried for a second.
fn try_lock(file: &File) -> Result<(), TryLockError> {
    for _ in 0..50 {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(20)),
            done => return done,
        }
    }
    file.try_lock()
}

fn node_id(path: &Path) -> Result<NodeId, StartError> {
    match fs::read_to_string(path) {
        Ok(text) => text.trim().parse().map_err(|_| StartError::BadNodeId { path: path.to_owned() }),
        Err(error) if error.kind() == ErrorKind::NotFound => make_node_id(path),
        Err(error) => Err(failed("read the node id from", path)(error)),
    }
}

/// Whole or not at all: it is never made twice.
fn make_node_id(path: &Path) -> Result<NodeId, StartError> {
    let node_id = NodeId(Uuid::new_v4());
    let draft = path.with_extension("new");
    let write = || {
        let mut file = File::create(&draft)?;
        writeln!(file, "{node_id}")?;
        file.sync_all()?;
        fs::rename(&draft, path)
    };
    write().map_err(failed("write the node id to", path))?;
    Ok(node_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_keeps_its_id_and_gets_new_sessions() {
        let directory = tempfile::tempdir().unwrap();
        let first = Identity::take(directory.path()).unwrap();
        let (node_id, session) = (first.node_id, first.session);
        assert!(matches!(Identity::take(directory.path()), Err(StartError::AlreadyRunning(_))));
        drop(first);
        let second = Identity::take(directory.path()).unwrap();
        assert_eq!(second.node_id, node_id);
        assert_ne!(second.session, session);
    }

    #[test]
    fn a_damaged_id_is_an_error_and_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("node-id"), "nonsense").unwrap();
        let error = Identity::take(directory.path()).unwrap_err();
        assert!(matches!(error, StartError::BadNodeId { .. }), "{error}");
        assert_eq!(fs::read_to_string(directory.path().join("node-id")).unwrap(), "nonsense");
    }
}
