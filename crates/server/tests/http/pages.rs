//! The dashboard's pages, as far as this build has them.

use jobyard_dashboard::{file, files};
use jobyard_server::ServerSettings;
use reqwest::header::HeaderMap;
use reqwest::{Method, Response, StatusCode};

use crate::support::{Reply, TestServer};

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

async fn get(server: &TestServer, path: &str, headers: &[(&str, &str)]) -> Response {
    let call = server.nobody().call(Method::GET, path);
    let call = headers.iter().fold(call, |call, (name, value)| call.header(*name, *value));
    call.send().await.expect("an answer")
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers.get(name).map_or("", |value| value.to_str().expect("ASCII"))
}

#[tokio::test]
async fn the_page_is_open_and_locked_down() {
    let server = TestServer::start().await;
    for path in ["/", "/index.html", "/jobs", "/jobs/1?status=waiting", "/nodes/%00", "/login"] {
        let response = get(&server, path, &[("accept", BROWSER)]).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        let headers = response.headers().clone();
        assert_eq!(text(&headers, "content-type"), "text/html; charset=utf-8");
        assert_eq!(text(&headers, "x-content-type-options"), "nosniff");
        assert_eq!(text(&headers, "referrer-policy"), "no-referrer");
        assert_eq!(text(&headers, "cache-control"), "no-cache");
        let policy = text(&headers, "content-security-policy");
        for part in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"]
        {
            assert!(policy.split("; ").any(|found| found == part), "{policy}");
        }
        assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
        let body = response.text().await.expect("a body");
        match file("index.html") {
            Some(index) => assert_eq!(body.as_bytes(), index.bytes),
            None => assert!(body.contains("cargo xtask dashboard"), "{body}"),
        }
        let again =
            get(&server, path, &[("accept", BROWSER), ("if-none-match", text(&headers, "etag"))]).await;
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{path}");
        assert_eq!(text(again.headers(), "etag"), text(&headers, "etag"));
    }
    server.stop().await;
}

#[tokio::test]
async fn programs_that_mistype_a_path_get_no_page() {
    let server = TestServer::start().await;
    for (path, accept) in
        [("/jobs", "*/*"), ("/healthz/", BROWSER), ("/api/v1/jobz", BROWSER), ("/API", BROWSER)]
    {
        let response = get(&server, path, &[("accept", accept)]).await;
        Reply::of(response).await.expect(StatusCode::UNAUTHORIZED, "unauthenticated");
    }
    let response = get(&server, "/assets/app-0000.js", &[("accept", "*/*")]).await;
    Reply::of(response).await.expect(StatusCode::NOT_FOUND, "not_found");
    let posted = server.nobody().call(Method::POST, "/jobs").header("accept", BROWSER).send().await;
    assert_eq!(posted.expect("an answer").status(), StatusCode::UNAUTHORIZED);
    server.stop().await;
}

#[tokio::test]
async fn files_come_with_type_encoding_and_the_right_to_be_kept() {
    let server = TestServer::start().await;
    for one in files().iter().filter(|one| one.path != "index.html") {
        let path = format!("/{}", one.path);
        for (accepted, encoding, bytes) in [
            ("gzip, deflate, br", "br", one.br),
            ("gzip", "gzip", one.gz),
            ("br;q=0, identity", "", Some(one.bytes)),
        ] {
            let response = get(&server, &path, &[("accept-encoding", accepted)]).await;
            let headers = response.headers().clone();
            assert_eq!(text(&headers, "content-type"), one.content_type(), "{path}");
            assert_eq!(text(&headers, "vary"), "accept-encoding");
            let kept = text(&headers, "cache-control");
            assert_eq!(kept.contains("immutable"), one.path.starts_with("assets/"), "{path}: {kept}");
            let (encoding, bytes) = bytes.map_or(("", one.bytes), |bytes| (encoding, bytes));
            assert_eq!(text(&headers, "content-encoding"), encoding, "{path}");
            assert_eq!(response.bytes().await.expect("a body"), bytes, "{path}");
        }
        let head = server.nobody().call(Method::HEAD, &path).send().await.expect("an answer");
        assert_eq!(text(head.headers(), "content-length"), one.bytes.len().to_string());
    }
    server.stop().await;
}

#[tokio::test]
async fn below_a_base_path_the_page_says_so() {
    let settings =
        ServerSettings { base_path: "/yard".parse().expect("a path"), ..ServerSettings::default() };
    let server = TestServer::start_with(settings).await;
    let mut tags = Vec::new();
    for path in ["/yard", "/yard/", "/yard/jobs", "/"] {
        let response = get(&server, path, &[("accept", BROWSER)]).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        tags.push(text(response.headers(), "etag").to_owned());
        let body = response.text().await.expect("a body");
        assert!(file("index.html").is_none() || body.contains("<base href=\"/yard/\""), "{body}");
    }
    assert!(tags.iter().all(|tag| *tag == tags[0]));
    for one in files() {
        let response = get(&server, &format!("/yard/{}", one.path), &[]).await;
        assert_eq!(response.status(), StatusCode::OK, "{}", one.path);
    }
    server.stop().await;
}
