//! Bad input as data: a clear error, and nothing changed.

use jobyard_model::Role;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{TestServer, fine};

/// Bodies of `POST /jobs`, where the fault is, and its kind.
fn bodies() -> Vec<(String, &'static str, &'static str)> {
    let with = |name: &str, value: Value| {
        let mut job = fine();
        job[name] = value;
        job.to_string()
    };
    let env: Value = (0..2_000).map(|n| (format!("E{n}"), json!("x".repeat(1_000)))).collect();
    let labels: Value = (0..100_000).map(|n| (format!("l{n}"), json!("x"))).collect();
    vec![
        (with("nme", json!("x")), "/nme", "unknown_field"),
        (r#"{"command":["true"],"name":"a","name":"b"}"#.to_owned(), "/name", "duplicate_field"),
        (with("name", json!(7)), "/name", "wrong_type"),
        (with("command", json!([])), "/command", "missing"),
        (with("command", json!("true")), "/command", "wrong_type"),
        (with("name", json!("a\nb")), "/name", "forbidden_character"),
        (with("name", json!("a\0b")), "/name", "forbidden_character"),
        (with("labels", json!({"a\0": "b"})), "/labels/a\0", "forbidden_character"),
        (with("env", json!({"A=B": "c"})), "/env/A=B", "forbidden_character"),
        (with("env", json!({"A\n": "c"})), "/env/A\n", "forbidden_character"),
        (with("command", json!(["a\0"])), "/command/0", "forbidden_character"),
        (with("timeout", json!(-1)), "/timeout", "out_of_range"),
        (with("timeout", json!(0)), "/timeout", "out_of_range"),
        (with("max_retries", json!(1e15)), "/max_retries", "out_of_range"),
        (r#"{"command":["true"],"priority":99999999999999999999}"#.to_owned(), "/priority", "out_of_range"),
        (with("resources", json!({"memory": "1e99"})), "/resources/memory", "invalid"),
        (with("env", env), "/env", "too_long"),
        (with("labels", labels), "/labels", "too_many"),
        (with("pool", json!("gpu")), "/pool", "unknown"),
        (with("binary_url", json!("file://bin/true")), "/binary_url", "not_allowed"),
        (with("run_at", json!("tomorrow")), "/run_at", "invalid"),
        (r#"{"command":["\ud800"]}"#.to_owned(), "", "syntax"),
        (format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)), "", "syntax"),
        ("not json".to_owned(), "", "syntax"),
        (String::new(), "", "syntax"),
    ]
}

#[tokio::test]
async fn each_bad_submission_is_refused_by_name_and_changes_nothing() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    for (body, pointer, code) in bodies() {
        let start: String = body.chars().take(80).collect();
        let reply = caller.post_bytes("/api/v1/jobs", body).await;
        let reply = reply.expect(StatusCode::BAD_REQUEST, "invalid_request");
        assert!(reply.names(pointer, code), "{start}\nwanted {code} at {pointer}\n{}", reply.body);
    }
    assert_eq!(server.job_count().await, 0);
    server.stop().await;
}

#[tokio::test]
async fn what_is_not_built_yet_has_a_code_of_its_own() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    for (field, value) in [("runtime", json!("container")), ("runtime", json!("gvisor"))] {
        let mut job = fine();
        job[field] = value;
        let reply = caller.post("/api/v1/jobs", &job).await;
        let reply = reply.expect(StatusCode::BAD_REQUEST, "not_available_yet");
        assert!(reply.names(&format!("/{field}"), "not_available_yet"), "{}", reply.body);
    }
    assert_eq!(server.job_count().await, 0);
    server.stop().await;
}

#[tokio::test]
async fn an_unknown_pool_is_told_which_pools_exist() {
    let server = TestServer::start().await;
    let job = json!({"command": ["true"], "pool": "gpu"});
    let reply = server.submitter().await.post("/api/v1/jobs", &job).await;
    let detail = reply.body["errors"][0]["detail"].as_str().unwrap_or_default().to_owned();
    assert!(detail.contains("`gpu`") && detail.contains("default"), "{detail}");
    server.stop().await;
}

#[tokio::test]
async fn one_bad_job_among_10_000_is_named_and_none_is_accepted() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let mut jobs = vec![fine(); 10_000];
    jobs[6_543] = json!({"command": ["true"], "priority": 1_000});
    let reply = caller.post("/api/v1/jobs/batch", &json!({"jobs": jobs})).await;
    let reply = reply.expect(StatusCode::BAD_REQUEST, "invalid_request");
    assert!(reply.names("/jobs/6543/priority", "out_of_range"), "{}", reply.body);
    assert_eq!(reply.body["errors"].as_array().map(Vec::len), Some(1));

    jobs[6_543] = json!({"command": ["true"], "pool": "gpu"});
    let reply = caller.post("/api/v1/jobs/batch", &json!({"jobs": jobs})).await;
    assert!(reply.names("/jobs/6543/pool", "unknown"), "{}", reply.body);

    jobs[6_543] = json!({"command": ["true"], "owner_id": "others"});
    let reply = caller.post("/api/v1/jobs/batch", &json!({"jobs": jobs})).await;
    let reply = reply.expect(StatusCode::FORBIDDEN, "foreign_owner");
    assert!(reply.names("/jobs/6543/owner_id", "foreign_owner"), "{}", reply.body);
    assert_eq!(server.job_count().await, 0);
    server.stop().await;
}

/// Calls that can't be read, and the fault each is told.
const CALLS: &[(&str, &str, &str)] = &[
    ("/api/v1/jobs/nonsense", "path", "invalid"),
    ("/api/v1/jobs/01890a5dac96774bbcceb302099a8057", "path", "invalid"),
    ("/api/v1/jobs/nonsense/attempts", "path", "invalid"),
    ("/api/v1/jobs/nonsense/logs", "path", "invalid"),
    ("/api/v1/jobs/nonsense/why", "path", "invalid"),
    ("/api/v1/jobs/nonsense/events", "path", "invalid"),
    ("/api/v1/artifacts/ABC", "path", "invalid"),
    ("/api/v1/jobs?cursor=nonsense", "?cursor", "invalid"),
    ("/api/v1/jobs?limit=0", "?limit", "out_of_range"),
    ("/api/v1/jobs?limit=501", "?limit", "out_of_range"),
    ("/api/v1/jobs?limit=-1", "?limit", "out_of_range"),
    ("/api/v1/jobs?limit=99999999999999999999", "?limit", "out_of_range"),
    ("/api/v1/jobs?status=finished", "?status", "invalid"),
    ("/api/v1/jobs?label=:novalue", "?label", "invalid"),
    ("/api/v1/jobs/rows?exit=256", "?exit", "invalid"),
    ("/api/v1/jobs/rows?name=*end", "?name", "invalid"),
    ("/api/v1/jobs/rows?colour=red", "?colour", "unknown_field"),
    ("/api/v1/jobs/count?limit=5", "?limit", "unknown_field"),
    ("/api/v1/jobs/count?lane=5", "?lane", "invalid"),
    ("/api/v1/jobs/values", "?key", "missing"),
    ("/api/v1/jobs/values?key=colour", "?key", "invalid"),
    ("/api/v1/jobs/values?key=name&limit=51", "?limit", "out_of_range"),
    ("/api/v1/jobs?origin=nocolon", "?origin", "invalid"),
    ("/api/v1/jobs?created_after=yesterday", "?created_after", "invalid"),
    ("/api/v1/jobs?created_before=2026-05-01", "?created_before", "invalid"),
    ("/api/v1/jobs?statu=ready", "?statu", "unknown_field"),
    ("/api/v1/jobs?owner=a&owner=b", "?owner", "duplicate_field"),
    ("/api/v1/jobs?q=%00", "?q", "forbidden_character"),
    ("/api/v1/events?cursor=nonsense", "?cursor", "invalid"),
    ("/api/v1/events?cursor=1-99999999999999999999", "?cursor", "invalid"),
    ("/api/v1/events?job=nonsense", "?job", "invalid"),
];

#[tokio::test]
async fn bad_ids_cursors_times_and_parameters_are_named() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    for (path, pointer, code) in CALLS {
        let reply = caller.get(path).await.expect(StatusCode::BAD_REQUEST, "invalid_request");
        assert!(reply.names(pointer, code), "{path}: {}", reply.body);
    }
    server.stop().await;
}

#[tokio::test]
async fn what_does_not_exist_is_not_found() {
    let server = TestServer::start().await;
    let caller = server.admin().await;
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    let nothing = "0".repeat(64);
    let calls = [
        (Method::GET, format!("/api/v1/jobs/{id}")),
        (Method::GET, format!("/api/v1/jobs/{id}/attempts")),
        (Method::GET, format!("/api/v1/jobs/{id}/events")),
        (Method::GET, format!("/api/v1/jobs/{id}/why")),
        (Method::GET, format!("/api/v1/jobs/{id}/logs")),
        (Method::POST, format!("/api/v1/jobs/{id}/cancel")),
        (Method::POST, format!("/api/v1/jobs/{id}/stop")),
        (Method::POST, format!("/api/v1/jobs/{id}/retry")),
        (Method::POST, format!("/api/v1/nodes/{id}/cordon")),
        (Method::DELETE, format!("/api/v1/tokens/{id}")),
        (Method::GET, format!("/api/v1/artifacts/{nothing}")),
        (Method::GET, "/api/v1/nothing".to_owned()),
        (Method::POST, "/".to_owned()),
    ];
    for (method, path) in calls {
        let response = caller.call(method, &path).send().await.expect("an answer");
        crate::support::Reply::of(response).await.expect(StatusCode::NOT_FOUND, "not_found");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_wrong_method_is_a_problem_too() {
    let server = TestServer::start().await;
    let caller = server.caller(Role::Viewer, &[]).await;
    let response = caller.call(Method::PATCH, "/api/v1/jobs").send().await.expect("an answer");
    crate::support::Reply::of(response).await.expect(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed");
    server.stop().await;
}

#[tokio::test]
async fn retry_takes_only_what_it_knows() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let id = caller.submit(fine()).await;
    for (body, pointer, code) in [
        (r#"{"after_atempt":1}"#, "/after_atempt", "unknown_field"),
        (r#"{"after_attempt":-1}"#, "/after_attempt", "out_of_range"),
        (r#"{"after_attempt":"1"}"#, "/after_attempt", "wrong_type"),
        ("[]", "", "wrong_type"),
        ("nonsense", "", "syntax"),
    ] {
        let reply = caller.post_bytes(&format!("/api/v1/jobs/{id}/retry"), body).await;
        let reply = reply.expect(StatusCode::BAD_REQUEST, "invalid_request");
        assert!(reply.names(pointer, code), "{body}: {}", reply.body);
    }
    server.stop().await;
}
