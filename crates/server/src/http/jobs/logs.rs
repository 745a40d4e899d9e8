//! `GET /jobs/{id}/logs`.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderName, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use jobyard_api::json::Problem;
use jobyard_api::strict::FaultCode;
use jobyard_model::JobId;
use jobyard_store::{JobRecord, LogStream};

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::http::path_id;
use crate::http::query::QueryReader;
use crate::logs::{LogReader, Wanted, word};
use crate::operations::read_job::read_own_job;
use crate::server::Server;

const MAX_TAIL_LINES: u64 = 10_000;
const ATTEMPT_HEADER: HeaderName = HeaderName::from_static("jobyard-attempt");

/// Reads the log of one attempt: the bytes as the process wrote them, both streams by arrival unless one is named.
///
/// A followed log goes on until the attempt is over. The header `Jobyard-Attempt` says which attempt it is.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/logs", tag = "jobs",
    params(
        ("id" = String, Path, description = "The job"),
        ("attempt" = Option<u32>, Query, description = "Which attempt; the newest when left out"),
        ("stream" = Option<String>, Query, description = "`stdout` or `stderr`; both when left out"),
        ("from" = Option<u64>, Query, description = "From this byte of the stream; needs `stream`"),
        ("to" = Option<u64>, Query, description = "Up to this byte of the stream; needs `stream`"),
        ("tail" = Option<u32>, Query, description = "Only the last so many lines, at most 10000"),
        ("since" = Option<String>, Query, description = "Only what was read at or after this instant (RFC 3339)"),
        ("follow" = Option<bool>, Query, description = "Go on until the attempt is over"),
        ("download" = Option<bool>, Query, description = "Suggest a file name to whoever saves it")
    ),
    responses(
        (status = 200, description = "The bytes", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 400, description = "Parameters that don't go together", body = Problem),
        (status = 403, description = "The token does not act for the owner", body = Problem),
        (status = 404, description = "No such job or attempt", body = Problem),
        (status = 410, description = "The log is older than logs are kept", body = Problem)
    )
)]
pub(crate) async fn logs(
    State(server): State<Server>,
    caller: Caller,
    id: Path<String>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let job_id = path_id(id)?;
    let (mut wanted, is_download) = read_query(&uri)?;
    let record = read_own_job(&server, &caller, job_id).await?;
    wanted.attempt = attempt_of(&record, wanted.attempt)?;
    let attempt = wanted.attempt;
    let disposition = disposition(job_id, attempt.filter(|_| is_download), wanted.stream);
    let pass = match wanted.follow {
        true => Some(server.doors().stream.enter().await?),
        false => None,
    };
    let _read = server.doors().read.enter().await?;
    let is_followed = wanted.follow;
    let mut reader = LogReader::open(server.clone(), job_id, wanted, pass).await?;
    // What can't be read at all is an answer of its own; a followed log may have nothing to show for long.
    let first = if is_followed { None } else { Some(reader.try_next().await?.unwrap_or_default()) };
    let first = stream::iter(first.map(Ok));
    let pieces = stream::unfold(Some(reader), |reader| async move {
        let mut reader = reader?;
        let piece = reader.next().await?;
        // After an error nothing can follow.
        let reader = piece.is_ok().then_some(reader);
        Some((piece, reader))
    });
    let kind = HeaderValue::from_static("application/octet-stream");
    let headers = [(header::CONTENT_TYPE, kind), (header::CONTENT_DISPOSITION, disposition)];
    let mut response = (headers, Body::from_stream(first.chain(pieces))).into_response();
    if let Some(attempt) = attempt {
        response.headers_mut().insert(ATTEMPT_HEADER, HeaderValue::from(attempt));
    }
    Ok(response)
}

/// Whatever a process wrote is to be saved, never shown as a page.
fn disposition(job_id: JobId, attempt: Option<u32>, stream: Option<LogStream>) -> HeaderValue {
    let Some(attempt) = attempt else { return HeaderValue::from_static("attachment") };
    let stream = stream.map(|stream| format!(".{}", word(stream))).unwrap_or_default();
    let text = format!("attachment; filename=\"{job_id}-{attempt}{stream}.log\"");
    // Ids, numbers and words are plain ASCII.
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("attachment"))
}

/// The attempt that is wanted, else the newest; `None` when the job has had none yet.
pub(super) fn attempt_of(record: &JobRecord, wanted: Option<u32>) -> Result<Option<u32>, ApiError> {
    let newest = record.job.last_attempt;
    match wanted {
        Some(number) if number > newest => Err(ApiError::NotFound { what: "attempt" }),
        Some(number) => Ok(Some(number)),
        None => Ok((newest > 0).then_some(newest)),
    }
}

/// One stream, or both.
pub(super) fn read_stream(reader: &mut QueryReader) -> Option<LogStream> {
    match reader.text("stream").as_deref() {
        None | Some("both") => None,
        Some("stdout") => Some(LogStream::Stdout),
        Some("stderr") => Some(LogStream::Stderr),
        Some(_) => {
            reader.refuse("stream", FaultCode::Invalid, "is `stdout`, `stderr` or `both`");
            None
        }
    }
}

/// What is wanted, and whether it is to be saved under a name.
fn read_query(uri: &Uri) -> Result<(Wanted, bool), ApiError> {
    let mut reader = QueryReader::new(uri);
    let stream = read_stream(&mut reader);
    let attempt =
        reader.whole("attempt", 1..=u64::from(u32::MAX)).and_then(|number| u32::try_from(number).ok());
    let from = reader.whole("from", 0..=i64::MAX as u64);
    let to = reader.whole("to", 0..=i64::MAX as u64);
    let tail = reader.whole("tail", 0..=MAX_TAIL_LINES);
    let since = reader.time("since");
    let follow = reader.flag("follow").unwrap_or(false);
    let is_download = reader.flag("download").unwrap_or(false);
    for (name, offset) in [("from", from), ("to", to)] {
        if offset.is_some() && stream.is_none() {
            let detail = "is an offset in one stream: name it with `stream=stdout` or `stream=stderr`";
            reader.refuse(name, FaultCode::NotAllowed, detail);
        }
        if offset.is_some() && tail.is_some() {
            reader.refuse(name, FaultCode::NotAllowed, "does not go together with `tail`");
        }
    }
    if to.is_some_and(|to| to < from.unwrap_or(0)) {
        reader.refuse("to", FaultCode::OutOfRange, "lies before `from`");
    }
    reader.finish()?;
    let tail_lines = tail.and_then(|lines| usize::try_from(lines).ok());
    let from = from.unwrap_or(0);
    Ok((Wanted { attempt, stream, from, to, tail_lines, since, follow }, is_download))
}
