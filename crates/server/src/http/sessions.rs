//! Signing in with a browser, and out.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jobyard_api::json::{Login, Me, Problem, Session, SessionCreate, Time};
use jobyard_api::strict::{self, FaultCode, Faults, Pointer};
use jobyard_store::{NewSession, SessionKey};

use crate::authentication::{Address, Caller, SecretKind, new_secret, token_hash};
use crate::body::{self, BodyLimit};
use crate::cookie::{self, Jar};
use crate::error::ApiError;
use crate::operations::create_login::create_login;
use crate::origin::{self, Silence};
use crate::server::Server;

/// Whoever calls this is not known yet.
const BODY_BYTES: usize = 4 << 10;

/// Begins a session of a token: its cookie stands for the token until the session ends.
///
/// A page elsewhere can't make this call. Other calls by right of the cookie that change something must come from a
/// page of this server, which browsers say by themselves (`Sec-Fetch-Site`, `Origin`).
#[utoipa::path(
    post, path = "/api/v1/sessions", tag = "sessions", request_body = SessionCreate, security(()),
    responses(
        (status = 201, description = "It has begun; `Set-Cookie` has the cookie", body = Session),
        (status = 400, description = "Faults, all of them named", body = Problem),
        (status = 401, description = "No such token or code, or it was used or is past its end", body = Problem),
        (status = 403, description = "A page elsewhere asks", body = Problem)
    )
)]
pub(super) async fn begin(
    State(server): State<Server>,
    Address(address): Address,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    origin::check(&headers, Silence::Allowed)?;
    let settings = server.settings();
    let limit = BodyLimit { most_bytes: BODY_BYTES, within: settings.body_within };
    let key = read_begin(&body::read(&headers, body, limit).await?)?;
    let _pass = server.doors().change.enter().await?;
    let secret = new_secret(SecretKind::Session);
    let new = NewSession { hash: token_hash(&secret), lasts_ms: settings.session_lasts_ms };
    let begun = server.store().begin_session(key, new, &address).await?;
    let begun = begun.ok_or(ApiError::Unauthenticated)?;
    let now = server.store().now().await?;
    let cookie = Jar::of(settings, &headers).set(&secret, begun.expires_at, now);
    let me = Me { name: begun.token.name, role: begun.token.role, owners: begun.token.owners };
    let session = Session { me, expires_time: Time(begun.expires_at) };
    Ok((StatusCode::CREATED, [(header::SET_COOKIE, cookie)], Json(session)).into_response())
}

/// Ends the session of the cookie, if there is one, and takes the cookie away.
#[utoipa::path(
    delete, path = "/api/v1/sessions", tag = "sessions", security(()),
    responses(
        (status = 204, description = "There is no session any more"),
        (status = 403, description = "A page elsewhere asks", body = Problem)
    )
)]
pub(super) async fn end(
    State(server): State<Server>,
    Address(address): Address,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    origin::check(&headers, Silence::Refused)?;
    let _pass = server.doors().change.enter().await?;
    if let Some(secret) = cookie::read(&headers) {
        let hash = token_hash(secret);
        if let Some(session) = server.store().session_by_hash(hash).await? {
            let by = jobyard_store::Actor { name: session.token.name, address };
            server.store().end_session(hash, &by).await?;
        }
    }
    let cleared = Jar::of(server.settings(), &headers).clear();
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cleared)]).into_response())
}

/// Makes a code that begins one session of the caller's token, within 15 minutes: `/login#<code>` signs a browser in.
#[utoipa::path(
    post, path = "/api/v1/sessions/links", tag = "sessions",
    responses((status = 201, description = "The code, which is nowhere else", body = Login))
)]
pub(super) async fn link(State(server): State<Server>, caller: Caller) -> Result<Response, ApiError> {
    let _pass = server.doors().change.enter().await?;
    let now = server.store().now().await?;
    let login = create_login(server.store(), caller.token_id(), now, caller.actor()).await?;
    Ok((StatusCode::CREATED, Json(login)).into_response())
}

fn read_begin(bytes: &[u8]) -> Result<SessionKey, ApiError> {
    const WHAT: &str = "an object with `token` or `login`";
    let tree = strict::parse(bytes).map_err(Faults::from)?;
    let mut faults = Faults::default();
    let mut key = None;
    if let Some(mut fields) = strict::object(&tree, WHAT, &Pointer::Root, &mut faults) {
        let mut text = |name: &'static str| {
            let value = fields.take(name, &mut faults)?;
            strict::text(value, &Pointer::Root.field(name), &mut faults).map(token_hash)
        };
        let (token, login) = (text("token"), text("login"));
        fields.finish(&mut faults);
        key = match (token, login) {
            (Some(hash), None) => Some(SessionKey::Token(hash)),
            (None, Some(hash)) => Some(SessionKey::Login(hash)),
            _ => None,
        };
    }
    if key.is_none() && faults.is_empty() {
        faults.add(&Pointer::Root, FaultCode::Missing, "a session begins with either `token` or `login`");
    }
    match key {
        Some(key) if faults.is_empty() => Ok(key),
        _ => Err(faults.into()),
    }
}
