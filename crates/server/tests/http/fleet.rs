//! Nodes and pools.

use jobyard_model::Role;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Hand, Reply, TestServer, fine};

#[tokio::test]
async fn a_node_is_cordoned_opened_and_drained() {
    let server = TestServer::start().await;
    let hand = Hand::register(&server).await;
    let operator = server.caller(Role::Operator, &[]).await;
    let caller = server.submitter().await;
    let id = caller.submit(fine()).await;
    hand.run(id).await;
    let path = format!("/api/v1/nodes/{}", hand.node_id);
    for (call, gate, available) in
        [("cordon", "cordoned", false), ("uncordon", "open", true), ("drain", "draining", false)]
    {
        let node = operator.post(&format!("{path}/{call}"), &Value::Null).await.ok();
        assert_eq!((&node["gate"], &node["available"]), (&json!(gate), &json!(available)), "{call}");
    }
    assert_eq!(caller.get(&format!("/api/v1/jobs/{id}")).await.ok()["intent"], "evict");
    let listed = operator.get("/api/v1/nodes").await.ok()["items"][0].clone();
    assert_eq!(
        (&listed["name"], &listed["attempts"], &listed["labels"]),
        (&json!("node-a"), &json!(1), &json!({"disk": "ssd"}))
    );
    assert_eq!(listed["reserved"], json!({"cpu": 0.1, "memory": 134_217_728}));
    server.stop().await;
}

#[tokio::test]
async fn a_node_that_was_not_heard_of_is_not_available() {
    let server = TestServer::start().await;
    Hand::register(&server).await;
    let caller = server.submitter().await;
    assert_eq!(caller.get("/api/v1/nodes").await.ok()["items"][0]["available"], true);
    server.clock.advance_ms(15_001);
    assert_eq!(caller.get("/api/v1/nodes").await.ok()["items"][0]["available"], false);
    server.stop().await;
}

#[tokio::test]
async fn a_pool_is_made_once_and_takes_jobs() {
    let server = TestServer::start().await;
    let operator = server.caller(Role::Operator, &["team"]).await;
    for _ in 0..2 {
        let response = operator.call(Method::PUT, "/api/v1/pools/gpu").send().await.expect("an answer");
        assert_eq!(response.status(), StatusCode::NO_CONTENT);
    }
    let names: Vec<Value> = operator.get("/api/v1/pools").await.ok()["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|pool| pool["name"].clone())
        .collect();
    assert_eq!(names, ["default", "gpu"]);
    operator.submit(json!({"command": ["true"], "pool": "gpu"})).await;
    let bad = operator.call(Method::PUT, "/api/v1/pools/a%0Ab").send().await.expect("an answer");
    Reply::of(bad).await.expect(StatusCode::BAD_REQUEST, "invalid_request");
    server.stop().await;
}
