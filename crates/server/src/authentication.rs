//! Who makes a call, and what they may.
//!
//! Owns the check in front of every route and the text of secrets. A secret is `jy_` and 43 letters and digits (256
//! bits of chance); the datastore has only its SHA-256, so looking it up by hash is safe and quick. Sessions and login
//! codes are kept the same way, as `js_` and `jl_`.
//!
//! Invariants: **a request reaches a handler only with a [`Caller`] whose token is valid now**; what is outside is
//! named one by one in [`is_open`], by exact path. **By right of a cookie, only pages of this server change anything.**

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use jobyard_api::json::ProblemError;
use jobyard_model::ids::TokenId;
use jobyard_model::{Principal, Role};
use jobyard_store::{Actor, StoreError, TokenRecord};
use sha2::{Digest, Sha256};

use crate::cookie;
use crate::error::ApiError;
use crate::origin::{self, Silence};
use crate::server::Server;

/// Who makes a call.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    principal: Principal,
    actor: Actor,
    token_id: TokenId,
    right: Right,
}

/// By which right a call is made: the hash of what it brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    Token([u8; 32]),
    Session([u8; 32]),
}

impl Right {
    /// The token behind it, while it holds.
    async fn token(self, server: &Server) -> Result<Option<TokenRecord>, StoreError> {
        match self {
            Self::Token(hash) => server.store().token_by_hash(hash).await,
            Self::Session(hash) => {
                Ok(server.store().session_by_hash(hash).await?.map(|session| session.token))
            }
        }
    }

    /// Whether it still holds: for what stays open.
    pub(crate) async fn holds(self, server: &Server) -> Result<bool, StoreError> {
        Ok(self.token(server).await?.is_some())
    }
}

impl Caller {
    fn new(right: Right, token: TokenRecord, Address(address): Address) -> Self {
        let actor = Actor { name: token.name.clone(), address };
        let principal = Principal { name: token.name, role: token.role, owners: token.owners };
        Self { principal, actor, token_id: token.id, right }
    }

    pub(crate) fn principal(&self) -> &Principal {
        &self.principal
    }

    pub(crate) fn actor(&self) -> &Actor {
        &self.actor
    }

    /// By which right the call is made.
    pub(crate) fn right(&self) -> Right {
        self.right
    }

    /// The token by whose right the call is made.
    pub(crate) fn token_id(&self) -> TokenId {
        self.token_id
    }

    /// Refuses callers below `needed`.
    pub(crate) fn require(&self, needed: Role) -> Result<(), ApiError> {
        if self.principal.role >= needed { Ok(()) } else { Err(ApiError::WrongRole { needed }) }
    }

    /// Refuses callers that don't act for `owner`.
    pub(crate) fn require_owner(&self, owner: &str) -> Result<(), ApiError> {
        if self.principal.acts_for(owner) {
            return Ok(());
        }
        let detail = format!("the token does not act for owner `{owner}`");
        let error =
            ProblemError { pointer: "/owner_id".to_owned(), detail, code: "foreign_owner".to_owned() };
        Err(ApiError::ForeignOwner { errors: vec![error] })
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parts.extensions.get::<Self>().cloned().ok_or(ApiError::Unauthenticated)
    }
}

/// Where a call comes from; empty when it did not come over a socket.
pub(crate) struct Address(pub(crate) String);

impl<S: Sync> FromRequestParts<S> for Address {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self::of(&parts.extensions))
    }
}

impl Address {
    fn of(extensions: &Extensions) -> Self {
        let info = extensions.get::<ConnectInfo<SocketAddr>>();
        Self(info.map(|info| info.0.ip().to_string()).unwrap_or_default())
    }
}

/// What is open to everybody: whether the server lives, and signing in and out, which look for themselves.
fn is_open(method: &Method, path: &str) -> bool {
    match path {
        "/healthz" | "/readyz" => true,
        "/api/v1/sessions" => matches!(*method, Method::POST | Method::DELETE),
        _ => false,
    }
}

/// In front of every route, the unknown ones too.
pub(crate) async fn authenticate(State(server): State<Server>, mut request: Request, next: Next) -> Response {
    if is_open(request.method(), request.uri().path()) {
        return next.run(request).await;
    }
    let address = Address::of(request.extensions());
    match right(&server, request.method(), request.headers()).await {
        Ok((right, token)) => {
            request.extensions_mut().insert(Caller::new(right, token, address));
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

/// By whose right a call is made: that of the token that it brings, else that of its session.
async fn right(
    server: &Server,
    method: &Method,
    headers: &HeaderMap,
) -> Result<(Right, TokenRecord), ApiError> {
    let right = match headers.contains_key(header::AUTHORIZATION) {
        true => bearer(headers).map(|secret| Right::Token(token_hash(secret))),
        false => cookie::read(headers).map(|secret| Right::Session(token_hash(secret))),
    };
    let right = right.ok_or(ApiError::Unauthenticated)?;
    let token = right.token(server).await?.ok_or(ApiError::Unauthenticated)?;
    if matches!(right, Right::Session(_)) && !origin::is_read(method) {
        origin::check(headers, Silence::Refused)?;
    }
    Ok((right, token))
}

/// The secret of the one `Authorization: Bearer` header. Two such headers are none: proxies differ on which counts.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next()?.to_str().ok()?;
    if values.next().is_some() {
        return None;
    }
    let (scheme, secret) = value.split_once(' ')?;
    let secret = secret.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !secret.is_empty()).then_some(secret)
}

/// What the datastore keeps of a secret.
#[must_use]
pub fn token_hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// What a secret is for; its first letters say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SecretKind {
    Token,
    Session,
    Login,
}

/// A new secret.
pub(crate) fn new_secret(kind: SecretKind) -> String {
    let prefix = match kind {
        SecretKind::Token => "jy_",
        SecretKind::Session => "js_",
        SecretKind::Login => "jl_",
    };
    const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let letter = |_| char::from(LETTERS[rand::random_range(0..LETTERS.len())]);
    std::iter::once(prefix.to_owned()).chain((0..43).map(letter).map(String::from)).collect()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_one_bearer_header_with_a_secret_counts() {
        let cases: [(&[&str], Option<&str>); 9] = [
            (&[], None),
            (&["Bearer jy_x"], Some("jy_x")),
            (&["bearer jy_x"], Some("jy_x")),
            (&["BEARER  jy_x "], Some("jy_x")),
            (&["Bearer "], None),
            (&["Bearer"], None),
            (&["Basic jy_x"], None),
            (&["jy_x"], None),
            (&["Bearer jy_x", "Bearer jy_y"], None),
        ];
        for (values, expected) in cases {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, HeaderValue::from_static(value));
            }
            assert_eq!(bearer(&headers), expected, "{values:?}");
        }
    }

    #[test]
    fn secrets_are_long_plain_and_never_the_same() {
        let secrets: std::collections::HashSet<String> =
            (0..100).map(|_| new_secret(SecretKind::Token)).collect();
        assert_eq!(secrets.len(), 100);
        let plain = |secret: &String| {
            secret
                .strip_prefix("jy_")
                .is_some_and(|rest| rest.len() == 43 && rest.chars().all(|c| c.is_ascii_alphanumeric()))
        };
        assert!(secrets.iter().all(plain));
    }
}
