//! Executables from the artifact store.

use jobyard_api::doors::WorkerDoor;
use jobyard_api::grpc::convert::{self, Said};
use jobyard_api::proto;
use jobyard_model::{ArtifactHash, Exit};

use crate::world::{World, artifact, names_in};

#[tokio::test(flavor = "multi_thread")]
async fn an_executable_is_fetched_once_and_kept() {
    let world = World::new();
    let running = world.start().await;
    let hash = world.upload("#!/bin/sh\necho \"$0 $*\"\n");
    for word in ["one", "two"] {
        let wanted = proto::Launch { command: vec![word.to_owned()], ..artifact(hash) };
        let lease_id = running.run(wanted).await;
        assert_eq!(world.desk.facts_of(lease_id).await.exit, Exit::Code(0));
        let out = String::from_utf8(world.desk.heard().logs_at_end[&lease_id][0].clone()).unwrap();
        assert!(out.ends_with(&format!("{hash} {word}\n")), "{out}");
        // Before anything is fetched, the acceptance is reported.
        let first = world.desk.heard().reports.iter().find(|(found, _)| *found == lease_id).cloned();
        assert_eq!(first.map(|(_, said)| said), Some(Said::Accepted));
    }
    assert_eq!(world.desk.heard().fetches, 1);
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_artifact_that_is_not_there_can_not_work_again() {
    let world = World::new();
    let running = world.start().await;
    let lease_id = running.run(artifact(ArtifactHash([7; 32]))).await;
    let facts = world.desk.facts_of(lease_id).await;
    assert_eq!(facts.exit, Exit::Unrunnable);
    assert!(facts.message.contains("not in the artifact store"), "{}", facts.message);
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_bytes_than_named_never_run() {
    let world = World::new();
    let running = world.start().await;
    let hash = world.upload("#!/bin/sh\necho right\n");
    world.desk.set(|heard| drop(heard.artifacts.insert(hash, "#!/bin/sh\necho wrong\n".into())));
    let wanted = artifact(hash);
    let lease_id = convert::lease_id(&wanted.lease_id).unwrap();
    let request = proto::LaunchRequest {
        session: convert::id_bytes(running.worker.session().0),
        launches: vec![wanted],
        lease_ms: 100,
        heartbeat_ms: 20,
    };
    running.worker.launch(request).await.unwrap();
    let facts = world.desk.facts_of(lease_id).await;
    assert_eq!(facts.exit, Exit::LaunchFault);
    assert!(facts.message.contains("has the hash"), "{}", facts.message);
    assert_eq!(names_in(&world.path("task/artifacts")), [""; 0]);
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cache_is_bounded() {
    let mut world = World::new();
    world.settings.cache_limit_bytes = 3_000;
    let running = world.start().await;
    for number in 0..4 {
        let hash = world.upload(&format!("#!/bin/sh\n# {number}{}\n", "x".repeat(1_000)));
        let lease_id = running.run(artifact(hash)).await;
        assert_eq!(world.desk.facts_of(lease_id).await.exit, Exit::Code(0));
    }
    assert_eq!(names_in(&world.path("task/artifacts")).len(), 2);
    world.close(running).await;
}
