//! The table `log_chunk`.
//!
//! Two servers may be sent the same bytes at the same time. Nothing is locked against that: the unique keys on the
//! order of arrival and on the end of each stream let one of them in, and the other looks again.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use bytes::Bytes;
use jobyard_model::{JobId, LeaseId, Timestamp};
use uuid::Uuid;

use super::Core;
use super::fault::Fault;
use super::load::{self, Columns};
use super::query::Query;
use super::session::{Rows, Session};
use crate::encoding::{amount, column, inconsistent};
use crate::logs::{DropBefore, JOBS_A_DROP, LogQuery, ROWS_A_DROP};
use crate::rows::{number, number_column};
use crate::wake::{WakeTopic, Wakes};
use crate::{LogAnswer, LogBody, LogChunk, LogExtent, LogStream, LogsDropped, StoreError};

// What was read before the end may arrive after it.
const HOLDERS: &str = "SELECT asked.job_id, asked.number, asked.lease_id
  FROM unnest($1::uuid[], $2::int[], $3::uuid[]) AS asked(job_id, number, lease_id) CROSS JOIN LATERAL (
    (SELECT 1 FROM attempt_live a
      WHERE a.job_id = asked.job_id AND a.number = asked.number AND a.lease_id = asked.lease_id)
    UNION ALL
    (SELECT 1 FROM attempt a
      WHERE a.job_id = asked.job_id AND a.number = asked.number AND a.lease_id = asked.lease_id)
    LIMIT 1) holder";
const EXTENTS: &str = "SELECT asked.job_id, asked.number,
    coalesce((SELECT c.to_offset FROM log_chunk c WHERE c.job_id = asked.job_id AND c.attempt = asked.number
      AND c.stream = 1 ORDER BY c.to_offset DESC LIMIT 1), 0),
    coalesce((SELECT c.to_offset FROM log_chunk c WHERE c.job_id = asked.job_id AND c.attempt = asked.number
      AND c.stream = 2 ORDER BY c.to_offset DESC LIMIT 1), 0),
    coalesce((SELECT c.seq FROM log_chunk c WHERE c.job_id = asked.job_id AND c.attempt = asked.number
      ORDER BY c.seq DESC LIMIT 1), 0)
  FROM unnest($1::uuid[], $2::int[]) AS asked(job_id, number)";
// In one order, so that two that append to the same attempts don't wait for each other in a circle.
const INSERT: &str = "INSERT INTO log_chunk (job_id, attempt, seq, stream, from_offset, to_offset, at_ms, inline,
    segment, segment_offset, arrived_ms)
  SELECT new.*, (SELECT jobyard_now()) FROM unnest($1::uuid[], $2::int[], $3::bigint[], $4::smallint[], $5::bigint[], $6::bigint[], $7::bigint[],
    $8::bytea[], $9::text[], $10::bigint[])
    AS new(job_id, attempt, seq, stream, from_offset, to_offset, at_ms, inline, segment, segment_offset)
  ORDER BY job_id, attempt, seq";

// Of one stream, the order of arrival is that of the offsets: the index on its ends finds any place of a long log.
const OLDEST_OF_STREAM: &str =
    "SELECT seq, stream, from_offset, to_offset, at_ms, inline, segment, segment_offset
  FROM log_chunk WHERE job_id = $1 AND attempt = $2 AND seq > $3 AND seq < $4 AND at_ms >= $5
    AND stream = $7 AND to_offset > $8
  ORDER BY to_offset LIMIT $6";
const NEWEST_OF_STREAM: &str =
    "SELECT seq, stream, from_offset, to_offset, at_ms, inline, segment, segment_offset
  FROM log_chunk WHERE job_id = $1 AND attempt = $2 AND seq > $3 AND seq < $4 AND at_ms >= $5
    AND stream = $7 AND to_offset > $8
  ORDER BY to_offset DESC LIMIT $6";
const OLDEST: &str = "SELECT seq, stream, from_offset, to_offset, at_ms, inline, segment, segment_offset
  FROM log_chunk WHERE job_id = $1 AND attempt = $2 AND seq > $3 AND seq < $4 AND at_ms >= $5
  ORDER BY seq LIMIT $6";
const NEWEST: &str = "SELECT seq, stream, from_offset, to_offset, at_ms, inline, segment, segment_offset
  FROM log_chunk WHERE job_id = $1 AND attempt = $2 AND seq > $3 AND seq < $4 AND at_ms >= $5
  ORDER BY seq DESC LIMIT $6";

// What has a lease is appended to meanwhile: rows only ever come after those that are looked at.
const UNENDED: &str = "SELECT id FROM job_live WHERE id > $1 AND id < $2 ORDER BY id LIMIT $3";
const DROP: &str = "WITH old AS MATERIALIZED (
    SELECT job_live.id AS job_id, oldest.attempt, oldest.seq
    FROM job_live CROSS JOIN LATERAL generate_series(1, job_live.attempt) AS number CROSS JOIN LATERAL (
      SELECT attempt, seq, stream, to_offset, coalesce(arrived_ms, at_ms) AS arrived_ms FROM log_chunk
      WHERE log_chunk.job_id = job_live.id AND log_chunk.attempt = number ORDER BY seq LIMIT $3) oldest
    WHERE job_live.id = ANY($1) AND oldest.arrived_ms < $2 AND EXISTS (SELECT 1 FROM log_chunk later
      WHERE later.job_id = job_live.id AND later.attempt = oldest.attempt AND later.stream = oldest.stream
        AND later.to_offset > oldest.to_offset))
  DELETE FROM log_chunk USING old
  WHERE log_chunk.job_id = old.job_id AND log_chunk.attempt = old.attempt AND log_chunk.seq = old.seq
  RETURNING 1";

/// Appends chunks that begin where their stream ends.
pub(super) async fn append(core: &Core, chunks: &[LogChunk]) -> Result<Vec<LogAnswer>, StoreError> {
    core.database.change("appending to logs", |session| try_append(core, session, chunks)).await
}

type Attempt = (Uuid, i32);

async fn try_append(core: &Core, mut session: Session, chunks: &[LogChunk]) -> Result<Vec<LogAnswer>, Fault> {
    let mut attempts: Vec<Attempt> = chunks.iter().map(attempt_of).collect();
    attempts.sort_unstable();
    attempts.dedup();
    let mut leases: Vec<(Attempt, Uuid)> =
        chunks.iter().map(|chunk| (attempt_of(chunk), chunk.lease_id.0)).collect();
    leases.sort_unstable();
    leases.dedup();
    let ask_holders = Query::new(HOLDERS)
        .bind_each(&leases, |((job_id, _), _)| *job_id)
        .bind_each(&leases, |((_, number), _)| *number)
        .bind_each(&leases, |(_, lease_id)| *lease_id);
    let [holders, extents] = session.begin([ask_holders, ask_extents(&attempts)]).await?;
    let holders = read_holders(&holders)?;
    let mut extents = read_extents(&extents)?;
    let mut new: Vec<(i64, &LogChunk)> = Vec::new();
    let mut answers = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let attempt = attempt_of(chunk);
        let extent = extents.entry(attempt).or_default();
        let end = match chunk.stream {
            LogStream::Stdout => &mut extent.stdout,
            LogStream::Stderr => &mut extent.stderr,
        };
        answers.push(match () {
            () if !holders.contains(&(attempt, chunk.lease_id.0)) || !chunk.is_sound() => LogAnswer::Refused,
            () if chunk.to <= *end => LogAnswer::End(*end),
            () if chunk.from != *end => LogAnswer::Gap(*end),
            () => {
                *end = chunk.to;
                extent.last_seq += 1;
                new.push((extent.last_seq, chunk));
                LogAnswer::End(chunk.to)
            }
        });
    }
    if new.is_empty() {
        session.roll_back().await?;
        return Ok(answers);
    }
    session.commit(vec![insert(&new)]).await?;
    core.wakes.bump(Wakes::of(WakeTopic::Logs));
    Ok(answers)
}

fn attempt_of(chunk: &LogChunk) -> Attempt {
    (chunk.job_id.0, number_column(chunk.attempt))
}

fn insert(new: &[(i64, &LogChunk)]) -> Query {
    Query::new(INSERT)
        .bind_each(new, |(_, chunk)| chunk.job_id.0)
        .bind_each(new, |(_, chunk)| number_column(chunk.attempt))
        .bind_each(new, |(seq, _)| *seq)
        .bind_each(new, |(_, chunk)| chunk.stream as i16)
        .bind_each(new, |(_, chunk)| column(chunk.from))
        .bind_each(new, |(_, chunk)| column(chunk.to))
        .bind_each(new, |(_, chunk)| chunk.at.0)
        .bind_each(new, |(_, chunk)| match &chunk.body {
            LogBody::Inline(bytes) => Some(bytes.to_vec()),
            LogBody::Segment { .. } => None,
        })
        .bind_each(new, |(_, chunk)| match &chunk.body {
            LogBody::Inline(_) => None,
            LogBody::Segment { name, .. } => Some(name.clone()),
        })
        .bind_each(new, |(_, chunk)| match &chunk.body {
            LogBody::Inline(_) => None,
            LogBody::Segment { offset, .. } => Some(column(*offset)),
        })
}

fn ask_extents(attempts: &[Attempt]) -> Query {
    Query::new(EXTENTS).bind_each(attempts, |(job_id, _)| *job_id).bind_each(attempts, |(_, number)| *number)
}

fn read_holders(rows: &Rows) -> Result<HashSet<(Attempt, Uuid)>, Fault> {
    let holder = |row| {
        let mut columns = Columns::of(row);
        Ok(((columns.take()?, columns.take()?), columns.take()?))
    };
    rows.iter().map(holder).collect()
}

fn read_extents(rows: &Rows) -> Result<HashMap<Attempt, LogExtent>, Fault> {
    let extent = |row| {
        let mut columns = Columns::of(row);
        let attempt = (columns.take()?, columns.take()?);
        let (stdout, stderr) = (amount(columns.take()?), amount(columns.take()?));
        Ok((attempt, LogExtent { stdout, stderr, last_seq: columns.take()? }))
    };
    rows.iter().map(extent).collect()
}

/// Chunks by arrival.
pub(super) async fn chunks(core: &Core, query: &LogQuery) -> Result<Vec<LogChunk>, StoreError> {
    try_chunks(core, query).await.map_err(|fault| fault.during("reading a log"))
}

async fn try_chunks(core: &Core, query: &LogQuery) -> Result<Vec<LogChunk>, Fault> {
    let sql = match (query.stream, query.newest) {
        (Some(_), false) => OLDEST_OF_STREAM,
        (Some(_), true) => NEWEST_OF_STREAM,
        (None, false) => OLDEST,
        (None, true) => NEWEST,
    };
    let ask = || {
        let ask = Query::new(sql)
            .bind(query.job_id.0)
            .bind(number_column(query.attempt))
            .bind(query.after_seq)
            .bind(query.before_seq.unwrap_or(i64::MAX))
            .bind(query.since.map_or(i64::MIN, |since| since.0))
            .bind(i64::from(query.limit));
        [match query.stream {
            Some(stream) => ask.bind(stream as i16).bind(column(query.from)),
            None => ask,
        }]
    };
    let [rows] = core.database.read(ask).await?;
    let mut chunks = rows.iter().map(|row| chunk(query, row)).collect::<Result<Vec<_>, _>>()?;
    if query.newest {
        chunks.reverse();
    }
    Ok(chunks)
}

fn chunk(query: &LogQuery, row: &tokio_postgres::Row) -> Result<LogChunk, Fault> {
    let bad = |what: &str| inconsistent("log_chunk", query.job_id, what);
    let mut columns = Columns::of(row);
    let seq = columns.take()?;
    let stream = match columns.take::<i16>()? {
        1 => LogStream::Stdout,
        2 => LogStream::Stderr,
        _ => return Err(bad("no such stream").into()),
    };
    let (from, to) = (amount(columns.take()?), amount(columns.take()?));
    let at = Timestamp(columns.take()?);
    let here: Option<Vec<u8>> = columns.take()?;
    let body = match (here, columns.take::<Option<String>>()?, columns.take::<Option<i64>>()?) {
        (Some(bytes), None, None) => LogBody::Inline(Bytes::from(bytes)),
        (None, Some(name), Some(offset)) => LogBody::Segment { name, offset: amount(offset) },
        _ => return Err(bad("bytes neither here nor elsewhere").into()),
    };
    let (job_id, attempt, lease_id) = (query.job_id, query.attempt, LeaseId(Uuid::nil()));
    Ok(LogChunk { job_id, attempt, lease_id, stream, from, to, at, seq, body })
}

/// How long each stream is.
pub(super) async fn extent(core: &Core, job_id: JobId, attempt: u32) -> Result<LogExtent, StoreError> {
    let extents = extents(core, job_id, attempt..=attempt).await?;
    Ok(extents.into_iter().next().map(|(_, extent)| extent).unwrap_or_default())
}

/// How long each stream of several attempts is, by number.
pub(super) async fn extents(
    core: &Core,
    job_id: JobId,
    attempts: RangeInclusive<u32>,
) -> Result<Vec<(u32, LogExtent)>, StoreError> {
    const DOING: &str = "looking for the end of a log";
    let attempts: Vec<Attempt> = attempts.map(|attempt| (job_id.0, number_column(attempt))).collect();
    let rows = core.database.read(|| [ask_extents(&attempts)]).await;
    let [rows] = rows.map_err(|fault| fault.during(DOING))?;
    let extents = read_extents(&rows).map_err(|fault| fault.during(DOING))?;
    let mut extents: Vec<_> =
        extents.into_iter().map(|((_, attempt), extent)| (number(attempt), extent)).collect();
    extents.sort_unstable_by_key(|(number, _)| *number);
    Ok(extents)
}

/// Drops what jobs that have not ended said before the days that are kept.
pub(super) async fn drop_old(
    core: &Core,
    keep_days: u32,
    after: Option<JobId>,
) -> Result<LogsDropped, StoreError> {
    core.database.change("dropping old logs", |session| try_drop(session, keep_days, after)).await
}

async fn try_drop(mut session: Session, keep_days: u32, after: Option<JobId>) -> Result<LogsDropped, Fault> {
    let [now] = session.begin([Query::new(load::NOW)]).await?;
    let before = DropBefore::new(load::clock(&now)?, keep_days);
    let jobs = Query::new(UNENDED)
        .bind(after.map_or(Uuid::nil(), |job_id| job_id.0))
        .bind(before.first_younger_job().0)
        .bind(JOBS_A_DROP);
    let [rows] = session.query([jobs]).await?;
    let jobs = rows.iter().map(|row| Columns::of(row).take()).collect::<Result<Vec<Uuid>, _>>()?;
    let Some(last) = jobs.last().copied() else {
        session.roll_back().await?;
        return Ok(LogsDropped::default());
    };
    let dropped =
        session.commit(vec![Query::new(DROP).bind(jobs).bind(before.0.0).bind(ROWS_A_DROP)]).await?;
    Ok(LogsDropped { rows: dropped.iter().map(|rows| rows.len() as u64).sum(), last: Some(JobId(last)) })
}
