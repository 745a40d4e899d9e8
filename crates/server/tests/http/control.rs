//! Cancel and retry by hand.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{Hand, TestServer, fine};

#[tokio::test]
async fn a_waiting_job_is_cancelled_at_once_and_again_without_harm() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let id = caller.submit(fine()).await;
    for _ in 0..2 {
        let job = caller.post(&format!("/api/v1/jobs/{id}/cancel"), &Value::Null).await.ok();
        assert_eq!((&job["status"], &job["intent"]), (&json!("cancelled"), &json!("cancel")));
    }
    let events = caller.get(&format!("/api/v1/jobs/{id}/events")).await.ok();
    let cancels =
        events["items"].as_array().expect("items").iter().filter(|event| event["to"] == "cancelled");
    assert_eq!(cancels.count(), 1);
    server.stop().await;
}

#[tokio::test]
async fn a_running_job_is_wanted_cancelled_until_its_attempt_ends() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let id = caller.submit(fine()).await;
    let hand = Hand::register(&server).await;
    let held = hand.run(id).await;
    let job = caller.post(&format!("/api/v1/jobs/{id}/cancel"), &Value::Null).await.ok();
    assert_eq!(
        (&job["status"], &job["intent"], &job["reason"]),
        (&json!("running"), &json!("cancel"), &json!("running"))
    );
    let why = caller.get(&format!("/api/v1/jobs/{id}/why")).await.ok();
    assert_eq!(why["reason"], "cancelling");
    hand.exit(held, 1).await;
    assert_eq!(caller.get(&format!("/api/v1/jobs/{id}")).await.ok()["status"], "cancelled");
    server.stop().await;
}

#[tokio::test]
async fn a_retry_starts_a_round_once_for_the_attempt_that_was_seen() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let id = caller.submit(json!({"command": ["false"], "max_retries": 0})).await;
    let hand = Hand::register(&server).await;
    let path = format!("/api/v1/jobs/{id}");
    let retry = format!("{path}/retry");

    caller.post(&retry, &json!({})).await.expect(StatusCode::CONFLICT, "not_retryable");
    hand.exit(hand.run(id).await, 1).await;
    let failed = caller.get(&path).await.ok();
    let seen = (&failed["status"], &failed["reason"], &failed["attempt"], &failed["result"]["exit_code"]);
    assert_eq!(seen, (&json!("final_failed"), &json!("retries_exhausted"), &json!(1), &json!(1)));

    let seen = json!({"after_attempt": 1});
    let again = caller.post(&retry, &seen).await.ok();
    assert_eq!((&again["status"], &again["round"]), (&json!("waiting"), &json!(2)));
    hand.exit(hand.run(id).await, 1).await;
    // A newer attempt exists than the one that was seen: nothing is done, and that is fine.
    let late = caller.post(&retry, &seen).await.ok();
    assert_eq!((&late["status"], &late["round"]), (&json!("final_failed"), &json!(2)));
    // An empty body asks for nothing in particular.
    assert_eq!(caller.post_bytes(&retry, "").await.ok()["round"], 3);
    server.stop().await;
}
