//! What there is of a job's logs, how it came, and what stands in it: `GET /jobs/{id}/logs/…`.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::Uri;
use jobyard_api::json::{LogPiece, LogSearch, LogSizes, Page, Problem, Time};
use jobyard_api::strict::FaultCode;
use jobyard_model::JobState;
use jobyard_store::LogStream;
use jobyard_store::logs::LogQuery;

use super::logs::{attempt_of, read_stream};
use crate::authentication::Caller;
use crate::error::ApiError;
use crate::http::query::QueryReader;
use crate::http::{path_id, whole_list};
use crate::logs::{Cursor, Sought, search, word};
use crate::operations::read_job::read_own_job;
use crate::server::Server;

/// Attempts whose sizes one call gives: the newest.
const MOST_ATTEMPTS: u32 = 1_000;
const MOST_SOUGHT_BYTES: usize = 256;

/// Says how long the logs of a job's attempts are, by number; of more than 1,000 those of the newest.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/logs/sizes", tag = "jobs", params(("id" = String, Path, description = "The job")),
    responses(
        (status = 200, description = "One item an attempt", body = Page<LogSizes>),
        (status = 403, description = "The token does not act for the owner", body = Problem),
        (status = 404, description = "No such job", body = Problem)
    )
)]
pub(crate) async fn sizes(
    State(server): State<Server>,
    caller: Caller,
    id: Path<String>,
) -> Result<Json<Page<LogSizes>>, ApiError> {
    let _pass = server.doors().read.enter().await?;
    let job_id = path_id(id)?;
    // First whether more comes, then how much there is: what is over stays as it is said to be.
    let record = read_own_job(&server, &caller, job_id).await?;
    let newest = record.job.last_attempt;
    let live = match &record.job.state {
        JobState::Running(attempt) => Some(attempt.number),
        _ => None,
    };
    let oldest = newest.saturating_sub(MOST_ATTEMPTS - 1).max(1);
    let extents = server.store().log_extents(job_id, oldest..=newest).await?;
    let sizes = extents.into_iter().map(|(attempt, extent)| LogSizes {
        attempt,
        stdout: extent.stdout,
        stderr: extent.stderr,
        over: live != Some(attempt),
    });
    Ok(whole_list(sizes.collect()))
}

/// Lists how the log of an attempt came, piece by piece over both streams: with it, bytes of the streams can be put in
/// the order of their arrival, and have times.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/logs/pieces", tag = "jobs",
    params(
        ("id" = String, Path, description = "The job"),
        ("attempt" = Option<u32>, Query, description = "Which attempt; the newest when left out"),
        ("stream" = Option<String>, Query, description = "`stdout` or `stderr`; both when left out"),
        ("order" = Option<String>, Query, description = "`newest` first, which is usual, or `oldest`"),
        ("limit" = Option<u32>, Query, description = "1–1000; 100 when left out"),
        ("cursor" = Option<i64>, Query, description = "The `next_cursor` of the page before, or any piece's number: the page goes on behind it, in its order")
    ),
    responses(
        (status = 200, description = "A page", body = Page<LogPiece>),
        (status = 400, description = "Parameters that don't go together", body = Problem),
        (status = 403, description = "The token does not act for the owner", body = Problem),
        (status = 404, description = "No such job or attempt", body = Problem)
    )
)]
pub(crate) async fn pieces(
    State(server): State<Server>,
    caller: Caller,
    id: Path<String>,
    uri: Uri,
) -> Result<Json<Page<LogPiece>>, ApiError> {
    let _pass = server.doors().read.enter().await?;
    let job_id = path_id(id)?;
    let mut reader = QueryReader::new(&uri);
    let wanted = read_attempt(&mut reader);
    let stream = read_stream(&mut reader);
    let newest = match reader.text("order").as_deref() {
        None | Some("newest") => true,
        Some("oldest") => false,
        Some(_) => {
            reader.refuse("order", FaultCode::Invalid, "is `newest` or `oldest`");
            true
        }
    };
    let limit = reader.whole("limit", 1..=1_000).unwrap_or(100) as u32;
    let cursor = reader.whole("cursor", 0..=i64::MAX as u64).and_then(|number| i64::try_from(number).ok());
    reader.finish()?;
    let record = read_own_job(&server, &caller, job_id).await?;
    let Some(attempt) = attempt_of(&record, wanted)? else { return Ok(whole_list(Vec::new())) };
    let (after_seq, before_seq) = if newest { (0, cursor) } else { (cursor.unwrap_or(0), None) };
    let query =
        LogQuery { job_id, attempt, stream, from: 0, after_seq, before_seq, newest, since: None, limit };
    let mut chunks = server.store().log_chunks(&query).await?;
    if newest {
        chunks.reverse();
    }
    let more = chunks.len() >= limit as usize;
    let next_cursor = chunks.last().filter(|_| more).map(|chunk| chunk.seq.to_string());
    let pieces = chunks.into_iter().map(|chunk| LogPiece {
        number: chunk.seq,
        stream: word(chunk.stream).to_owned(),
        from: chunk.from,
        to: chunk.to,
        time: Time(chunk.at),
    });
    Ok(Json(Page { items: pieces.collect(), next_cursor }))
}

/// Looks for a text in the log of an attempt: its bytes, no pattern.
///
/// A call reads a bounded part of the log. Where that is not all, it answers a `next_cursor`, also without any match: go
/// on with it. Matches don't overlap, and none goes over the end of what there is.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/logs/search", tag = "jobs",
    params(
        ("id" = String, Path, description = "The job"),
        ("q" = String, Query, description = "The text, 1–256 bytes"),
        ("attempt" = Option<u32>, Query, description = "Which attempt; the newest when left out"),
        ("stream" = Option<String>, Query, description = "`stdout` or `stderr`; both, one after the other, when left out"),
        ("case" = Option<String>, Query, description = "`exact`, which is usual, or `ignore`: ASCII letters match whatever their case"),
        ("from" = Option<u64>, Query, description = "From this byte of the stream on; needs `stream`, and lines are not counted then"),
        ("limit" = Option<u32>, Query, description = "1–500; 100 when left out"),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the call before")
    ),
    responses(
        (status = 200, description = "One item a match", body = LogSearch),
        (status = 400, description = "Parameters that don't go together", body = Problem),
        (status = 403, description = "The token does not act for the owner", body = Problem),
        (status = 404, description = "No such job or attempt", body = Problem)
    )
)]
pub(crate) async fn find(
    State(server): State<Server>,
    caller: Caller,
    id: Path<String>,
    uri: Uri,
) -> Result<Json<LogSearch>, ApiError> {
    let _pass = server.doors().read.enter().await?;
    let job_id = path_id(id)?;
    let mut reader = QueryReader::new(&uri);
    let wanted = read_attempt(&mut reader);
    let stream = read_stream(&mut reader);
    let text = read_text(&mut reader);
    let ignore_case = match reader.text("case").as_deref() {
        None | Some("exact") => false,
        Some("ignore") => true,
        Some(_) => {
            reader.refuse("case", FaultCode::Invalid, "is `exact` or `ignore`");
            false
        }
    };
    let limit = reader.whole("limit", 1..=500).unwrap_or(100) as usize;
    let start = read_start(&mut reader, stream);
    reader.finish()?;
    let record = read_own_job(&server, &caller, job_id).await?;
    // Without an attempt there is nothing to be found.
    let attempt = attempt_of(&record, wanted)?.unwrap_or(0);
    let sought = Sought { job_id, attempt, stream, text: text.into_bytes(), ignore_case, start, limit };
    Ok(Json(search(&server, &sought).await?))
}

fn read_attempt(reader: &mut QueryReader) -> Option<u32> {
    reader.whole("attempt", 1..=u64::from(u32::MAX)).and_then(|number| u32::try_from(number).ok())
}

fn read_text(reader: &mut QueryReader) -> String {
    let text = reader.text("q").unwrap_or_default();
    if text.is_empty() {
        reader.refuse("q", FaultCode::Missing, "what is to be looked for");
    } else if text.len() > MOST_SOUGHT_BYTES {
        reader.refuse("q", FaultCode::TooLong, format!("has at most {MOST_SOUGHT_BYTES} bytes"));
    }
    text
}

fn read_start(reader: &mut QueryReader, stream: Option<LogStream>) -> Cursor {
    let cursor: Option<Cursor> = reader.parsed("cursor");
    let from = reader.whole("from", 0..=i64::MAX as u64);
    if from.is_some() && stream.is_none() {
        let detail = "is an offset in one stream: name it with `stream=stdout` or `stream=stderr`";
        reader.refuse("from", FaultCode::NotAllowed, detail);
    }
    let first = stream.unwrap_or(LogStream::Stdout);
    match (cursor, from) {
        (Some(_), Some(_)) => {
            reader.refuse("from", FaultCode::NotAllowed, "does not go together with `cursor`");
            Cursor::begin(first)
        }
        (Some(cursor), None) => {
            if stream.is_some_and(|stream| stream != cursor.stream) {
                reader.refuse("cursor", FaultCode::Invalid, "is of the other stream");
            }
            cursor
        }
        (None, Some(offset)) if offset > 0 => Cursor { stream: first, offset, line: None },
        (None, _) => Cursor::begin(first),
    }
}
