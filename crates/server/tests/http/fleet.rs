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

#[tokio::test]
async fn a_node_shows_what_is_on_it_and_where_that_would_go() {
    let server = TestServer::start().await;
    let hand = Hand::register(&server).await;
    Hand::register_as(&server, "node-b", 0xbcde, 1_500).await;
    let caller = server.submitter().await;
    let big = json!({"command": ["true"], "name": "big <b>", "resources": {"cpu": 1}});
    let (first, second) = (caller.submit(big.clone()).await, caller.submit(big).await);
    let urgent = json!({"command": ["true"], "priority": 90, "resources": {"cpu": 0.3}});
    let urgent = caller.submit(urgent).await;
    for id in [first, second, urgent] {
        hand.run(id).await;
    }
    let cancelled = caller.submit(fine()).await;
    hand.run(cancelled).await;
    caller.post(&format!("/api/v1/jobs/{cancelled}/cancel"), &Value::Null).await.ok();

    let path = format!("/api/v1/nodes/{}", hand.node_id);
    let node = caller.get(&path).await.ok();
    let listed = caller.get("/api/v1/nodes").await.ok()["items"].clone();
    assert!(listed.as_array().is_some_and(|nodes| nodes.contains(&node)), "{node}");
    let attempts = caller.get(&format!("{path}/attempts")).await.ok()["items"].clone();
    let attempts = attempts.as_array().expect("items");
    assert_eq!(attempts.len(), 4);
    let one = &attempts[0];
    assert_eq!(one["job_id"], json!(first));
    assert_eq!(
        (&one["job_name"], &one["owner_id"], &one["kind"]),
        (&json!("big <b>"), &json!("team"), &json!("task"))
    );
    assert_eq!(
        (&one["number"], &one["phase"], &one["intent"]),
        (&json!(1), &json!("running"), &json!("run"))
    );
    assert_eq!(one["resources"], json!({"cpu": 1, "memory": 134_217_728}));

    let preview = caller.get(&format!("{path}/drain")).await.ok();
    assert_eq!((&preview["attempts"], &preview["would_wait"]), (&json!(4), &json!(1)), "{preview}");
    let moves = preview["moves"].as_array().expect("moves").iter();
    let places: Vec<_> = moves.map(|one| (one["job_id"].clone(), one["to_node_name"].clone())).collect();
    let b = json!("node-b");
    assert_eq!(places, [(json!(first), b.clone()), (json!(second), Value::Null), (json!(urgent), b)]);
    assert_eq!(caller.get(&path).await.ok(), node, "nothing has changed");
    let other = format!("/api/v1/nodes/{}", uuid::Uuid::from_u128(0xbcde));
    assert_eq!(caller.get(&format!("{other}/attempts")).await.ok()["items"], json!([]));
    assert_eq!(
        caller.get(&format!("{other}/drain")).await.ok(),
        json!({"attempts": 0, "moves": [], "would_wait": 0})
    );
    for call in ["", "/attempts", "/drain"] {
        let nowhere = format!("/api/v1/nodes/{}{call}", uuid::Uuid::nil());
        caller.get(&nowhere).await.expect(StatusCode::NOT_FOUND, "not_found");
        let no_id = caller.get(&format!("/api/v1/nodes/x{call}")).await;
        no_id.expect(StatusCode::BAD_REQUEST, "invalid_request");
    }
    server.stop().await;
}
