//! Artifacts over HTTP: streamed in, checked against their name; streamed out, whole or a range.

use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use futures_util::stream;
use jobyard_api::json::{Artifact, ArtifactNames, MissingArtifacts, Problem};
use jobyard_api::strict::{self, FaultCode, Faults, Pointer};
use jobyard_model::{ArtifactHash, Role};

use super::path_id;
use crate::artifact_store::{ArtifactStoreError, ByteStream};
use crate::authentication::Caller;
use crate::body::{self, BodyLimit, announced_bytes};
use crate::error::ApiError;
use crate::server::Server;

/// Names in one question for what is missing.
const MOST_ASKED: usize = 1_000;

/// Uploads an artifact under the SHA-256 of its bytes. Repeatable without harm.
#[utoipa::path(
    put, path = "/api/v1/artifacts/{sha256}", tag = "artifacts",
    params(("sha256" = String, Path, description = "64 lower-case hex digits")),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 201, description = "Stored and durable", body = Artifact),
        (status = 200, description = "It was there already", body = Artifact),
        (status = 400, description = "The bytes don't match the name, or broke off; nothing was stored", body = Problem),
        (status = 408, description = "The sender fell silent; nothing was stored", body = Problem),
        (status = 413, description = "Too large", body = Problem)
    )
)]
pub(super) async fn upload(
    State(server): State<Server>,
    caller: Caller,
    id: Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Role::Submitter)?;
    let _pass = server.doors().artifact.enter().await?;
    let hash: ArtifactHash = path_id(id)?;
    let most_bytes = server.settings().artifact_bytes;
    if announced_bytes(&headers).is_some_and(|bytes| bytes > most_bytes) {
        return Err(ApiError::BodyTooLarge { most_bytes });
    }
    let known = server.store().artifact(hash).await?.is_some();
    let pieces = in_time(body, server.settings().body_within);
    let size_bytes = server.artifacts().put(hash, pieces, most_bytes).await?;
    server.store().add_artifact(hash, size_bytes, caller.actor()).await?;
    let status = if known { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(Artifact { sha256: hash.to_string(), size_bytes })).into_response())
}

/// The pieces of a body; a sender that is silent for `within` has broken off.
fn in_time(body: Body, within: Duration) -> ByteStream {
    let pieces = Some(body.into_data_stream());
    stream::unfold(pieces, move |pieces| async move {
        let mut pieces = pieces?;
        match tokio::time::timeout(within, pieces.next()).await {
            Ok(None) => None,
            Ok(Some(Ok(piece))) => Some((Ok(piece), Some(pieces))),
            Ok(Some(Err(error))) => Some((Err(io::Error::other(error)), None)),
            Err(_) => Some((Err(io::ErrorKind::TimedOut.into()), None)),
        }
    })
    .boxed()
}

/// Says whether an artifact is there, and how large it is.
#[utoipa::path(
    head, path = "/api/v1/artifacts/{sha256}", tag = "artifacts",
    params(("sha256" = String, Path, description = "64 lower-case hex digits")),
    responses((status = 200, description = "It is there"), (status = 404, description = "It isn't"))
)]
pub(super) async fn look(
    State(server): State<Server>,
    caller: Caller,
    id: Path<String>,
) -> Result<Response, ApiError> {
    caller.require(Role::Submitter)?;
    let _pass = server.doors().read.enter().await?;
    let hash: ArtifactHash = path_id(id)?;
    let size_bytes = size_of(&server, hash).await?;
    // Whoever asks counts on it from now on.
    server.store().artifact_sizes(vec![hash]).await?;
    Ok(([(header::CONTENT_LENGTH, HeaderValue::from(size_bytes)), ACCEPT_RANGES], Body::empty())
        .into_response())
}

/// Downloads an artifact, or one range of it.
#[utoipa::path(
    get, path = "/api/v1/artifacts/{sha256}", tag = "artifacts",
    params(
        ("sha256" = String, Path, description = "64 lower-case hex digits"),
        ("Range" = Option<String>, Header, description = "One range: `bytes=from-to`, `bytes=from-`, `bytes=-last`")
    ),
    responses(
        (status = 200, description = "All of it", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 206, description = "The range", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 404, description = "No such artifact", body = Problem),
        (status = 416, description = "The range lies outside", body = Problem)
    )
)]
pub(super) async fn download(
    State(server): State<Server>,
    caller: Caller,
    id: Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    caller.require(Role::Submitter)?;
    let pass = server.doors().artifact.enter().await?;
    let hash: ArtifactHash = path_id(id)?;
    let size_bytes = size_of(&server, hash).await?;
    let wanted = headers.get(header::RANGE).and_then(|value| value.to_str().ok()).and_then(read_range);
    let range = match wanted {
        Some(wanted) => Some(wanted.within(size_bytes).ok_or(ApiError::RangeNotSatisfiable { size_bytes })?),
        None => None,
    };
    let part = range.clone().unwrap_or(0..size_bytes);
    let length = part.end - part.start;
    let bytes = server.artifacts().read(hash, part).await.map_err(unreadable)?.ok_or(MISSING)?;
    drop(pass);
    let mut response = Body::from_stream(bytes).into_response();
    let octets = HeaderValue::from_static("application/octet-stream");
    response.headers_mut().extend([
        (header::CONTENT_TYPE, octets),
        // Whatever somebody uploaded is to be saved, never shown as a page.
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
        (header::CONTENT_LENGTH, HeaderValue::from(length)),
        ACCEPT_RANGES,
    ]);
    if let Some(range) = range {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        let text = format!("bytes {}-{}/{size_bytes}", range.start, range.end - 1);
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().insert(header::CONTENT_RANGE, value);
        }
    }
    Ok(response)
}

/// All bytes of an artifact, as an answer.
pub(super) async fn whole(server: &Server, hash: ArtifactHash) -> Result<Response, ApiError> {
    let size_bytes = size_of(server, hash).await?;
    let bytes = server.artifacts().read(hash, 0..size_bytes).await.map_err(unreadable)?.ok_or(MISSING)?;
    let mut response = Body::from_stream(bytes).into_response();
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(size_bytes));
    Ok(response)
}

/// Says which of these artifacts have to be uploaded.
#[utoipa::path(
    post, path = "/api/v1/artifacts/missing", tag = "artifacts",
    request_body = ArtifactNames,
    responses(
        (status = 200, description = "Those that are not there", body = MissingArtifacts),
        (status = 400, description = "Not a list of at most 1,000 names", body = Problem)
    )
)]
pub(super) async fn missing(
    State(server): State<Server>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<MissingArtifacts>, ApiError> {
    caller.require(Role::Submitter)?;
    let _pass = server.doors().read.enter().await?;
    let settings = server.settings();
    let limit = BodyLimit { most_bytes: settings.body_bytes, within: settings.body_within };
    let asked = read_names(&body::read(&headers, body, limit).await?)?;
    let sizes = server.store().artifact_sizes(asked.clone()).await?;
    let mut seen = HashSet::new();
    let missing = asked.into_iter().zip(sizes).filter(|(hash, size)| size.is_none() && seen.insert(*hash));
    Ok(Json(MissingArtifacts { missing: missing.map(|(hash, _)| hash.to_string()).collect() }))
}

fn read_names(bytes: &[u8]) -> Result<Vec<ArtifactHash>, ApiError> {
    let tree = strict::parse(bytes).map_err(Faults::from)?;
    let mut faults = Faults::default();
    let mut hashes = Vec::new();
    let what = "an object with `sha256`, a list of names";
    if let Some(mut fields) = strict::object(&tree, what, &Pointer::Root, &mut faults) {
        let at = Pointer::Root.field("sha256");
        match fields.take("sha256", &mut faults) {
            Some(value) => {
                let names = strict::texts(value, "a list of names, 64 hex digits each", &at, &mut faults);
                if names.len() > MOST_ASKED {
                    faults.add(&at, FaultCode::TooMany, format!("at most {MOST_ASKED} names in a call"));
                }
                for (index, name) in names.iter().take(MOST_ASKED).enumerate() {
                    match name.parse::<ArtifactHash>() {
                        Ok(hash) => hashes.push(hash),
                        Err(error) => faults.add(&at.item(index), FaultCode::Invalid, error.to_string()),
                    }
                }
            }
            None => faults.add(&at, FaultCode::Missing, "name the artifacts"),
        }
        fields.finish(&mut faults);
    }
    if faults.is_empty() { Ok(hashes) } else { Err(faults.into()) }
}

const ACCEPT_RANGES: (header::HeaderName, HeaderValue) =
    (header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
const MISSING: ApiError = ApiError::NotFound { what: "artifact; push it first" };

fn unreadable(source: ArtifactStoreError) -> ApiError {
    ApiError::ArtifactStore { doing: "reading an artifact", source }
}

/// The size of an artifact that the datastore knows and the artifact store has.
async fn size_of(server: &Server, hash: ArtifactHash) -> Result<u64, ApiError> {
    server.store().artifact(hash).await?.ok_or(MISSING)?;
    server.artifacts().size(hash).await.map_err(unreadable)?.ok_or(MISSING)
}

/// A range as asked for, before the size is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    From { first: u64, last: Option<u64> },
    Last(u64),
}

/// Reads a `Range` header; what isn't one range of bytes counts as not asked for, as RFC 9110 allows.
fn read_range(text: &str) -> Option<Wanted> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    match (first, last) {
        ("", last) => last.parse().ok().map(Wanted::Last),
        (first, "") => Some(Wanted::From { first: first.parse().ok()?, last: None }),
        (first, last) => {
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (first <= last).then_some(Wanted::From { first, last: Some(last) })
        }
    }
}

impl Wanted {
    /// The range within `size_bytes`; `None` when nothing of it is there.
    fn within(self, size_bytes: u64) -> Option<Range<u64>> {
        let range = match self {
            Self::From { first, last } => {
                first..last.map_or(size_bytes, |last| last.saturating_add(1).min(size_bytes))
            }
            Self::Last(length) => size_bytes.saturating_sub(length)..size_bytes,
        };
        (!range.is_empty()).then_some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_as_rfc_9110_writes_them() {
        let cases = [
            ("bytes=0-4", Some(0..5)),
            ("bytes=5-", Some(5..10)),
            ("bytes=-3", Some(7..10)),
            ("bytes=0-99", Some(0..10)),
            ("bytes=-99", Some(0..10)),
            ("bytes=10-", None),
            ("bytes=-0", None),
        ];
        for (text, expected) in cases {
            assert_eq!(read_range(text).unwrap().within(10), expected, "{text}");
        }
        for text in ["bytes=", "bytes=4-2", "bytes=0-1,3-4", "items=0-1", "bytes=a-b", "bytes=--1"] {
            assert_eq!(read_range(text), None, "{text}");
        }
    }
}
