//! Nothing is open but health: not by another method, spelling or header.

use jobyard_model::Role;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Reply, TestServer, fine};

/// Every operation of the description, with its path filled in.
fn operations() -> Vec<(Method, String)> {
    let description: Value = serde_json::from_str(jobyard_server::openapi::text()).expect("JSON");
    let paths = description["paths"].as_object().expect("paths").clone();
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    let mut operations = Vec::new();
    for (path, item) in paths {
        let path = path.replace("{id}", id).replace("{sha256}", &"0".repeat(64)).replace("{name}", "pool");
        assert!(!path.contains('{'), "{path} has a part that this test can't fill in");
        for method in item.as_object().expect("an item").keys() {
            let method = method.to_uppercase().parse().expect("a method");
            operations.push((method, path.clone()));
        }
    }
    assert!(operations.len() > 25, "{operations:?}");
    operations
}

/// What is open, and how it answers who says nothing: signing in and out look for themselves.
const OPEN: [(Method, &str, StatusCode); 4] = [
    (Method::GET, "/healthz", StatusCode::OK),
    (Method::GET, "/readyz", StatusCode::OK),
    (Method::POST, "/api/v1/sessions", StatusCode::BAD_REQUEST),
    (Method::DELETE, "/api/v1/sessions", StatusCode::FORBIDDEN),
];

#[tokio::test]
async fn no_operation_of_the_description_is_open() {
    let server = TestServer::start().await;
    for (method, path) in operations() {
        for secret in [None, Some("default_token"), Some("admin"), Some("jy_0"), Some("")] {
            let caller = secret.map_or(server.nobody(), |secret| server.with_secret(secret));
            let response = caller.call(method.clone(), &path).send().await.expect("an answer");
            let open = OPEN.iter().find(|open| (&open.0, open.1) == (&method, path.as_str()));
            let expected = open.map_or(StatusCode::UNAUTHORIZED, |open| open.2);
            assert_eq!(response.status(), expected, "{method} {path} with {secret:?}");
        }
    }
    assert_eq!(server.job_count().await, 0);
    server.stop().await;
}

#[tokio::test]
async fn no_spelling_gets_around_authentication() {
    let server = TestServer::start().await;
    let targets = [
        "/api/v1/jobs",
        "//api/v1/jobs",
        "/api//v1/jobs",
        "/api/v1/jobs/",
        "/API/V1/JOBS",
        "/api/v1/jobs.",
        "/api/v1/../v1/jobs",
        "/healthz/../api/v1/jobs",
        "/api/v1/jobs;x",
        "/api/v1/jobs%2f",
        "/api%2fv1/jobs",
        "/healthz/",
        "/healthz%00",
        "//healthz",
        "/HEALTHZ",
        "/healthz/x",
        "/metrics",
        "/api/v1/openapi.json",
        "/api/v1/nothing",
        "http://elsewhere/api/v1/jobs",
    ];
    for target in targets {
        for method in ["GET", "HEAD", "OPTIONS", "POST", "TRACE", "FOO"] {
            let status = raw_status(&server, &format!("{method} {target} HTTP/1.1\r\nhost: x\r\n\r\n")).await;
            // What the HTTP parser itself refuses never gets to us.
            assert!(status == 401 || status == 400, "{method} {target}: {status}");
        }
    }
    // The pages are open, to be read.
    for target in ["/", "/index.html"] {
        for (method, expected) in [("GET", 200), ("HEAD", 200), ("POST", 401), ("OPTIONS", 401), ("FOO", 401)]
        {
            let status = raw_status(&server, &format!("{method} {target} HTTP/1.1\r\nhost: x\r\n\r\n")).await;
            assert_eq!(status, expected, "{method} {target}");
        }
    }
    let twice =
        "GET /api/v1/me HTTP/1.1\r\nhost: x\r\nauthorization: Bearer a\r\nauthorization: Bearer b\r\n\r\n";
    assert_eq!(raw_status(&server, twice).await, 401);
    server.stop().await;
}

async fn raw_status(server: &TestServer, request: &str) -> u16 {
    let mut connection = TcpStream::connect(server.address).await.expect("a connection");
    connection.write_all(request.as_bytes()).await.expect("sent");
    let mut head = [0; 12];
    connection.read_exact(&mut head).await.expect("an answer");
    std::str::from_utf8(&head[9..]).expect("digits").parse().expect("a status")
}

#[tokio::test]
async fn every_refusal_looks_the_same_and_says_what_to_do() {
    let server = TestServer::start().await;
    let without = server.nobody().get("/api/v1/jobs").await;
    let wrong = server.with_secret("jy_wrong").get("/api/v1/me").await;
    assert_eq!(without.body, wrong.body);
    assert!(without.body["detail"].as_str().is_some_and(|detail| detail.contains("Authorization: Bearer")));
    server.stop().await;
}

#[tokio::test]
async fn a_page_elsewhere_can_not_submit_on_its_readers_behalf() {
    let server = TestServer::start().await;
    for kind in ["text/plain", "application/json", "application/x-www-form-urlencoded", "multipart/form-data"]
    {
        let call = server
            .nobody()
            .call(Method::POST, "/api/v1/jobs")
            .header("origin", "https://evil.example")
            .header("cookie", "session=1; jobyard=1")
            .header("content-type", kind)
            .body(fine().to_string());
        let response = call.send().await.expect("an answer");
        assert!(response.headers().get("access-control-allow-origin").is_none());
        Reply::of(response).await.expect(StatusCode::UNAUTHORIZED, "unauthenticated");
    }
    let asked = server
        .nobody()
        .call(Method::OPTIONS, "/api/v1/jobs")
        .header("origin", "https://evil.example")
        .header("access-control-request-method", "POST");
    let response = asked.send().await.expect("an answer");
    assert!(!response.headers().keys().any(|name| name.as_str().starts_with("access-control")));
    assert_eq!(server.job_count().await, 0);
    server.stop().await;
}

#[tokio::test]
async fn each_role_may_what_it_may_and_no_more() {
    let server = TestServer::start().await;
    let id = server.submitter().await.submit(fine()).await;
    let node = "01890a5d-ac96-774b-bcce-b302099a8057";
    let calls = [
        (Method::GET, "/api/v1/jobs".to_owned(), Role::Viewer),
        (Method::GET, format!("/api/v1/jobs/{id}"), Role::Viewer),
        (Method::GET, format!("/api/v1/jobs/{id}/attempts"), Role::Viewer),
        (Method::GET, format!("/api/v1/jobs/{id}/events"), Role::Viewer),
        (Method::GET, format!("/api/v1/jobs/{id}/why"), Role::Viewer),
        (Method::GET, "/api/v1/nodes".to_owned(), Role::Viewer),
        (Method::GET, "/api/v1/pools".to_owned(), Role::Viewer),
        (Method::GET, "/api/v1/summary".to_owned(), Role::Viewer),
        (Method::GET, "/metrics".to_owned(), Role::Viewer),
        (Method::POST, "/api/v1/jobs".to_owned(), Role::Submitter),
        (Method::POST, "/api/v1/jobs/batch".to_owned(), Role::Submitter),
        (Method::POST, format!("/api/v1/jobs/{id}/retry"), Role::Submitter),
        (Method::POST, format!("/api/v1/jobs/{id}/stop"), Role::Submitter),
        (Method::POST, format!("/api/v1/jobs/{id}/cancel"), Role::Submitter),
        (Method::PUT, format!("/api/v1/artifacts/{}", "0".repeat(64)), Role::Submitter),
        (Method::GET, format!("/api/v1/artifacts/{}", "0".repeat(64)), Role::Submitter),
        (Method::POST, format!("/api/v1/nodes/{node}/drain"), Role::Operator),
        (Method::PUT, "/api/v1/pools/gpu".to_owned(), Role::Operator),
        (Method::GET, "/api/v1/tokens".to_owned(), Role::Admin),
        (Method::POST, "/api/v1/tokens".to_owned(), Role::Admin),
        (Method::GET, "/api/v1/audit".to_owned(), Role::Admin),
    ];
    for role in Role::ALL {
        let caller = server.caller(role, &["team"]).await;
        for (method, path, needed) in &calls {
            let response = caller.call(method.clone(), path).send().await.expect("an answer");
            let refused = response.status() == StatusCode::FORBIDDEN;
            assert_eq!(refused, role < *needed, "{role:?} {method} {path}: {}", response.status());
            if refused {
                Reply::of(response).await.expect(StatusCode::FORBIDDEN, "role_too_weak");
            }
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn a_foreign_job_shows_its_status_and_nothing_of_its_inside() {
    let server = TestServer::start().await;
    let job = json!({"command": ["true"], "env": {"PASSWORD": "x"}});
    let id = server.submitter().await.submit(job).await;
    let path = format!("/api/v1/jobs/{id}");
    let stranger = server.caller(Role::Submitter, &["others"]).await;
    let seen = stranger.get(&path).await.ok();
    assert_eq!((&seen["status"], seen.get("env")), (&json!("waiting"), None));
    let listed = stranger.get("/api/v1/jobs").await.ok();
    assert_eq!(listed["items"][0].get("env"), None);
    for call in ["logs", "stop", "cancel", "retry"] {
        let method = if call == "logs" { Method::GET } else { Method::POST };
        let response = stranger.call(method, &format!("{path}/{call}")).send().await.expect("an answer");
        Reply::of(response).await.expect(StatusCode::FORBIDDEN, "foreign_owner");
    }
    let reply = stranger.post("/api/v1/jobs", &json!({"command": ["true"], "owner_id": "team"})).await;
    reply.expect(StatusCode::FORBIDDEN, "foreign_owner");
    let operator = server.caller(Role::Operator, &[]).await;
    assert_eq!(operator.get(&path).await.ok()["env"], json!({"PASSWORD": "x"}));
    assert_eq!(stranger.get(&path).await.ok()["status"], "waiting");
    server.stop().await;
}
