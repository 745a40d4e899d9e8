//! A server whose artifacts lie in a bucket that goes away: what needs no bucket goes on.

use std::sync::Arc;
use std::time::Duration;

use jobyard_server::BucketStore;
use jobyard_server::s3::{S3Key, S3Settings, S3Times};
use jobyard_test_s3::{ACCESS_KEY_ID, S3Server, SECRET_ACCESS_KEY};
use reqwest::{Method, Response, StatusCode};
use sha2::{Digest, Sha256};

use crate::support::{Caller, Reply, TestServer, fine};

fn bucket(s3: &S3Server) -> BucketStore {
    let short = Duration::from_secs(1);
    let settings = S3Settings {
        endpoint: Some(s3.endpoint()),
        key: Some(S3Key { id: ACCESS_KEY_ID.to_owned(), secret: SECRET_ACCESS_KEY.to_owned() }),
        allow_http: true,
        times: S3Times { retry: short, ..S3Times::default() },
        ..S3Settings::default()
    };
    BucketStore::open(&"s3://bucket/".parse().expect("a place"), &settings).expect("settings")
}

async fn call(caller: &Caller<'_>, method: Method, bytes: &[u8]) -> Response {
    let name: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let call = caller.call(method.clone(), &format!("/api/v1/artifacts/{name}"));
    let call = if method == Method::PUT { call.body(bytes.to_vec()) } else { call };
    call.send().await.expect("an answer")
}

/// The page of metrics.
async fn shown(caller: &Caller<'_>) -> String {
    caller.get("/metrics").await.body.as_str().expect("text").to_owned()
}

#[tokio::test]
async fn only_what_needs_the_bucket_waits_for_it() {
    let mut s3 = S3Server::start_new("bucket").expect("an S3 server");
    let server = TestServer::start_on(Arc::new(bucket(&s3))).await;
    let caller = server.submitter().await;
    assert_eq!(call(&caller, Method::PUT, b"hello").await.status(), StatusCode::CREATED);
    assert_eq!(call(&caller, Method::GET, b"hello").await.bytes().await.expect("a body"), "hello");
    assert_eq!(server.nobody().get("/readyz").await.body, "ready\n");

    s3.stop();
    for (method, bytes) in [(Method::PUT, b"other"), (Method::GET, b"hello"), (Method::HEAD, b"hello")] {
        let answer = call(&caller, method.clone(), bytes).await;
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE, "{method}");
        assert_eq!(answer.headers()["retry-after"], "5", "{method}");
        if method != Method::HEAD {
            assert_eq!(Reply::of(answer).await.code(), "artifact_store_unavailable");
        }
    }
    caller.submit(fine()).await;
    let ready = server.nobody().get("/readyz").await;
    assert_eq!(ready.status, StatusCode::OK);
    let said = ready.body.as_str().expect("text").to_owned();
    assert!(said.starts_with("ready\nthe artifact store can't be used: "), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(shown(&caller).await.contains("\njobyard_artifact_store_usable 0\n"));

    s3.start().expect("the port is still free");
    assert_eq!(call(&caller, Method::PUT, b"other").await.status(), StatusCode::CREATED);
    assert_eq!(server.nobody().get("/readyz").await.body, "ready\n");
    assert!(shown(&caller).await.contains("\njobyard_artifact_store_usable 1\n"));
    server.stop().await;
}

#[tokio::test]
async fn a_bucket_that_refuses_us_is_an_operators_to_mend() {
    let s3 = S3Server::start_new("another").expect("an S3 server");
    let server = TestServer::start_on(Arc::new(bucket(&s3))).await;
    let caller = server.submitter().await;
    let answer = Reply::of(call(&caller, Method::PUT, b"hello").await).await;
    assert_eq!(
        (answer.status, answer.code()),
        (StatusCode::SERVICE_UNAVAILABLE, "artifact_store_unavailable")
    );
    assert!(answer.body["detail"].as_str().expect("text").contains("an operator has to act"), "{answer:?}");
    let said = server.nobody().get("/readyz").await.body;
    assert!(said.as_str().expect("text").contains("the bucket does not exist"), "{said}");
    server.stop().await;
}
