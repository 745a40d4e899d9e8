//! Where the bytes of artifacts and log segments lie.
//!
//! Owns the bytes and nothing else: which artifacts a job may use, and which segment belongs to which log, stands in
//! the datastore. Invariant: **what is under a hash has that hash, is whole and is durable**; an upload that breaks off
//! or does not match leaves nothing.

mod directory;

use std::io;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use jobyard_model::{ArtifactHash, Timestamp};
use thiserror::Error;
use uuid::Uuid;

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
    /// The store has no room.
    #[error("the artifact store is full")]
    Full(#[source] io::Error),
    /// The store could not be written.
    #[error("the artifact store could not be written")]
    Store(#[source] io::Error),
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

/// Keeps bytes under names.
#[async_trait]
pub trait ArtifactStore: Send + Sync + 'static {
    /// Stores an artifact under its hash and returns its size. When this returns, it is durable. One that is there
    /// already is checked again and left as it is.
    async fn put(&self, hash: ArtifactHash, body: ByteStream, most_bytes: u64) -> Result<u64, PutError>;

    /// The size of an artifact; `None` when it isn't there.
    async fn size(&self, hash: ArtifactHash) -> io::Result<Option<u64>>;

    /// The bytes of an artifact from `range`, which lies within its size; `None` when it isn't there.
    async fn read(&self, hash: ArtifactHash, range: Range<u64>) -> io::Result<Option<ByteStream>>;

    /// Removes an artifact whose bytes were last written before that time. `false`: it isn't there, or was written later.
    async fn remove(&self, hash: ArtifactHash, written_before: Timestamp) -> io::Result<bool>;

    /// Stores a log segment under a name that was never used before: parts of lower-case letters, digits and `-`,
    /// joined by `/`. When this returns, it is durable.
    async fn put_segment(&self, name: &str, bytes: Bytes) -> io::Result<()>;

    /// Removes a log segment that nothing refers to; one that isn't there is fine.
    async fn remove_segment(&self, name: &str) -> io::Result<()>;

    /// A part of a log segment; short when the segment ends before. `None` when it isn't there.
    async fn read_segment(&self, name: &str, offset: u64, length: u64) -> io::Result<Option<Bytes>>;

    /// The days that there are log segments of.
    async fn segment_days(&self) -> io::Result<Vec<LogDay>>;

    /// Removes all log segments of a day. One that is being read may break off.
    async fn drop_segments(&self, day: LogDay) -> io::Result<()>;
}
