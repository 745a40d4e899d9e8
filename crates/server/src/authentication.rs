//! Who makes a call, and what they may.
//!
//! Owns the check in front of every route and the text of secrets. A secret is `jy_` and 43 letters and digits (256
//! bits of chance); the datastore has only its SHA-256, so looking it up by hash is safe and quick.
//!
//! Invariant: **a request reaches a handler only with a [`Caller`] whose token is valid now**; the pages outside are
//! named one by one in [`is_open`], by exact path.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use jobyard_api::json::ProblemError;
use jobyard_model::{Principal, Role};
use jobyard_store::Actor;
use sha2::{Digest, Sha256};

use crate::error::ApiError;
use crate::server::Server;

/// Who makes a call.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    principal: Principal,
    actor: Actor,
}

impl Caller {
    pub(crate) fn principal(&self) -> &Principal {
        &self.principal
    }

    pub(crate) fn actor(&self) -> &Actor {
        &self.actor
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

/// What is open to everybody: nothing but whether the server lives.
fn is_open(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz")
}

/// In front of every route, the unknown ones too.
pub(crate) async fn authenticate(State(server): State<Server>, mut request: Request, next: Next) -> Response {
    if is_open(request.uri().path()) {
        return next.run(request).await;
    }
    let address = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip().to_string());
    match identify(&server, request.headers(), address.unwrap_or_default()).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

async fn identify(server: &Server, headers: &HeaderMap, address: String) -> Result<Caller, ApiError> {
    let secret = bearer(headers).ok_or(ApiError::Unauthenticated)?;
    let token = server.store().token_by_hash(token_hash(secret)).await?.ok_or(ApiError::Unauthenticated)?;
    let actor = Actor { name: token.name.clone(), address };
    Ok(Caller { principal: Principal { name: token.name, role: token.role, owners: token.owners }, actor })
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

/// A new secret.
pub(crate) fn new_secret() -> String {
    const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let letter = |_| char::from(LETTERS[rand::random_range(0..LETTERS.len())]);
    std::iter::once("jy_".to_owned()).chain((0..43).map(letter).map(String::from)).collect()
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
        let secrets: std::collections::HashSet<String> = (0..100).map(|_| new_secret()).collect();
        assert_eq!(secrets.len(), 100);
        let plain = |secret: &String| {
            secret
                .strip_prefix("jy_")
                .is_some_and(|rest| rest.len() == 43 && rest.chars().all(|c| c.is_ascii_alphanumeric()))
        };
        assert!(secrets.iter().all(plain));
    }
}
