//! The table `log_chunk`.

use std::ops::RangeInclusive;

use bytes::Bytes;
use jobyard_model::{JobId, LeaseId, Timestamp};
use rusqlite::{OptionalExtension, Row, params};
use uuid::Uuid;

use super::fault::Fault;
use super::scope::Scope;
use crate::encoding::{amount, column, inconsistent};
use crate::logs::{DropBefore, JOBS_A_DROP, LogQuery, ROWS_A_DROP};
use crate::wake::WakeTopic;
use crate::{LogAnswer, LogBody, LogChunk, LogExtent, LogStream, LogsDropped};

/// Appends chunks that begin where their stream ends.
pub(super) fn append(scope: &Scope<'_>, chunks: &[LogChunk]) -> Result<Vec<LogAnswer>, Fault> {
    let answers: Vec<LogAnswer> =
        chunks.iter().map(|chunk| append_one(scope, chunk)).collect::<Result<_, Fault>>()?;
    scope.wake(WakeTopic::Logs);
    Ok(answers)
}

fn append_one(scope: &Scope<'_>, chunk: &LogChunk) -> Result<LogAnswer, Fault> {
    if !holds_or_held(scope, chunk)? || !chunk.is_sound() {
        return Ok(LogAnswer::Refused);
    }
    let end = stream_end(scope, chunk.job_id, chunk.attempt, chunk.stream)?;
    if chunk.to <= end {
        return Ok(LogAnswer::End(end));
    }
    if chunk.from != end {
        return Ok(LogAnswer::Gap(end));
    }
    let (inline, segment, offset) = match &chunk.body {
        LogBody::Inline(bytes) => (Some(&bytes[..]), None, None),
        LogBody::Segment { name, offset } => (None, Some(name), Some(column(*offset))),
    };
    let sql = "INSERT INTO log_chunk (job_id, attempt, seq, stream, from_offset, to_offset, at_ms, inline, segment, \
        segment_offset, arrived_ms) VALUES (?1, ?2, (SELECT coalesce(max(seq), 0) + 1 FROM log_chunk WHERE job_id = ?1 \
        AND attempt = ?2), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    scope.execute(
        sql,
        params![
            chunk.job_id.0,
            chunk.attempt,
            chunk.stream as i16,
            column(chunk.from),
            column(chunk.to),
            chunk.at.0,
            inline,
            segment,
            offset,
            scope.now().0
        ],
    )?;
    Ok(LogAnswer::End(chunk.to))
}

/// Whether the lease is, or was, this attempt's: what was read before the end may arrive after it.
fn holds_or_held(scope: &Scope<'_>, chunk: &LogChunk) -> Result<bool, Fault> {
    let attempt = params![chunk.job_id.0, chunk.attempt, chunk.lease_id.0];
    let live = "SELECT 1 FROM attempt_live WHERE job_id = ?1 AND number = ?2 AND lease_id = ?3";
    if scope.statement(live)?.exists(attempt)? {
        return Ok(true);
    }
    let past = "SELECT 1 FROM attempt WHERE job_id = ?1 AND number = ?2 AND lease_id = ?3";
    Ok(scope.statement(past)?.exists(attempt)?)
}

fn stream_end(scope: &Scope<'_>, job_id: JobId, attempt: u32, stream: LogStream) -> Result<u64, Fault> {
    let sql = "SELECT to_offset FROM log_chunk WHERE job_id = ?1 AND attempt = ?2 AND stream = ?3 \
        ORDER BY to_offset DESC LIMIT 1";
    let end: Option<i64> = scope
        .statement(sql)?
        .query_row(params![job_id.0, attempt, stream as i16], |row| row.get(0))
        .optional()?;
    Ok(end.map_or(0, amount))
}

/// Of one stream, the order of arrival is that of the offsets: the index on its ends finds any place of a long log.
pub(super) fn chunks_sql(is_of_stream: bool, newest: bool) -> String {
    let order = if newest { "DESC" } else { "ASC" };
    // Both parameters are there in either case.
    let (of_stream, by) = match is_of_stream {
        true => ("stream = ?4 AND to_offset > ?5", "to_offset"),
        false => ("?4 IS NULL AND ?5 >= 0", "seq"),
    };
    format!(
        "SELECT seq, stream, from_offset, to_offset, at_ms, inline, segment, segment_offset FROM log_chunk \
        WHERE job_id = ?1 AND attempt = ?2 AND seq > ?3 AND {of_stream} \
        AND at_ms >= ?6 AND seq < ?8 ORDER BY {by} {order} LIMIT ?7"
    )
}

/// Chunks by arrival.
pub(super) fn chunks(scope: &Scope<'_>, query: &LogQuery) -> Result<Vec<LogChunk>, Fault> {
    let sql = chunks_sql(query.stream.is_some(), query.newest);
    let stream = query.stream.map(|stream| stream as i16);
    let since = query.since.map_or(i64::MIN, |since| since.0);
    let mut statement = scope.statement(&sql)?;
    let mut rows = statement.query(params![
        query.job_id.0,
        query.attempt,
        query.after_seq,
        stream,
        column(query.from),
        since,
        query.limit,
        query.before_seq.unwrap_or(i64::MAX)
    ])?;
    let mut chunks = Vec::new();
    while let Some(row) = rows.next()? {
        chunks.push(chunk(query, row)?);
    }
    if query.newest {
        chunks.reverse();
    }
    Ok(chunks)
}

fn chunk(query: &LogQuery, row: &Row<'_>) -> Result<LogChunk, Fault> {
    let bad = |what: &str| inconsistent("log_chunk", query.job_id, what);
    let stream = match row.get::<_, i16>(1)? {
        1 => LogStream::Stdout,
        2 => LogStream::Stderr,
        _ => return Err(bad("no such stream").into()),
    };
    let body = match (row.get::<_, Option<Vec<u8>>>(5)?, row.get::<_, Option<String>>(6)?) {
        (Some(bytes), None) => LogBody::Inline(Bytes::from(bytes)),
        (None, Some(name)) => LogBody::Segment { name, offset: amount(row.get(7)?) },
        _ => return Err(bad("bytes neither here nor elsewhere").into()),
    };
    Ok(LogChunk {
        job_id: query.job_id,
        attempt: query.attempt,
        lease_id: LeaseId(Uuid::nil()),
        stream,
        from: amount(row.get(2)?),
        to: amount(row.get(3)?),
        at: Timestamp(row.get(4)?),
        seq: row.get(0)?,
        body,
    })
}

/// How long each stream of several attempts is, by number.
pub(super) fn extents(
    scope: &Scope<'_>,
    job_id: JobId,
    attempts: RangeInclusive<u32>,
) -> Result<Vec<(u32, LogExtent)>, Fault> {
    attempts.map(|attempt| Ok((attempt, extent(scope, job_id, attempt)?))).collect()
}

/// How long each stream is.
pub(super) fn extent(scope: &Scope<'_>, job_id: JobId, attempt: u32) -> Result<LogExtent, Fault> {
    let sql = "SELECT coalesce(max(seq), 0) FROM log_chunk WHERE job_id = ?1 AND attempt = ?2";
    let last_seq = scope.statement(sql)?.query_row(params![job_id.0, attempt], |row| row.get(0))?;
    Ok(LogExtent {
        stdout: stream_end(scope, job_id, attempt, LogStream::Stdout)?,
        stderr: stream_end(scope, job_id, attempt, LogStream::Stderr)?,
        last_seq,
    })
}

const UNENDED: &str = "SELECT id, attempt FROM job_live WHERE id > ?1 AND id < ?2 ORDER BY id LIMIT ?3";
const DROP: &str = "DELETE FROM log_chunk WHERE job_id = ?1 AND attempt = ?2 AND seq IN (
  SELECT oldest.seq FROM (
    SELECT seq, stream, to_offset, coalesce(arrived_ms, at_ms) AS arrived_ms FROM log_chunk
      WHERE job_id = ?1 AND attempt = ?2 ORDER BY seq LIMIT ?4) oldest
  WHERE oldest.arrived_ms < ?3 AND EXISTS (SELECT 1 FROM log_chunk later WHERE later.job_id = ?1
    AND later.attempt = ?2 AND later.stream = oldest.stream AND later.to_offset > oldest.to_offset))";

/// Drops what jobs that have not ended said before the days that are kept.
pub(super) fn drop_old(
    scope: &Scope<'_>,
    keep_days: u32,
    after: Option<JobId>,
) -> Result<LogsDropped, Fault> {
    let before = DropBefore::new(scope.now(), keep_days);
    let after = after.map_or(Uuid::nil(), |job_id| job_id.0);
    let mut dropped = LogsDropped::default();
    let mut statement = scope.statement(UNENDED)?;
    let jobs = statement.query_map(params![after, before.first_younger_job().0, JOBS_A_DROP], |row| {
        Ok((row.get::<_, Uuid>(0)?, row.get::<_, u32>(1)?))
    })?;
    for (job_id, newest) in jobs.collect::<rusqlite::Result<Vec<_>>>()? {
        for attempt in 1..=newest {
            let rows = scope.execute(DROP, params![job_id, attempt, before.0.0, ROWS_A_DROP])?;
            dropped.rows += rows as u64;
        }
        dropped.last = Some(JobId(job_id));
    }
    Ok(dropped)
}
