//! Many small artifacts in one call: one body, one answer, one sync of the artifact store.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use bytes::Bytes;
use jobyard_api::json::{ArtifactBatch, ArtifactsStored, Problem};
use jobyard_api::strict::{self, FaultCode, Faults, Pointer, Range};
use jobyard_model::{ArtifactHash, Role};

use crate::artifact_store::{ArtifactStoreError, CheckedArtifact};
use crate::authentication::Caller;
use crate::body::{self, BodyLimit};
use crate::error::ApiError;
use crate::off_thread::off_thread;
use crate::server::Server;

/// Uploads up to 1,000 small artifacts, all or none. Repeatable without harm.
///
/// The body is one line of JSON, `{"files":[{"sha256":"<hex>","size":<bytes>},…]}` and a line feed, then the bytes of
/// those files, one after the other in that order, with nothing between them. All of it has at most 4 MiB. Each file is
/// checked against its name; when this is answered, all of them are durable.
#[utoipa::path(
    post, path = "/api/v1/artifacts/batch", tag = "artifacts",
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "A line of JSON (`ArtifactBatch`), then the bytes"),
    responses(
        (status = 200, description = "All are stored and durable", body = ArtifactsStored),
        (status = 400, description = "No such list, bytes that don't match their name, or too few or too many of them; nothing was stored", body = Problem),
        (status = 408, description = "The sender was too slow; nothing was stored", body = Problem),
        (status = 413, description = "Too large; nothing was stored", body = Problem)
    )
)]
pub(super) async fn upload(
    State(server): State<Server>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<ArtifactsStored>, ApiError> {
    caller.require(Role::Submitter)?;
    let _pass = server.doors().artifact_batch.enter().await?;
    let settings = server.settings();
    let limit = BodyLimit { most_bytes: settings.body_bytes, within: settings.body_within };
    let body = body::read(&headers, body, limit).await?;
    // Hashing megabytes would hold up others.
    let files = off_thread(move || read_files(&body)).await?;
    let sizes: Vec<_> = files.iter().map(|file| (file.hash(), file.bytes().len() as u64)).collect();
    let stored = ArtifactsStored {
        files: u32::try_from(sizes.len()).unwrap_or(u32::MAX),
        size_bytes: sizes.iter().map(|(_, size)| size).sum(),
    };
    server.artifacts().put_all(files).await.map_err(unstored)?;
    server.store().add_artifacts(sizes, caller.actor()).await?;
    Ok(Json(stored))
}

fn unstored(source: ArtifactStoreError) -> ApiError {
    ApiError::ArtifactStore { doing: "storing artifacts", source }
}

fn read_files(body: &Bytes) -> Result<Vec<CheckedArtifact>, ApiError> {
    let line_end = body.iter().position(|byte| *byte == b'\n');
    let Some(line_end) = line_end else {
        let detail = "the body begins with a line of JSON that says which files follow; it has no line feed";
        return Err(ApiError::fault("", FaultCode::Invalid, detail));
    };
    let named = read_names(&body[..line_end])?;
    let bytes = body.slice(line_end + 1..);
    let announced = named.iter().fold(0_u64, |sum, (_, size)| sum.saturating_add(*size));
    if announced != bytes.len() as u64 {
        let detail =
            format!("the files have {announced} bytes together, {} follow the first line", bytes.len());
        return Err(ApiError::fault("/files", FaultCode::Invalid, detail));
    }
    let (mut files, mut faults, mut begin) = (Vec::with_capacity(named.len()), Faults::default(), 0);
    for (index, (hash, size)) in named.into_iter().enumerate() {
        // No more than the body has.
        let end = begin + usize::try_from(size).unwrap_or(usize::MAX);
        match CheckedArtifact::new(hash, bytes.slice(begin..end)) {
            Ok(file) => files.push(file),
            Err(error) => {
                let at = Pointer::Root.field("files");
                faults.add(&at.item(index).field("sha256"), FaultCode::Invalid, error.to_string());
            }
        }
        begin = end;
    }
    if faults.is_empty() { Ok(files) } else { Err(faults.into()) }
}

fn read_names(line: &[u8]) -> Result<Vec<(ArtifactHash, u64)>, ApiError> {
    let tree = strict::parse(line).map_err(Faults::from)?;
    let (mut faults, mut named) = (Faults::default(), Vec::new());
    let what = "an object with `files`";
    if let Some(mut fields) = strict::object(&tree, what, &Pointer::Root, &mut faults) {
        let at = Pointer::Root.field("files");
        match fields.take("files", &mut faults) {
            Some(value) => {
                let what = "a list of files, each with `sha256` and `size`";
                let items = strict::items(value, what, &at, &mut faults).unwrap_or_default();
                if items.len() > ArtifactBatch::MOST_FILES {
                    let detail = format!("at most {} files in a call", ArtifactBatch::MOST_FILES);
                    faults.add(&at, FaultCode::TooMany, detail);
                }
                for (index, item) in items.iter().take(ArtifactBatch::MOST_FILES).enumerate() {
                    named.extend(read_name(item, &at.item(index), &mut faults));
                }
            }
            None => faults.add(&at, FaultCode::Missing, "say which files follow"),
        }
        fields.finish(&mut faults);
    }
    if faults.is_empty() { Ok(named) } else { Err(faults.into()) }
}

fn read_name(tree: &strict::Tree<'_>, at: &Pointer<'_>, faults: &mut Faults) -> Option<(ArtifactHash, u64)> {
    let mut fields = strict::object(tree, "an object with `sha256` and `size`", at, faults)?;
    let mut named = |name: &'static str, faults: &mut Faults| {
        let value = fields.take(name, faults);
        if value.is_none() {
            faults.add(&at.field(name), FaultCode::Missing, "a file has a `sha256` and a `size`");
        }
        value
    };
    let (hash, size) = (named("sha256", faults), named("size", faults));
    let hash = hash.and_then(|value| {
        let at = at.field("sha256");
        let text = strict::text(value, &at, faults)?;
        text.parse().map_err(|error| faults.add(&at, FaultCode::Invalid, format!("{error}"))).ok()
    });
    let range = Range { of: 0..=i64::MAX, what: "a size in bytes" };
    let size = size.and_then(|value| strict::whole(value, &range, &at.field("size"), faults));
    fields.finish(faults);
    Some((hash?, size?.unsigned_abs()))
}
