//! Outcomes and logs that can't be delivered at once, and large ones.

use std::fmt::Write as _;

use jobyard_model::Exit;

use crate::world::{World, launch, names_in, shell, until};

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_waits_for_a_door_that_is_away() {
    let world = World::new();
    let running = world.start().await;
    running.worker.registered().await.unwrap();
    world.desk.set(|heard| heard.down = true);
    let lease_id = running.run(shell("echo out; exit 4")).await;
    until("the outcome on disk", || names_in(&world.path("data/spool")) == [lease_id.to_string()]).await;
    assert!(world.desk.heard().reports.is_empty());
    world.desk.set(|heard| heard.down = false);
    assert_eq!(world.desk.facts_of(lease_id).await.exit, Exit::Code(4));
    assert_eq!(world.desk.heard().logs_at_end[&lease_id][0], b"out\n");
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_survives_the_worker() {
    let world = World::new();
    let running = world.start().await;
    running.worker.registered().await.unwrap();
    world.desk.set(|heard| heard.down = true);
    let lease_id = running.run(shell("echo out; exit 4")).await;
    until("the outcome on disk", || !names_in(&world.path("data/spool")).is_empty()).await;
    running.kill();
    let running = world.start().await;
    world.desk.set(|heard| heard.down = false);
    assert_eq!(world.desk.facts_of(lease_id).await.exit, Exit::Code(4));
    assert_eq!(world.desk.heard().logs_at_end[&lease_id][0], b"out\n");
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_survives_the_machine_and_is_told_before_the_node_registers() {
    let world = World::new();
    let running = world.start().await;
    running.worker.registered().await.unwrap();
    world.desk.set(|heard| heard.down = true);
    let lease_id = running.run(shell("echo out; exit 4")).await;
    until("the outcome on disk", || !names_in(&world.path("data/spool")).is_empty()).await;
    running.kill();
    // What a reboot leaves of a tmpfs.
    std::fs::remove_dir_all(world.path("state")).unwrap();
    world.desk.set(|heard| {
        heard.down = false;
        heard.order.clear();
    });
    let running = world.start().await;
    running.worker.registered().await.unwrap();
    assert_eq!(world.desk.facts_of(lease_id).await.exit, Exit::Code(4));
    assert_eq!(world.desk.heard().order, ["end", "register"]);
    assert_eq!(world.desk.heard().logs_at_end[&lease_id][0], b"out\n");
    until("the log delivered and gone", || names_in(&world.path("data/logs")).is_empty()).await;
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_log_arrives_whole_and_before_its_outcome() {
    let world = World::new();
    let running = world.start().await;
    let script = "i=0; while [ $i -lt 12 ]; do head -c 1000000 /dev/zero | tr '\\0' x; echo $i; echo e$i >&2; i=$((i+1)); done";
    let lease_id = running.run(shell(script)).await;
    assert_eq!(world.desk.facts_of(lease_id).await.exit, Exit::Code(0));
    let [stdout, stderr] = world.desk.heard().logs_at_end[&lease_id].clone();
    assert_eq!(stdout.len(), 12_000_000 + 10 * 2 + 2 * 3);
    assert!(stdout.ends_with(b"x11\n"));
    let mut expected = String::new();
    (0..12).for_each(|number| writeln!(expected, "e{number}").unwrap());
    assert_eq!(stderr, expected.as_bytes());
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_put_off_does_not_hold_the_outcome_for_ever() {
    let world = World::new();
    let running = world.start().await;
    world.desk.set(|heard| heard.logs_later = 5);
    let lease_id = running.run(shell("echo out")).await;
    assert_eq!(world.desk.facts_of(lease_id).await.exit, Exit::Code(0));
    world
        .desk
        .until("the log after all", |heard| {
            heard.logs.get(&lease_id).filter(|log| log[0] == b"out\n").map(|_| ())
        })
        .await;
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_delivered_while_the_task_runs() {
    let world = World::new();
    let running = world.start().await;
    let wanted = shell("echo first; read line < /dev/null; exec sleep 600");
    let lease_id = running.run(wanted.clone()).await;
    world.desk.until("the first line", |heard| heard.logs.get(&lease_id).map(|_| ())).await;
    assert!(!world.desk.heard().ends.contains_key(&lease_id));
    running.stop_attempt(&wanted, 0).await;
    world.desk.end_of(lease_id).await;
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_in_the_middle_loses_nothing() {
    let world = World::new();
    let running = world.start().await;
    let go = world.path("go");
    let script = format!("echo one; while [ ! -e {} ]; do sleep 0.02; done; echo two; exit 5", go.display());
    let lease_id = running.run(shell(&script)).await;
    world.desk.until("the first line", |heard| heard.logs.get(&lease_id).map(|_| ())).await;
    world.desk.set(|heard| heard.down = true);
    std::fs::write(go, "").unwrap();
    until("the outcome on disk", || !names_in(&world.path("data/spool")).is_empty()).await;
    world.desk.set(|heard| heard.down = false);
    assert_eq!(world.desk.facts_of(lease_id).await.exit, Exit::Code(5));
    assert_eq!(world.desk.heard().logs_at_end[&lease_id][0], b"one\ntwo\n");
    let quick = running.run(launch(&["/bin/true"])).await;
    world.desk.end_of(quick).await;
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_whose_answer_is_lost_is_told_again_and_taken_once() {
    let world = World::new();
    let running = world.start().await;
    running.worker.registered().await.unwrap();
    world.desk.set(|heard| heard.answers_lost = 4);
    let lease_id = running.run(shell("echo out; exit 4")).await;
    assert_eq!(world.desk.facts_of(lease_id).await.exit, Exit::Code(4));
    until("all cleared away", || running.worker.attempts() == 0).await;
    assert_eq!(world.desk.heard().order.iter().filter(|what| **what == "end").count(), 1);
    assert_eq!(world.desk.heard().logs[&lease_id][0], b"out\n");
    world.close(running).await;
}
