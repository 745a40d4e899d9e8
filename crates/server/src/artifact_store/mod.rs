//! Where the bytes of artifacts and log segments lie.
//!
//! Owns the bytes and nothing else: which artifacts a job may use, and which segment belongs to which log, stands in
//! the datastore. Invariant: **what is under a hash has that hash, is whole and is durable**; an upload that breaks off
//! or does not match leaves nothing.

mod bucket;
mod checked;
#[cfg(test)]
mod conformance;
mod directory;

use std::io;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use jobyard_model::{ArtifactHash, Timestamp};
use thiserror::Error;
use uuid::Uuid;

use crate::s3::S3Error;

pub use bucket::BucketStore;
pub use checked::CheckedArtifact;
pub use directory::DirectoryStore;

/// Bytes as they come.
pub type ByteStream = BoxStream<'static, io::Result<Bytes>>;

/// Why an artifact was not stored; nothing of it was.
#[derive(Debug, Error)]
pub enum PutError {
    /// The bytes have another hash than the name they were sent under.
    #[error("the bytes have the hash {found}, not {named}")]
    Mismatch {
        /// The hash in the name.
        named: ArtifactHash,
        /// The hash of what came.
        found: ArtifactHash,
    },
    /// More bytes than are allowed.
    #[error("an artifact has at most {most_bytes} bytes")]
    TooLarge {
        /// The limit.
        most_bytes: u64,
    },
    /// The sender broke off.
    #[error("the upload broke off")]
    BrokeOff(#[source] io::Error),
    /// The store did not take it.
    #[error(transparent)]
    Store(#[from] ArtifactStoreError),
}

/// Why the artifact store did not do what it was asked.
#[derive(Debug, Error)]
pub enum ArtifactStoreError {
    /// It does not answer: it can be asked again.
    #[error("the artifact store can't be reached: {0}")]
    Away(String),
    /// It answers and refuses us: an operator has to act.
    #[error("the artifact store refuses this server: {0}")]
    Refused(String),
    /// It has no room.
    #[error("the artifact store is full")]
    Full(#[source] io::Error),
    /// It failed.
    #[error("the artifact store failed")]
    Failed(#[source] io::Error),
}

impl From<io::Error> for ArtifactStoreError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full(error),
            _ => Self::Failed(error),
        }
    }
}

impl From<S3Error> for ArtifactStoreError {
    fn from(error: S3Error) -> Self {
        match error {
            S3Error::Away(why) => Self::Away(why),
            // Found by one call and gone for the next: asked again, it is found out which.
            S3Error::Missing | S3Error::Changed | S3Error::OutOfRange => Self::Away(error.to_string()),
            S3Error::Refused(why) | S3Error::Misconfigured(why) => Self::Refused(why),
        }
    }
}

/// A day of log segments by UTC, counted from 1970-01-01. Segments of one day lie together, since logs are dropped by
/// whole days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogDay(pub i64);

impl LogDay {
    /// The day of an instant.
    #[must_use]
    pub fn of(at: Timestamp) -> Self {
        const DAY_MS: i64 = 24 * 60 * 60 * 1000;
        Self(at.0.max(0) / DAY_MS)
    }

    /// The day of a segment; `None` when its name does not say.
    #[must_use]
    pub fn of_segment(name: &str) -> Option<Self> {
        name.strip_prefix("logs/")?.split_once('/')?.0.parse().ok().map(Self)
    }

    /// A name for a new segment.
    #[must_use]
    pub fn segment(self) -> String {
        format!("logs/{}/{}", self.0, Uuid::new_v4())
    }
}

/// What the artifact store answers.
pub(crate) type Stored<T> = Result<T, ArtifactStoreError>;

/// Keeps bytes under names.
#[async_trait]
pub trait ArtifactStore: Send + Sync + 'static {
    /// Stores an artifact under its hash and returns its size. When this returns, it is durable. One that is there
    /// already is checked again and left as it is.
    async fn put(&self, hash: ArtifactHash, body: ByteStream, most_bytes: u64) -> Result<u64, PutError>;

    /// Stores many small artifacts. When this returns, all of them are durable; when it fails, some may be. One that is
    /// there already is written again.
    async fn put_all(&self, files: Vec<CheckedArtifact>) -> Stored<()>;

    /// The size of an artifact; `None` when it isn't there.
    async fn size(&self, hash: ArtifactHash) -> Stored<Option<u64>>;

    /// The bytes of an artifact from `range`, which lies within its size; `None` when it isn't there.
    async fn read(&self, hash: ArtifactHash, range: Range<u64>) -> Stored<Option<ByteStream>>;

    /// Removes an artifact whose bytes were last written before that time. `false`: it isn't there, or was written later.
    async fn remove(&self, hash: ArtifactHash, written_before: Timestamp) -> Stored<bool>;

    /// Stores a log segment under a name that was never used before: parts of lower-case letters, digits and `-`,
    /// joined by `/`. When this returns, it is durable.
    async fn put_segment(&self, name: &str, bytes: Bytes) -> Stored<()>;

    /// Removes a log segment that nothing refers to; one that isn't there is fine.
    async fn remove_segment(&self, name: &str) -> Stored<()>;

    /// A part of a log segment; short when the segment ends before. `None` when it isn't there.
    async fn read_segment(&self, name: &str, offset: u64, length: u64) -> Stored<Option<Bytes>>;

    /// The days that there are log segments of.
    async fn segment_days(&self) -> Stored<Vec<LogDay>>;

    /// Removes all log segments of a day. One that is being read may break off.
    async fn drop_segments(&self, day: LogDay) -> Stored<()>;

    /// Why the last call failed, if it failed for the store's sake.
    fn trouble(&self) -> Option<String> {
        None
    }
}

/// Fails unless it may be a segment's name.
fn check_segment_name(name: &str) -> io::Result<()> {
    let plain = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    match name.split('/').all(plain) {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not the name of a log segment")),
    }
}
