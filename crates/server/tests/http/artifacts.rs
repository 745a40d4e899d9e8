//! Artifacts: checked against their name, all or nothing.

use std::path::{Path, PathBuf};

use jobyard_server::ServerSettings;
use reqwest::{Method, Response, StatusCode};
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::{Caller, Reply, TestServer, until};

fn name_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn put(caller: &Caller<'_>, name: &str, bytes: &[u8]) -> Reply {
    let call = caller.call(Method::PUT, &format!("/api/v1/artifacts/{name}")).body(bytes.to_vec());
    Reply::of(call.send().await.expect("an answer")).await
}

async fn fetch(caller: &Caller<'_>, name: &str, range: Option<&str>) -> Response {
    let mut call = caller.call(Method::GET, &format!("/api/v1/artifacts/{name}"));
    if let Some(range) = range {
        call = call.header("range", range);
    }
    call.send().await.expect("an answer")
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[tokio::test]
async fn an_artifact_goes_up_once_and_comes_down_whole_or_in_part() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let bytes: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    let name = name_of(&bytes);
    let first = put(&caller, &name, &bytes).await;
    assert_eq!(
        (first.status, &first.body),
        (StatusCode::CREATED, &json!({"sha256": name, "size_bytes": 800_000}))
    );
    assert_eq!(put(&caller, &name, &bytes).await.status, StatusCode::OK);

    let head =
        caller.call(Method::HEAD, &format!("/api/v1/artifacts/{name}")).send().await.expect("an answer");
    assert_eq!(
        (head.status(), head.headers()["content-length"].to_str().ok()),
        (StatusCode::OK, Some("800000"))
    );
    assert_eq!(fetch(&caller, &name, None).await.bytes().await.expect("a body"), bytes);
    let part = fetch(&caller, &name, Some("bytes=4-11")).await;
    assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(part.headers()["content-range"], "bytes 4-11/800000");
    assert_eq!(part.bytes().await.expect("a body"), &bytes[4..12]);
    let outside = Reply::of(fetch(&caller, &name, Some("bytes=800000-")).await).await;
    outside.expect(StatusCode::RANGE_NOT_SATISFIABLE, "range_not_satisfiable");
    server.stop().await;
}

#[tokio::test]
async fn bytes_that_do_not_match_their_name_leave_nothing() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let name = name_of(b"the right bytes");
    let reply = put(&caller, &name, b"other bytes").await.expect(StatusCode::BAD_REQUEST, "hash_mismatch");
    assert!(reply.body["detail"].as_str().is_some_and(|detail| detail.contains(&name)), "{}", reply.body);
    put(&caller, &"AB".repeat(32), b"x").await.expect(StatusCode::BAD_REQUEST, "invalid_request");
    Reply::of(fetch(&caller, &name, None).await).await.expect(StatusCode::NOT_FOUND, "not_found");
    assert_eq!(files(&server.directory.path().join("artifacts")), Vec::<PathBuf>::new());
    server.stop().await;
}

#[tokio::test]
async fn an_upload_that_breaks_off_leaves_nothing() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let name = name_of(&[b'x'; 1_000_000]);
    let request = caller.call(Method::PUT, "/").build().expect("a request");
    let token = request.headers()["authorization"].to_str().expect("text").to_owned();
    let mut connection = TcpStream::connect(server.address).await.expect("a connection");
    let head = format!(
        "PUT /api/v1/artifacts/{name} HTTP/1.1\r\nhost: x\r\nauthorization: {token}\r\ncontent-length: 1000000\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).await.expect("sent");
    connection.write_all(&[b'x'; 500_000]).await.expect("sent");
    let store = server.directory.path().join("artifacts");
    until("the upload is under way", async || files(&store).len() == 1).await;
    drop(connection);
    until("what was left is removed", async || files(&store).is_empty()).await;
    Reply::of(fetch(&caller, &name, None).await).await.expect(StatusCode::NOT_FOUND, "not_found");
    server.stop().await;
}

#[tokio::test]
async fn an_artifact_over_the_limit_is_refused_announced_or_not() {
    let settings = ServerSettings { artifact_bytes: 1_000, ..ServerSettings::default() };
    let server = TestServer::start_with(settings).await;
    let caller = server.submitter().await;
    let bytes = vec![b'x'; 1_001];
    put(&caller, &name_of(&bytes), &bytes).await.expect(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large");
    let pieces: Vec<_> = bytes.chunks(100).map(<[u8]>::to_vec).map(Ok::<_, std::io::Error>).collect();
    let body = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
    let call = caller.call(Method::PUT, &format!("/api/v1/artifacts/{}", name_of(&bytes))).body(body);
    let reply = Reply::of(call.send().await.expect("an answer")).await;
    reply.expect(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large");
    assert_eq!(files(&server.directory.path().join("artifacts")), Vec::<PathBuf>::new());
    server.stop().await;
}

#[tokio::test]
async fn a_job_waits_for_its_artifact() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let name = name_of(b"#!/bin/sh\n");
    let id = caller.submit(json!({"binary_url": format!("sha256:{name}")})).await;
    let path = format!("/api/v1/jobs/{id}");
    let job = caller.get(&path).await.ok();
    assert_eq!((&job["status"], &job["reason"]), (&json!("ready"), &json!("artifact_missing")));
    assert_eq!(put(&caller, &name, b"#!/bin/sh\n").await.status, StatusCode::CREATED);
    assert_eq!(caller.get(&path).await.ok()["status"], "waiting");
    let second = caller.submit(json!({"binary_url": format!("sha256:{name}")})).await;
    assert_eq!(caller.get(&format!("/api/v1/jobs/{second}")).await.ok()["status"], "waiting");
    server.stop().await;
}

/// A call with many: its first line, then its bytes.
async fn post_batch(caller: &Caller<'_>, line: &str, bytes: &[u8]) -> Reply {
    caller.post_bytes("/api/v1/artifacts/batch", [line.as_bytes(), b"\n", bytes].concat()).await
}

#[tokio::test]
async fn many_artifacts_go_up_in_one_call() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let texts: [&[u8]; 4] = [b"one", b"", b"line\nline\0", b"one"];
    let named = texts.map(|text| json!({"sha256": name_of(text), "size": text.len()}));
    let line = json!({"files": named}).to_string();
    for _ in 0..2 {
        let reply = post_batch(&caller, &line, &texts.concat()).await;
        assert_eq!((reply.status, reply.body), (StatusCode::OK, json!({"files": 4, "size_bytes": 16})));
    }
    for text in texts {
        let found = fetch(&caller, &name_of(text), None).await.bytes().await.expect("a body");
        assert_eq!(found, text);
    }
    let viewer = server.caller(jobyard_model::Role::Viewer, &["team"]).await;
    post_batch(&viewer, &line, &texts.concat()).await.expect(StatusCode::FORBIDDEN, "role_too_weak");
    server.stop().await;
}

#[tokio::test]
async fn of_a_call_with_a_fault_no_artifact_is_stored() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let (one, two) = (name_of(b"one"), name_of(b"two"));
    let files = |files: serde_json::Value| json!({"files": files}).to_string();
    let good = json!({"sha256": one, "size": 3});
    let many = vec![json!({"sha256": name_of(b""), "size": 0}); 1_001];
    for (line, bytes, pointer, code) in [
        (files(json!([good, {"sha256": one, "size": 3}])), "onetwo", "/files/1/sha256", "invalid"),
        (files(json!([good])), "on", "/files", "invalid"),
        (files(json!([good])), "onet", "/files", "invalid"),
        (files(json!([good, {"sha256": two, "size": i64::MAX}])), "onetwo", "/files", "invalid"),
        (files(json!([good, {"sha256": two, "size": -3}])), "onetwo", "/files/1/size", "out_of_range"),
        (files(json!([good, {"sha256": two}])), "onetwo", "/files/1/size", "missing"),
        (files(json!([good, {"size": 3}])), "onetwo", "/files/1/sha256", "missing"),
        (files(json!([good, {"sha256": "two", "size": 3}])), "onetwo", "/files/1/sha256", "invalid"),
        (
            files(json!([good, {"sha256": two, "size": 3, "mode": 7}])),
            "onetwo",
            "/files/1/mode",
            "unknown_field",
        ),
        (files(json!([good, "two"])), "onetwo", "/files/1", "wrong_type"),
        (files(json!("one")), "one", "/files", "wrong_type"),
        (files(json!(many)), "", "/files", "too_many"),
        ("{}".to_owned(), "", "/files", "missing"),
        ("one".to_owned(), "", "", "syntax"),
    ] {
        let reply = post_batch(&caller, &line, bytes.as_bytes()).await;
        let reply = reply.expect(StatusCode::BAD_REQUEST, "invalid_request");
        assert!(reply.names(pointer, code), "{line}: {}", reply.body);
    }
    let reply = caller.post_bytes("/api/v1/artifacts/batch", files(json!([good]))).await;
    let reply = reply.expect(StatusCode::BAD_REQUEST, "invalid_request");
    assert!(
        reply.body["detail"].as_str().is_some_and(|detail| detail.contains("line feed")),
        "{}",
        reply.body
    );
    assert_eq!(fetch(&caller, &one, None).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(files_in(&server), Vec::<PathBuf>::new());
    server.stop().await;
}

fn files_in(server: &TestServer) -> Vec<PathBuf> {
    files(&server.directory.path().join("artifacts"))
}
