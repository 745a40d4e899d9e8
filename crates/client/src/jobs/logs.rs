//! Logs: read once, or followed to the job's end.
//!
//! Owns the offsets. Invariant: **what following gives of one stream of one attempt has neither gaps nor doubles**,
//! however often the connection broke.

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use jobyard_api::json::Time;
use jobyard_model::JobId;
use reqwest::Response;

use super::Jobs;
use super::changes::Changes;
use crate::Error;
use crate::outage::Outage;
use crate::transport::Call;

/// Which stream of a task process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogStream {
    /// Descriptor 1.
    Stdout,
    /// Descriptor 2.
    Stderr,
}

impl LogStream {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// What to read of a job's logs.
///
/// ```
/// use jobyard_client::{LogQuery, LogStream};
///
/// let last_words = LogQuery { stream: Some(LogStream::Stderr), tail: Some(20), ..LogQuery::default() };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogQuery {
    /// The attempt's number; the newest when not set.
    pub attempt: Option<u32>,
    /// One stream, or both by arrival.
    pub stream: Option<LogStream>,
    /// From this byte of the stream; only with `stream`.
    pub from: Option<u64>,
    /// Up to this byte of the stream; only with `stream`.
    pub to: Option<u64>,
    /// The last so many lines only.
    pub tail: Option<u64>,
    /// Only what was written at or after this instant.
    pub since: Option<Time>,
}

/// What to follow of a job's logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FollowOptions {
    /// This attempt only; when not set the newest one and all that come after it.
    pub attempt: Option<u32>,
    /// One stream, or both.
    pub stream: Option<LogStream>,
}

/// Consecutive bytes of one stream of one attempt, as the process wrote them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogBytes {
    /// The attempt's number.
    pub attempt: u32,
    /// Which stream.
    pub stream: LogStream,
    /// Offset in the stream of the first byte.
    pub from: u64,
    /// The bytes; never none.
    pub bytes: Bytes,
}

const DOING: &str = "reading a log";

impl Jobs {
    /// What there is of a job's log now, as the process wrote it.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client, id: jobyard_client::JobId) -> Result<(), jobyard_client::Error> {
    /// use futures_util::TryStreamExt;
    /// use jobyard_client::LogQuery;
    ///
    /// let mut log = client.jobs().logs(id, &LogQuery::default()).await?;
    /// while let Some(piece) = log.try_next().await? {
    ///     print!("{}", String::from_utf8_lossy(&piece));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Problem`] when there is no such job or attempt, or the token doesn't act for its owner;
    /// [`Error::Unreachable`], also from the stream when it breaks off.
    pub async fn logs(
        &self,
        id: JobId,
        query: &LogQuery,
    ) -> Result<BoxStream<'static, Result<Bytes, Error>>, Error> {
        let response = self.client.open(&log_call(id, query)).await?;
        let client = self.client.clone();
        let pieces = stream::try_unfold(response, move |mut response| {
            let client = client.clone();
            async move {
                let idle = client.inner().timeouts.idle;
                match tokio::time::timeout(idle, response.chunk()).await {
                    Ok(Ok(piece)) => Ok(piece.map(|piece| (piece, response))),
                    Ok(Err(error)) => Err(client.unreachable(DOING, error.without_url())),
                    Err(_) => Err(client.unreachable(DOING, format!("nothing came for {idle:?}"))),
                }
            }
        });
        Ok(pieces.boxed())
    }

    /// Follows a job's log until the job is over: from the beginning of the newest attempt (or the one asked for, and
    /// that one alone), through all attempts that come after it. Waits for the first attempt. Reconnects and goes on
    /// from the byte it was at. The two streams are followed apart, so their order among each other is only about
    /// that of arrival.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client, id: jobyard_client::JobId) -> Result<(), jobyard_client::Error> {
    /// use futures_util::TryStreamExt;
    /// use jobyard_client::FollowOptions;
    ///
    /// let mut log = client.jobs().follow(id, FollowOptions::default());
    /// while let Some(piece) = log.try_next().await? {
    ///     print!("{}", String::from_utf8_lossy(&piece.bytes));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn follow(&self, id: JobId, options: FollowOptions) -> BoxStream<'static, Result<LogBytes, Error>> {
        let follow = Follow {
            changes: Changes::of(&self.client, id),
            jobs: self.clone(),
            id,
            options,
            current: None,
            last_attempt: 0,
        };
        stream::try_unfold(follow, |mut follow| async move {
            Ok(follow.next().await?.map(|bytes| (bytes, follow)))
        })
        .boxed()
    }
}

fn log_call(id: JobId, query: &LogQuery) -> Call {
    Call::get(DOING, format!("/jobs/{id}/logs"))
        .query_if("attempt", query.attempt)
        .query_if("stream", query.stream.map(LogStream::as_str))
        .query_if("from", query.from)
        .query_if("to", query.to)
        .query_if("tail", query.tail)
        .query_if("since", query.since.map(|since| jobyard_api::json::units::format_time(since.0)))
}

/// Goes from attempt to attempt.
struct Follow {
    jobs: Jobs,
    id: JobId,
    options: FollowOptions,
    changes: Changes,
    current: Option<BoxStream<'static, Result<LogBytes, Error>>>,
    last_attempt: u32,
}

impl Follow {
    async fn next(&mut self) -> Result<Option<LogBytes>, Error> {
        loop {
            if let Some(current) = &mut self.current {
                match current.try_next().await? {
                    Some(bytes) => return Ok(Some(bytes)),
                    None => self.current = None,
                }
            }
            let Some(attempt) = self.next_attempt().await? else { return Ok(None) };
            self.last_attempt = attempt;
            self.current = Some(self.tail_attempt(attempt));
        }
    }

    /// Waits for the attempt to follow next; `None` when none will come.
    async fn next_attempt(&mut self) -> Result<Option<u32>, Error> {
        if let Some(only) = self.options.attempt {
            return Ok((self.last_attempt == 0).then_some(only));
        }
        loop {
            let job = self.jobs.get_through_outage(self.id).await?;
            let newest = job.attempt.unwrap_or(0);
            if newest > self.last_attempt {
                return Ok(Some(if self.last_attempt == 0 { newest } else { self.last_attempt + 1 }));
            }
            if job.status.is_end() {
                return Ok(None);
            }
            self.changes.next().await;
        }
    }

    fn tail_attempt(&self, attempt: u32) -> BoxStream<'static, Result<LogBytes, Error>> {
        let tail = |stream| {
            let tail = Tail {
                jobs: self.jobs.clone(),
                id: self.id,
                attempt,
                stream,
                offset: 0,
                response: None,
                outage: Outage::default(),
            };
            stream::try_unfold(
                tail,
                |mut tail| async move { Ok(tail.next().await?.map(|bytes| (bytes, tail))) },
            )
        };
        match self.options.stream {
            Some(stream) => tail(stream).boxed(),
            None => stream::select(tail(LogStream::Stdout), tail(LogStream::Stderr)).boxed(),
        }
    }
}

/// Follows one stream of one attempt.
struct Tail {
    jobs: Jobs,
    id: JobId,
    attempt: u32,
    stream: LogStream,
    offset: u64,
    response: Option<Response>,
    outage: Outage,
}

impl Tail {
    async fn next(&mut self) -> Result<Option<LogBytes>, Error> {
        loop {
            let Some(response) = &mut self.response else {
                self.open().await?;
                continue;
            };
            let idle = self.jobs.client.inner().timeouts.idle;
            match tokio::time::timeout(idle, response.chunk()).await {
                Ok(Ok(Some(bytes))) => return Ok(self.take(bytes)),
                Ok(Ok(None)) => {
                    self.response = None;
                    if self.attempt_ended().await? {
                        return self.rest().await;
                    }
                }
                // Silence is no fault of a log; the connection may be dead all the same.
                Err(_) => {
                    self.response = None;
                    continue;
                }
                Ok(Err(_)) => self.response = None,
            }
            self.outage.pause(&self.jobs.client.inner().retry_policy).await;
        }
    }

    fn take(&mut self, bytes: Bytes) -> Option<LogBytes> {
        self.outage.over();
        let from = self.offset;
        self.offset += bytes.len() as u64;
        Some(LogBytes { attempt: self.attempt, stream: self.stream, from, bytes })
    }

    fn query(&self) -> LogQuery {
        LogQuery {
            attempt: Some(self.attempt),
            stream: Some(self.stream),
            from: Some(self.offset),
            ..LogQuery::default()
        }
    }

    async fn open(&mut self) -> Result<(), Error> {
        let call = log_call(self.id, &self.query()).query("follow", "true");
        match self.jobs.client.open(&call).await {
            Ok(response) => self.response = Some(response),
            Err(error) => self.outage.bear(&self.jobs.client.inner().retry_policy, error).await?,
        }
        Ok(())
    }

    /// An answer that ends may mean the end of the log, or a server that goes down in good order.
    async fn attempt_ended(&mut self) -> Result<bool, Error> {
        loop {
            match self.jobs.attempts(self.id).await {
                Ok(attempts) => {
                    let ours = attempts.iter().find(|attempt| attempt.number == self.attempt);
                    return Ok(ours.is_none_or(|attempt| attempt.finished_time.is_some()));
                }
                Err(error) => self.outage.bear(&self.jobs.client.inner().retry_policy, error).await?,
            }
        }
    }

    /// What came between the end of the answer and the end of the attempt. `None`: that was all.
    async fn rest(&mut self) -> Result<Option<LogBytes>, Error> {
        loop {
            let read = async { self.jobs.logs(self.id, &self.query()).await?.try_next().await };
            match read.await {
                Ok(Some(bytes)) => return Ok(self.take(bytes)),
                Ok(None) => return Ok(None),
                Err(error) => self.outage.bear(&self.jobs.client.inner().retry_policy, error).await?,
            }
        }
    }
}
