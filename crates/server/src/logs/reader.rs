//! One answer with a log: piece after piece, then, when it is followed, what comes until the attempt is over.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use jobyard_model::{JobId, JobState, Timestamp};
use jobyard_store::logs::LogQuery;
use jobyard_store::{LogBody, LogChunk, LogStream, StoreError, WakeTopic};
use tokio::sync::watch;

use super::tail;
use crate::artifact_store::{ArtifactStoreError, LogDay};
use crate::doors::Pass;
use crate::error::{ApiError, chain};
use crate::events::Open;
use crate::server::Server;

const PAGE_CHUNKS: u32 = 64;
/// The topic wakes for every log: a follower looks no more often than this.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
/// Lost wake-ups are made good within this time.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What of a log is wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) attempt: Option<u32>,
    pub(crate) stream: Option<LogStream>,
    pub(crate) from: u64,
    pub(crate) to: Option<u64>,
    pub(crate) tail_lines: Option<usize>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) follow: bool,
}

/// See the module.
pub(crate) struct LogReader {
    server: Server,
    job_id: JobId,
    wanted: Wanted,
    after_seq: i64,
    /// Bytes of the next chunk that are not wanted.
    skip: u64,
    chunks: VecDeque<LogChunk>,
    /// Something was handed out.
    is_begun: bool,
    /// What came before is no longer kept.
    is_dropped: bool,
    /// Set before the last look: what is there then is all there will be.
    over: bool,
    wakes: watch::Receiver<u64>,
    _open: Option<Open>,
}

impl LogReader {
    /// Opens a log. Without an attempt in `wanted`, the newest; `pass` is the place of one that is followed.
    pub(crate) async fn open(
        server: Server,
        job_id: JobId,
        wanted: Wanted,
        pass: Option<Pass>,
    ) -> Result<Self, ApiError> {
        let wakes = server.store().wakes(WakeTopic::Logs);
        let open = pass.map(|pass| Open::new(&server, pass));
        let mut reader = Self {
            server,
            job_id,
            wanted,
            after_seq: 0,
            skip: 0,
            chunks: VecDeque::new(),
            is_begun: false,
            is_dropped: false,
            over: false,
            wakes,
            _open: open,
        };
        if let (Some(lines), Some(_)) = (reader.wanted.tail_lines, reader.wanted.attempt) {
            reader.start_at_tail(lines).await?;
        }
        Ok(reader)
    }

    async fn start_at_tail(&mut self, lines: usize) -> Result<(), ApiError> {
        let tail = tail::find(&self.server, self.query(), lines).await?;
        self.after_seq = tail.chunks.back().map_or(self.after_seq, |chunk| chunk.seq);
        self.chunks = tail.chunks;
        self.skip = tail.skip;
        Ok(())
    }

    /// The next piece; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<io::Result<Bytes>> {
        match self.try_next().await {
            Ok(piece) => piece.map(Ok),
            Err(error) => {
                tracing::warn!(error = chain(&error), job_id = %self.job_id, "a log breaks off");
                Some(Err(io::Error::other("the log could not be read")))
            }
        }
    }

    /// As [`Self::next`], with the error itself.
    pub(crate) async fn try_next(&mut self) -> Result<Option<Bytes>, ApiError> {
        let next = self.look_for_next().await?;
        if next.is_none() && self.is_dropped && !self.is_begun {
            return Err(self.server.log_dropped());
        }
        self.is_begun |= next.is_some();
        Ok(next)
    }

    async fn look_for_next(&mut self) -> Result<Option<Bytes>, ApiError> {
        loop {
            if let Some(chunk) = self.chunks.pop_front() {
                match self.piece(&chunk).await {
                    Ok(piece) if piece.is_empty() => {}
                    Ok(piece) => return Ok(Some(piece)),
                    // Of a log that goes on for days the beginning goes first; offsets in a stream are exact.
                    Err(ApiError::LogDropped { .. }) if !self.is_begun && self.wanted.stream.is_none() => {
                        self.is_dropped = true;
                    }
                    Err(error) => return Err(error),
                }
                continue;
            }
            if self.wanted.to.is_some_and(|to| self.wanted.from >= to) {
                return Ok(None);
            }
            let found = match self.wanted.attempt {
                Some(_) => self.look().await?,
                None => false,
            };
            if found {
                continue;
            }
            if self.over || !self.wanted.follow {
                return Ok(None);
            }
            if !self.check_over().await? && !self.wait().await {
                return Ok(None);
            }
        }
    }

    fn query(&self) -> LogQuery {
        LogQuery {
            job_id: self.job_id,
            attempt: self.wanted.attempt.unwrap_or(0),
            stream: self.wanted.stream,
            from: self.wanted.from,
            after_seq: self.after_seq,
            before_seq: None,
            newest: false,
            since: self.wanted.since,
            limit: PAGE_CHUNKS,
        }
    }

    /// Reads the next page of the index; whether there was any.
    async fn look(&mut self) -> Result<bool, StoreError> {
        let chunks = self.server.store().log_chunks(&self.query()).await?;
        self.after_seq = chunks.last().map_or(self.after_seq, |chunk| chunk.seq);
        self.chunks = chunks.into();
        Ok(!self.chunks.is_empty())
    }

    /// Notes whether the attempt is over, and finds the first one of a job that had none. An outcome is accepted only
    /// after its log, so one more look after this gives the rest. `true`: look again at once.
    async fn check_over(&mut self) -> Result<bool, ApiError> {
        let Some(record) = self.server.store().job(self.job_id).await? else {
            return Err(ApiError::NotFound { what: "job" });
        };
        if self.wanted.attempt.is_none() && record.job.last_attempt > 0 {
            self.wanted.attempt = Some(record.job.last_attempt);
            return Ok(true);
        }
        self.over = match (self.wanted.attempt, &record.job.state) {
            (Some(number), JobState::Running(attempt)) => attempt.number > number,
            (Some(_), _) => true,
            (None, state) => matches!(state, JobState::Ended(_)),
        };
        Ok(self.over)
    }

    /// Waits until there may be more; `false` when the server goes down.
    async fn wait(&mut self) -> bool {
        let shutdown = self.server.shutdown().clone();
        let woken = async {
            tokio::time::sleep(SHORTEST_PAUSE).await;
            if self.wakes.changed().await.is_err() {
                tokio::time::sleep(LONGEST_PAUSE).await;
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => return false,
            _ = tokio::time::timeout(LONGEST_PAUSE, woken) => {}
        }
        true
    }

    /// Whether bytes are wanted that came before this chunk and were dropped: a stream was taken in without gaps.
    fn is_gone_before(&self, chunk: &LogChunk) -> bool {
        let Wanted { from, to, tail_lines, since, .. } = self.wanted;
        let by_offset = tail_lines.is_none() && since.is_none();
        by_offset && chunk.from > from && to.is_none_or(|to| from < to)
    }

    /// The wanted bytes of a chunk.
    async fn piece(&mut self, chunk: &LogChunk) -> Result<Bytes, ApiError> {
        let length = chunk.to.saturating_sub(chunk.from);
        let mut begin = std::mem::take(&mut self.skip).min(length);
        let mut end = length;
        if self.wanted.stream.is_some() {
            if self.is_gone_before(chunk) {
                return Err(self.server.log_dropped());
            }
            begin = begin.max(self.wanted.from.saturating_sub(chunk.from)).min(length);
            if let Some(to) = self.wanted.to {
                end = end.min(to.saturating_sub(chunk.from)).max(begin);
            }
            self.wanted.from = self.wanted.from.max(chunk.from + end);
        }
        bytes_of(&self.server, &chunk.body, begin, end).await
    }
}

/// The bytes of a chunk from `begin` to `end`, counted within it.
pub(super) async fn bytes_of(
    server: &Server,
    body: &LogBody,
    begin: u64,
    end: u64,
) -> Result<Bytes, ApiError> {
    let broken = |source| ApiError::ArtifactStore { doing: "reading a log segment", source };
    let short = || {
        let missing = io::Error::new(io::ErrorKind::UnexpectedEof, "a log segment is missing or short");
        broken(ArtifactStoreError::Failed(missing))
    };
    match body {
        LogBody::Inline(bytes) => {
            let within = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
            Ok(bytes.slice(within(begin)..within(end)))
        }
        LogBody::Segment { .. } if begin >= end => Ok(Bytes::new()),
        LogBody::Segment { name, offset } => {
            let read =
                server.artifacts().read_segment(name, offset + begin, end - begin).await.map_err(broken)?;
            let is_over = |day| server.log_retention().is_over(day);
            if read.is_none() && LogDay::of_segment(name).is_some_and(is_over) {
                return Err(server.log_dropped());
            }
            read.filter(|bytes| bytes.len() as u64 == end - begin).ok_or_else(short)
        }
    }
}
