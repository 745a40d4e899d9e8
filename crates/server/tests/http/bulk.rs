//! Actions on many jobs, and saved views, over HTTP.

use jobyard_model::Role;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Caller, Reply, TestServer};

async fn fill(caller: &Caller<'_>, owner: &str) {
    for name in ["one", "two"] {
        caller.submit(json!({"command": ["true"], "name": name, "owner_id": owner})).await;
    }
}

#[tokio::test]
async fn a_preview_counts_and_changes_nothing() {
    let server = TestServer::start().await;
    let (team, ops) = (server.submitter().await, server.caller(Role::Operator, &["ops"]).await);
    fill(&team, "team").await;
    fill(&ops, "others").await;
    let asked = json!({"filter": "status=waiting", "action": "cancel", "dry_run": true});
    let preview = team.post("/api/v1/bulk", &asked).await.ok();
    assert_eq!(preview, json!({"matching": 2, "capped": false, "complete": true}), "its own owners' alone");
    assert_eq!(ops.post("/api/v1/bulk", &asked).await.ok()["matching"], 4);
    let nothing = json!({"filter": "status=success", "action": "cancel", "dry_run": true});
    assert_eq!(ops.post("/api/v1/bulk", &nothing).await.ok()["matching"], 0);
    let foreign = json!({"filter": "owner=others", "action": "cancel", "dry_run": true});
    assert_eq!(team.post("/api/v1/bulk", &foreign).await.ok()["matching"], 0);
    assert_eq!(team.get("/api/v1/jobs/count?status=waiting").await.ok()["count"], 4);
    assert_eq!(team.get("/api/v1/bulk").await.ok()["items"], json!([]));
    server.stop().await;
}

#[tokio::test]
async fn an_action_is_begun_once_looked_at_and_stopped() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    fill(&caller, "team").await;
    let asked = json!({"filter": "name=one,two", "action": "cancel", "idempotency_key": "k"});
    let begun = caller.post("/api/v1/bulk", &asked).await;
    assert_eq!(begun.status, StatusCode::ACCEPTED);
    let begun = begun.ok();
    assert_eq!(
        (&begun["status"], &begun["looked_at"], &begun["filter"]),
        (&json!("running"), &json!(0), &json!("name=one,two"))
    );
    let again = caller.post("/api/v1/bulk", &asked).await;
    assert_eq!((again.status, again.ok()), (StatusCode::OK, begun.clone()));
    let path = format!("/api/v1/bulk/{}", begun["id"].as_str().expect("an id"));
    assert_eq!(caller.get(&path).await.ok(), begun);
    assert_eq!(caller.get("/api/v1/bulk").await.ok()["items"], json!([begun]));
    let stranger = server.caller(Role::Submitter, &["strangers"]).await;
    stranger.post(&format!("{path}/stop"), &json!(null)).await.expect(StatusCode::FORBIDDEN, "role_too_weak");
    assert_eq!(caller.post(&format!("{path}/stop"), &json!(null)).await.ok()["status"], "stopped");
    let gone = "/api/v1/bulk/01890a5d-ac96-774b-bcce-b302099a8057";
    caller.get(gone).await.expect(StatusCode::NOT_FOUND, "not_found");
    caller.post(&format!("{gone}/stop"), &json!(null)).await.expect(StatusCode::NOT_FOUND, "not_found");
    let audit = server.admin().await.get("/api/v1/audit").await.ok();
    let actions: Vec<&str> =
        audit["items"].as_array().expect("items").iter().filter_map(|row| row["action"].as_str()).collect();
    assert_eq!(
        actions.iter().filter(|action| action.starts_with("bulk.")).collect::<Vec<_>>(),
        [&"bulk.stop", &"bulk.cancel"]
    );
    server.stop().await;
}

#[tokio::test]
async fn an_action_that_makes_no_sense_changes_nothing() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    for (body, pointer, code) in [
        (json!({"action": "cancel"}), "/filter", "missing"),
        (json!({"filter": "", "action": "cancel"}), "/filter", "missing"),
        (json!({"filter": "colour=red", "action": "cancel"}), "/filter", "unknown_field"),
        (json!({"filter": "limit=5", "action": "cancel"}), "/filter", "unknown_field"),
        (json!({"filter": "exit=999", "action": "cancel"}), "/filter", "invalid"),
        (json!({"filter": "name=x", "action": "delete"}), "/action", "invalid"),
        (json!({"filter": "name=x", "action": "cancel", "dry_run": "yes"}), "/dry_run", "wrong_type"),
        (json!({"filter": "name=x", "action": "cancel", "everything": true}), "/everything", "unknown_field"),
        (
            json!({"filter": "name=x", "action": "cancel", "idempotency_key": ""}),
            "/idempotency_key",
            "invalid",
        ),
    ] {
        let reply =
            caller.post("/api/v1/bulk", &body).await.expect(StatusCode::BAD_REQUEST, "invalid_request");
        assert!(reply.names(pointer, code), "{body}: {}", reply.body);
    }
    let fine = json!({"filter": "name=x", "action": "cancel"});
    let viewer = server.caller(Role::Viewer, &[]).await;
    viewer.post("/api/v1/bulk", &fine).await.expect(StatusCode::FORBIDDEN, "role_too_weak");
    server.nobody().post("/api/v1/bulk", &fine).await.expect(StatusCode::UNAUTHORIZED, "unauthenticated");
    assert_eq!(caller.get("/api/v1/bulk").await.ok()["items"], json!([]));
    server.stop().await;
}

async fn put(caller: &Caller<'_>, path: &str, body: &Value, seen: Option<&str>) -> Reply {
    let request = caller.call(Method::PUT, path).json(body);
    let request = match seen {
        Some(seen) => request.header("If-Match", seen),
        None => request,
    };
    Reply::of(request.send().await.expect("an answer")).await
}

#[tokio::test]
async fn views_are_kept_shared_and_changed_as_they_were_seen() {
    let server = TestServer::start().await;
    let (ann, bob) = (server.caller(Role::Viewer, &["a"]).await, server.caller(Role::Viewer, &["b"]).await);
    let wanted = json!({"name": "Failing", "filter": "status=final_failed&label=team:rev", "shared": false});
    let response = ann.call(Method::POST, "/api/v1/views").json(&wanted).send().await.expect("an answer");
    let seen = response.headers()["etag"].to_str().expect("text").to_owned();
    let reply = Reply::of(response).await;
    assert_eq!(reply.status, StatusCode::CREATED);
    let kept = reply.ok();
    assert_eq!(
        (&kept["name"], &kept["filter"], &kept["shared"]),
        (&wanted["name"], &wanted["filter"], &json!(false))
    );
    assert_eq!(ann.get("/api/v1/views").await.ok()["items"], json!([kept]));
    assert_eq!(bob.get("/api/v1/views").await.ok()["items"], json!([]));
    ann.post("/api/v1/views", &wanted).await.expect(StatusCode::CONFLICT, "name_taken");

    let path = format!("/api/v1/views/{}", kept["id"].as_str().expect("an id"));
    let shared = json!({"name": "Failing", "filter": "", "shared": true});
    put(&bob, &path, &shared, None).await.expect(StatusCode::NOT_FOUND, "not_found");
    assert_eq!(put(&ann, &path, &shared, Some(&seen)).await.ok()["shared"], true);
    put(&ann, &path, &wanted, Some(&seen)).await.expect(StatusCode::PRECONDITION_FAILED, "changed_meanwhile");
    put(&ann, &path, &wanted, Some("nonsense")).await.expect(StatusCode::BAD_REQUEST, "invalid_request");
    assert_eq!(bob.get("/api/v1/views").await.ok()["items"][0]["filter"], "");
    put(&bob, &path, &wanted, None).await.expect(StatusCode::FORBIDDEN, "role_too_weak");
    put(&ann, &path, &shared, None).await.ok();

    for (body, pointer, code) in [
        (json!({"filter": ""}), "/name", "missing"),
        (json!({"name": "", "filter": ""}), "/name", "invalid"),
        (json!({"name": "x"}), "/filter", "missing"),
        (json!({"name": "x", "filter": "colour=red"}), "/filter", "unknown_field"),
        (json!({"name": "x", "filter": "", "owner": "me"}), "/owner", "unknown_field"),
    ] {
        let reply = ann.post("/api/v1/views", &body).await.expect(StatusCode::BAD_REQUEST, "invalid_request");
        assert!(reply.names(pointer, code), "{body}: {}", reply.body);
    }
    let remove = async |caller: &Caller<'_>| {
        Reply::of(caller.call(Method::DELETE, &path).send().await.expect("an answer")).await
    };
    remove(&bob).await.expect(StatusCode::FORBIDDEN, "role_too_weak");
    assert_eq!(remove(&server.admin().await).await.status, StatusCode::NO_CONTENT);
    remove(&ann).await.expect(StatusCode::NOT_FOUND, "not_found");
    server.stop().await;
}
