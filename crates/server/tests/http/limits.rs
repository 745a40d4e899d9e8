//! Bodies and doors have bounds.

use std::time::Duration;

use jobyard_server::ServerSettings;
use jobyard_server::settings::{DoorLimit, DoorSettings};
use reqwest::{Method, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Reply, TestServer, fine, in_time, until};

#[tokio::test]
async fn a_body_over_the_limit_is_refused_announced_or_not() {
    let settings = ServerSettings { body_bytes: 1_000, batch_body_bytes: 2_000, ..ServerSettings::default() };
    let server = TestServer::start_with(settings).await;
    let caller = server.submitter().await;
    for (path, bytes) in [("/api/v1/jobs", 1_001), ("/api/v1/jobs/batch", 2_001)] {
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
