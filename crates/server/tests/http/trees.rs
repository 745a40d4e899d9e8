//! Trees: known with all their files or not at all.

use reqwest::{Method, StatusCode};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::support::{Caller, Reply, TestServer};

fn name_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn entry(path: &str, content: &[u8]) -> String {
    format!(r#""{path}":{{"sha256":"{}","size":{},"mode":"0644"}}"#, name_of(content), content.len())
}

fn manifest(entries: &[String]) -> String {
    format!(r#"{{"tree":1,"files":{{{}}}}}"#, entries.join(","))
}

async fn put(caller: &Caller<'_>, noun: &str, name: &str, bytes: &[u8]) -> Reply {
    let call = caller.call(Method::PUT, &format!("/api/v1/{noun}/{name}")).body(bytes.to_vec());
    Reply::of(call.send().await.expect("an answer")).await
}

async fn push(caller: &Caller<'_>, manifest: &str) -> Reply {
    put(caller, "trees", &name_of(manifest.as_bytes()), manifest.as_bytes()).await
}

async fn is_known(caller: &Caller<'_>, manifest: &str) -> bool {
    let path = format!("/api/v1/trees/{}", name_of(manifest.as_bytes()));
    caller.call(Method::HEAD, &path).send().await.expect("an answer").status() == StatusCode::OK
}

#[tokio::test]
async fn a_tree_is_kept_once_its_files_are_there() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let manifest = manifest(&[entry("a/x", b"xx"), entry("b", b"bbb"), entry("c", b"xx")]);
    let reply = push(&caller, &manifest).await.expect(StatusCode::CONFLICT, "tree_incomplete");
    assert!(reply.names("/files/a~1x", "missing") && reply.names("/files/b", "missing"), "{}", reply.body);
    assert!(!is_known(&caller, &manifest).await);

    let asked = json!({"sha256": [name_of(b"xx"), name_of(b"bbb"), name_of(b"xx")]});
    let answer = caller.post("/api/v1/artifacts/missing", &asked).await.ok();
    assert_eq!(answer, json!({"missing": [name_of(b"xx"), name_of(b"bbb")]}));
    put(&caller, "artifacts", &name_of(b"xx"), b"xx").await;
    let answer = caller.post("/api/v1/artifacts/missing", &asked).await.ok();
    assert_eq!(answer, json!({"missing": [name_of(b"bbb")]}));
    put(&caller, "artifacts", &name_of(b"bbb"), b"bbb").await;

    let name = name_of(manifest.as_bytes());
    let kept = push(&caller, &manifest).await;
    assert_eq!(
        (kept.status, &kept.body),
        (StatusCode::CREATED, &json!({"sha256": name, "files": 3, "size_bytes": 7}))
    );
    assert_eq!(push(&caller, &manifest).await.status, StatusCode::OK);
    assert!(is_known(&caller, &manifest).await);
    let read = caller.call(Method::GET, &format!("/api/v1/trees/{name}")).send().await.expect("an answer");
    assert_eq!(read.headers()["content-type"], "application/json");
    assert_eq!(read.text().await.expect("a body"), manifest);
    server.stop().await;
}

#[tokio::test]
async fn what_is_no_tree_is_refused_and_leaves_nothing() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    put(&caller, "artifacts", &name_of(b"x"), b"x").await;
    let lies = manifest(&[entry("a", b"x").replace("\"size\":1", "\"size\":2")]);
    let cases = [
        (manifest(&[entry("../a", b"x")]), ".."),
        (manifest(&[entry("/a", b"x")]), "absolute"),
        (manifest(&[entry("a", b"x"), entry("a/b", b"x")]), "a file and a folder"),
        (manifest(&[entry("b", b"x"), entry("a", b"x")]), "canonical"),
        ("#!/bin/sh\n".to_owned(), "no manifest"),
        (lies, "has 2 bytes in the manifest, its artifact 1"),
    ];
    for (text, why) in cases {
        let reply = push(&caller, &text).await.expect(StatusCode::BAD_REQUEST, "invalid_request");
        assert!(reply.body["detail"].as_str().is_some_and(|detail| detail.contains(why)), "{}", reply.body);
        assert!(!is_known(&caller, &text).await, "{text}");
    }
    let other = manifest(&[entry("a", b"x")]);
    let misnamed = put(&caller, "trees", &name_of(b"other"), other.as_bytes()).await;
    misnamed.expect(StatusCode::BAD_REQUEST, "hash_mismatch");
    let large = vec![b' '; (32 << 20) + 1];
    let reply = put(&caller, "trees", &name_of(b"large"), &large).await;
    reply.expect(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large");
    server.stop().await;
}

#[tokio::test]
async fn questions_for_what_is_missing_are_bounded_and_checked() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let path = "/api/v1/artifacts/missing";
    let many = vec![name_of(b"x"); 1_001];
    let reply = caller.post(path, &json!({"sha256": many})).await;
    assert!(reply.names("/sha256", "too_many"), "{}", reply.body);
    let reply = caller.post(path, &json!({"sha256": ["AB"], "more": 1})).await;
    assert!(reply.names("/sha256/0", "invalid") && reply.names("/more", "unknown_field"), "{}", reply.body);
    let reply = caller.post(path, &json!({})).await;
    assert!(reply.names("/sha256", "missing"), "{}", reply.body);
    let viewer = server.caller(jobyard_model::Role::Viewer, &[]).await;
    let reply = viewer.post(path, &json!({"sha256": []})).await;
    reply.expect(StatusCode::FORBIDDEN, "role_too_weak");
    server.stop().await;
}
