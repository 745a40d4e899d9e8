//! Stops, before, while and after; and what is left when a sidecar dies.

use jobyard_api::grpc::convert::{self, Said};
use jobyard_api::proto::{self, LaunchVerdict, StopVerdict};
use jobyard_model::{AttemptEnd, EndedBy, Exit};

use crate::world::{World, artifact, kill, launch, odd_seconds, processes_with, shell, sidecars_of, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_a_running_task() {
    let world = World::new();
    let running = world.start().await;
    let wanted = shell("exec sleep 600");
    let lease_id = running.run(wanted.clone()).await;
    world.desk.started(lease_id).await;
    assert_eq!(running.stop_attempt(&wanted, 1_000).await, StopVerdict::Stopping);
    let facts = world.desk.facts_of(lease_id).await;
    assert_eq!((facts.ended_by, facts.exit), (EndedBy::Stop, Exit::Signal(15)));
    assert_eq!(running.stop_attempt(&wanted, 1_000).await, StopVerdict::Stopping);
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_comes_first_keeps_the_launch_out() {
    let world = World::new();
    let running = world.start().await;
    let wanted = launch(&["/bin/true"]);
    assert_eq!(running.stop_attempt(&wanted, 0).await, StopVerdict::Unknown);
    let answer = running.launch(vec![wanted]).await.remove(0);
    assert_eq!(answer.verdict(), LaunchVerdict::Stopped);
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_reaches_an_attempt_that_is_being_staged() {
    let world = World::new();
    let running = world.start().await;
    let hash = world.upload("#!/bin/sh\n");
    world.desk.set(|heard| heard.fetches_hang = true);
    let wanted = artifact(hash);
    let lease_id = running.run(wanted.clone()).await;
    world.desk.until("the fetch", |heard| (heard.fetches == 1).then_some(())).await;
    assert_eq!(running.stop_attempt(&wanted, 0).await, StopVerdict::Stopping);
    let end = world.desk.end_of(lease_id).await;
    assert!(matches!(end, AttemptEnd::NotStarted { .. }), "{end:?}");
    // Its slot and the cache are usable again.
    world.desk.set(|heard| heard.fetches_hang = false);
    let lease_id = running.run(artifact(hash)).await;
    assert_eq!(world.desk.facts_of(lease_id).await.exit, Exit::Code(0));
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wanted_comes_with_the_answers() {
    let world = World::new();
    let running = world.start().await;
    let wanted = shell("exec sleep 600");
    let lease_id = convert::lease_id(&wanted.lease_id).unwrap();
    world.desk.set(|heard| {
        heard.intents.insert(lease_id, 1);
    });
    running.run(wanted).await;
    assert_eq!(world.desk.facts_of(lease_id).await.ended_by, EndedBy::Stop);
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_is_not_ours_any_more_is_stopped_and_not_reported() {
    let world = World::new();
    let running = world.start().await;
    let seconds = odd_seconds();
    let wanted = shell(&format!("exec sleep {seconds}"));
    let lease_id = convert::lease_id(&wanted.lease_id).unwrap();
    world.desk.set(|heard| {
        heard.stale.insert(lease_id);
    });
    running.run(wanted).await;
    until("nothing of it left", || running.worker.attempts() == 0).await;
    assert!(processes_with(&seconds).is_empty());
    let ends = world.desk.heard().reports.iter().filter(|(_, said)| matches!(said, Said::Ended(_))).count();
    assert_eq!(ends, 0);
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_sidecar_leaves_no_process_and_is_reported() {
    let world = World::new();
    let running = world.start().await;
    let seconds = odd_seconds();
    let script = format!(
        "echo before; (setsid sleep {seconds} &); sleep {seconds} & echo last words; exec sleep {seconds}"
    );
    let lease_id = running.run(shell(&script)).await;
    world.desk.started(lease_id).await;
    until("all three", || processes_with(&seconds).len() >= 3).await;
    kill(sidecars_of(&world)[0]);
    let end = world.desk.end_of(lease_id).await;
    assert!(matches!(end, AttemptEnd::Vanished { .. }), "{end:?}");
    assert!(processes_with(&seconds).is_empty());
    let log = world.desk.heard().logs_at_end[&lease_id][0].clone();
    assert_eq!(String::from_utf8(log).unwrap(), "before\nlast words\n");
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sidecar_that_can_not_start_is_the_platform_s_fault() {
    let mut world = World::new();
    // It runs, but it is no sidecar.
    world.settings.sidecar_path = "/bin/false".into();
    let running = world.start().await;
    let lease_id = running.run(launch(&["/bin/true"])).await;
    assert_eq!(world.desk.facts_of(lease_id).await.exit, Exit::LaunchFault);
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_is_told_apart() {
    let world = World::new();
    let running = world.start().await;
    let wanted = proto::Launch { timeout_ms: 50, stop_grace_ms: 0, ..shell("exec sleep 600") };
    let lease_id = running.run(wanted).await;
    assert_eq!(world.desk.facts_of(lease_id).await.ended_by, EndedBy::Timeout);
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_can_be_asked_to_leave() {
    let world = World::new();
    let running = world.start().await;
    let leases = [running.run(shell("exec sleep 600")).await, running.run(shell("exec sleep 600")).await];
    running.worker.evict_all().await;
    for lease_id in leases {
        assert_eq!(world.desk.facts_of(lease_id).await.ended_by, EndedBy::Stop);
    }
    let answer = running.launch(vec![launch(&["/bin/true"])]).await.remove(0);
    assert_eq!(answer.verdict(), LaunchVerdict::Draining);
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_taken_away_under_a_sidecar_leaves_no_process() {
    let world = World::new();
    let running = world.start().await;
    let seconds = odd_seconds();
    let lease_id = running.run(shell(&format!("exec sleep {seconds}"))).await;
    world.desk.started(lease_id).await;
    let sidecar = sidecars_of(&world)[0];
    std::fs::remove_dir_all(world.path("state/a/0")).unwrap();
    kill(sidecar);
    let end = world.desk.end_of(lease_id).await;
    assert!(matches!(end, AttemptEnd::Vanished { .. }), "{end:?}");
    assert!(processes_with(&seconds).is_empty());
    world.close(running).await;
}
