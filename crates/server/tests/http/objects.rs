//! What jobs name in S3: only what is allowed, at the submit as through the report door, and only by a live lease.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use jobyard_api::doors::{DoorError, ReportDoor};
use jobyard_api::grpc::convert;
use jobyard_api::proto::{self, ObjectUse};
use jobyard_model::{LeaseId, Outputs, Role, Timestamp};
use jobyard_server::report::ReportDesk;
use jobyard_server::s3::{JobBuckets, S3Access, S3Allow, S3Key, S3Settings};
use jobyard_server::{DirectoryStore, LogRetention};
use jobyard_test_s3::{ACCESS_KEY_ID, S3Server, SECRET_ACCESS_KEY};
use reqwest::StatusCode;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::outputs::end;
use crate::support::{Hand, TestServer, fine};

const BUCKET: &str = "team-data";

/// `team` may read `in/` and write below `out/`; everybody may read one object.
fn buckets(s3: &S3Server) -> Arc<JobBuckets> {
    let settings = S3Settings {
        endpoint: Some(s3.endpoint()),
        key: Some(S3Key { id: ACCESS_KEY_ID.to_owned(), secret: SECRET_ACCESS_KEY.to_owned() }),
        allow_http: true,
        ..S3Settings::default()
    };
    let allow = |place: &str, owners: Option<&str>, access| S3Allow {
        place: place.parse().expect("a place"),
        owners: owners.map(|owner| vec![owner.to_owned()]),
        access,
    };
    let rules = vec![
        allow("s3://team-data/in/", Some("team"), S3Access::Read),
        allow("s3://team-data/out/", Some("team"), S3Access::ReadWrite),
        allow("s3://team-data/tool", None, S3Access::Read),
    ];
    Arc::new(JobBuckets::new(settings, rules))
}

fn desk(server: &TestServer, buckets: &Arc<JobBuckets>) -> ReportDesk {
    let artifacts = DirectoryStore::open(server.directory.path().join("artifacts"), Timestamp(0));
    let retention = LogRetention::new(server.clock.clone(), 7);
    let artifacts = Arc::new(artifacts.expect("an artifact store"));
    ReportDesk::new(server.store.clone(), artifacts, retention).with_buckets(Arc::clone(buckets))
}

fn job(fields: &Value) -> Value {
    let mut job = fine();
    for (name, value) in fields.as_object().expect("fields") {
        job[name] = value.clone();
    }
    job
}

async fn found(desk: &ReportDesk, lease_id: LeaseId, used_as: ObjectUse) -> Result<Vec<String>, DoorError> {
    let request = proto::FindObjectsRequest {
        lease_id: convert::id_bytes(lease_id.0),
        r#use: used_as.into(),
        after: String::new(),
    };
    let reply = desk.find_objects(request).await?;
    Ok(reply.objects.into_iter().map(|object| format!("{} {}", object.path, object.size)).collect())
}

async fn etag(desk: &ReportDesk, lease_id: LeaseId, path: &str) -> String {
    let lease_id = convert::id_bytes(lease_id.0);
    let request =
        proto::FindObjectsRequest { lease_id, r#use: ObjectUse::Input.into(), after: String::new() };
    let reply = desk.find_objects(request).await.expect("found");
    reply.objects.into_iter().find(|object| object.path == path).expect("it is there").etag
}

async fn fetch(desk: &ReportDesk, lease_id: LeaseId, path: &str, tag: &str) -> Result<String, DoorError> {
    let request = proto::FetchObjectRequest {
        lease_id: convert::id_bytes(lease_id.0),
        r#use: ObjectUse::Input.into(),
        path: path.to_owned(),
        etag: tag.to_owned(),
        offset: 2,
    };
    let pieces: Vec<Bytes> = desk.fetch_object(request).await?.try_collect().await?;
    Ok(String::from_utf8(pieces.concat()).expect("text"))
}

async fn keep(desk: &ReportDesk, lease_id: LeaseId, path: &str, bytes: &str) -> Result<(), DoorError> {
    let request = proto::StoreOutputRequest {
        lease_id: convert::id_bytes(lease_id.0),
        path: path.to_owned(),
        sha256: Bytes::copy_from_slice(&Sha256::digest(bytes.trim_end_matches('!').as_bytes())),
        manifest: path == "_manifest.json",
        data: Bytes::new(),
    };
    let pieces: Vec<io::Result<Bytes>> = vec![Ok(Bytes::copy_from_slice(bytes.as_bytes()))];
    desk.store_output(request, futures_util::stream::iter(pieces).boxed()).await
}

fn is_refused<T: std::fmt::Debug>(answer: &Result<T, DoorError>, why: &str) -> bool {
    matches!(answer, Err(DoorError::Refused { why: said, .. }) if said.contains(why))
}

#[tokio::test]
async fn a_job_may_name_only_what_its_owner_may_use() {
    let s3 = S3Server::start_new(BUCKET).expect("an S3 server");
    let server = TestServer::start_allowing(buckets(&s3)).await;
    let team = server.submitter().await;
    let others = server.caller(Role::Submitter, &["others"]).await;
    let cases = [
        (&team, json!({"input_path": "s3://team-data/in/x"}), None),
        (&team, json!({"output_path": "s3://team-data/out"}), None),
        (&others, json!({"binary_url": "s3://team-data/tool"}), None),
        (&others, json!({"input_path": "s3://team-data/in/x"}), Some("/input_path")),
        (&others, json!({"output_path": "s3://team-data/out/"}), Some("/output_path")),
        (&team, json!({"output_path": "s3://team-data/in/"}), Some("/output_path")),
        (&team, json!({"binary_url": "s3://team-data/tool2"}), Some("/binary_url")),
        (&team, json!({"input_path": "s3://team-data/"}), Some("/input_path")),
        (&team, json!({"input_path": "s3://other-data/in/"}), Some("/input_path")),
    ];
    for (caller, fields, fault) in cases {
        let before = server.job_count().await;
        let answer = caller.post("/api/v1/jobs", &job(&fields)).await;
        match fault {
            None => assert_eq!(answer.status, StatusCode::CREATED, "{fields}: {answer:?}"),
            Some(pointer) => {
                assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{fields}: {answer:?}");
                assert!(answer.names(pointer, "not_allowed"), "{fields}: {answer:?}");
                assert!(answer.body.to_string().contains("[[s3.allow]]"), "{answer:?}");
                assert_eq!(server.job_count().await, before);
            }
        }
    }
    let batch = json!({"jobs": [fine(), job(&json!({"input_path": "s3://other-data/in/"}))]});
    assert!(team.post("/api/v1/jobs/batch", &batch).await.names("/jobs/1/input_path", "not_allowed"));
    server.stop().await;
}

#[tokio::test]
async fn a_lease_reads_what_its_job_names_and_no_mix_of_two_versions() {
    let s3 = S3Server::start_new(BUCKET).expect("an S3 server");
    s3.write(BUCKET, "in/a", b"aaaa").expect("written");
    s3.write(BUCKET, "in/deep/b", b"").expect("written");
    s3.write(BUCKET, "secret", b"secret").expect("written");
    let buckets = buckets(&s3);
    let server = TestServer::start_allowing(buckets.clone()).await;
    let (caller, hand, desk) =
        (server.submitter().await, Hand::register(&server).await, desk(&server, &buckets));
    let held = hand.run(caller.submit(job(&json!({"input_path": "s3://team-data/in/"}))).await).await;
    let other = hand.run(caller.submit(fine()).await).await;
    assert_eq!(found(&desk, held.lease_id, ObjectUse::Input).await.expect("found"), ["a 4", "deep/b 0"]);
    assert!(is_refused(&found(&desk, held.lease_id, ObjectUse::Executable).await, "names nothing"));
    assert!(is_refused(&found(&desk, other.lease_id, ObjectUse::Input).await, "names nothing"));
    assert!(is_refused(&found(&desk, LeaseId(uuid::Uuid::nil()), ObjectUse::Input).await, "not live"));

    let tag = etag(&desk, held.lease_id, "a").await;
    assert_eq!(fetch(&desk, held.lease_id, "a", &tag).await.expect("its rest"), "aa");
    for path in ["../secret", "/secret", "", "a/../../secret", "."] {
        let stolen = fetch(&desk, held.lease_id, path, &tag).await;
        assert!(matches!(stolen, Err(DoorError::Refused { .. })), "{path}: {stolen:?}");
    }
    s3.write(BUCKET, "in/a", b"bbbb").expect("written");
    let changed = fetch(&desk, held.lease_id, "a", &tag).await;
    assert!(
        matches!(&changed, Err(DoorError::Unknown { why, .. }) if why.contains("changed")),
        "{changed:?}"
    );

    // Allowed to the owner when it was submitted, and not any more.
    let desk = self::desk(&server, &JobBuckets::none());
    assert!(is_refused(&found(&desk, held.lease_id, ObjectUse::Input).await, "[[s3.allow]]"));
    server.stop().await;
}

#[tokio::test]
async fn outputs_lie_below_their_attempt_and_are_the_jobs_with_the_outcome() {
    let s3 = S3Server::start_new(BUCKET).expect("an S3 server");
    let buckets = buckets(&s3);
    let server = TestServer::start_allowing(buckets.clone()).await;
    let (caller, hand, desk) =
        (server.submitter().await, Hand::register(&server).await, desk(&server, &buckets));
    let held = hand.run(caller.submit(job(&json!({"output_path": "s3://team-data/out"}))).await).await;
    for path in ["../x", "/x", "a//b", "a/./b", "", "a/", "new\nline"] {
        let tricked = keep(&desk, held.lease_id, path, "x").await;
        assert!(matches!(tricked, Err(DoorError::Refused { .. })), "{path:?}: {tricked:?}");
    }
    assert!(is_refused(&keep(&desk, held.lease_id, "a", "other bytes!").await, "changed while"));
    assert!(s3.keys(BUCKET).expect("a bucket").is_empty());
    keep(&desk, held.lease_id, "deep/a", "words").await.expect("kept");
    keep(&desk, held.lease_id, "_manifest.json", "{}").await.expect("kept");
    let folder = format!("out/{}/1", held.job_id);
    let keys = [format!("{folder}/_manifest.json"), format!("{folder}/deep/a")];
    assert_eq!(s3.keys(BUCKET).expect("a bucket"), keys);

    let path = format!("/api/v1/jobs/{}", held.job_id);
    assert_eq!(caller.get(&path).await.body["result"], json!(null), "nothing before the outcome");
    let manifest = jobyard_model::ArtifactHash(Sha256::digest(b"{}").into());
    let lease_id = held.lease_id;
    end(&desk, held, Outputs::Kept(manifest)).await;
    let shown = caller.get(&path).await.body;
    assert_eq!(shown["result"]["output"], json!(format!("s3://team-data/{folder}/")), "{shown}");
    assert_eq!(shown["output_path"], json!("s3://team-data/out"));
    // Whoever comes late publishes nothing.
    assert!(is_refused(&keep(&desk, lease_id, "_manifest.json", "{}").await, "not live"));
    server.stop().await;
}
