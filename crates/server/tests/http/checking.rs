//! What a submit would come to, and what it may say.

use jobyard_model::Role;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Hand, Reply, TestServer, fine};

const CHECK: &str = "/api/v1/jobs/check";

#[tokio::test]
async fn a_check_says_what_a_job_would_wait_for_and_keeps_nothing() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let reason = async |job: Value| {
        let checked = caller.post(CHECK, &job).await.ok();
        assert_eq!(checked["owner_id"], "team");
        (checked["why"]["reason"].as_str().expect("a reason").to_owned(), checked)
    };
    let (no_nodes, checked) = reason(fine()).await;
    assert_eq!(no_nodes, "no_nodes");
    assert_eq!(checked["warnings"].as_array().map(Vec::len), Some(1), "{checked}");
    let hand = Hand::register(&server).await;
    let soon = json!({"command": ["true"], "run_at": "2027-01-01T00:00:00Z"});
    let absent = json!({"binary_url": format!("sha256:{}", "0".repeat(64))});
    let big = json!({"command": ["true"], "resources": {"cpu": 4}});
    for (job, expected) in [
        (fine(), "next_in_turn"),
        (json!({"command": ["true"], "resources": {"cpu": 400}}), "never_fits"),
        (big.clone(), "next_in_turn"),
        (soon, "run_at"),
        (absent, "artifact_missing"),
        (json!({"command": ["true"], "secret_env": {"TOKEN": "x"}, "idempotency_key": "k"}), "next_in_turn"),
    ] {
        assert_eq!(reason(job.clone()).await.0, expected, "{job}");
    }
    hand.run(caller.submit(fine()).await).await;
    let (full, checked) = reason(big).await;
    assert_eq!(full, "no_capacity");
    assert_eq!(checked["why"]["nodes"][0]["name"], "node-a");
    assert_eq!(server.job_count().await, 1, "only the one that was submitted");
    server.stop().await;
}

#[tokio::test]
async fn a_check_refuses_what_a_submit_refuses() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let jobs = [
        json!({}),
        json!({"command": [], "timeout": "soon", "nmae": "x"}),
        json!({"command": ["true"], "pool": "gpu"}),
        json!({"command": ["true"], "owner_id": "others"}),
        json!({"command": ["true"], "binary_url": "s3://bucket/program"}),
        json!([1]),
    ];
    for job in jobs {
        let (checked, submitted) = (caller.post(CHECK, &job).await, caller.post("/api/v1/jobs", &job).await);
        assert!(checked.status.is_client_error(), "{job}");
        assert_eq!((checked.status, checked.body), (submitted.status, submitted.body), "{job}");
    }
    let large = caller.post_bytes(CHECK, vec![b' '; (4 << 20) + 1]).await;
    large.expect(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large");
    let viewer = server.caller(Role::Viewer, &[]).await.post(CHECK, &fine()).await;
    viewer.expect(StatusCode::FORBIDDEN, "role_too_weak");
    assert_eq!(server.job_count().await, 0);
    server.stop().await;
}

#[tokio::test]
async fn the_schema_of_a_job_stands_by_itself() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let response = caller.call(Method::GET, "/api/v1/schemas/job").send().await.expect("an answer");
    assert_eq!(response.headers()["content-type"], "application/schema+json");
    let schema = Reply::of(response).await.ok();
    let job = &schema["$defs"]["JobSubmit"];
    assert_eq!((&schema["$ref"], &job["additionalProperties"]), (&json!("#/$defs/JobSubmit"), &json!(false)));
    for field in ["command", "resources", "env", "run_at", "secret_env"] {
        assert!(job["properties"].get(field).is_some(), "{field}");
    }
    let text = schema.to_string();
    assert!(!text.contains("#/components"), "{text}");
    for reference in text.split("\"$ref\":\"#/$defs/").skip(1) {
        let name = reference.split('"').next().expect("a name");
        assert!(schema["$defs"].get(name).is_some(), "{name}");
    }
    server.stop().await;
}
