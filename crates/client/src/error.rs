//! What can go wrong, a variant for each thing a caller does differently.

use std::error::Error as StdError;
use std::io;
use std::path::PathBuf;

use jobyard_api::json::Problem;
use jobyard_model::{ArtifactHash, JobId};
use jobyard_tree::{FolderError, ManifestError};
use thiserror::Error;

use crate::ConnectionError;

/// Why a call of the client library did not do what it was asked.
///
/// ```
/// use jobyard_client::Error;
///
/// /// What a caller usually tells apart.
/// fn advice(error: &Error) -> &'static str {
///     match error {
///         Error::Problem(problem) if problem.code == "not_found" => "check the id",
///         Error::Problem(_) => "mend the request",
///         error if error.is_unreachable() => "try again later",
///         _ => "look at the message",
///     }
/// }
/// ```
#[derive(Debug, Error)]
pub enum Error {
    /// The server refused, and says why with a stable `code`.
    #[error("{}", describe(.0))]
    Problem(Box<Problem>),
    /// No answer came, for as long as the [`RetryPolicy`](crate::RetryPolicy) allows. Whether the call was carried
    /// out is not known; calls of this library that may be repeated have been.
    #[error("no answer from {url} while {doing}")]
    Unreachable {
        /// The server's address.
        url: String,
        /// What we were doing.
        doing: &'static str,
        /// The last failure.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// An answer came that this version of the library doesn't understand, or something that is no Jobyard server
    /// answered.
    #[error("did not understand the answer of {url} while {doing}: {why}")]
    Answer {
        /// The server's address.
        url: String,
        /// What we were doing.
        doing: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// Server or token could not be found out.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The HTTP client could not be set up.
    #[error("could not set up the HTTP client")]
    Setup(#[source] Box<dyn StdError + Send + Sync>),
    /// A file of ours could not be read or written.
    #[error("could not {doing} {}", path.display())]
    File {
        /// `read` or `write`.
        doing: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A folder of ours can't be a tree, or can't be read.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The server's manifest of a tree is none that is safe to follow.
    #[error("the tree can't be used")]
    Manifest(#[from] ManifestError),
    /// The bytes are not those that were asked for; none of them were kept.
    #[error("the artifact has the hash {got}, but {wanted} was wanted")]
    WrongHash {
        /// The name asked for.
        wanted: ArtifactHash,
        /// The hash of what came.
        got: ArtifactHash,
    },
    /// The time given for waiting is over; the job goes on.
    #[error("job {job_id} had not ended when the time for waiting was over")]
    StillRunning {
        /// Which.
        job_id: JobId,
    },
}

impl Error {
    /// The server could not be reached or did not answer: the same call may work later.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// The stable code of a refusal.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Problem(problem) => Some(&problem.code),
            _ => None,
        }
    }
}

/// The detail, and each fault on a line of its own.
fn describe(problem: &Problem) -> String {
    let mut text = if problem.detail.is_empty() { problem.title.clone() } else { problem.detail.clone() };
    for fault in &problem.errors {
        text.push_str("\n  ");
        if !fault.pointer.is_empty() {
            text.push_str(&fault.pointer);
            text.push_str(": ");
        }
        text.push_str(&fault.detail);
    }
    text
}
