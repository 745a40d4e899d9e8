//! Secrets: fetched for an attempt about to start, and given to its task alone.

use std::path::Path;

use jobyard_api::proto;
use jobyard_model::{AttemptEnd, Exit, LeaseId};

use crate::world::{World, artifact, shell};

const SECRET: &str = "hunter2-in-the-clear";

fn hiding(launch: proto::Launch) -> proto::Launch {
    proto::Launch { secrets: true, ..launch }
}

fn world_with_secrets() -> World {
    let world = World::new();
    world.desk.set(|heard| heard.secrets = vec![("TOKEN", SECRET), ("EMPTY", "")]);
    world
}

async fn said(world: &World, lease_id: LeaseId) -> String {
    let facts = world.desk.facts_of(lease_id).await;
    assert_eq!(facts.exit, Exit::Code(0), "{}", facts.message);
    String::from_utf8(world.desk.heard().logs_at_end[&lease_id][0].clone()).unwrap()
}

/// Files below the folder that have this text in them.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_with(&path, text));
        } else if entry.file_type().unwrap().is_file() {
            let bytes = std::fs::read(&path).unwrap_or_default();
            if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_gets_its_secrets_and_no_file_has_them() {
    let world = world_with_secrets();
    let running = world.start().await;
    let go = world.path("task/go");
    let script = format!(
        "printf %s \"$TOKEN\" | tr a-z A-Z; echo \"[$EMPTY]\"; until [ -e {} ]; do sleep 0.02; done",
        go.display()
    );
    let lease_id = running.run(hiding(shell(&script))).await;
    world.desk.started(lease_id).await;
    assert_eq!(files_with(world.root.path(), SECRET), [""; 0]);
    std::fs::write(&go, "").unwrap();
    assert_eq!(said(&world, lease_id).await, "HUNTER2-IN-THE-CLEAR[]\n");
    assert_eq!(world.desk.heard().secret_fetches, 1);

    // The next one in the same slot; it has none and asks for none.
    let lease_id = running.run(shell("echo \"[$TOKEN]\"")).await;
    assert_eq!(said(&world, lease_id).await, "[]\n");
    let hash = world.upload("#!/bin/sh\necho \"[$TOKEN]\"\n");
    let lease_id = running.run(hiding(artifact(hash))).await;
    assert_eq!(said(&world, lease_id).await, format!("[{SECRET}]\n"));
    assert_eq!(world.desk.heard().secret_fetches, 2);
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_them_nothing_is_started_and_that_is_the_platform_s_failure() {
    let world = world_with_secrets();
    world.desk.set(|heard| heard.secrets_refused = "no such key".to_owned());
    let running = world.start().await;
    let mark = world.path("task/mark");
    let lease_id = running.run(hiding(shell(&format!("touch {}", mark.display())))).await;
    let facts = world.desk.facts_of(lease_id).await;
    assert_eq!((facts.exit, facts.started_at), (Exit::LaunchFault, None));
    assert_eq!(facts.message, "its secrets can't be fetched: no such key");
    assert!(!mark.exists());
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_while_they_are_fetched_starts_nothing_and_a_new_worker_fetches_anew() {
    let world = world_with_secrets();
    world.desk.set(|heard| heard.secrets_hang = true);
    let running = world.start().await;
    let asked = async |count: u32| {
        world.desk.until("asked", |heard| (heard.secret_fetches == count).then_some(())).await;
    };
    let stopped = hiding(shell("exit 0"));
    let lease_id = running.run(stopped.clone()).await;
    asked(1).await;
    running.stop_attempt(&stopped, 0).await;
    let end = world.desk.end_of(lease_id).await;
    assert!(matches!(end, AttemptEnd::NotStarted { .. }), "{end:?}");

    // Killed in the middle of it: what the next worker finds has not started, and is not.
    let lease_id = running.run(hiding(shell("exit 0"))).await;
    asked(2).await;
    running.kill();
    let running = world.start().await;
    let end = world.desk.end_of(lease_id).await;
    assert!(matches!(end, AttemptEnd::NotStarted { .. }), "{end:?}");
    world.desk.set(|heard| heard.secrets_hang = false);
    let lease_id = running.run(hiding(shell("echo \"$TOKEN\""))).await;
    assert_eq!(said(&world, lease_id).await, format!("{SECRET}\n"));
    assert_eq!(files_with(&world.path("state"), SECRET), [""; 0]);
    world.close(running).await;
}
