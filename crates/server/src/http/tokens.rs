//! Tokens over HTTP, and who one is.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use jobyard_api::json::units::parse_duration_ms;
use jobyard_api::json::{Me, Page, Problem, Seconds, Time, Token, TokenCreate, TokenCreated};
use jobyard_api::strict::{self, Amount, FaultCode, Faults, Pointer, Tree};
use jobyard_api::submit::check_name;
use jobyard_model::Role;
use jobyard_store::TokenRecord;

use super::{path_id, whole_list};
use crate::authentication::Caller;
use crate::body::{self, BodyLimit};
use crate::error::ApiError;
use crate::operations::create_token::create_token;
use crate::server::Server;

const MAX_OWNERS: usize = 100;
const EXPIRES_IN: Amount = Amount {
    least: 1_000,
    most: 3_650 * 24 * 60 * 60 * 1_000,
    bounds: "from 1 s to 10 years",
    parts: 1_000,
    parse: parse_duration_ms,
};

/// Says who the server takes the caller for.
#[utoipa::path(get, path = "/api/v1/me", tag = "tokens", responses((status = 200, description = "Who", body = Me)))]
pub(super) async fn me(caller: Caller) -> Json<Me> {
    let principal = caller.principal().clone();
    Json(Me { name: principal.name, role: principal.role, owners: principal.owners })
}

/// Lists the tokens, newest first, without their secrets.
#[utoipa::path(
    get, path = "/api/v1/tokens", tag = "tokens",
    responses((status = 200, description = "Every token", body = Page<Token>))
)]
pub(super) async fn list(
    State(server): State<Server>,
    caller: Caller,
) -> Result<Json<Page<Token>>, ApiError> {
    caller.require(Role::Admin)?;
    let _pass = server.doors().read.enter().await?;
    let tokens = server.store().tokens().await?;
    Ok(whole_list(tokens.into_iter().map(view).collect()))
}

/// Makes a token. Its secret is in this answer and never again.
#[utoipa::path(
    post, path = "/api/v1/tokens", tag = "tokens", request_body = TokenCreate,
    responses(
        (status = 201, description = "The token and its secret", body = TokenCreated),
        (status = 400, description = "Faults, all of them named", body = Problem)
    )
)]
pub(super) async fn create(
    State(server): State<Server>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    caller.require(Role::Admin)?;
    let _pass = server.doors().change.enter().await?;
    let settings = server.settings();
    let limit = BodyLimit { most_bytes: settings.body_bytes, within: settings.body_within };
    let bytes = body::read(&headers, body, limit).await?;
    let wanted = read_create(&bytes)?;
    let now = server.store().now().await?;
    let created = create_token(server.store(), &wanted, now, caller.actor()).await?;
    Ok((StatusCode::CREATED, Json(created)).into_response())
}

/// Revokes a token; it stops working at once.
#[utoipa::path(
    delete, path = "/api/v1/tokens/{id}", tag = "tokens", params(("id" = String, Path, description = "The token")),
    responses(
        (status = 204, description = "It is revoked"),
        (status = 404, description = "No such token", body = Problem)
    )
)]
pub(super) async fn revoke(
    State(server): State<Server>,
    caller: Caller,
    id: Path<String>,
) -> Result<StatusCode, ApiError> {
    caller.require(Role::Admin)?;
    let _pass = server.doors().change.enter().await?;
    if server.store().revoke_token(path_id(id)?, caller.actor()).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(ApiError::NotFound { what: "token" })
    }
}

fn view(token: TokenRecord) -> Token {
    Token {
        id: token.id,
        name: token.name,
        role: token.role,
        owners: token.owners,
        created_time: Time(token.created_at),
        expires_time: token.expires_at.map(Time),
        revoked_time: token.revoked_at.map(Time),
    }
}

fn read_create(bytes: &[u8]) -> Result<TokenCreate, ApiError> {
    let tree = strict::parse(bytes).map_err(Faults::from)?;
    let mut faults = Faults::default();
    let wanted = read_fields(&tree, &mut faults);
    match wanted {
        Some(wanted) if faults.is_empty() => Ok(wanted),
        _ => Err(faults.into()),
    }
}

fn read_fields(tree: &Tree<'_>, faults: &mut Faults) -> Option<TokenCreate> {
    let root = Pointer::Root;
    let mut fields = strict::object(tree, "an object with `name` and `role`", &root, faults)?;
    let name = fields.take("name", faults).and_then(|value| {
        let at = root.field("name");
        let name = strict::text(value, &at, faults)?;
        check(name, &at, faults);
        Some(name.to_owned())
    });
    let role = fields.take("role", faults).and_then(|value| {
        let at = root.field("role");
        let role = Role::parse(strict::text(value, &at, faults)?);
        if role.is_none() {
            let known = Role::ALL.map(Role::as_str).join("`, `");
            faults.add(&at, FaultCode::Invalid, format!("there is no such role; there are `{known}`"));
        }
        role
    });
    let owners_at = root.field("owners");
    let owners = fields
        .take("owners", faults)
        .map(|value| strict::texts(value, "a list of owners", &owners_at, faults));
    let owners = owners.unwrap_or_default();
    for (index, owner) in owners.iter().enumerate() {
        check(owner, &owners_at.item(index), faults);
    }
    if owners.len() > MAX_OWNERS {
        faults.add(&owners_at, FaultCode::TooMany, format!("a token acts for at most {MAX_OWNERS} owners"));
    }
    if role == Some(Role::Submitter) && owners.is_empty() {
        faults.add(&owners_at, FaultCode::Missing, "a submitter needs at least one owner to act for");
    }
    let expires_at = root.field("expires_in");
    let expires_in =
        fields.take("expires_in", faults).and_then(|value| EXPIRES_IN.read(value, &expires_at, faults));
    for (field, missing) in [("name", name.is_none()), ("role", role.is_none())] {
        if missing && !has_fault(faults, field) {
            faults.add(&root.field(field), FaultCode::Missing, "a token has a `name` and a `role`");
        }
    }
    fields.finish(faults);
    Some(TokenCreate { name: name?, role: role?, owners, expires_in: expires_in.map(|ms| Seconds { ms }) })
}

fn check(name: &str, at: &Pointer<'_>, faults: &mut Faults) {
    if let Err((code, detail)) = check_name(name) {
        faults.add(at, code, detail);
    }
}

fn has_fault(faults: &Faults, field: &str) -> bool {
    faults.listed().iter().any(|fault| fault.pointer.strip_prefix('/') == Some(field))
}
