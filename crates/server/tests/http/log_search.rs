//! What the log viewer asks for: sizes, pieces, matches; and that a raw log never is a page.

use bytes::Bytes;
use jobyard_model::Clock;
use jobyard_server::{ArtifactStore, LogDay};
use jobyard_store::LogStream::{Stderr, Stdout};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::{Caller, Hand, TestServer, fine};

async fn found(caller: &Caller<'_>, path: &str) -> Value {
    caller.get(path).await.ok()
}

#[tokio::test]
async fn sizes_are_told_of_every_attempt() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let hand = Hand::register(&server).await;
    let id = caller.submit(json!({"command": ["false"], "max_retries": 0})).await;
    let path = format!("/api/v1/jobs/{id}/logs/sizes");
    assert_eq!(found(&caller, &path).await["items"], json!([]));
    let first = hand.run(id).await;
    hand.log(first, Stdout, 0, "one\n").await;
    hand.log(first, Stderr, 0, "oops\n").await;
    hand.exit(first, 1).await;
    caller.post(&format!("/api/v1/jobs/{id}/retry"), &json!({"after_attempt": 1})).await.ok();
    let second = hand.run(id).await;
    hand.log(second, Stdout, 0, "two").await;
    let sizes = |over| {
        json!([
            {"attempt": 1, "stdout": 4, "stderr": 5, "over": true},
            {"attempt": 2, "stdout": 3, "stderr": 0, "over": over}
        ])
    };
    assert_eq!(found(&caller, &path).await["items"], sizes(false));
    hand.exit(second, 1).await;
    assert_eq!(found(&caller, &path).await["items"], sizes(true));
    let stranger = server.caller(jobyard_model::Role::Submitter, &["others"]).await;
    for call in ["sizes", "pieces", "search?q=x"] {
        let reply = stranger.get(&format!("/api/v1/jobs/{id}/logs/{call}")).await;
        reply.expect(StatusCode::FORBIDDEN, "foreign_owner");
    }
    server.stop().await;
}

#[tokio::test]
async fn pieces_are_walked_from_either_end() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let hand = Hand::register(&server).await;
    let held = hand.run(caller.submit(fine()).await).await;
    for number in 0..4 {
        hand.log(held, Stdout, number * 3, "out").await;
        hand.log(held, Stderr, number * 3, "err").await;
    }
    let path = format!("/api/v1/jobs/{}/logs/pieces", held.job_id);
    let walk = async |order: &str| {
        let mut numbers = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = found(&caller, &format!("{path}?order={order}&limit=3&cursor={cursor}")).await;
            let items = page["items"].as_array().expect("items").clone();
            numbers.extend(items.iter().map(|item| item["number"].as_i64().expect("a number")));
            let Some(next) = page["next_cursor"].as_str() else { return numbers };
            cursor = next.to_owned();
        }
    };
    assert_eq!(walk("oldest").await, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(walk("newest").await, [8, 7, 6, 5, 4, 3, 2, 1]);
    let last = found(&caller, &format!("{path}?limit=1&stream=stdout")).await;
    let expected =
        json!({"number": 7, "stream": "stdout", "from": 9, "to": 12, "time": "2026-05-01T08:00:00.000Z"});
    assert_eq!(last["items"], json!([expected]));
    for (query, pointer, code) in [
        ("order=up", "?order", "invalid"),
        ("limit=1001", "?limit", "out_of_range"),
        ("cursor=x", "?cursor", "out_of_range"),
        ("stream=both2", "?stream", "invalid"),
    ] {
        let reply = caller.get(&format!("{path}?{query}")).await;
        assert!(reply.names(pointer, code), "{query}: {}", reply.body);
    }
    caller.get(&format!("{path}?attempt=2")).await.expect(StatusCode::NOT_FOUND, "not_found");
    server.stop().await;
}

/// Goes on until there is no cursor.
async fn search_all(caller: &Caller<'_>, path: &str) -> Vec<Value> {
    let mut items = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = found(caller, &format!("{path}{cursor}")).await;
        items.extend(page["items"].as_array().expect("items").iter().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return items,
        }
    }
}

#[tokio::test]
async fn a_text_is_found_in_both_streams_with_its_lines() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let hand = Hand::register(&server).await;
    let id = caller.submit(fine()).await;
    let path = format!("/api/v1/jobs/{id}/logs/search");
    let nothing = found(&caller, &format!("{path}?q=x")).await;
    assert_eq!((&nothing["items"], &nothing["next_cursor"]), (&json!([]), &Value::Null));
    let held = hand.run(id).await;
    hand.log(held, Stdout, 0, "first line\nsecond: 50% <b>err").await;
    hand.log(held, Stdout, 29, "or</b>\nthird ERROR\n").await;
    hand.log(held, Stderr, 0, "error here\n").await;
    let matches = search_all(&caller, &format!("{path}?q=error")).await;
    let expected = [
        json!({
            "stream": "stdout", "offset": 26, "length": 5, "line": "second: 50% <b>error</b>", "line_offset": 11,
            "line_number": 2
        }),
        json!({
            "stream": "stderr", "offset": 0, "length": 5, "line": "error here", "line_offset": 0, "line_number": 1
        }),
    ];
    assert_eq!(matches, expected);
    for (query, expected) in [
        ("q=ERROR", vec![42]),
        ("q=error&case=ignore", vec![26, 42, 0]),
        ("q=error&case=ignore&limit=1", vec![26, 42, 0]),
        ("q=error&stream=stderr", vec![0]),
        ("q=error&case=ignore&stream=stdout&from=27", vec![42]),
        ("q=50%25%20%3Cb", vec![19]),
        ("q=%0A", vec![10, 35, 47, 10]),
        ("q=fifth", vec![]),
    ] {
        let matches = search_all(&caller, &format!("{path}?{query}")).await;
        let offsets: Vec<_> =
            matches.iter().map(|item| item["offset"].as_u64().expect("an offset")).collect();
        assert_eq!(offsets, expected, "{query}");
    }
    let late = search_all(&caller, &format!("{path}?q=third&stream=stdout&from=1")).await;
    assert_eq!(late[0]["line_number"], Value::Null, "not counted from the beginning");
    for (query, pointer, code) in [
        ("", "?q", "missing"),
        ("q=", "?q", "missing"),
        (&format!("q={}", "x".repeat(257)), "?q", "too_long"),
        ("q=x&case=no", "?case", "invalid"),
        ("q=x&from=1", "?from", "not_allowed"),
        ("q=x&cursor=7", "?cursor", "invalid"),
        ("q=x&stream=stderr&cursor=stdout.0.1", "?cursor", "invalid"),
        ("q=x&limit=501", "?limit", "out_of_range"),
        ("q=x&pattern=true", "?pattern", "unknown_field"),
    ] {
        let reply = caller.get(&format!("{path}?{query}")).await;
        let reply = reply.expect(StatusCode::BAD_REQUEST, "invalid_request");
        assert!(reply.names(pointer, code), "{query}: {}", reply.body);
    }
    server.stop().await;
}

/// Stdout of as many bytes, in segments of the artifact store as servers write them.
async fn long_log(server: &TestServer, hand: &Hand<'_>, caller: &Caller<'_>, segments: u64) -> String {
    const SEGMENT: usize = 4 << 20;
    let held = hand.run(caller.submit(fine()).await).await;
    let mut bytes = vec![b'.'; SEGMENT];
    bytes.iter_mut().skip(99).step_by(100).for_each(|byte| *byte = b'\n');
    bytes[SEGMENT - 3..].copy_from_slice(b"end");
    let bytes = Bytes::from(bytes);
    for number in 0..segments {
        let name = LogDay::of(server.clock.now()).segment();
        server.artifacts().put_segment(&name, bytes.clone()).await.expect("stored");
        let from = number * SEGMENT as u64;
        hand.log_in(held, from..from + SEGMENT as u64, &name).await;
    }
    format!("/api/v1/jobs/{}/logs", held.job_id)
}

#[tokio::test]
async fn a_search_reads_a_bounded_part_of_a_long_log_a_call() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let hand = Hand::register(&server).await;
    let path = long_log(&server, &hand, &caller, 10).await;
    let size = 40_u64 << 20;
    let first = found(&caller, &format!("{path}/search?q=absent")).await;
    let reached = first["scanned_to"]["offset"].as_u64().expect("an offset");
    assert!(first["next_cursor"].is_string() && reached > 0 && reached < size, "{first}");
    assert_eq!(search_all(&caller, &format!("{path}/search?q=absent")).await, [] as [Value; 0]);
    let ends = search_all(&caller, &format!("{path}/search?q=end&limit=3")).await;
    assert_eq!(ends.len(), 10);
    assert_eq!(ends[9]["offset"], size - 3);
    // A hundred bytes a line; each segment but the last runs on in the next one's first line.
    assert_eq!(ends[9]["line_number"], 10 * ((4_u64 << 20) / 100) + 1);
    server.stop().await;
}

#[tokio::test]
async fn a_raw_log_is_data_and_never_a_page() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let hand = Hand::register(&server).await;
    let held = hand.run(caller.submit(fine()).await).await;
    let hostile =
        "\"><img src=x onerror=window.__x=1><script>window.__x=1</script>\0\x1b]8;;javascript:1\x07";
    hand.log(held, Stdout, 0, hostile).await;
    let path = format!("/api/v1/jobs/{}/logs", held.job_id);
    for (query, disposition) in [
        ("", "attachment".to_owned()),
        ("?stream=stdout&from=0&to=5", "attachment".to_owned()),
        ("?download=true", format!("attachment; filename=\"{}-1.log\"", held.job_id)),
        ("?download=true&stream=stderr", format!("attachment; filename=\"{}-1.stderr.log\"", held.job_id)),
    ] {
        let response = caller.call(Method::GET, &format!("{path}{query}")).send().await.expect("an answer");
        let headers = response.headers();
        assert_eq!(headers["content-disposition"], disposition, "{query}");
        assert_eq!(headers["content-type"], "application/octet-stream");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["content-security-policy"], "default-src 'none'; frame-ancestors 'none'");
    }
    let matches = search_all(&caller, &format!("{path}/search?q=onerror")).await;
    assert_eq!(matches[0]["line"], hostile);
    server.stop().await;
}

#[tokio::test]
async fn an_uploaded_page_is_data_and_never_a_page() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let page = "<script>window.__x=1</script>";
    let name: String = Sha256::digest(page).iter().map(|byte| format!("{byte:02x}")).collect();
    let path = format!("/api/v1/artifacts/{name}");
    let put = caller.call(Method::PUT, &path).header("content-type", "text/html").body(page);
    assert!(put.send().await.expect("an answer").status().is_success());
    let response = caller.call(Method::GET, &path).send().await.expect("an answer");
    let headers = response.headers();
    assert_eq!(headers["content-disposition"], "attachment");
    assert_eq!(headers["content-type"], "application/octet-stream");
    assert_eq!(headers["x-content-type-options"], "nosniff");
    server.stop().await;
}

#[tokio::test]
async fn hostile_names_labels_and_errors_come_back_as_they_are_and_as_json() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let hostile = "\"><img src=x onerror=window.__x=1><script>window.__x=1</script>";
    let job = json!({"command": [hostile], "name": hostile, "env": {"A": hostile}, "labels": {"k": hostile}});
    let id = caller.submit(job).await;
    for path in
        [format!("/api/v1/jobs/{id}"), "/api/v1/jobs".to_owned(), format!("/api/v1/jobs?name={hostile}")]
    {
        let response = caller.call(Method::GET, &path).send().await.expect("an answer");
        assert_eq!(response.headers()["content-type"], "application/json", "{path}");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
        assert!(response.text().await.expect("a body").contains("<script>"), "nothing is escaped twice");
    }
    let refused = json!({"command": ["true"], hostile: 1});
    let response = caller.call(Method::POST, "/api/v1/jobs").body(refused.to_string()).send().await;
    let response = response.expect("an answer");
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    assert_eq!(response.headers()["content-security-policy"], "default-src 'none'; frame-ancestors 'none'");
    server.stop().await;
}
