//! Cancel, stop and retry by hand.

use jobyard_model::{EndedBy, Exit, LastExit, ServiceRun, Timestamp};
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

#[tokio::test]
async fn a_service_shows_its_restarts_and_is_stopped() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let id = caller.submit(json!({"command": ["serve"], "kind": "service"})).await;
    let path = format!("/api/v1/jobs/{id}");
    let fresh = caller.get(&path).await.ok();
    let seen =
        (&fresh["kind"], &fresh["priority"], &fresh["restarts"], &fresh["last_exit"], &fresh["next_start"]);
    assert_eq!(seen, (&json!("service"), &json!(75), &json!(0), &json!(null), &json!(null)));

    let hand = Hand::register(&server).await;
    let held = hand.run(id).await;
    let last_exit = LastExit { exit: Exit::Code(3), by: EndedBy::Itself, at: Timestamp(1_777_622_400_000) };
    let next_start = Some(Timestamp(1_777_622_404_000));
    hand.restart(held, ServiceRun { restarts: 2, last_exit, next_start }).await;
    let told =
        json!({"exit_code": 3, "signal": null, "ended_by": "itself", "time": "2026-05-01T08:00:00.000Z"});
    let waiting = caller.get(&path).await.ok();
    let attempts = caller.get(&format!("{path}/attempts")).await.ok();
    for shown in [&waiting, &attempts["items"][0]] {
        assert_eq!((&shown["restarts"], &shown["last_exit"]), (&json!(2), &told));
        assert_eq!(shown["next_start"], "2026-05-01T08:00:04.000Z");
    }
    assert_eq!((&waiting["status"], &waiting["reason"]), (&json!("running"), &json!("restarting")));
    let why = caller.get(&format!("{path}/why")).await.ok();
    assert_eq!(why["reason"], "restarting");
    assert!(why["summary"].as_str().is_some_and(|summary| summary.contains("exit 3")), "{why}");

    for _ in 0..2 {
        let wanted = caller.post(&format!("{path}/stop"), &Value::Null).await.ok();
        assert_eq!((&wanted["status"], &wanted["intent"]), (&json!("running"), &json!("stop")));
    }
    assert_eq!(caller.get(&format!("{path}/why")).await.ok()["reason"], "stopping");
    hand.exit(held, 3).await;
    let over = caller.post(&format!("{path}/stop"), &Value::Null).await.ok();
    let seen = (&over["status"], &over["restarts"], &over["next_start"], &over["result"]["outcome"]);
    assert_eq!(seen, (&json!("success"), &json!(2), &json!(null), &json!("stopped")));
    server.stop().await;
}

#[tokio::test]
async fn a_task_is_not_stopped() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let id = caller.submit(fine()).await;
    let refused = caller.post(&format!("/api/v1/jobs/{id}/stop"), &Value::Null).await;
    let refused = refused.expect(StatusCode::CONFLICT, "not_a_service");
    assert!(refused.body["detail"].as_str().is_some_and(|detail| detail.contains("cancelled")));
    let job = caller.get(&format!("/api/v1/jobs/{id}")).await.ok();
    assert_eq!((&job["status"], &job["intent"]), (&json!("waiting"), &json!("run")));
    server.stop().await;
}
