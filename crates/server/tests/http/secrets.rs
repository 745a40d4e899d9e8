//! Secrets of jobs: taken in, told to the one attempt that is about to start, and found nowhere else.

use axum::http::StatusCode;
use jobyard_api::doors::{DoorError, ReportDoor};
use jobyard_api::grpc::convert;
use jobyard_api::proto;
use jobyard_model::Role;
use jobyard_server::report::ReportDesk;
use jobyard_server::{DirectoryStore, LogRetention, SecretKeys};
use jobyard_store::Report;
use serde_json::{Value, json};

use crate::support::{Hand, Held, TestServer, fine, secret_keys};

const SECRET: &str = "hunter2-in-the-clear";

fn hiding(secret: &str) -> Value {
    let mut job = fine();
    job["secret_env"] = json!({ "TOKEN": secret });
    job
}

fn desk(server: &TestServer, keys: Option<SecretKeys>) -> ReportDesk {
    let artifacts = std::sync::Arc::new(server.artifacts()) as std::sync::Arc<DirectoryStore>;
    let retention = LogRetention::new(server.clock.clone(), 7);
    ReportDesk::new(server.store.clone(), artifacts, retention).with_secret_keys(keys)
}

async fn fetch(desk: &ReportDesk, held: Held) -> Result<proto::FetchSecretsReply, DoorError> {
    let lease_id = convert::id_bytes(held.lease_id.0);
    desk.fetch_secrets(proto::FetchSecretsRequest { lease_id }).await
}

fn refusal(answer: Result<proto::FetchSecretsReply, DoorError>) -> String {
    match answer {
        Err(DoorError::Refused { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn no_answer_and_no_file_has_them() {
    let server = TestServer::start().await;
    let (caller, admin, hand) =
        (server.submitter().await, server.admin().await, Hand::register(&server).await);
    let accepted = caller.post("/api/v1/jobs", &hiding(SECRET)).await;
    assert_eq!(accepted.status, StatusCode::CREATED);
    let id = accepted.body["id"].as_str().expect("an id").to_owned();
    let mut seen = accepted.body.to_string();
    let held = hand.place(id.parse().expect("an id")).await;
    hand.report(held, Report::Accepted).await;
    fetch(&desk(&server, Some(secret_keys())), held).await.expect("told");
    hand.report(held, Report::Started).await;
    hand.exit(held, 1).await;
    for path in ["", "/attempts", "/events", "/why"] {
        seen.push_str(&caller.get(&format!("/api/v1/jobs/{id}{path}")).await.ok().to_string());
    }
    for path in ["/api/v1/jobs", "/api/v1/jobs?q=hunter2", "/api/v1/audit", "/api/v1/summary", "/metrics"] {
        seen.push_str(&admin.get(path).await.ok().to_string());
    }
    assert!(seen.contains(&id));
    for hidden in [SECRET, "hunter2", "TOKEN", "secret_env"] {
        assert!(!seen.contains(hidden), "{hidden} in {seen}");
    }
    let mut kept = Vec::new();
    for entry in std::fs::read_dir(server.directory.path()).expect("its files") {
        kept.extend(std::fs::read(entry.expect("a file").path()).unwrap_or_default());
    }
    let found = |text: &str| kept.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(found(&id.replace('-', "")) || found("job_secret"), "the right files");
    assert!(!found(SECRET) && !found("TOKEN"));
    server.stop().await;
}

#[tokio::test]
async fn they_are_told_to_an_attempt_that_is_about_to_start_and_to_nobody_else() {
    let server = TestServer::start().await;
    let (caller, hand) = (server.submitter().await, Hand::register(&server).await);
    let desk_with = |keys| desk(&server, keys);
    let ours = desk_with(Some(secret_keys()));
    let held = hand.place(caller.submit(hiding(SECRET)).await).await;
    let without = hand.place(caller.submit(fine()).await).await;
    assert!(refusal(fetch(&ours, held).await).contains("about to start"), "it was not accepted");
    for held in [held, without] {
        hand.report(held, Report::Accepted).await;
    }
    assert_eq!(fetch(&ours, held).await.expect("told").secrets["TOKEN"], SECRET);
    refusal(fetch(&ours, without).await);

    let none = refusal(fetch(&desk_with(None), held).await);
    assert!(none.contains("server.secret_key_file"), "{none}");
    let other = SecretKeys::parse(&"0f".repeat(32)).expect("a key");
    let wrong = refusal(fetch(&desk_with(Some(other)), held).await);
    assert!(wrong.contains("is not in this server's `server.secret_key_file`"), "{wrong}");
    let rotated = SecretKeys::parse(&format!("{}\n{}", "0f".repeat(32), "5e".repeat(32))).expect("keys");
    assert_eq!(fetch(&desk_with(Some(rotated)), held).await.expect("told").secrets["TOKEN"], SECRET);

    hand.report(held, Report::Started).await;
    refusal(fetch(&ours, held).await);
    hand.exit(held, 0).await;
    refusal(fetch(&ours, held).await);
    server.stop().await;
}

#[tokio::test]
async fn the_same_key_with_other_secrets_is_another_job() {
    let server = TestServer::start().await;
    let caller = server.caller(Role::Submitter, &["team"]).await;
    let keyed = |mut job: Value| {
        job["idempotency_key"] = json!("nightly");
        job
    };
    let first = caller.post("/api/v1/jobs", &keyed(hiding(SECRET))).await;
    assert_eq!(first.status, StatusCode::CREATED);
    let again = caller.post("/api/v1/jobs", &keyed(hiding(SECRET))).await;
    assert_eq!((again.status, &again.body["id"]), (StatusCode::OK, &first.body["id"]));
    let mut in_env = fine();
    in_env["env"] = json!({ "TOKEN": SECRET });
    for other in [hiding("other"), fine(), in_env] {
        let refused = caller.post("/api/v1/jobs", &keyed(other)).await;
        let refused = refused.expect(StatusCode::CONFLICT, "idempotency_key_reused");
        assert!(!refused.body.to_string().contains("hunter2"));
    }
    assert_eq!(server.job_count().await, 1);
    server.stop().await;
}
