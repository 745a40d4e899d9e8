//! Tokens, who one is, and the audit trail.

use jobyard_model::Role;
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::{Reply, TestServer, fine};

#[tokio::test]
async fn a_token_is_made_used_listed_without_its_secret_and_revoked() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let wanted = json!({"name": "nightly", "role": "submitter", "owners": ["search"], "expires_in": "1h"});
    let created = admin.post("/api/v1/tokens", &wanted).await;
    assert_eq!(created.status, StatusCode::CREATED);
    let secret = created.body["secret"].as_str().expect("a secret").to_owned();
    assert_eq!(created.body["token"]["expires_time"], "2026-05-01T09:00:00.000Z");

    let nightly = server.with_secret(&secret);
    let me = nightly.get("/api/v1/me").await.ok();
    assert_eq!(me, json!({"name": "nightly", "role": "submitter", "owners": ["search"]}));
    let listed = admin.get("/api/v1/tokens").await.ok();
    assert!(!listed.to_string().contains(&secret[3..]));
    assert!(
        listed["items"].as_array().is_some_and(|items| items.iter().any(|token| token["name"] == "nightly"))
    );

    let id = created.body["token"]["id"].as_str().expect("an id").to_owned();
    let revoke = admin.call(Method::DELETE, &format!("/api/v1/tokens/{id}"));
    assert_eq!(revoke.send().await.expect("an answer").status(), StatusCode::NO_CONTENT);
    nightly.get("/api/v1/me").await.expect(StatusCode::UNAUTHORIZED, "unauthenticated");
    server.stop().await;
}

#[tokio::test]
async fn a_token_ends_when_its_time_is_over() {
    let server = TestServer::start().await;
    let wanted = json!({"name": "short", "role": "viewer", "expires_in": 60});
    let created = server.admin().await.post("/api/v1/tokens", &wanted).await.ok();
    let short = server.with_secret(created["secret"].as_str().expect("a secret"));
    server.clock.advance_ms(59_000);
    assert_eq!(short.get("/api/v1/me").await.status, StatusCode::OK);
    server.clock.advance_ms(1_000);
    short.get("/api/v1/me").await.expect(StatusCode::UNAUTHORIZED, "unauthenticated");
    server.stop().await;
}

#[tokio::test]
async fn a_bad_token_is_refused_with_every_fault() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    for (body, pointer, code) in [
        (json!({"role": "viewer"}), "/name", "missing"),
        (json!({"name": "x"}), "/role", "missing"),
        (json!({"name": "x", "role": "root"}), "/role", "invalid"),
        (json!({"name": "x\n", "role": "viewer"}), "/name", "forbidden_character"),
        (json!({"name": 1, "role": "viewer"}), "/name", "wrong_type"),
        (json!({"name": "x", "role": "submitter"}), "/owners", "missing"),
        (json!({"name": "x", "role": "viewer", "owners": "team"}), "/owners", "wrong_type"),
        (json!({"name": "x", "role": "viewer", "owners": ["a\0"]}), "/owners/0", "forbidden_character"),
        (json!({"name": "x", "role": "viewer", "expires_in": 0}), "/expires_in", "out_of_range"),
        (json!({"name": "x", "role": "viewer", "expires": 1}), "/expires", "unknown_field"),
    ] {
        let reply =
            admin.post("/api/v1/tokens", &body).await.expect(StatusCode::BAD_REQUEST, "invalid_request");
        assert!(reply.names(pointer, code), "{body}: {}", reply.body);
    }
    let listed = admin.get("/api/v1/tokens").await.ok();
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1), "only the admin's own");
    server.stop().await;
}

#[tokio::test]
async fn changing_calls_are_audited_with_who_and_from_where() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let admin = server.admin().await;
    let id = caller.submit(fine()).await;
    caller.post(&format!("/api/v1/jobs/{id}/cancel"), &json!(null)).await.ok();
    let put = admin.call(Method::PUT, "/api/v1/pools/gpu").send().await.expect("an answer");
    assert_eq!(put.status(), StatusCode::NO_CONTENT);
    let trail = admin.get("/api/v1/audit").await.ok()["items"].as_array().expect("items").clone();
    let by = |who: &str| {
        trail.iter().filter(|entry| entry["who"] == who && entry["address"] == "127.0.0.1").count()
    };
    assert_eq!((by("submitter-team"), by("admin-ops")), (2, 1), "{trail:#?}");

    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = admin.get(&format!("/api/v1/audit?limit=2{cursor}")).await.ok();
        seen.extend(page["items"].as_array().expect("items").iter().map(|entry| entry["number"].clone()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(seen, trail.iter().map(|entry| entry["number"].clone()).collect::<Vec<_>>());
    server.stop().await;
}

#[tokio::test]
async fn a_node_token_may_only_join() {
    let server = TestServer::start().await;
    let node = server.caller(Role::Node, &[]).await;
    assert_eq!(node.get("/api/v1/me").await.ok()["role"], "node");
    let response = node.call(Method::GET, "/api/v1/jobs").send().await.expect("an answer");
    Reply::of(response).await.expect(StatusCode::FORBIDDEN, "role_too_weak");
    server.stop().await;
}

#[tokio::test]
async fn the_audit_trail_is_searched() {
    let server = TestServer::start().await;
    let (admin, caller) = (server.admin().await, server.submitter().await);
    let first = caller.submit(fine()).await;
    caller.post(&format!("/api/v1/jobs/{first}/cancel"), &json!(null)).await.ok();
    server.clock.advance_ms(3_600_000);
    caller.submit(fine()).await;
    admin.post("/api/v1/tokens", &json!({"name": "t", "role": "viewer"})).await.ok();
    let found = async |query: &str| {
        let page = admin.get(&format!("/api/v1/audit?{query}")).await.ok();
        let items = page["items"].as_array().expect("items").clone();
        items.iter().map(|item| item["action"].as_str().expect("an action").to_owned()).collect::<Vec<_>>()
    };
    for (query, expected) in [
        ("who=submitter-team", &["job.submit", "job.cancel", "job.submit"][..]),
        ("who=submitter", &[]),
        ("action=job.submit", &["job.submit", "job.submit"]),
        ("action=job.cancel,token.create&who=admin-ops", &["token.create"]),
        ("action=job.", &["job.submit", "job.cancel", "job.submit"]),
        ("action=job", &[]),
        (&format!("target={first}"), &["job.cancel", "job.submit"]),
        (&format!("target={first}&limit=1"), &["job.cancel"]),
        ("address=127.0.0.1&action=token.create", &["token.create"]),
        ("address=10.0.0.1", &[]),
        ("since=2026-05-01T09:00:00Z", &["token.create", "job.submit"]),
        ("until=2026-05-01T09:00:00Z&action=job.", &["job.cancel", "job.submit"]),
        ("until=2026-05-01T07:00:00Z", &[]),
    ] {
        assert_eq!(found(query).await, expected, "{query}");
    }
    let first_page = admin.get(&format!("/api/v1/audit?target={first}&limit=1")).await.ok();
    let cursor = first_page["next_cursor"].as_str().expect("a cursor");
    assert_eq!(found(&format!("target={first}&cursor={cursor}")).await, ["job.submit"]);
    for (query, pointer) in [("since=now", "?since"), ("limit=0", "?limit"), ("actor=x", "?actor")] {
        let reply = admin.get(&format!("/api/v1/audit?{query}")).await;
        assert!(reply.body["errors"][0]["pointer"] == pointer, "{}", reply.body);
    }
    server.stop().await;
}
