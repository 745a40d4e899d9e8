//! Reading: lists and their pages, attempts, history, why, summary.

use std::collections::BTreeSet;

use jobyard_model::JobId;
use reqwest::StatusCode;
use serde_json::json;

use crate::support::{Caller, Hand, TestServer, fine};

async fn walk(caller: &Caller<'_>, query: &str) -> Vec<String> {
    let mut ids = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = caller.get(&format!("/api/v1/jobs?{query}{cursor}")).await.ok();
        let items = page["items"].as_array().expect("items").clone();
        ids.extend(items.iter().map(|job| job["id"].as_str().expect("an id").to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return ids,
        }
    }
}

#[tokio::test]
async fn pages_give_each_job_once_newest_first_while_more_come() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let batch = json!({"jobs": vec![fine(); 300]});
    let accepted = caller.post("/api/v1/jobs/batch", &batch).await.ok();
    let items = accepted["items"].as_array().expect("items").clone();
    let mut expected: Vec<String> =
        items.iter().map(|item| item["id"].as_str().expect("an id").to_owned()).collect();
    expected.reverse();

    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = caller.get(&format!("/api/v1/jobs?limit=7{cursor}")).await.ok();
        let items = page["items"].as_array().expect("items").clone();
        assert!(items.len() <= 7);
        found.extend(items.iter().map(|job| job["id"].as_str().expect("an id").to_owned()));
        caller.submit(fine()).await;
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(found, expected);
    server.stop().await;
}

#[tokio::test]
async fn filters_narrow_a_list() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let wanted = caller
        .submit(json!({
            "command": ["sort", "-u"], "name": "Nightly", "labels": {"team": "search", "tier": "1"},
            "origin": {"kind": "schedule", "id": "s1", "key": "2026-05-01"}, "idempotency_key": "key-1"
        }))
        .await;
    caller.submit(json!({"command": ["true"], "labels": {"team": "search"}})).await;
    let cancelled = caller.submit(json!({"command": ["true"], "name": "other"})).await;
    caller.post(&format!("/api/v1/jobs/{cancelled}/cancel"), &json!(null)).await.ok();
    let only = |id: JobId| vec![id.to_string()];
    for (query, expected) in [
        ("name=Nightly", only(wanted)),
        ("label=team:search&label=tier:1", only(wanted)),
        ("origin=schedule:s1", only(wanted)),
        ("idempotency_key=key-1", only(wanted)),
        ("q=sort", only(wanted)),
        ("q=nightLY", only(wanted)),
        ("status=cancelled", only(cancelled)),
        ("status=cancelled,success", only(cancelled)),
        ("owner=nobody", Vec::new()),
        ("created_after=2030-01-01T00:00:00Z", Vec::new()),
        ("created_before=2026-01-01T00:00:00Z", Vec::new()),
    ] {
        assert_eq!(walk(&caller, query).await, expected, "{query}");
    }
    assert_eq!(walk(&caller, "owner=team&label=team:search&status=waiting").await.len(), 2);
    server.stop().await;
}

#[tokio::test]
async fn a_job_shows_its_attempts_and_its_history() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let id = caller.submit(fine()).await;
    let hand = Hand::register(&server).await;
    let held = hand.run(id).await;
    let path = format!("/api/v1/jobs/{id}");
    let job = caller.get(&path).await.ok();
    assert_eq!(
        (&job["status"], &job["reason"], &job["attempt"]),
        (&json!("running"), &json!("running"), &json!(1))
    );
    let live = caller.get(&format!("{path}/attempts")).await.ok()["items"][0].clone();
    assert_eq!(
        (&live["phase"], &live["node_name"], &live["outcome"]),
        (&json!("running"), &json!("node-a"), &json!(null))
    );
    assert!(live.get("lease_id").is_none());

    hand.exit(held, 0).await;
    let job = caller.get(&path).await.ok();
    assert_eq!((&job["status"], &job["result"]["outcome"]), (&json!("success"), &json!("succeeded")));
    let ended = caller.get(&format!("{path}/attempts")).await.ok()["items"][0].clone();
    let seen = (&ended["outcome"], &ended["exit_code"], &ended["usage"]["wall"], &ended["phase"]);
    assert_eq!(seen, (&json!("succeeded"), &json!(0), &json!(1.5), &json!(null)));

    let mut history = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = caller.get(&format!("{path}/events?limit=2{cursor}")).await.ok();
        let items = page["items"].as_array().expect("items").clone();
        history.extend(items.iter().map(|event| event["to"].as_str().expect("a word").to_owned()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(history, ["waiting", "running", "running", "success"]);
    server.stop().await;
}

#[tokio::test]
async fn why_names_the_gate_and_each_node() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let why = async |job: serde_json::Value| {
        let id = caller.submit(job).await;
        caller.get(&format!("/api/v1/jobs/{id}/why")).await.ok()
    };
    assert_eq!(why(fine()).await["reason"], "no_nodes");
    Hand::register(&server).await;
    assert_eq!(why(fine()).await["reason"], "next_in_turn");
    let never = why(json!({"command": ["true"], "node_labels": {"gpu": "a100"}})).await;
    assert_eq!((&never["reason"], &never["nodes"][0]["lasting"]), (&json!("never_fits"), &json!(true)));
    assert!(never["nodes"][0]["obstacle"].as_str().is_some_and(|text| text.contains("gpu=a100")), "{never}");
    let artifact = why(json!({"binary_url": format!("sha256:{}", "0".repeat(64))})).await;
    assert_eq!(
        (&artifact["reason"], &artifact["gates"][0]["open"]),
        (&json!("artifact_missing"), &json!(false))
    );
    let later = why(json!({"command": ["true"], "run_at": "2027-01-01T00:00:00Z"})).await;
    assert_eq!(
        (&later["reason"], &later["gates"][1]["opens_time"]),
        (&json!("run_at"), &json!("2027-01-01T00:00:00.000Z"))
    );
    server.stop().await;
}

#[tokio::test]
async fn the_summary_counts_and_adds_up() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    Hand::register(&server).await;
    caller.submit(fine()).await;
    let id = caller.submit(fine()).await;
    caller.post(&format!("/api/v1/jobs/{id}/cancel"), &json!(null)).await.ok();
    let summary = caller.get("/api/v1/summary").await.ok();
    let counts = summary["jobs"].as_array().expect("counts").clone();
    let count = |status: &str| {
        let found = counts.iter().find(|count| count["status"] == status);
        found.unwrap_or_else(|| panic!("{status} is not counted"))["count"].clone()
    };
    assert_eq!((count("waiting"), count("cancelled"), count("running")), (json!(1), json!(1), json!(0)));
    assert_eq!((&summary["nodes"], &summary["nodes_heard"]), (&json!(1), &json!(1)));
    assert_eq!(summary["capacity"], json!({"cpu": 4, "memory": 4_294_967_296_u64}));
    assert_eq!(
        (&summary["datastore"], &summary["version"]),
        (&json!("sqlite"), &json!(env!("CARGO_PKG_VERSION")))
    );
    server.stop().await;
}

#[tokio::test]
async fn health_is_open_and_metrics_count_by_route() {
    let server = TestServer::start().await;
    assert_eq!(server.nobody().get("/healthz").await.status, StatusCode::OK);
    assert_eq!(server.nobody().get("/readyz").await.status, StatusCode::OK);
    let caller = server.submitter().await;
    let ids: BTreeSet<JobId> = [caller.submit(fine()).await, caller.submit(fine()).await].into();
    for id in ids {
        caller.get(&format!("/api/v1/jobs/{id}")).await.ok();
    }
    let metrics = caller.get("/metrics").await.body.as_str().expect("text").to_owned();
    for line in [
        r#"jobyard_http_calls_total{method="GET",route="/api/v1/jobs/{id}",status="200"} 2"#,
        "jobyard_jobs_submitted_total 2",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    server.stop().await;
}
