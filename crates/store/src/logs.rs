//! The index of logs: which bytes of which stream lie where.

use bytes::Bytes;
use jobyard_model::{JobId, LeaseId, Timestamp};
use uuid::Uuid;

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
    /// Only chunks that arrived before this one.
    pub before_seq: Option<i64>,
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

/// What one call dropped of the logs of jobs that have not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogsDropped {
    /// Rows of the index.
    pub rows: u64,
    /// The last job that was looked at; `None` when there was none.
    pub last: Option<JobId>,
}

/// Jobs that one call looks at.
pub(crate) const JOBS_A_DROP: i64 = 20;
/// The oldest rows of each attempt that one call looks at. More than two, since the last one of a stream stays.
pub(crate) const ROWS_A_DROP: i64 = 200;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// What is no longer kept: all that arrived before this instant, the beginning of a day (UTC).
pub(crate) struct DropBefore(pub(crate) Timestamp);

impl DropBefore {
    /// Today and the `keep_days` days before it are kept.
    pub(crate) fn new(now: Timestamp, keep_days: u32) -> Self {
        let first_kept = now.0.div_euclid(DAY_MS).saturating_sub(i64::from(keep_days));
        Self(Timestamp(first_kept.saturating_mul(DAY_MS)))
    }

    /// An id begins with the milliseconds of its making: jobs from this one on can have said nothing before.
    pub(crate) fn first_younger_job(&self) -> JobId {
        let made_ms = u128::try_from(self.0.0).unwrap_or(0);
        JobId(Uuid::from_u128(made_ms << 80))
    }
}
