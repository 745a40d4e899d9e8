//! Bodies and doors have bounds.

use std::time::Duration;

use jobyard_server::settings::{DoorLimit, DoorSettings};
use jobyard_server::{ArtifactStore, ConnectionSettings, ServerSettings};
use jobyard_store::{Actor, Store};
use reqwest::{Method, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Reply, TestServer, fine, in_time, until};

#[tokio::test]
async fn a_body_over_the_limit_is_refused_announced_or_not() {
    let settings = ServerSettings { body_bytes: 1_000, batch_body_bytes: 2_000, ..ServerSettings::default() };
    let server = TestServer::start_with(settings).await;
    let caller = server.submitter().await;
    for (path, bytes) in
        [("/api/v1/jobs", 1_001), ("/api/v1/artifacts/batch", 1_001), ("/api/v1/jobs/batch", 2_001)]
    {
        let body = vec![b' '; bytes];
        let reply = caller.post_bytes(path, body.clone()).await;
        reply.expect(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large");
        let pieces = futures_util::stream::iter(
            body.chunks(100).map(<[u8]>::to_vec).map(Ok::<_, std::io::Error>).collect::<Vec<_>>(),
        );
        let reply = caller.post_bytes(path, reqwest::Body::wrap_stream(pieces)).await;
        reply.expect(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large");
    }
    assert_eq!(server.job_count().await, 0);
    server.stop().await;
}

#[tokio::test]
async fn a_full_door_answers_at_once_and_opens_again() {
    let narrow = DoorLimit { at_once: 1, queued: 0 };
    let doors = DoorSettings { submit: narrow, ..DoorSettings::default() };
    let server = TestServer::start_with(ServerSettings { doors, ..ServerSettings::default() }).await;
    let caller = server.submitter().await;
    // Somebody is inside and takes his time to send the body.
    let request = caller.call(Method::POST, "/api/v1/jobs").build().expect("a request");
    let token = request.headers()["authorization"].to_str().expect("text").to_owned();
    let mut slow = TcpStream::connect(server.address).await.expect("a connection");
    let head = format!(
        "POST /api/v1/jobs HTTP/1.1\r\nhost: x\r\nauthorization: {token}\r\ncontent-length: 20\r\n\r\n"
    );
    slow.write_all(head.as_bytes()).await.expect("sent");
    until("he is inside", async || {
        let metrics = caller.get("/metrics").await.body;
        metrics.as_str().is_some_and(|text| text.contains("jobyard_calls_in_hand{door=\"submissions\"} 1"))
    })
    .await;
    let call = caller.call(Method::POST, "/api/v1/jobs").body(fine().to_string());
    let response = call.send().await.expect("an answer");
    assert_eq!(response.headers()["retry-after"], "1");
    Reply::of(response).await.expect(StatusCode::TOO_MANY_REQUESTS, "too_busy");
    // Reads go through a door of their own.
    assert_eq!(caller.get("/api/v1/jobs").await.status, StatusCode::OK);
    slow.write_all(br#"{"command":["true"]}"#).await.expect("sent");
    let mut answer = [0; 12];
    slow.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer[9..], b"201");
    caller.submit(fine()).await;
    server.stop().await;
}

#[tokio::test]
async fn a_body_that_never_comes_does_not_hold_its_place_for_ever() {
    let settings = ServerSettings { body_within: Duration::from_millis(50), ..ServerSettings::default() };
    let server = TestServer::start_with(settings).await;
    let caller = server.submitter().await;
    let request = caller.call(Method::POST, "/api/v1/jobs").build().expect("a request");
    let token = request.headers()["authorization"].to_str().expect("text").to_owned();
    let mut slow = TcpStream::connect(server.address).await.expect("a connection");
    let head = format!(
        "POST /api/v1/jobs HTTP/1.1\r\nhost: x\r\nauthorization: {token}\r\ncontent-length: 20\r\n\r\n"
    );
    slow.write_all(head.as_bytes()).await.expect("sent");
    let mut answer = [0; 12];
    in_time("the refusal", slow.read_exact(&mut answer)).await.expect("an answer");
    assert_eq!(&answer[9..], b"408");
    server.stop().await;
}

#[tokio::test]
async fn an_upload_that_falls_silent_is_told_so() {
    let settings = ServerSettings { body_within: Duration::from_millis(50), ..ServerSettings::default() };
    let server = TestServer::start_with(settings).await;
    let caller = server.submitter().await;
    let path = format!("/api/v1/artifacts/{}", "0".repeat(64));
    let silent = futures_util::stream::pending::<Result<Vec<u8>, std::io::Error>>();
    let begun = futures_util::StreamExt::chain(
        futures_util::stream::iter([Ok::<_, std::io::Error>(b"half".to_vec())]),
        silent,
    );
    let call = caller.call(Method::PUT, &path).body(reqwest::Body::wrap_stream(begun));
    let response = in_time("the refusal", call.send()).await.expect("an answer");
    Reply::of(response).await.expect(StatusCode::REQUEST_TIMEOUT, "body_too_slow");
    server.stop().await;
}

/// All that comes until the other side closes.
async fn rest(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    in_time("the end", stream.read_to_string(&mut text)).await.expect("text");
    text
}

#[tokio::test]
async fn a_head_that_never_ends_is_refused_and_an_idle_connection_closed() {
    let connections =
        ConnectionSettings { head_within: Duration::from_millis(100), ..ConnectionSettings::default() };
    let server = TestServer::start_with_connections(connections).await;
    let mut idle = TcpStream::connect(server.address).await.expect("a connection");
    let mut slow = TcpStream::connect(server.address).await.expect("a connection");
    slow.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n").await.expect("sent");
    let answer = rest(&mut slow).await;
    assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{answer}");
    let body: serde_json::Value =
        serde_json::from_str(answer.split_once("\r\n\r\n").expect("a body").1).expect("JSON");
    assert_eq!((&body["code"], &body["status"]), (&"head_too_slow".into(), &408.into()));
    assert_eq!(rest(&mut idle).await, "", "whoever asked nothing is told nothing");
    // After an answer the time counts anew.
    let mut second = TcpStream::connect(server.address).await.expect("a connection");
    second.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\nGET /he").await.expect("sent");
    let answers = rest(&mut second).await;
    assert!(answers.starts_with("HTTP/1.1 200 OK") && answers.contains("HTTP/1.1 408"), "{answers}");
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_reads_nothing_of_its_answer_is_let_go() {
    let connections = ConnectionSettings {
        at_once: 1,
        stall_within: Duration::from_millis(200),
        ..ConnectionSettings::default()
    };
    let server = TestServer::start_with_connections(connections).await;
    // More than the sockets hold between them.
    let bytes = bytes::Bytes::from(vec![7; 32 << 20]);
    let hash = jobyard_model::ArtifactHash(
        sha2::Digest::finalize(sha2::Digest::chain_update(sha2::Sha256::default(), &bytes)).into(),
    );
    let artifact = futures_util::StreamExt::boxed(futures_util::stream::iter([Ok(bytes.clone())]));
    let size = server.artifacts().put(hash, artifact, u64::MAX).await.expect("stored");
    server.store.add_artifact(hash, size, &Actor::role("test")).await.expect("noted");
    let caller = server.submitter().await;
    let path = format!("/api/v1/artifacts/{hash}");
    let request = caller.call(Method::GET, &path).build().expect("a request");
    let token = request.headers()["authorization"].to_str().expect("text").to_owned();
    let ask = async || {
        let mut stream = TcpStream::connect(server.address).await.expect("a connection");
        let head =
            format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: {token}\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.expect("sent");
        let mut status = [0; 12];
        in_time("a head", stream.read_exact(&mut status)).await.expect("an answer");
        (String::from_utf8_lossy(&status[9..]).into_owned(), stream)
    };
    let (status, mut stalled) = ask().await;
    assert_eq!(status, "200");
    until("its place is free", async || ask().await.0 == "200").await;
    let mut got = Vec::new();
    let end = in_time("its end", stalled.read_to_end(&mut got)).await;
    assert!(end.is_err() && got.len() < bytes.len(), "{end:?} after {} bytes", got.len());
    server.stop().await;
}

#[tokio::test]
async fn connections_above_the_limit_are_told_so_and_come_in_later() {
    let connections = ConnectionSettings { at_once: 1, ..ConnectionSettings::default() };
    let server = TestServer::start_with_connections(connections).await;
    let call = async |path: &str| {
        let mut stream = TcpStream::connect(server.address).await.expect("a connection");
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        rest(&mut stream).await
    };
    let mut holder = TcpStream::connect(server.address).await.expect("a connection");
    holder.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("sent");
    let mut head = [0; 12];
    in_time("its answer", holder.read_exact(&mut head)).await.expect("an answer");
    let refused = call("/readyz").await;
    assert!(refused.starts_with("HTTP/1.1 429 "), "{refused}");
    assert!(refused.contains("retry-after: 1") && refused.contains("too_busy"), "{refused}");
    assert!(call("/healthz").await.starts_with("HTTP/1.1 200 "), "it still says that it lives");
    drop(holder);
    until("a place is free", async || call("/readyz").await.starts_with("HTTP/1.1 200 ")).await;
    server.stop().await;
}

#[tokio::test]
async fn a_datastore_that_is_closed_makes_the_server_not_ready_but_alive() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    jobyard_store::Store::close(&*server.store).await;
    assert_eq!(server.nobody().get("/healthz").await.status, StatusCode::OK);
    let ready = server.nobody().get("/readyz").await;
    ready.expect(StatusCode::SERVICE_UNAVAILABLE, "datastore_unavailable");
    let reply = caller.post("/api/v1/jobs", &fine()).await;
    reply.expect(StatusCode::SERVICE_UNAVAILABLE, "datastore_unavailable");
    server.stop().await;
}

#[tokio::test]
async fn a_full_datastore_acknowledges_nothing_and_makes_the_server_not_ready() {
    let server = TestServer::start_with_pages(ServerSettings::default(), Some(200)).await;
    let caller = server.submitter().await;
    let job = serde_json::json!({"command": ["true", "x".repeat(10_000)]});
    let mut accepted = 0;
    let refused = loop {
        let reply = caller.post("/api/v1/jobs", &job).await;
        if !reply.status.is_success() {
            break reply;
        }
        accepted += 1;
        assert!(accepted < 500, "the datastore never gets full");
    };
    refused.expect(StatusCode::SERVICE_UNAVAILABLE, "datastore_full");
    assert_eq!(server.job_count().await, accepted);
    server.nobody().get("/readyz").await.expect(StatusCode::SERVICE_UNAVAILABLE, "not_ready");
    assert_eq!(caller.get("/api/v1/jobs").await.status, StatusCode::OK, "reads go on");
    server.stop().await;
}
