//! Submitting: keys, owners, batches, what is shown and what is warned of.

use std::collections::BTreeSet;

use jobyard_model::Role;
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::{Hand, Reply, TestServer, fine};

#[tokio::test]
async fn an_accepted_job_is_shown_with_its_defaults() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let job = json!({"command": ["/bin/echo", "hi"], "env": {"A": "b"}, "timeout": "1m30s", "resources": {"memory": "256MiB"}});
    let accepted = caller.post("/api/v1/jobs", &job).await;
    assert_eq!(accepted.status, StatusCode::CREATED);
    let job = accepted.body;
    let expected = json!({
        "owner_id": "team", "submitted_by": "submitter-team", "name": "echo", "kind": "task", "status": "waiting",
        "command": ["/bin/echo", "hi"], "env": {"A": "b"}, "max_retries": 3, "backoff": 1, "stop_grace": 10,
        "timeout": 90, "priority": 50, "pool": "default", "io_class": "mixed", "runtime": "process", "round": 1,
        "retry_count": 0, "created_time": "2026-05-01T08:00:00.000Z", "result": null, "attempt": null, "intent": "run",
        "resources": {"cpu": 0.1, "memory": 268_435_456, "cpu_limit": null},
    });
    for (field, value) in expected.as_object().expect("an object") {
        assert_eq!(&job[field], value, "{field}");
    }
    let id = job["id"].as_str().expect("an id");
    assert_eq!(caller.get(&format!("/api/v1/jobs/{id}")).await.ok()["id"], job["id"]);
    server.stop().await;
}

#[tokio::test]
async fn the_same_key_gives_the_same_job_and_another_job_a_conflict() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let job = json!({"command": ["true"], "timeout": 60, "idempotency_key": "k1"});
    let first = caller.post("/api/v1/jobs", &job).await;
    assert_eq!(first.status, StatusCode::CREATED);

    let same = json!({"idempotency_key": "k1", "timeout": "1m", "command": ["true"]});
    let again = caller.post("/api/v1/jobs", &same).await;
    assert_eq!((again.status, &again.body["id"]), (StatusCode::OK, &first.body["id"]));

    let by_header = caller.call(Method::POST, "/api/v1/jobs").header("Idempotency-Key", "k1");
    let response = by_header.body(r#"{"command":["true"],"timeout":60}"#).send().await.expect("an answer");
    let again = Reply::of(response).await;
    assert_eq!((again.status, &again.body["id"]), (StatusCode::OK, &first.body["id"]));

    let other = json!({"command": ["false"], "timeout": 60, "idempotency_key": "k1"});
    let reply = caller.post("/api/v1/jobs", &other).await;
    let reply = reply.expect(StatusCode::CONFLICT, "idempotency_key_reused");
    let detail = reply.body["detail"].as_str().unwrap_or_default();
    assert!(detail.contains(first.body["id"].as_str().expect("an id")), "{detail}");
    assert_eq!(server.job_count().await, 1);

    // Keys are an owner's own.
    let others = server.caller(Role::Submitter, &["others"]).await;
    assert_eq!(others.post("/api/v1/jobs", &job).await.status, StatusCode::CREATED);
    server.stop().await;
}

#[tokio::test]
async fn a_key_in_header_and_field_must_be_the_same() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let send = async |header: &str, body: &str| {
        let call =
            caller.call(Method::POST, "/api/v1/jobs").header("Idempotency-Key", header).body(body.to_owned());
        Reply::of(call.send().await.expect("an answer")).await
    };
    let body = r#"{"command":["true"],"idempotency_key":"a"}"#;
    let reply = send("b", body).await.expect(StatusCode::BAD_REQUEST, "invalid_request");
    assert!(reply.names("Idempotency-Key", "not_allowed"), "{}", reply.body);
    let long = "k".repeat(201);
    let reply =
        send(&long, r#"{"command":["true"]}"#).await.expect(StatusCode::BAD_REQUEST, "invalid_request");
    assert!(reply.names("Idempotency-Key", "too_long"), "{}", reply.body);
    assert_eq!(server.job_count().await, 0);
    assert_eq!(send("a", body).await.status, StatusCode::CREATED);
    server.stop().await;
}

#[tokio::test]
async fn submissions_sent_twice_at_once_make_one_job_each() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let send = |n: usize| {
        let caller = caller.clone();
        async move {
            let job = json!({"command": ["true"], "idempotency_key": format!("k{}", n / 2)});
            caller.post("/api/v1/jobs", &job).await.ok()["id"].as_str().expect("an id").to_owned()
        }
    };
    let ids = futures_util::future::join_all((0..400).map(send)).await;
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 200);
    assert_eq!(server.job_count().await, 200);
    server.stop().await;
}

#[tokio::test]
async fn a_batch_is_accepted_whole_and_in_order() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let jobs: Vec<_> = (0..10_000).map(|n| json!({"command": ["true"], "name": format!("n{n}")})).collect();
    let accepted = caller.post("/api/v1/jobs/batch", &json!({"jobs": jobs})).await;
    assert_eq!(accepted.status, StatusCode::CREATED, "{:?}", accepted.body);
    let items = accepted.body["items"].as_array().expect("items").clone();
    let ids: Vec<&str> = items.iter().filter_map(|item| item["id"].as_str()).collect();
    assert_eq!(ids.len(), 10_000);
    assert!(ids.is_sorted(), "ids of a batch ascend");
    assert!(items.iter().all(|item| item["created"] == true));
    let name = caller.get(&format!("/api/v1/jobs/{}", ids[7_000])).await.ok()["name"].clone();
    assert_eq!(name, "n7000");
    server.stop().await;
}

#[tokio::test]
async fn keys_within_a_batch_are_absorbed_one_by_one() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let one = json!({"command": ["true"], "idempotency_key": "a"});
    let first = caller.post("/api/v1/jobs", &one).await.ok()["id"].clone();
    let batch = json!({"jobs": [one, {"command": ["true"], "idempotency_key": "b"}]});
    let items = caller.post("/api/v1/jobs/batch", &batch).await.ok()["items"].clone();
    assert_eq!(
        (&items[0]["id"], &items[0]["created"], &items[1]["created"]),
        (&first, &json!(false), &json!(true))
    );

    let conflict = json!({"jobs": [{"command": ["true"]}, {"command": ["false"], "idempotency_key": "b"}]});
    let reply = caller.post("/api/v1/jobs/batch", &conflict).await;
    let reply = reply.expect(StatusCode::CONFLICT, "idempotency_key_reused");
    assert!(reply.names("/jobs/1/idempotency_key", "key_reused"), "{}", reply.body);
    assert_eq!(server.job_count().await, 2);
    server.stop().await;
}

#[tokio::test]
async fn a_token_without_owners_must_name_one() {
    let server = TestServer::start().await;
    let operator = server.caller(Role::Operator, &[]).await;
    let reply =
        operator.post("/api/v1/jobs", &fine()).await.expect(StatusCode::BAD_REQUEST, "invalid_request");
    assert!(reply.names("/owner_id", "missing"), "{}", reply.body);
    let job = json!({"command": ["true"], "owner_id": "anybody"});
    assert_eq!(operator.post("/api/v1/jobs", &job).await.status, StatusCode::CREATED);
    server.stop().await;
}

#[tokio::test]
async fn what_no_node_could_run_is_accepted_with_a_warning() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let warnings = async |job: serde_json::Value| {
        let job = caller.post("/api/v1/jobs", &job).await.ok();
        job["warnings"].as_array().cloned().unwrap_or_default()
    };
    Hand::register(&server).await;
    assert_eq!(warnings(fine()).await.len(), 0);
    assert_eq!(warnings(json!({"command": ["true"], "node_labels": {"disk": "ssd"}})).await.len(), 0);
    let label = warnings(json!({"command": ["true"], "node_labels": {"gpu": "a100"}})).await;
    assert!(label[0].as_str().is_some_and(|text| text.contains("gpu=a100")), "{label:?}");
    let size = warnings(json!({"command": ["true"], "resources": {"cpu": 1_000}})).await;
    assert!(size[0].as_str().is_some_and(|text| text.contains("1000 cores")), "{size:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_file_url_runs_only_where_the_settings_allow_it() {
    use jobyard_api::submit::FileUrls;
    use jobyard_server::ServerSettings;

    let settings = ServerSettings { file_urls: FileUrls::Allowed, ..ServerSettings::default() };
    let server = TestServer::start_with(settings).await;
    let caller = server.submitter().await;
    let id = caller.submit(json!({"binary_url": "file:///bin/true"})).await;
    let job = caller.get(&format!("/api/v1/jobs/{id}")).await.ok();
    assert_eq!((&job["binary_url"], &job["name"]), (&json!("file:///bin/true"), &json!("true")));
    server.stop().await;
}
