//! Filters, lines, counts, completions and minutes over HTTP.

use jobyard_store::Dashboard as _;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Caller, Hand, Reply, TestServer, fine};

async fn fill(server: &TestServer, caller: &Caller<'_>) -> Vec<Value> {
    Hand::register(server).await;
    let mut ids = Vec::new();
    for job in [
        json!({"command": ["true"], "name": "train-a", "labels": {"team": "ml"}, "priority": 90}),
        json!({"command": ["echo", "secret words"], "name": "train-b", "labels": {"team": "ml, too"}}),
        json!({"command": ["true"], "name": "a,b*"}),
    ] {
        ids.push(json!(caller.submit(job).await));
    }
    let cancelled = ids[2].as_str().expect("an id");
    caller.post(&format!("/api/v1/jobs/{cancelled}/cancel"), &json!(null)).await.ok();
    ids
}

async fn ids(caller: &Caller<'_>, query: &str) -> Vec<Value> {
    let page = caller.get(&format!("/api/v1/jobs/rows?{query}")).await.ok();
    let rows = page["items"].as_array().expect("items").iter();
    let found: Vec<Value> = rows.map(|row| row["id"].clone()).collect();
    // The list of whole jobs and the count have the same filter.
    let whole = caller.get(&format!("/api/v1/jobs?{query}")).await.ok();
    let whole: Vec<Value> =
        whole["items"].as_array().expect("items").iter().map(|job| job["id"].clone()).collect();
    assert_eq!(whole, found, "{query}");
    let counted = caller.get(&format!("/api/v1/jobs/count?{query}")).await.ok();
    assert_eq!((&counted["count"], &counted["complete"]), (&json!(found.len()), &json!(true)), "{query}");
    found
}

#[tokio::test]
async fn one_filter_serves_rows_jobs_and_counts() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let jobs = fill(&server, &caller).await;
    let [a, b, odd] = [0, 1, 2].map(|place: usize| jobs[place].clone());
    for (query, expected) in [
        ("", vec![odd.clone(), b.clone(), a.clone()]),
        ("name=train*", vec![b.clone(), a.clone()]),
        ("name=!train*", vec![odd.clone()]),
        ("name=*in-b*,train-a", vec![b.clone(), a.clone()]),
        (r"name=a\,b\*", vec![odd.clone()]),
        ("label=team", vec![b.clone(), a.clone()]),
        (r"label=team:ml\, too", vec![b.clone()]),
        ("label=!team:ml", vec![odd.clone(), b.clone()]),
        ("lane=4", vec![a.clone()]),
        ("status=!cancelled&q=SECRET", vec![b.clone()]),
        ("reason=run_at,artifact_missing", vec![]),
        ("outcome=failed&exit=!0", vec![]),
    ] {
        assert_eq!(ids(&caller, query).await, expected, "{query}");
    }
    let page = caller.get("/api/v1/jobs/rows?limit=1").await.ok();
    let next = page["next_cursor"].as_str().expect("a next page").to_owned();
    let page = caller.get(&format!("/api/v1/jobs/rows?limit=2&cursor={next}")).await.ok();
    assert_eq!((page["items"].as_array().map(Vec::len), &page["next_cursor"]), (Some(2), &json!(null)));
    server.stop().await;
}

#[tokio::test]
async fn a_row_has_what_a_table_shows_and_nothing_of_the_payload() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    fill(&server, &caller).await;
    let page = caller.get("/api/v1/jobs/rows?name=train-b").await.ok();
    let row = &page["items"][0];
    assert_eq!(
        (&row["status"], &row["pool"], &row["labels"]["team"]),
        (&json!("waiting"), &json!("default"), &json!("ml, too"))
    );
    assert_eq!((&row["priority"], &row["attempt"], &row["message"]), (&json!(50), &json!(null), &json!("")));
    assert!(row["waiting_since_time"].is_string() && row["finished_time"].is_null(), "{row}");
    assert!(!page.to_string().contains("secret words"), "{page}");
    let viewer = server.caller(jobyard_model::Role::Viewer, &[]).await;
    assert_eq!(viewer.get("/api/v1/jobs/rows").await.ok()["items"].as_array().map(Vec::len), Some(3));
    for path in ["rows", "count", "values?key=name"] {
        let path = format!("/api/v1/jobs/{path}");
        server.nobody().get(&path).await.expect(StatusCode::UNAUTHORIZED, "unauthenticated");
    }
    server.stop().await;
}

#[tokio::test]
async fn values_complete_what_is_typed() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    fill(&server, &caller).await;
    for (query, items, more) in [
        ("key=name&prefix=tr", json!(["train-a", "train-b"]), false),
        ("key=name&limit=1", json!(["a,b*"]), true),
        ("key=label", json!(["team"]), false),
        ("key=label:team&prefix=ml,", json!(["ml, too"]), false),
        ("key=owner", json!(["team"]), false),
        ("key=pool", json!(["default"]), false),
    ] {
        let values = caller.get(&format!("/api/v1/jobs/values?{query}")).await.ok();
        assert_eq!((&values["items"], &values["more"]), (&items, &json!(more)), "{query}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_look_that_takes_too_long_is_told_so_while_jobs_go_on() {
    let server = TestServer::start_with_dashboard_timeout(std::time::Duration::ZERO).await;
    let caller = server.submitter().await;
    for path in ["jobs", "jobs/rows", "jobs/count", "jobs/values?key=name", "summary", "summary/minutes"] {
        let response = caller.call(Method::GET, &format!("/api/v1/{path}")).send().await.expect("an answer");
        assert!(response.headers().contains_key("retry-after"), "{path}");
        Reply::of(response).await.expect(StatusCode::SERVICE_UNAVAILABLE, "read_too_slow");
    }
    let id = caller.submit(fine()).await;
    assert_eq!(caller.get(&format!("/api/v1/jobs/{id}")).await.ok()["status"], "waiting");
    server.stop().await;
}

#[tokio::test]
async fn minutes_add_up_what_happened() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    fill(&server, &caller).await;
    server.store.roll_up(100, jobyard_model::Timestamp(0)).await.expect("counted");
    let minutes = caller.get("/api/v1/summary/minutes?step=30").await.ok();
    let items = minutes["items"].as_array().expect("items").clone();
    assert_eq!(items.len(), 2);
    let sum = |field: &str| items.iter().filter_map(|item| item.pointer(field)?.as_u64()).sum::<u64>();
    assert!(minutes["complete_until_time"].is_string(), "{minutes}");
    let now = caller.get("/api/v1/summary").await.ok()["now"].as_str().expect("a time").to_owned();
    // The minute that goes on is part of what is asked for when `to` lies behind it.
    let later = jobyard_api::json::units::parse_time(&now).expect("a time").plus_ms(60_000);
    let later = jobyard_api::json::units::format_time(later);
    let all = caller.get(&format!("/api/v1/summary/minutes?to={later}&step=60")).await.ok();
    assert_eq!(
        (&all["items"][1]["submitted"], &all["items"][0]["waits"]["p50_ms"]),
        (&json!(null), &json!(null))
    );
    assert_eq!(
        (&all["items"][0]["submitted"], &all["items"][0]["ended"]["cancelled"]),
        (&json!(3), &json!(1))
    );
    assert!(sum("/submitted") <= 3);
    for query in [
        "step=0",
        "from=2026-05-02T00:00:00Z&to=2026-05-01T00:00:00Z",
        "from=2020-01-01T00:00:00Z",
        "until=x",
    ] {
        caller
            .get(&format!("/api/v1/summary/minutes?{query}"))
            .await
            .expect(StatusCode::BAD_REQUEST, "invalid_request");
    }
    server.stop().await;
}

#[tokio::test]
async fn what_fails_is_grouped_and_its_filter_finds_it() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let hand = Hand::register(&server).await;
    for (name, code) in [("a,b", 3), ("a,b", 3), ("a,b", 4), ("fine", 0)] {
        let id = caller.submit(json!({"command": ["true"], "name": name, "max_retries": 0})).await;
        let held = hand.run(id).await;
        hand.exit(held, code).await;
    }
    let failing = caller.get("/api/v1/summary/failing").await.ok();
    let groups = failing["items"].as_array().expect("items").clone();
    let seen: Vec<_> =
        groups.iter().map(|group| (group["count"].clone(), group["exit_code"].clone())).collect();
    assert_eq!(seen, [(json!(2), json!(3)), (json!(1), json!(4))]);
    assert_eq!(
        (&groups[0]["name"], &groups[0]["owner_id"], &groups[0]["outcome"]),
        (&json!("a,b"), &json!("team"), &json!("failed"))
    );
    assert_eq!(failing["complete"], true);
    for group in &groups {
        let found = ids(&caller, group["filter"].as_str().expect("a filter")).await;
        assert_eq!(
            (json!(found.len()), &found[0]),
            (group["count"].clone(), &group["last_job_id"]),
            "{group}"
        );
    }
    // Retried, it does not fail now.
    let last = groups[1]["last_job_id"].as_str().expect("an id");
    caller.post(&format!("/api/v1/jobs/{last}/retry"), &json!({})).await.ok();
    assert_eq!(
        caller.get("/api/v1/summary/failing?within=1h").await.ok()["items"].as_array().map(Vec::len),
        Some(1)
    );
    server.clock.advance_ms(2 * 3_600_000);
    assert_eq!(caller.get("/api/v1/summary/failing?within=1h").await.ok()["items"], json!([]));
    caller
        .get("/api/v1/summary/failing?within=soon")
        .await
        .expect(StatusCode::BAD_REQUEST, "invalid_request");
    server.stop().await;
}

#[tokio::test]
async fn what_waits_longest_says_why() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let first = caller.submit(json!({"command": ["true"], "node_labels": {"gpu": "a100"}})).await;
    server.clock.advance_ms(1_000);
    let second = caller.submit(fine()).await;
    caller.submit(fine()).await;
    Hand::register(&server).await;
    let waiting = caller.get("/api/v1/summary/waiting").await.ok();
    let items = waiting["items"].as_array().expect("items").clone();
    let seen: Vec<_> = items.iter().map(|item| (item["id"].clone(), item["reason"].clone())).collect();
    assert_eq!(seen, [(json!(first), json!("never_fits")), (json!(second), json!("next_in_turn"))]);
    assert!(items[0]["summary"].as_str().is_some_and(|text| !text.is_empty()), "{waiting}");
    assert_eq!(
        caller.get("/api/v1/summary/waiting?limit=1").await.ok()["items"].as_array().map(Vec::len),
        Some(1)
    );
    caller.get("/api/v1/summary/waiting?limit=21").await.expect(StatusCode::BAD_REQUEST, "invalid_request");
    let summary = caller.get("/api/v1/summary").await.ok();
    assert_eq!((&summary["pools"][0]["name"], &summary["pools"][0]["nodes"]), (&json!("default"), &json!(1)));
    assert_eq!(summary["health"]["informer_time"], json!(null));
    server.store.roll_up(10, jobyard_model::Timestamp(0)).await.expect("counted");
    assert!(caller.get("/api/v1/summary").await.ok()["health"]["informer_time"].is_string());
    server.stop().await;
}
