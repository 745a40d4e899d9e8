//! Outputs: sent after a good exit and before its report.

use jobyard_api::grpc::convert::Said;
use jobyard_model::{AttemptEnd, EndedBy, Exit, ExitFacts, Intent, LeaseId, Outputs};
use jobyard_tree::{Mode, Tree};

use crate::world::{World, shell, until};

/// The tree that was published with a good exit.
async fn published(world: &World, lease_id: LeaseId) -> Tree {
    let facts = world.desk.facts_of(lease_id).await;
    let Outputs::Kept(hash) = facts.outputs else { panic!("{facts:?}") };
    let heard = world.desk.heard();
    assert!(heard.trees.contains(&hash));
    Tree::decode(&heard.artifacts[&hash]).unwrap()
}

fn said_finishing(world: &World, lease_id: LeaseId) -> bool {
    world.desk.count(lease_id, &Said::Finishing) > 0
}

const TWO_FILES: &str = "cd \"$JOBYARD_OUTPUT\" && mkdir -p sub/empty && printf one > sub/a && \
    printf one > b && printf '#!/bin/sh' > run && chmod 755 run && ln -s sub/a link";

#[tokio::test(flavor = "multi_thread")]
async fn outputs_go_up_before_the_end_is_told() {
    let world = World::new();
    let running = world.start().await;
    let lease_id = running.run(shell(TWO_FILES)).await;
    let tree = published(&world, lease_id).await;
    let found: Vec<_> = tree.files.iter().map(|(path, file)| (path.as_str(), file.size, file.mode)).collect();
    assert_eq!(
        found,
        [
            ("b", 3, Mode::Plain),
            ("link", 3, Mode::Plain),
            ("run", 9, Mode::Executable),
            ("sub/a", 3, Mode::Plain)
        ]
    );
    assert!(said_finishing(&world, lease_id));
    let order = world.desk.heard().order.clone();
    assert_eq!(order[1..], ["stored", "stored", "stored", "end"], "two files, the manifest, the end");

    // The same again sends the manifest alone.
    let again = running.run(shell(TWO_FILES)).await;
    assert_eq!(published(&world, again).await, tree);
    assert_eq!(world.desk.heard().stored, 4);
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_without_outputs_or_without_a_good_exit() {
    let world = World::new();
    let running = world.start().await;
    for script in ["true", "printf x > \"$JOBYARD_OUTPUT/x\"; exit 3", "mkdir \"$JOBYARD_OUTPUT/empty\""] {
        let lease_id = running.run(shell(script)).await;
        assert_eq!(world.desk.facts_of(lease_id).await.outputs, Outputs::None, "{script}");
    }
    assert_eq!(world.desk.heard().stored, 0);
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_that_can_not_be_kept_fail_the_attempt_and_keep_its_exit_code() {
    let world = World::new();
    let running = world.start().await;
    let cases = [
        ("ln -s /etc/shadow \"$JOBYARD_OUTPUT/x\"", "leads out of the folder"),
        ("mkfifo \"$JOBYARD_OUTPUT/x\"", "device, pipe or socket"),
        ("ln -s ../work \"$JOBYARD_OUTPUT/x\"", "leads out of the folder"),
    ];
    for (script, why) in cases {
        let lease_id = running.run(shell(script)).await;
        let facts = world.desk.facts_of(lease_id).await;
        assert_eq!((facts.exit, facts.outputs), (Exit::Code(0), Outputs::Refused), "{script}");
        assert!(facts.message.contains(why), "{}", facts.message);
    }
    world.desk.set(|heard| heard.stores_refused = "an artifact has at most 7 bytes".to_owned());
    let lease_id = running.run(shell(TWO_FILES)).await;
    let facts = world.desk.facts_of(lease_id).await;
    assert_eq!((facts.exit, facts.outputs), (Exit::Code(0), Outputs::Refused));
    assert!(facts.message.contains("at most 7 bytes"), "{}", facts.message);
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_beyond_the_limit_fail_the_attempt_and_are_not_sent() {
    let mut world = World::new();
    // What the two files, the link and the program have together.
    world.settings.output_limit_bytes = 18;
    let running = world.start().await;
    let fits = running.run(shell(TWO_FILES)).await;
    assert_eq!(published(&world, fits).await.files.len(), 4);
    let stored = world.desk.heard().stored;
    let lease_id = running.run(shell(&format!("{TWO_FILES} && printf x > one-more"))).await;
    let facts = world.desk.facts_of(lease_id).await;
    assert_eq!((facts.exit, facts.outputs), (Exit::Code(0), Outputs::Refused));
    let said = "they have 19 bytes, and of an attempt at most 18 are kept (`worker.output_limit_bytes`)";
    assert!(facts.message.contains(said), "{}", facts.message);
    assert_eq!(world.desk.heard().stored, stored);
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_that_are_not_up_in_time_are_the_platforms_failure() {
    let mut world = World::new();
    world.settings.times.upload_ms = 50;
    let running = world.start().await;
    world.desk.set(|heard| heard.stores_hang = true);
    let lease_id = running.run(shell(TWO_FILES)).await;
    let facts = world.desk.facts_of(lease_id).await;
    assert_eq!((facts.exit, facts.outputs), (Exit::Code(0), Outputs::Late));
    assert!(facts.message.contains("not up after"), "{}", facts.message);
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_worker_sends_what_the_last_one_did_not() {
    let world = World::new();
    let running = world.start().await;
    world.desk.set(|heard| heard.stores_hang = true);
    let lease_id = running.run(shell(TWO_FILES)).await;
    until("the upload", || said_finishing(&world, lease_id)).await;
    assert_eq!(running.stop().await.attempts, 1);
    assert!(!world.desk.heard().ends.contains_key(&lease_id));
    world.desk.set(|heard| heard.stores_hang = false);
    let running = world.start().await;
    assert_eq!(published(&world, lease_id).await.files.len(), 4);
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_worker_s_outputs_are_sent_by_the_next() {
    let world = World::new();
    let running = world.start().await;
    world.desk.set(|heard| heard.stores_hang = true);
    let lease_id = running.run(shell(TWO_FILES)).await;
    until("the upload", || said_finishing(&world, lease_id)).await;
    running.kill();
    world.desk.set(|heard| heard.stores_hang = false);
    let running = world.start().await;
    assert_eq!(published(&world, lease_id).await.files.len(), 4);
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_ends_an_upload() {
    let world = World::new();
    let running = world.start().await;
    world.desk.set(|heard| heard.stores_hang = true);
    let launch = shell(TWO_FILES);
    let lease_id = running.run(launch.clone()).await;
    until("the upload", || said_finishing(&world, lease_id)).await;
    world.desk.set(|heard| heard.intents.extend([(lease_id, Intent::Cancel as u32)]));
    running.stop_attempt(&launch, 1_000).await;
    let end = world.desk.end_of(lease_id).await;
    let AttemptEnd::Exited(ExitFacts { ended_by, exit, outputs, .. }) = end else { panic!("{end:?}") };
    assert_eq!((ended_by, exit, outputs), (EndedBy::Stop, Exit::Code(0), Outputs::None));
    world.close(running).await;
}
