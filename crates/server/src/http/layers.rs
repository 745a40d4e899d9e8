//! What every call passes: measuring, and headers that keep browsers from guessing.

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use tokio::time::Instant;

use crate::code::Code;
use crate::metrics::{Call, Route};
use crate::server::Server;

/// Counts the call under its route's pattern; what matches none is one route, so that a scan makes no new series.
pub(crate) async fn measure(State(server): State<Server>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    let method = match request.method().as_str() {
        known @ ("GET" | "HEAD" | "POST" | "PUT" | "DELETE" | "OPTIONS" | "PATCH") => known.to_owned(),
        _ => "other".to_owned(),
    };
    let begun = Instant::now();
    let response = next.run(request).await;
    if response.extensions().get::<Code>() == Some(&Code::DatastoreFull) {
        server.health().note_full();
    }
    let metrics = server.metrics();
    let key = Route { method: method.clone(), route: route.clone() };
    metrics.call_seconds.get_or_create(&key).observe(begun.elapsed().as_secs_f64());
    metrics.calls.get_or_create(&Call { method, route, status: response.status().as_u16() }).inc();
    response
}

/// Nothing we answer is to be guessed at, framed, cached or run as a page.
pub(crate) async fn harden(request: Request, next: Next) -> Response {
    const HEADERS: [(HeaderName, HeaderValue); 5] = [
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
        ),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    let mut response = next.run(request).await;
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(value);
    }
    response
}
