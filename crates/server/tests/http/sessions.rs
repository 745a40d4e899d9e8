//! People in browsers: sessions by cookie, what a page elsewhere can't do with them, and the path below a proxy.

use jobyard_model::Role;
use jobyard_server::ServerSettings;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

use crate::support::{Caller, Hand, Reply, TestServer, fine, in_time};

const SESSIONS: &str = "/api/v1/sessions";
/// What browsers say when a page of this server calls.
const OWN: (&str, &str) = ("sec-fetch-site", "same-origin");

async fn send(call: RequestBuilder) -> Response {
    call.send().await.expect("an answer")
}

/// Signs in; gives the cookie's line.
async fn sign_in(server: &TestServer, key: &Value) -> String {
    let response = send(server.nobody().call(Method::POST, SESSIONS).body(key.to_string())).await;
    assert_eq!(response.status(), StatusCode::CREATED);
    response.headers()["set-cookie"].to_str().expect("ASCII").to_owned()
}

/// What the browser sends back of it.
fn kept(line: &str) -> String {
    line.split(';').next().expect("a first part").to_owned()
}

async fn session_of(server: &TestServer, caller: &Caller<'_>) -> String {
    kept(&sign_in(server, &json!({"token": caller.secret()})).await)
}

async fn me(server: &TestServer, cookie: &str) -> Reply {
    Reply::of(send(server.nobody().call(Method::GET, "/api/v1/me").header("cookie", cookie)).await).await
}

#[tokio::test]
async fn a_token_is_exchanged_for_a_session_that_ends() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let body = json!({"token": caller.secret()});
    let response = send(server.nobody().call(Method::POST, SESSIONS).body(body.to_string())).await;
    let line = response.headers()["set-cookie"].to_str().expect("ASCII").to_owned();
    let begun = Reply::of(response).await.ok();
    assert_eq!(begun["me"], caller.get("/api/v1/me").await.ok());
    assert_eq!(begun["expires_time"], "2026-05-08T08:00:00.000Z");
    assert!(line.ends_with("; Path=/; Max-Age=604800; HttpOnly; SameSite=Strict"), "{line}");
    let cookie = kept(&line);
    assert!(!cookie.contains(&caller.secret()[3..]), "the token itself is not kept in the browser");
    assert_eq!(me(&server, &cookie).await.ok(), begun["me"]);

    let out = server.nobody().call(Method::DELETE, SESSIONS).header("cookie", &cookie).header(OWN.0, OWN.1);
    let response = send(out).await;
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    let cleared = response.headers()["set-cookie"].to_str().expect("ASCII");
    assert!(cleared.starts_with("jobyard_session=; Path=/; Max-Age=0;"), "{cleared}");
    me(&server, &cookie).await.expect(StatusCode::UNAUTHORIZED, "unauthenticated");
    let again = server.nobody().call(Method::DELETE, SESSIONS).header("cookie", &cookie).header(OWN.0, OWN.1);
    assert_eq!(send(again).await.status(), StatusCode::NO_CONTENT);
    assert_eq!(caller.get("/api/v1/me").await.status, StatusCode::OK, "the token stays");
    server.stop().await;
}

#[tokio::test]
async fn a_session_ends_with_its_time_and_with_its_token() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let wanted = json!({"name": "ann", "role": "viewer"});
    let created = admin.post("/api/v1/tokens", &wanted).await.ok();
    let ann = server.with_secret(created["secret"].as_str().expect("a secret"));
    let (of_ann, of_admin) = (session_of(&server, &ann).await, session_of(&server, &admin).await);
    let id = created["token"]["id"].as_str().expect("an id");
    let revoke = server.nobody().call(Method::DELETE, &format!("/api/v1/tokens/{id}"));
    let revoke = revoke.header("cookie", &of_admin).header(OWN.0, OWN.1);
    assert_eq!(send(revoke).await.status(), StatusCode::NO_CONTENT, "by cookie, from a page of ours");
    me(&server, &of_ann).await.expect(StatusCode::UNAUTHORIZED, "unauthenticated");
    server.clock.advance_ms(7 * 24 * 3_600_000 - 1);
    me(&server, &of_admin).await.ok();
    server.clock.advance_ms(1);
    me(&server, &of_admin).await.expect(StatusCode::UNAUTHORIZED, "unauthenticated");
    server.stop().await;
}

#[tokio::test]
async fn a_login_code_works_once_and_soon() {
    let server = TestServer::start().await;
    let caller = server.caller(Role::Operator, &["ops"]).await;
    let code = async || caller.post("/api/v1/sessions/links", &json!({})).await.ok()["login"].clone();
    let login = json!({"login": code().await});
    let cookie = kept(&sign_in(&server, &login).await);
    assert_eq!(me(&server, &cookie).await.ok()["name"], "operator-ops");
    let refused = async |key: &Value| {
        let reply = server.nobody().post(SESSIONS, key).await;
        reply.expect(StatusCode::UNAUTHORIZED, "unauthenticated");
    };
    refused(&login).await;
    let late = json!({"login": code().await});
    server.clock.advance_ms(15 * 60_000);
    refused(&late).await;
    for key in [json!({"token": "jy_0"}), json!({"login": ""}), json!({"login": caller.secret()})] {
        refused(&key).await;
    }
    for (key, pointer, fault) in [
        (json!({}), "", "missing"),
        (json!({"token": "a", "login": "b"}), "", "missing"),
        (json!({"token": 7}), "/token", "wrong_type"),
        (json!({"token": caller.secret(), "path": "/"}), "/path", "unknown_field"),
    ] {
        let reply = server.nobody().post(SESSIONS, &key).await;
        let reply = reply.expect(StatusCode::BAD_REQUEST, "invalid_request");
        assert!(reply.names(pointer, fault), "{key}: {}", reply.body);
    }
    let long = json!({"token": "x".repeat(5_000)});
    server.nobody().post(SESSIONS, &long).await.expect(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large");
    server.stop().await;
}

#[tokio::test]
async fn a_page_elsewhere_changes_nothing_with_the_cookie_of_its_reader() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let cookie = session_of(&server, &admin).await;
    let own = format!("http://{}", server.address);
    let submit = async |headers: &[(&str, &str)]| {
        let call = server.nobody().call(Method::POST, "/api/v1/jobs").header("cookie", &cookie);
        let call = headers.iter().fold(call, |call, (name, value)| call.header(*name, *value));
        Reply::of(send(call.body(fine().to_string())).await).await
    };
    for elsewhere in [
        &[][..],
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
        // Another port of this machine is the same site: SameSite does not keep its pages out.
        &[("origin", "http://127.0.0.1:1")],
        &[("sec-fetch-site", "same-site"), ("origin", "http://127.0.0.1:1")],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "cross-site"), ("origin", &own)],
        &[("sec-fetch-site", "none")],
    ] {
        submit(elsewhere).await.expect(StatusCode::FORBIDDEN, "foreign_origin");
    }
    assert_eq!(server.job_count().await, 0);
    for ours in [&[OWN][..], &[("origin", &own)]] {
        assert_eq!(submit(ours).await.status, StatusCode::CREATED);
    }
    assert_eq!(server.job_count().await, 2);

    let elsewhere = ("origin", "https://evil.example");
    let key = json!({"token": admin.secret()}).to_string();
    let swapped = server.nobody().call(Method::POST, SESSIONS).header(elsewhere.0, elsewhere.1).body(key);
    Reply::of(send(swapped).await).await.expect(StatusCode::FORBIDDEN, "foreign_origin");
    let ended = server.nobody().call(Method::DELETE, SESSIONS).header("cookie", &cookie);
    let ended = send(ended.header(elsewhere.0, elsewhere.1)).await;
    Reply::of(ended).await.expect(StatusCode::FORBIDDEN, "foreign_origin");
    me(&server, &cookie).await.ok();
    // A token of its own needs no page.
    let bearer = admin.call(Method::POST, "/api/v1/jobs").header(elsewhere.0, elsewhere.1);
    let response = send(bearer.header("cookie", &cookie).body(fine().to_string())).await;
    assert_eq!(response.status(), StatusCode::CREATED);
    assert_eq!(response.headers()["cross-origin-resource-policy"], "same-origin");
    server.stop().await;
}

#[tokio::test]
async fn a_wrong_token_beside_a_good_cookie_is_wrong() {
    let server = TestServer::start().await;
    let cookie = session_of(&server, &server.admin().await).await;
    let call = server.with_secret("jy_0").call(Method::GET, "/api/v1/me").header("cookie", &cookie);
    Reply::of(send(call).await).await.expect(StatusCode::UNAUTHORIZED, "unauthenticated");
    me(&server, &cookie.replace("js_", "jy_")).await.expect(StatusCode::UNAUTHORIZED, "unauthenticated");
    server.stop().await;
}

#[tokio::test]
async fn every_server_knows_the_session() {
    let server = TestServer::start().await;
    let cookie = session_of(&server, &server.admin().await).await;
    let other = server.another().await;
    let url = |path: &str| format!("http://{}{path}", other.address);
    let http = reqwest::Client::new();
    let there = send(http.get(url("/api/v1/me")).header("cookie", &cookie)).await;
    assert_eq!(there.status(), StatusCode::OK);
    let out = http.delete(url(SESSIONS)).header("cookie", &cookie).header(OWN.0, OWN.1);
    assert_eq!(send(out).await.status(), StatusCode::NO_CONTENT);
    me(&server, &cookie).await.expect(StatusCode::UNAUTHORIZED, "unauthenticated");
    other.stop().await;
    server.stop().await;
}

#[tokio::test]
async fn below_a_proxy_s_path_everything_is_as_it_is_without() {
    let settings =
        ServerSettings { base_path: "/tools/yard/".parse().expect("a path"), ..ServerSettings::default() };
    let server = TestServer::start_with(settings).await;
    let admin = server.admin().await;
    let begin = server.nobody().call(Method::POST, "/tools/yard/api/v1/sessions");
    let begin = begin.header("x-forwarded-proto", "https").body(json!({"token": admin.secret()}).to_string());
    let response = send(begin).await;
    let line = response.headers()["set-cookie"].to_str().expect("ASCII").to_owned();
    assert!(line.contains("; Path=/tools/yard; "), "{line}");
    assert!(line.ends_with("; HttpOnly; SameSite=Strict; Secure"), "{line}");
    let cookie = kept(&line);
    let get = async |path: &str| {
        Reply::of(send(server.nobody().call(Method::GET, path).header("cookie", &cookie)).await).await
    };
    for prefix in ["", "/tools/yard"] {
        assert_eq!(get(&format!("{prefix}/healthz")).await.status, StatusCode::OK);
        assert_eq!(get(&format!("{prefix}/api/v1/jobs?limit=1")).await.ok()["items"], json!([]));
        get(&format!("{prefix}/api/v1/nothing")).await.expect(StatusCode::NOT_FOUND, "not_found");
    }
    for path in
        ["/tools/yard/api/v1/me", "/tools/yard/tools/yard/api/v1/me", "/tools/yardx/api/v1/me", "/tools"]
    {
        let reply = server.nobody().get(path).await;
        reply.expect(StatusCode::UNAUTHORIZED, "unauthenticated");
    }
    let stream = server.nobody().call(Method::GET, "/tools/yard/api/v1/events").header("cookie", &cookie);
    let mut stream = send(stream).await;
    let start = in_time("the start", stream.chunk()).await.expect("no break").expect("a piece");
    assert!(start.starts_with(b"event: start"), "{start:?}");
    drop(stream);
    server.stop().await;
}

#[tokio::test]
async fn a_setting_keeps_cookies_to_tls() {
    let settings = ServerSettings { secure_cookies: true, ..ServerSettings::default() };
    let server = TestServer::start_with(settings).await;
    let line = sign_in(&server, &json!({"token": server.admin().await.secret()})).await;
    assert!(line.ends_with("; Secure"), "{line}");
    server.stop().await;
}

#[tokio::test]
async fn an_open_stream_ends_when_its_right_does() {
    let stream_heartbeat = std::time::Duration::from_millis(20);
    let settings = ServerSettings { stream_heartbeat, ..ServerSettings::default() };
    let server = TestServer::start_with(settings).await;
    let admin = server.admin().await;
    let created = admin.post("/api/v1/tokens", &json!({"name": "ann", "role": "viewer"})).await.ok();
    let ann = server.with_secret(created["secret"].as_str().expect("a secret"));
    let cookie = session_of(&server, &ann).await;
    let follow = |caller: &Caller<'_>| caller.call(Method::GET, "/api/v1/events");
    let mut ends = [send(follow(&ann)).await, send(follow(&server.nobody()).header("cookie", &cookie)).await];
    let mut goes_on = send(follow(&admin)).await;
    for stream in &mut ends {
        in_time("the start", stream.chunk()).await.expect("no break").expect("a piece");
    }
    let id = created["token"]["id"].as_str().expect("an id");
    send(admin.call(Method::DELETE, &format!("/api/v1/tokens/{id}"))).await;
    for stream in &mut ends {
        while in_time("the end", stream.chunk()).await.expect("no break").is_some() {}
    }
    for _ in 0..10 {
        in_time("a sign of life", goes_on.chunk()).await.expect("no break").expect("it goes on");
    }
    drop(goes_on);
    server.stop().await;
}

#[tokio::test]
async fn a_log_is_followed_by_cookie() {
    let server = TestServer::start().await;
    let caller = server.submitter().await;
    let cookie = session_of(&server, &caller).await;
    let hand = Hand::register(&server).await;
    let held = hand.run(caller.submit(fine()).await).await;
    let path = format!("/api/v1/jobs/{}/logs?follow=true", held.job_id);
    let mut log = send(server.nobody().call(Method::GET, &path).header("cookie", &cookie)).await;
    for (from, text) in [(0, "one\n"), (4, "two\n")] {
        hand.log(held, jobyard_store::LogStream::Stdout, from, text).await;
        assert_eq!(in_time("a line", log.chunk()).await.expect("no break").expect("a piece"), text);
    }
    hand.exit(held, 0).await;
    assert_eq!(in_time("the end", log.chunk()).await.expect("no break"), None);
    server.stop().await;
}
