//! The worker goes and another comes, on the same directories.

use jobyard_api::grpc::convert::{self, Said};
use jobyard_api::proto;
use jobyard_model::{AttemptEnd, Exit};
use jobyard_worker::StartError;

use crate::world::{
    World, artifact, kill, launch, names_in, odd_seconds, processes_with, shell, sidecars_of, until,
};

const MANY: usize = 50;

/// Tasks that end with their number's code when the file is there.
fn waiting(world: &World, number: usize) -> proto::Launch {
    let go = world.path("go");
    let code = number % 7;
    shell(&format!("echo up; while [ ! -e {} ]; do sleep 0.05; done; echo down; exit {code}", go.display()))
}

async fn all_end_as_they_should(world: &World, leases: &[jobyard_model::LeaseId]) {
    std::fs::write(world.path("go"), "").unwrap();
    for (number, lease_id) in leases.iter().enumerate() {
        let facts = world.desk.facts_of(*lease_id).await;
        assert_eq!(facts.exit, Exit::Code(i32::try_from(number % 7).unwrap()));
        assert_eq!(world.desk.heard().logs_at_end[lease_id][0], b"up\ndown\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_worker_loses_no_attempt() {
    let world = World::new();
    let running = world.start().await;
    let launches: Vec<_> = (0..MANY).map(|number| waiting(&world, number)).collect();
    let leases: Vec<_> = launches.iter().map(|launch| convert::lease_id(&launch.lease_id).unwrap()).collect();
    running.launch(launches).await;
    for lease_id in &leases {
        world.desk.started(*lease_id).await;
    }
    let sidecars = sidecars_of(&world);
    assert_eq!(sidecars.len(), MANY);
    running.kill();
    let running = world.start().await;
    // Each is renewed by its own sidecar.
    for lease_id in &leases {
        world
            .desk
            .until("a renewal", |heard| heard.reports.contains(&(*lease_id, Said::Renewed)).then_some(()))
            .await;
    }
    let mut still = sidecars_of(&world);
    still.sort_unstable();
    let mut before = sidecars;
    before.sort_unstable();
    assert_eq!(still, before);
    all_end_as_they_should(&world, &leases).await;
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_worker_hands_over_and_says_how_many() {
    let world = World::new();
    let running = world.start().await;
    let mut leases = Vec::new();
    for number in 0..3 {
        leases.push(running.run(waiting(&world, number)).await);
    }
    for lease_id in &leases {
        world.desk.started(*lease_id).await;
    }
    let ended = running.run(launch(&["/bin/true"])).await;
    world.desk.end_of(ended).await;
    assert_eq!(running.stop().await.attempts, 3);
    // Nobody is there when they end: their records are.
    std::fs::write(world.path("go"), "").unwrap();
    until("the sidecars to leave", || sidecars_of(&world).is_empty()).await;
    let running = world.start().await;
    all_end_as_they_should(&world, &leases).await;
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sidecar_that_died_alone_is_cleared_up_after() {
    let world = World::new();
    let running = world.start().await;
    let seconds = odd_seconds();
    let lease_id = running.run(shell(&format!("(setsid sleep {seconds} &); exec sleep {seconds}"))).await;
    world.desk.started(lease_id).await;
    until("both", || processes_with(&seconds).len() >= 2).await;
    let sidecar = sidecars_of(&world)[0];
    assert_eq!(running.stop().await.attempts, 1);
    kill(sidecar);
    let running = world.start().await;
    let end = world.desk.end_of(lease_id).await;
    assert!(matches!(end, AttemptEnd::Vanished { .. }), "{end:?}");
    assert!(processes_with(&seconds).is_empty());
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_was_accepted_and_never_started_is_reported() {
    let world = World::new();
    let running = world.start().await;
    let hash = world.upload("#!/bin/sh\n");
    world.desk.set(|heard| heard.fetches_hang = true);
    let lease_id = running.run(artifact(hash)).await;
    world.desk.until("the fetch", |heard| (heard.fetches == 1).then_some(())).await;
    running.kill();
    let running = world.start().await;
    let end = world.desk.end_of(lease_id).await;
    assert!(matches!(end, AttemptEnd::NotStarted { .. }), "{end:?}");
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_while_staging_goes_on_to_the_next_worker() {
    let world = World::new();
    let running = world.start().await;
    let hash = world.upload("#!/bin/sh\n");
    world.desk.set(|heard| heard.fetches_hang = true);
    let lease_id = running.run(artifact(hash)).await;
    world.desk.until("the fetch", |heard| (heard.fetches == 1).then_some(())).await;
    // A worker that is stopped says itself that it gives it up.
    assert_eq!(running.stop().await.attempts, 0);
    assert!(matches!(world.desk.end_of(lease_id).await, AttemptEnd::NotStarted { .. }));
    let running = world.start().await;
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adopted_attempt_can_be_stopped_and_counts() {
    let mut world = World::new();
    world.settings.max_attempts = 1;
    let running = world.start().await;
    let wanted = shell("exec sleep 600");
    let lease_id = running.run(wanted.clone()).await;
    world.desk.started(lease_id).await;
    running.kill();
    let running = world.start().await;
    let answer = running.launch(vec![launch(&["/bin/true"])]).await.remove(0);
    assert_eq!(answer.verdict(), proto::LaunchVerdict::Full);
    running.stop_attempt(&wanted, 0).await;
    world.desk.end_of(lease_id).await;
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_goes_on_where_it_was() {
    let world = World::new();
    let running = world.start().await;
    let lease_id = running.run(waiting(&world, 0)).await;
    world.desk.until("the first line", |heard| heard.logs.get(&lease_id).map(|_| ())).await;
    running.kill();
    let running = world.start().await;
    all_end_as_they_should(&world, &[lease_id]).await;
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_of_another_boot_is_only_cleared_away() {
    let world = World::new();
    let running = world.start().await;
    let lease_id = running.run(shell("exec sleep 600")).await;
    world.desk.started(lease_id).await;
    let sidecar = sidecars_of(&world)[0];
    running.stop().await;
    let directory = jobyard_handoff::AttemptDirectory::at(world.path("state/a/0"));
    let mut plan = directory.plan().unwrap();
    let real = plan.clone();
    plan.boot_id = "another boot".to_owned();
    kill(sidecar);
    until("the sidecar to die", || !directory.is_held().unwrap()).await;
    jobyard_runtime::clear_tree(&real).unwrap();
    std::fs::write(world.path("state/a/0/plan"), plan.encode()).unwrap();
    world.desk.set(|heard| heard.reports.clear());
    let running = world.start().await;
    running.worker.registered().await.unwrap();
    until("the directory to go", || names_in(&world.path("state/a")).is_empty()).await;
    assert!(world.desk.heard().reports.is_empty());
    until("its log to go", || names_in(&world.path("data/logs")).is_empty()).await;
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rubbish_is_removed_and_the_node_stays_itself() {
    let world = World::new();
    let running = world.start().await;
    let node_id = running.worker.node_id();
    let session = running.worker.session();
    running.stop().await;
    std::fs::create_dir_all(world.path("task/work/left/over")).unwrap();
    std::fs::create_dir(world.path("state/a/3")).unwrap();
    std::fs::write(world.path("task/artifacts/abc.part"), "half").unwrap();
    let running = world.start().await;
    assert_eq!(running.worker.node_id(), node_id);
    assert_ne!(running.worker.session(), session);
    until("the rubbish to go", || {
        ["state/a", "task/work", "task/artifacts"].iter().all(|place| names_in(&world.path(place)).is_empty())
    })
    .await;
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_worker_on_the_same_directory_is_refused() {
    let world = World::new();
    let running = world.start().await;
    let error = world.try_start().await.err().unwrap();
    assert!(matches!(error, StartError::AlreadyRunning(_)), "{error}");
    world.close(running).await;
}
