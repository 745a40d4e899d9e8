//! Where the node stands with the control plane.

use jobyard_model::Exit;
use jobyard_worker::{StartError, WorkerError};

use crate::world::{World, launch};

#[tokio::test(flavor = "multi_thread")]
async fn it_registers_what_it_offers() {
    let mut world = World::new();
    world.settings.labels.insert("disk".to_owned(), "fast".to_owned());
    world.settings.name = Some("anna".to_owned());
    let running = world.start().await;
    running.worker.registered().await.unwrap();
    let request = world.desk.heard().registered[0].clone();
    assert_eq!((request.name.as_str(), request.pool.as_str()), ("anna", "default"));
    assert_eq!((request.cpu_milli, request.memory_bytes), (100_000, 100 << 30));
    assert_eq!(request.labels["disk"], "fast");
    assert_eq!(request.runtimes, ["process"]);
    assert!(!request.boot_id.is_empty() && !request.containment.is_empty());
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_superseded_worker_stops_itself() {
    let world = World::new();
    let running = world.start().await;
    running.worker.registered().await.unwrap();
    world.desk.set(|heard| heard.superseded = true);
    assert_eq!(running.worker.ended().await, Err(WorkerError::Superseded));
    let answer = running.launch(vec![launch(&["/bin/true"])]).await.remove(0);
    assert_eq!(answer.verdict(), jobyard_api::proto::LaunchVerdict::Draining);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_registration_ends_the_worker_with_its_words() {
    let world = World::new();
    world.desk.set(|heard| heard.unknown_pool = true);
    let running = world.start().await;
    let error = running.worker.registered().await.unwrap_err();
    assert!(error.to_string().contains("the pools are: default"), "{error}");
    assert_eq!(running.worker.ended().await, Err(error));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_node_proves_itself() {
    let world = World::new();
    let running = world.start().await;
    running.worker.registered().await.unwrap();
    world.desk.set(|heard| heard.suspended = "5 launches failed in a row".to_owned());
    world.desk.until("the proof", |heard| heard.suspended.is_empty().then_some(())).await;
    let lease_id = running.run(launch(&["/bin/true"])).await;
    assert_eq!(world.desk.facts_of(lease_id).await.exit, Exit::Code(0));
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_sidecar_is_said_at_the_start() {
    let mut world = World::new();
    world.settings.sidecar_path = world.path("nowhere");
    let error = world.try_start().await.err().unwrap();
    assert!(matches!(error, StartError::NoSidecar { .. }), "{error}");
}
