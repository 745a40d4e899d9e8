//! Outputs through the report door: kept for a live lease, published with the outcome, refused afterwards.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use jobyard_api::doors::{DoorError, ReportDoor};
use jobyard_api::grpc::convert::{self, AttemptReport, Said};
use jobyard_api::proto;
use jobyard_model::{
    ArtifactHash, AttemptEnd, EndedBy, Exit, ExitFacts, LeaseId, Outputs, Role, Timestamp, Usage,
};
use jobyard_server::report::ReportDesk;
use jobyard_server::{DirectoryStore, LogRetention};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::support::{Hand, Held, TestServer, fine};

fn hash_of(bytes: &[u8]) -> ArtifactHash {
    ArtifactHash(Sha256::digest(bytes).into())
}

fn desk(server: &TestServer) -> ReportDesk {
    let artifacts = DirectoryStore::open(server.directory.path().join("artifacts"), Timestamp(0));
    let retention = LogRetention::new(server.clock.clone(), 7);
    ReportDesk::new(server.store.clone(), Arc::new(artifacts.expect("an artifact store")), retention)
}

async fn send(desk: &ReportDesk, lease_id: LeaseId, tree: bool, bytes: &str) -> Result<(), DoorError> {
    let request = proto::StoreArtifactRequest {
        lease_id: convert::id_bytes(lease_id.0),
        sha256: Bytes::copy_from_slice(&hash_of(bytes.as_bytes()).0),
        tree,
        data: Bytes::new(),
    };
    let pieces: Vec<io::Result<Bytes>> = vec![Ok(Bytes::copy_from_slice(bytes.as_bytes()))];
    desk.store_artifact(request, futures_util::stream::iter(pieces).boxed()).await
}

async fn missing(desk: &ReportDesk, lease_id: LeaseId, hash: ArtifactHash) -> Result<usize, DoorError> {
    let request = proto::MissingArtifactsRequest {
        lease_id: convert::id_bytes(lease_id.0),
        sha256: vec![Bytes::copy_from_slice(&hash.0)],
    };
    desk.missing_artifacts(request).await.map(|reply| reply.missing.len())
}

pub(crate) async fn end(desk: &ReportDesk, held: Held, outputs: Outputs) {
    let facts = ExitFacts {
        ended_by: EndedBy::Itself,
        exit: Exit::Code(0),
        message: String::new(),
        started_at: None,
        ended_at: Timestamp(2),
        usage: Usage::default(),
        outputs,
    };
    let Held { job_id, attempt, lease_id } = held;
    let what = Said::Ended(AttemptEnd::Exited(facts));
    let report = proto::Report::from(&AttemptReport { job_id, attempt, lease_id, what });
    let request = proto::ReportRequest { reports: vec![report], ..Default::default() };
    let reply = desk.report(request).await.expect("answered");
    assert_eq!(reply.reports[0].verdict(), proto::ReportVerdict::Accepted);
}

#[tokio::test]
async fn outputs_are_published_with_the_outcome_and_late_ones_are_refused() {
    let server = TestServer::start().await;
    let (caller, hand, desk) = (server.submitter().await, Hand::register(&server).await, desk(&server));
    let held = hand.run(caller.submit(fine()).await).await;
    let file = "words";
    let manifest = format!(
        r#"{{"tree":1,"files":{{"a":{{"sha256":"{}","size":5,"mode":"0644"}}}}}}"#,
        hash_of(file.as_bytes())
    );
    let early = send(&desk, held.lease_id, true, &manifest).await;
    assert!(matches!(early, Err(DoorError::Unknown { .. })), "its file is missing: {early:?}");
    assert_eq!(missing(&desk, held.lease_id, hash_of(file.as_bytes())).await.expect("live"), 1);
    send(&desk, held.lease_id, false, file).await.expect("kept");
    assert_eq!(missing(&desk, held.lease_id, hash_of(file.as_bytes())).await.expect("live"), 0);
    send(&desk, held.lease_id, true, &manifest).await.expect("kept");
    let nonsense = send(&desk, held.lease_id, true, "nonsense").await;
    assert!(matches!(nonsense, Err(DoorError::Refused { .. })), "{nonsense:?}");

    let path = format!("/api/v1/jobs/{}", held.job_id);
    assert_eq!(caller.get(&path).await.ok()["result"], json!(null), "nothing before the outcome");
    let tree = hash_of(manifest.as_bytes());
    end(&desk, held, Outputs::Kept(tree)).await;
    let job = caller.get(&path).await.ok();
    assert_eq!(
        (&job["status"], &job["result"]["output"]),
        (&json!("success"), &json!(format!("sha256:{tree}")))
    );
    let stranger = server.caller(Role::Viewer, &["others"]).await;
    assert_eq!(stranger.get(&path).await.ok()["result"]["output"], json!(null));

    for late in [
        send(&desk, held.lease_id, false, "late").await,
        send(&desk, held.lease_id, true, &manifest).await,
        missing(&desk, held.lease_id, tree).await.map(|_| ()),
    ] {
        assert!(matches!(&late, Err(DoorError::Refused { why, .. }) if why.contains("not live")), "{late:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn an_outcome_can_not_publish_what_is_not_there() {
    let server = TestServer::start().await;
    let (caller, hand, desk) = (server.submitter().await, Hand::register(&server).await, desk(&server));
    let held = hand.run(caller.submit(fine()).await).await;
    end(&desk, held, Outputs::Kept(ArtifactHash([7; 32]))).await;
    let job = caller.get(&format!("/api/v1/jobs/{}", held.job_id)).await.ok();
    assert_eq!((&job["status"], &job["result"]["outcome"]), (&json!("retry"), &json!("lost")));
    assert_eq!((&job["result"]["exit_code"], &job["platform_failures"]), (&json!(0), &json!(1)));
    assert_eq!(job["result"]["output"], json!(null));
    server.stop().await;
}
