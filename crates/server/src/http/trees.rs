//! Trees over HTTP: a manifest in, checked; a manifest out.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jobyard_api::json::{Problem, Tree};
use jobyard_model::{ArtifactHash, Role};
use jobyard_store::TreeRecord;
use jobyard_tree::MAX_MANIFEST_BYTES;

use super::{artifacts, path_id};
use crate::authentication::Caller;
use crate::body::{self, BodyLimit};
use crate::error::ApiError;
use crate::server::Server;
use crate::trees::keep_tree;

const MISSING: ApiError = ApiError::NotFound { what: "tree; push the folder first" };

/// Makes a tree known by its manifest, once all of its files are uploaded. Repeatable without harm.
///
/// A manifest is JSON without space, fields and paths in this order: `{"tree":1,"files":{"<path>":{"sha256":"<hex>",
/// "size":<bytes>,"mode":"0644"},…}}`, where `mode` is `0755` for a program. Its SHA-256 is the tree's name.
#[utoipa::path(
    put, path = "/api/v1/trees/{sha256}", tag = "artifacts",
    params(("sha256" = String, Path, description = "64 lower-case hex digits: of the manifest")),
    request_body(content = Object, content_type = "application/json"),
    responses(
        (status = 201, description = "Known and durable", body = Tree),
        (status = 200, description = "It was known already", body = Tree),
        (status = 400, description = "It is no manifest, or not that of this name; nothing was kept", body = Problem),
        (status = 409, description = "Files are missing; `errors` names some of them. Ask with `POST /artifacts/missing`, upload them, and send it again", body = Problem),
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
    let limit = BodyLimit { most_bytes: MAX_MANIFEST_BYTES, within: server.settings().body_within };
    let manifest = body::read(&headers, body, limit).await?;
    let known = server.store().tree(hash).await?.is_some();
    let stores = (server.store(), server.artifacts());
    let record = keep_tree(stores, hash, manifest, caller.actor()).await?;
    let status = if known { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(shown(hash, record))).into_response())
}

/// Says whether a tree is known.
#[utoipa::path(
    head, path = "/api/v1/trees/{sha256}", tag = "artifacts",
    params(("sha256" = String, Path, description = "64 lower-case hex digits")),
    responses((status = 200, description = "It is known, with all its files"), (status = 404, description = "It isn't"))
)]
pub(super) async fn look(
    State(server): State<Server>,
    caller: Caller,
    id: Path<String>,
) -> Result<Response, ApiError> {
    caller.require(Role::Submitter)?;
    let _pass = server.doors().read.enter().await?;
    let hash: ArtifactHash = path_id(id)?;
    server.store().tree(hash).await?.ok_or(MISSING)?;
    // Whoever asks counts on it from now on.
    server.store().artifact_sizes(vec![hash]).await?;
    Ok(Body::empty().into_response())
}

/// Downloads a tree's manifest; its files are artifacts.
#[utoipa::path(
    get, path = "/api/v1/trees/{sha256}", tag = "artifacts",
    params(("sha256" = String, Path, description = "64 lower-case hex digits")),
    responses(
        (status = 200, description = "The manifest", body = Object),
        (status = 404, description = "No such tree", body = Problem)
    )
)]
pub(super) async fn download(
    State(server): State<Server>,
    caller: Caller,
    id: Path<String>,
) -> Result<Response, ApiError> {
    caller.require(Role::Submitter)?;
    let _pass = server.doors().artifact.enter().await?;
    let hash: ArtifactHash = path_id(id)?;
    server.store().tree(hash).await?.ok_or(MISSING)?;
    let mut response = artifacts::whole(&server, hash).await?;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    Ok(response)
}

fn shown(hash: ArtifactHash, record: TreeRecord) -> Tree {
    Tree { sha256: hash.to_string(), files: record.files, size_bytes: record.size_bytes }
}
