//! The event stream: from now on, from a cursor, filtered, and its end.

use jobyard_model::JobId;
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::support::{Caller, Reply, TestServer, fine, in_time};

/// One server-sent event.
#[derive(Debug)]
struct Frame {
    kind: String,
    id: String,
    data: Value,
}

/// Reads a stream event by event.
struct Stream {
    response: Response,
    text: String,
}

impl Stream {
    async fn open(caller: &Caller<'_>, query: &str, last_id: Option<&str>) -> Self {
        let mut call = caller.call(Method::GET, &format!("/api/v1/events{query}"));
        if let Some(id) = last_id {
            call = call.header("Last-Event-ID", id);
        }
        let response = in_time("the stream's head", call.send()).await.expect("an answer");
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new() }
    }

    /// The next event; `None` at the end of the stream. Comments are passed over.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| {
                    let found = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                    found.unwrap_or_default().to_owned()
                };
                if field("event").is_empty() {
                    continue;
                }
                let data = serde_json::from_str(&field("data")).expect("JSON");
                return Some(Frame { kind: field("event"), id: field("id"), data });
            }
            let piece = in_time("an event", self.response.chunk()).await.expect("no break")?;
            self.text.push_str(std::str::from_utf8(&piece).expect("text"));
        }
    }

    async fn change(&mut self) -> Frame {
        loop {
            let frame = self.next().await.expect("the stream goes on");
            if frame.kind == "change" {
                return frame;
            }
        }
    }

    async fn changes_of(&mut self, count: usize) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for _ in 0..count {
            let frame = self.change().await;
            found.push((
                frame.data["job_id"].as_str().unwrap_or_default().to_owned(),
                frame.data["to"].as_str().unwrap_or_default().to_owned(),
            ));
        }
        found
    }
}

fn waiting(id: JobId) -> (String, String) {
    (id.to_string(), "waiting".to_owned())
}

#[tokio::test]
async fn a_stream_begins_now_and_gives_every_change_in_order() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    caller.submit(fine()).await;
    let mut stream = Stream::open(&caller, "", None).await;
    let start = stream.next().await.expect("a start");
    assert_eq!((start.kind.as_str(), &start.data["cursor"]), ("start", &json!(start.id)));
    let mut expected = Vec::new();
    for _ in 0..50 {
        expected.push(waiting(caller.submit(fine()).await));
    }
    assert_eq!(stream.changes_of(50).await, expected);
    server.stop().await;
}

#[tokio::test]
async fn a_broken_stream_is_resumed_without_gap_or_double() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let mut stream = Stream::open(&caller, "", None).await;
    let mut expected = Vec::new();
    for _ in 0..5 {
        expected.push(waiting(caller.submit(fine()).await));
    }
    let mut last_id = String::new();
    let mut found = Vec::new();
    for _ in 0..3 {
        let frame = stream.change().await;
        last_id = frame.id;
        found.push((frame.data["job_id"].as_str().expect("an id").to_owned(), "waiting".to_owned()));
    }
    drop(stream);
    // More than a page while nobody listens.
    let batch = json!({"jobs": vec![fine(); 1_200]});
    let items = caller.post("/api/v1/jobs/batch", &batch).await.ok()["items"].clone();
    let ids =
        items.as_array().expect("items").iter().map(|item| item["id"].as_str().expect("an id").to_owned());
    expected.extend(ids.map(|id| (id, "waiting".to_owned())));

    let mut stream = Stream::open(&caller, "", Some(&last_id)).await;
    found.extend(stream.changes_of(expected.len() - 3).await);
    assert_eq!(found, expected);
    // The same place as a parameter; the header counts before it.
    let mut stream = Stream::open(&caller, &format!("?cursor={last_id}"), None).await;
    assert_eq!(stream.changes_of(1).await, expected[3..4]);
    let mut stream = Stream::open(&caller, "?cursor=0-0", Some(&last_id)).await;
    assert_eq!(stream.changes_of(1).await, expected[3..4]);
    server.stop().await;
}

#[tokio::test]
async fn filters_let_through_only_what_matches() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let watched = caller.submit(fine()).await;
    let mut by_job = Stream::open(&caller, &format!("?job={watched}"), None).await;
    let mut by_label = Stream::open(&caller, "?label=team:search", None).await;
    let mut by_origin = Stream::open(&caller, "?origin=schedule:s1", None).await;
    for stream in [&mut by_job, &mut by_label, &mut by_origin] {
        assert_eq!(stream.next().await.expect("a start").kind, "start");
    }
    caller.submit(fine()).await;
    let labelled = caller.submit(json!({"command": ["true"], "labels": {"team": "search"}})).await;
    let origin = json!({"kind": "schedule", "id": "s1", "key": "1"});
    let scheduled = caller.submit(json!({"command": ["true"], "origin": origin})).await;
    caller.post(&format!("/api/v1/jobs/{watched}/cancel"), &json!(null)).await.ok();
    let cancelled = (watched.to_string(), "cancelled".to_owned());
    assert_eq!(by_job.changes_of(1).await, [cancelled]);
    assert_eq!(by_label.changes_of(1).await, [waiting(labelled)]);
    assert_eq!(by_origin.changes_of(1).await, [waiting(scheduled)]);
    server.stop().await;
}

#[tokio::test]
async fn a_cursor_older_than_what_is_kept_is_gone() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let mut stream = Stream::open(&caller, "", None).await;
    let old = stream.next().await.expect("a start").id;
    let id = caller.submit(fine()).await;
    caller.post(&format!("/api/v1/jobs/{id}/cancel"), &json!(null)).await.ok();
    let kept = caller.submit(fine()).await;
    server.clock.advance_ms(1_000);
    let now = jobyard_model::Clock::now(&*server.clock);
    let cutoffs = jobyard_store::Cutoffs { jobs: now, keys: now, audit: now };
    let removed = jobyard_store::Store::remove_old(&*server.store, cutoffs, 100).await.expect("removed");
    assert_eq!(removed.jobs, 1);
    let call = caller.call(Method::GET, "/api/v1/events").header("Last-Event-ID", old);
    let response = call.send().await.expect("an answer");
    Reply::of(response).await.expect(StatusCode::GONE, "cursor_expired");
    assert_eq!(caller.get(&format!("/api/v1/jobs/{kept}")).await.status, StatusCode::OK);
    server.stop().await;
}

#[tokio::test]
async fn a_cursor_beyond_the_newest_event_is_refused() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let job = caller.submit(fine()).await;
    let mut stream = Stream::open(&caller, "", None).await;
    let newest = stream.next().await.expect("a start").id;
    let (transaction, number) = newest.split_once('-').expect("a cursor");
    let beyond = format!("{transaction}-{}", number.parse::<i64>().expect("a number") + 1);
    for query in
        [format!("?cursor={beyond}"), format!("?cursor={beyond}&job={job}"), "?cursor=9-0".to_owned()]
    {
        let response =
            in_time("an answer", caller.call(Method::GET, &format!("/api/v1/events{query}")).send());
        let response = response.await.expect("an answer");
        assert_eq!(response.status(), StatusCode::GONE, "{query}");
        Reply::of(response).await.expect(StatusCode::GONE, "cursor_expired");
    }
    let mut stream = Stream::open(&caller, "", Some(&newest)).await;
    assert_eq!(stream.next().await.expect("a start").id, newest, "the newest itself is fine");
    server.stop().await;
}

#[tokio::test]
async fn streams_end_when_the_server_goes_down() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let mut stream = Stream::open(&caller, "", None).await;
    assert_eq!(stream.next().await.expect("a start").kind, "start");
    in_time("the server's end", server.stop()).await;
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_silent_stream_says_that_it_is_alive_and_where_it_is() {
    let settings = jobyard_server::ServerSettings {
        stream_heartbeat: std::time::Duration::from_millis(20),
        ..jobyard_server::ServerSettings::default()
    };
    let server = TestServer::start_with(settings).await;
    let caller = server.submitter().await;
    let unmatched = format!("?job={}", caller.submit(fine()).await);
    let mut stream = Stream::open(&caller, &unmatched, None).await;
    let start = stream.next().await.expect("a start").id;
    caller.submit(fine()).await;
    // The place moves on past events that don't match, so that the cursor does not grow old.
    while !stream.text.contains(": alive\nid: ") || stream.text.ends_with(&format!("id: {start}\n\n")) {
        let piece = in_time("a comment", stream.response.chunk()).await.expect("no break").expect("a piece");
        stream.text = String::from_utf8(piece.to_vec()).expect("text");
    }
    server.stop().await;
}
