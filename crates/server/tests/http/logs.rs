//! Logs over HTTP.

use std::sync::Arc;

use bytes::Bytes;
use jobyard_model::Clock;
use jobyard_server::{ArtifactStore, LogDay, LogRetention, drop_old_logs};
use jobyard_store::LogStream::{Stderr, Stdout};
use reqwest::{Method, StatusCode};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{Caller, Hand, Reply, TestServer, fine, in_time, until};

async fn read(caller: &Caller<'_>, path: &str) -> String {
    let response = caller.call(Method::GET, path).send().await.expect("an answer");
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    assert_eq!(response.headers()["content-type"], "application/octet-stream");
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    String::from_utf8(response.bytes().await.expect("a body").to_vec()).expect("text")
}

#[tokio::test]
async fn a_log_is_read_whole_by_stream_by_range_and_by_its_last_lines() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let hand = Hand::register(&server).await;
    let held = hand.run(caller.submit(fine()).await).await;
    hand.log(held, Stdout, 0, "one\ntwo\n").await;
    hand.log(held, Stderr, 0, "oops\n").await;
    hand.log(held, Stdout, 8, "three\nfo").await;
    hand.log(held, Stdout, 16, "ur").await;
    hand.exit(held, 0).await;
    for (query, expected) in [
        ("", "one\ntwo\noops\nthree\nfour"),
        ("stream=stdout", "one\ntwo\nthree\nfour"),
        ("stream=stderr", "oops\n"),
        ("stream=stdout&from=4", "two\nthree\nfour"),
        ("stream=stdout&from=4&to=7", "two"),
        ("stream=stdout&from=6&to=15", "o\nthree\nf"),
        ("stream=stdout&from=18", ""),
        ("stream=stdout&from=1000", ""),
        ("stream=stdout&from=3&to=3", ""),
        ("tail=0", ""),
        ("tail=1", "four"),
        ("tail=2", "three\nfour"),
        ("tail=3", "oops\nthree\nfour"),
        ("tail=100", "one\ntwo\noops\nthree\nfour"),
        ("stream=stderr&tail=1", "oops\n"),
        ("stream=stdout&tail=2", "three\nfour"),
        ("attempt=1", "one\ntwo\noops\nthree\nfour"),
        ("since=2026-05-01T08:00:00Z", "one\ntwo\noops\nthree\nfour"),
        ("since=2026-05-01T08:00:01Z", ""),
        ("follow=true", "one\ntwo\noops\nthree\nfour"),
        ("follow=true&tail=1", "four"),
    ] {
        assert_eq!(
            read(&caller, &format!("/api/v1/jobs/{}/logs?{query}", held.job_id)).await,
            expected,
            "{query}"
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn offsets_need_one_stream_and_bad_parameters_are_named() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let id = caller.submit(fine()).await;
    for (query, pointer, code) in [
        ("from=1", "?from", "not_allowed"),
        ("to=1", "?to", "not_allowed"),
        ("stream=both&from=1", "?from", "not_allowed"),
        ("stream=stdout&from=1&tail=1", "?from", "not_allowed"),
        ("stream=stdout&from=5&to=4", "?to", "out_of_range"),
        ("stream=stdlog", "?stream", "invalid"),
        ("attempt=0", "?attempt", "out_of_range"),
        ("attempt=x", "?attempt", "out_of_range"),
        ("tail=-1", "?tail", "out_of_range"),
        ("tail=10001", "?tail", "out_of_range"),
        ("follow=yes", "?follow", "invalid"),
        ("since=now", "?since", "invalid"),
    ] {
        let reply = caller.get(&format!("/api/v1/jobs/{id}/logs?{query}")).await;
        let reply = reply.expect(StatusCode::BAD_REQUEST, "invalid_request");
        assert!(reply.names(pointer, code), "{query}: {}", reply.body);
    }
    let reply = caller.get(&format!("/api/v1/jobs/{id}/logs?attempt=1")).await;
    reply.expect(StatusCode::NOT_FOUND, "not_found");
    assert_eq!(read(&caller, &format!("/api/v1/jobs/{id}/logs")).await, "", "no attempt yet");
    server.stop().await;
}

#[tokio::test]
async fn a_followed_log_waits_for_the_first_attempt_and_ends_with_it() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let id = caller.submit(fine()).await;
    let call = caller.call(Method::GET, &format!("/api/v1/jobs/{id}/logs?follow=true"));
    let mut response = in_time("the head", call.send()).await.expect("an answer");
    let hand = Hand::register(&server).await;
    let held = hand.run(id).await;
    hand.log(held, Stdout, 0, "first\n").await;
    let piece = in_time("the first line", response.chunk()).await.expect("no break").expect("a piece");
    assert_eq!(piece, "first\n");
    hand.log(held, Stdout, 6, "last words").await;
    hand.exit(held, 0).await;
    let mut rest = Vec::new();
    while let Some(piece) = in_time("the rest", response.chunk()).await.expect("no break") {
        rest.extend_from_slice(&piece);
    }
    assert_eq!(rest, b"last words");
    server.stop().await;
}

#[tokio::test]
async fn each_attempt_has_a_log_of_its_own() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let hand = Hand::register(&server).await;
    let id = caller.submit(json!({"command": ["false"], "max_retries": 0})).await;
    let first = hand.run(id).await;
    hand.log(first, Stdout, 0, "one").await;
    hand.exit(first, 1).await;
    caller.post(&format!("/api/v1/jobs/{id}/retry"), &json!({"after_attempt": 1})).await.ok();
    let second = hand.run(id).await;
    hand.log(second, Stdout, 0, "two").await;
    let path = format!("/api/v1/jobs/{id}/logs");
    assert_eq!(read(&caller, &path).await, "two");
    assert_eq!(read(&caller, &format!("{path}?attempt=1")).await, "one");
    // The first attempt is over: following it ends, though the job runs.
    assert_eq!(in_time("the end", read(&caller, &format!("{path}?attempt=1&follow=true"))).await, "one");
    server.stop().await;
}

#[tokio::test]
async fn a_long_log_comes_whole() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let hand = Hand::register(&server).await;
    let held = hand.run(caller.submit(fine()).await).await;
    let mut expected = String::new();
    for n in 0..300 {
        let line = format!("line {n} {}\n", "x".repeat(50));
        hand.log(held, Stdout, expected.len() as u64, &line).await;
        expected.push_str(&line);
    }
    let path = format!("/api/v1/jobs/{}/logs", held.job_id);
    assert_eq!(read(&caller, &path).await, expected);
    let last: String = expected.split_inclusive('\n').skip(100).collect();
    assert_eq!(read(&caller, &format!("{path}?tail=200")).await, last);
    let response = caller.call(Method::GET, &format!("{path}?tail=1")).send().await.expect("an answer");
    assert_eq!(response.headers()["jobyard-attempt"], "1");
    let stranger = server.caller(jobyard_model::Role::Submitter, &["others"]).await;
    let response = stranger.call(Method::GET, &path).send().await.expect("an answer");
    Reply::of(response).await.expect(StatusCode::FORBIDDEN, "foreign_owner");
    server.stop().await;
}

#[tokio::test]
async fn what_is_older_than_logs_are_kept_is_gone_and_said_to_be() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let hand = Hand::register(&server).await;
    let today = LogDay::of(server.clock.now());
    let segment = |days_ago: i64| LogDay(today.0 - days_ago).segment();
    let kept = segment(30);
    server.artifacts().put_segment(&kept, Bytes::from_static(b"kept\nlast\n")).await.expect("stored");

    let partly = hand.run(caller.submit(fine()).await).await;
    hand.log_in(partly, 0..8_000, &segment(31)).await;
    hand.log_in(partly, 8_000..8_010, &kept).await;
    let path = format!("/api/v1/jobs/{}/logs", partly.job_id);
    assert_eq!(read(&caller, &path).await, "kept\nlast\n");
    assert_eq!(read(&caller, &format!("{path}?tail=1")).await, "last\n");
    assert_eq!(read(&caller, &format!("{path}?tail=9")).await, "kept\nlast\n");
    assert_eq!(read(&caller, &format!("{path}?stream=stdout&from=8005")).await, "last\n");
    caller.get(&format!("{path}?stream=stdout&from=10")).await.expect(StatusCode::GONE, "log_dropped");

    let wholly = hand.run(caller.submit(fine()).await).await;
    hand.log_in(wholly, 0..8_000, &segment(200)).await;
    let answer = caller.get(&format!("/api/v1/jobs/{}/logs", wholly.job_id)).await;
    assert!(answer.body["detail"].as_str().is_some_and(|detail| detail.contains("30 days")), "{answer:?}");
    answer.expect(StatusCode::GONE, "log_dropped");

    let lost = hand.run(caller.submit(fine()).await).await;
    hand.log_in(lost, 0..8_000, &segment(1)).await;
    let answer = caller.get(&format!("/api/v1/jobs/{}/logs", lost.job_id)).await;
    answer.expect(StatusCode::INTERNAL_SERVER_ERROR, "internal");
    server.stop().await;
}

#[tokio::test]
async fn old_small_pieces_of_a_job_that_goes_on_are_gone_and_said_to_be() {
    const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let hand = Hand::register(&server).await;
    let held = hand.run(caller.submit(fine()).await).await;
    hand.log(held, Stdout, 0, "old\n").await;
    server.clock.advance_ms(31 * DAY_MS);
    hand.log(held, Stdout, 4, "kept\n").await;
    hand.log(held, Stdout, 9, "last\n").await;
    let path = format!("/api/v1/jobs/{}/logs", held.job_id);
    assert_eq!(read(&caller, &format!("{path}?stream=stdout")).await, "old\nkept\nlast\n");
    let shutdown = CancellationToken::new();
    let retention = LogRetention::new(server.clock.clone(), 30);
    let artifacts = Arc::new(server.artifacts());
    let dropping = tokio::spawn(drop_old_logs(server.store.clone(), artifacts, retention, shutdown.clone()));
    let by_stream = caller.call(Method::GET, &format!("{path}?stream=stdout"));
    until("the first day is dropped", async || {
        let call = by_stream.try_clone().expect("no body");
        call.send().await.expect("an answer").status() == StatusCode::GONE
    })
    .await;
    shutdown.cancel();
    dropping.await.expect("no panic");
    for (query, expected) in [
        ("", "kept\nlast\n"),
        ("tail=9", "kept\nlast\n"),
        ("stream=stdout&tail=1", "last\n"),
        ("stream=stdout&since=2026-01-01T00:00:00Z", "kept\nlast\n"),
        ("stream=stdout&from=4", "kept\nlast\n"),
        ("stream=stdout&from=6&to=11", "pt\nla"),
    ] {
        assert_eq!(read(&caller, &format!("{path}?{query}")).await, expected, "{query}");
    }
    for query in ["stream=stdout", "stream=stdout&from=3", "stream=stdout&from=1&to=3"] {
        let answer = caller.get(&format!("{path}?{query}")).await;
        answer.expect(StatusCode::GONE, "log_dropped");
    }
    server.stop().await;
}
