//! Why a worker can't start, and why it had to stop.

use std::io;
use std::path::PathBuf;

use jobyard_runtime::SetUpError;
use thiserror::Error;

/// Why a worker can't start.
#[derive(Debug, Error)]
pub enum StartError {
    /// Another worker has the data directory.
    #[error("another worker runs on the data directory {0}; stop it, or give this one its own --data-dir")]
    AlreadyRunning(PathBuf),
    /// The node's id was damaged.
    #[error(
        "{path} does not hold a node id: restore it, or remove it to register this machine as a new node"
    )]
    BadNodeId {
        /// The file.
        path: PathBuf,
    },
    /// A directory that others may write to, or that is theirs.
    #[error("{path} belongs to user {owner}, not to this one: choose another directory")]
    NotOurs {
        /// Which.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// The sidecar is not where the settings say.
    #[error("the sidecar {path} can't be executed: build or install jobyard-sidecar, or set its path")]
    NoSidecar {
        /// Where it should be.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The machine can't be prepared for attempts.
    #[error("could not prepare this machine for attempts")]
    Runtime(#[from] SetUpError),
    /// The system refused.
    #[error("could not {doing} {path}")]
    Io {
        /// What we were doing.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// For `map_err`: what we were doing to what.
pub(crate) fn failed(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> StartError {
    move |source| StartError::Io { doing, path: path.into(), source }
}

/// Why a running worker had to stop.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WorkerError {
    /// A newer session of this node exists.
    #[error("a newer worker has registered as this node: is the data directory copied to another machine?")]
    Superseded,
    /// The control plane doesn't take this node.
    #[error("the registration was refused: {0}")]
    Refused(String),
}
