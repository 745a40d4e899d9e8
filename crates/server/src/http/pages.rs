//! The dashboard's pages: open to everybody, since they hold nothing but themselves.
//!
//! Stands in front of authentication and answers what is a page; everything else goes on. A path that is none of the
//! API's is the dashboard's own when a browser asks for a page: its router knows what it means.
//!
//! Invariants: **no script, style or font comes from elsewhere or stands in a page; no page is framed.** What is named
//! after its bytes is kept for ever, everything else is asked for anew.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use jobyard_dashboard::{File, file};

use crate::error::ApiError;
use crate::server::Server;
use crate::settings::BasePath;

/// `style-src` has no `unsafe-inline`: scripts may still set single properties of an element.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    font-src 'self'; connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'self'; \
    form-action 'none'; frame-ancestors 'none'";

const NOT_BUILT: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<title>Jobyard</title>
<h1>Jobyard serves, and this binary has no dashboard in it</h1>
<p>It was built without Node. With Node 20 or newer: <code>cargo xtask dashboard</code>, then build anew;
<code>cargo xtask demo</code> does both.</p>
<p>The command line and the API work all the same: <code>jobyard ps</code>, <code>/api/v1/openapi.json</code>.</p>
</html>
";

/// First parts of paths that never are the dashboard's.
const RESERVED: [&str; 4] = ["api", "healthz", "readyz", "metrics"];

/// What a path shows.
enum Page {
    File(&'static File),
    /// The page that all of the dashboard lives in, whatever the path.
    Index,
    /// Surely no file of this build.
    Gone,
}

/// In front of authentication: answers what is a page.
pub(crate) async fn serve(State(server): State<Server>, request: Request, next: Next) -> Response {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let page = if is_read { find(request.uri().path(), request.headers()) } else { None };
    let Some(page) = page else { return next.run(request).await };
    let base_path = &server.settings().base_path;
    match page {
        Page::Gone => ApiError::NotFound { what: "file of the dashboard" }.into_response(),
        Page::File(file) => show(file, request.method(), request.headers()),
        Page::Index => show_index(base_path, request.method(), request.headers()),
    }
}

fn find(path: &str, headers: &HeaderMap) -> Option<Page> {
    let path = path.strip_prefix('/')?;
    if let "" | "index.html" = path {
        return Some(Page::Index);
    }
    if let Some(file) = file(path) {
        return Some(Page::File(file));
    }
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    if first == "assets" {
        return Some(Page::Gone);
    }
    let is_reserved = RESERVED.iter().any(|reserved| first.eq_ignore_ascii_case(reserved));
    (!is_reserved && wants_html(headers)).then_some(Page::Index)
}

/// Browsers ask for pages so; programs that mistyped a path don't, and are told.
fn wants_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.split(',').any(|kind| kind.split(';').next().unwrap_or_default().trim() == "text/html")
}

fn show_index(base_path: &BasePath, method: &Method, headers: &HeaderMap) -> Response {
    let Some(index) = file("index.html") else {
        let page =
            Answer { etag: "\"not-built\"".to_owned(), bytes: Bytes::from_static(NOT_BUILT.as_bytes()) };
        return page.respond("text/html; charset=utf-8", None, false, (method, headers));
    };
    let (etag, bytes) = match base_path.as_prefix() {
        "" => (format!("\"{}\"", index.hash), Bytes::from_static(index.bytes)),
        prefix => (format!("\"{}{prefix}\"", index.hash), based(index, base_path)),
    };
    Answer { etag, bytes }.respond(index.content_type(), None, false, (method, headers))
}

/// The page, with the path that addresses in it are relative to.
fn based(index: &File, base_path: &BasePath) -> Bytes {
    let text = String::from_utf8_lossy(index.bytes);
    let base = format!("<base href=\"{}\"", base_path.as_base());
    Bytes::from(text.replacen("<base href=\"/\"", &base, 1).into_bytes())
}

fn show(file: &'static File, method: &Method, headers: &HeaderMap) -> Response {
    let accepts = |encoding| accepts(headers, encoding);
    let (bytes, encoding) = match (file.br, file.gz) {
        (Some(br), _) if accepts("br") => (br, Some("br")),
        (_, Some(gz)) if accepts("gzip") => (gz, Some("gzip")),
        _ => (file.bytes, None),
    };
    let etag = match encoding {
        Some(encoding) => format!("\"{}-{encoding}\"", file.hash),
        None => format!("\"{}\"", file.hash),
    };
    let page = Answer { etag, bytes: Bytes::from_static(bytes) };
    page.respond(file.content_type(), encoding, file.is_hashed(), (method, headers))
}

/// Whether `Accept-Encoding` names this one, other than with the weight 0.
fn accepts(headers: &HeaderMap, encoding: &str) -> bool {
    let listed = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    listed.flat_map(|line| line.split(',')).any(|one| {
        let (name, weight) = one.split_once(';').unwrap_or((one, ""));
        let weight = weight.split_once('=').map_or("1", |(_, weight)| weight.trim());
        let refused = weight.parse::<f32>().is_ok_and(|weight| weight == 0.0);
        name.trim().eq_ignore_ascii_case(encoding) && !refused
    })
}

struct Answer {
    etag: String,
    bytes: Bytes,
}

impl Answer {
    fn respond(
        self,
        kind: &'static str,
        encoding: Option<&'static str>,
        is_hashed: bool,
        (method, asked): (&Method, &HeaderMap),
    ) -> Response {
        let caching = if is_hashed { "public, max-age=31536000, immutable" } else { "no-cache" };
        let known = asked.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        let is_known = known.flat_map(|line| line.split(',')).any(|tag| {
            let tag = tag.trim();
            tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == self.etag
        });
        let length = self.bytes.len();
        let mut response = match (is_known, method) {
            (true, _) => StatusCode::NOT_MODIFIED.into_response(),
            (false, &Method::HEAD) => Body::empty().into_response(),
            (false, _) => Body::from(self.bytes).into_response(),
        };
        let headers = response.headers_mut();
        let fixed = [
            (header::CACHE_CONTROL, caching),
            (header::VARY, "accept-encoding"),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        ];
        headers.extend(fixed.map(|(name, value)| (name, HeaderValue::from_static(value))));
        // Hashes and base paths are plain ASCII.
        if let Ok(etag) = HeaderValue::from_str(&self.etag) {
            headers.insert(header::ETAG, etag);
        }
        if !is_known {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
            if let Some(encoding) = encoding {
                headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
            }
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn an_encoding_counts_unless_it_is_refused() {
        for (value, expected) in [
            ("br", true),
            ("gzip, deflate, BR", true),
            ("gzip;q=1.0, br;q=0.5", true),
            ("br; q=0", false),
            ("br;q=0.000", false),
            ("gzip", false),
            ("brx", false),
            ("", false),
        ] {
            assert_eq!(accepts(&headers(header::ACCEPT_ENCODING, value), "br"), expected, "{value}");
        }
    }

    #[test]
    fn only_who_asks_for_a_page_gets_one_on_a_path_that_is_not_the_api_s() {
        let browser = headers(header::ACCEPT, "text/html,application/xhtml+xml,*/*;q=0.8");
        let program = headers(header::ACCEPT, "*/*");
        let is_index = |path: &str, headers: &HeaderMap| matches!(find(path, headers), Some(Page::Index));
        for path in ["/jobs", "/jobs/01890a5d-ac96-774b-bcce-b302099a8057", "/login", "/apis", "/a/api/v1/me"]
        {
            assert!(is_index(path, &browser) && find(path, &program).is_none(), "{path}");
        }
        for path in
            ["/api", "/api/", "/api/v1/nothing", "//api/v1/jobs", "/API/v1", "/healthz/", "/METRICS", "x"]
        {
            assert!(find(path, &browser).is_none() && find(path, &program).is_none(), "{path}");
        }
        assert!(is_index("/", &program) && is_index("/index.html", &program));
        assert!(matches!(find("/assets/old-0000.js", &browser), Some(Page::Gone)));
    }
}
