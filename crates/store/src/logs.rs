//! The index of logs: which bytes of which stream lie where.

use bytes::Bytes;
use jobyard_model::{JobId, LeaseId, Timestamp};

/// Which stream of a task process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i16)]
pub enum LogStream {
    /// Descriptor 1.
    Stdout = 1,
    /// Descriptor 2.
    Stderr = 2,
}

/// Consecutive bytes of one stream of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogChunk {
    /// Which job.
    pub job_id: JobId,
    /// The attempt's number.
    pub attempt: u32,
    /// The fence: only who holds or held this lease may append. Nil in answers.
    pub lease_id: LeaseId,
    /// Which stream.
    pub stream: LogStream,
    /// Offset in the stream of the first byte.
    pub from: u64,
    /// Offset in the stream after the last byte.
    pub to: u64,
    /// When the sidecar read the first byte, by the node's clock.
    pub at: Timestamp,
    /// Order of arrival within the attempt; given by the store.
    pub seq: i64,
    /// The bytes, or where they lie.
    pub body: LogBody,
}

impl LogChunk {
    /// Whether its range is one, and its bytes are as many as that says.
    pub(crate) fn is_sound(&self) -> bool {
        let in_column = i64::try_from(self.to).is_ok();
        let length = self.to.checked_sub(self.from);
        match &self.body {
            LogBody::Inline(bytes) => in_column && length == Some(bytes.len() as u64),
            LogBody::Segment { .. } => in_column && length.is_some(),
        }
    }
}

/// Where a chunk's bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogBody {
    /// Here; under 4 KiB.
    Inline(Bytes),
    /// In a log segment of the artifact store, from this offset.
    Segment {
        /// The segment's name.
        name: String,
        /// Offset in it of the chunk's first byte.
        offset: u64,
    },
}

/// Which chunks to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogQuery {
    /// Which job.
    pub job_id: JobId,
    /// The attempt's number.
    pub attempt: u32,
    /// One stream, or both by arrival.
    pub stream: Option<LogStream>,
    /// Of one stream: only chunks that reach beyond this offset.
    pub from: u64,
    /// Only chunks that arrived after this one.
    pub after_seq: i64,
    /// The newest ones instead of the oldest, still in order of arrival.
    pub newest: bool,
    /// Only chunks read at or after this instant.
    pub since: Option<Timestamp>,
    /// At most this many.
    pub limit: u32,
}

/// The answer to an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogAnswer {
    /// Appended, or it was there already: the stream now ends here.
    End(u64),
    /// `from` was not the stream's end, which is this: send from there.
    Gap(u64),
    /// The lease never was this attempt's, or the attempt is not known: forget it.
    Refused,
}

/// How long the streams of an attempt are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogExtent {
    /// Bytes of stdout.
    pub stdout: u64,
    /// Bytes of stderr.
    pub stderr: u64,
    /// The newest chunk's number, 0 when there is none.
    pub last_seq: i64,
}
