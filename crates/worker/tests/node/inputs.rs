//! Inputs: staged through the cache, read-only, for each attempt.

use bytes::Bytes;
use jobyard_api::proto;
use jobyard_model::{ArtifactHash, Exit, LeaseId};
use jobyard_tree::{Mode, Tree, TreeFile};

use crate::world::{Running, World, names_in, shell};

fn upload_tree(world: &World, files: &[(&str, &str, Mode)]) -> ArtifactHash {
    let mut tree = Tree::default();
    for (path, content, mode) in files {
        let file = TreeFile { sha256: world.upload(content), size: content.len() as u64, mode: *mode };
        tree.files.insert((*path).to_owned(), file);
    }
    let (manifest, hash) = tree.encode().unwrap();
    assert_eq!(world.upload(std::str::from_utf8(&manifest).unwrap()), hash);
    hash
}

fn reading(input: ArtifactHash, script: &str) -> proto::Launch {
    proto::Launch { input: Bytes::copy_from_slice(&input.0), ..shell(script) }
}

async fn said(world: &World, lease_id: LeaseId) -> String {
    let facts = world.desk.facts_of(lease_id).await;
    assert_eq!(facts.exit, Exit::Code(0), "{}", facts.message);
    String::from_utf8(world.desk.heard().logs_at_end[&lease_id][0].clone()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_is_staged_as_it_is_and_nobody_can_spoil_it() {
    let world = World::new();
    let running = world.start().await;
    let files = [
        ("run.sh", "#!/bin/sh\necho ran\n", Mode::Executable),
        ("texts/eins", "one ", Mode::Plain),
        ("texts/zwei", "two ", Mode::Plain),
        ("texts/again", "one ", Mode::Plain),
    ];
    let input = upload_tree(&world, &files);
    let script = "cd \"$JOBYARD_INPUT\" && ./run.sh && cat texts/* && find . -type f -perm -u=x && \
        ! touch texts/new && ! touch new";
    for _ in 0..2 {
        let lease_id = running.run(reading(input, script)).await;
        assert_eq!(said(&world, lease_id).await, "ran\none one two ./run.sh\n");
    }
    assert_eq!(world.desk.heard().fetches, 4, "the manifest and three different files, once");

    // A task that may not write to what it was given, and one that tries all the same.
    let spoil = "cd \"$JOBYARD_INPUT\"; chmod u+w texts/eins; echo spoiled > texts/eins; exit 0";
    let lease_id = running.run(reading(input, spoil)).await;
    said(&world, lease_id).await;
    let lease_id = running.run(reading(input, script)).await;
    assert_eq!(said(&world, lease_id).await, "ran\none one two ./run.sh\n");
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_artifact_is_a_folder_with_one_file() {
    let world = World::new();
    let running = world.start().await;
    for content in ["words", "", "{\"tree\":1,\"files\":{\"no manifest"] {
        let input = world.upload(content);
        let script = "ls \"$JOBYARD_INPUT\" && cat \"$JOBYARD_INPUT/artifact\"";
        let lease_id = running.run(reading(input, script)).await;
        assert_eq!(said(&world, lease_id).await, format!("artifact\n{content}"));
    }
    let none = running.run(shell("ls -A \"$JOBYARD_INPUT\"")).await;
    assert_eq!(said(&world, none).await, "", "without an input the folder is empty");
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_at_the_same_time_fetch_once() {
    let world = World::new();
    let running = world.start().await;
    let contents: Vec<(String, String)> =
        (0..40).map(|number| (format!("{number}"), format!("text {number}\n"))).collect();
    let files: Vec<_> =
        contents.iter().map(|(path, text)| (path.as_str(), text.as_str(), Mode::Plain)).collect();
    let input = upload_tree(&world, &files);
    let mut leases = Vec::new();
    for _ in 0..5 {
        leases.push(running.run(reading(input, "cat \"$JOBYARD_INPUT\"/* | wc -l")).await);
    }
    for lease_id in leases {
        assert_eq!(said(&world, lease_id).await.trim(), "40");
    }
    assert_eq!(world.desk.heard().fetches, 41);
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_lacks_a_file_can_not_work_again() {
    let world = World::new();
    let running = world.start().await;
    let input = upload_tree(&world, &[("a", "there", Mode::Plain), ("b", "lost", Mode::Plain)]);
    let lost = world.upload("lost");
    world.desk.set(|heard| drop(heard.artifacts.remove(&lost)));
    let lease_id = running.run(reading(input, "echo never")).await;
    let facts = world.desk.facts_of(lease_id).await;
    assert_eq!(facts.exit, Exit::Unrunnable);
    assert!(facts.message.starts_with("the input can't be fetched: the artifact"), "{}", facts.message);
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_cache_lets_go_of_what_no_attempt_stages() {
    let mut world = World::new();
    world.settings.cache_limit_bytes = 20_000;
    let running = world.start().await;
    for round in 0..4 {
        let text = format!("{round}").repeat(4_000);
        let input = upload_tree(&world, &[("a", &text, Mode::Plain), ("b", "small", Mode::Plain)]);
        let lease_id = running.run(reading(input, "cat \"$JOBYARD_INPUT/a\" | wc -c")).await;
        assert_eq!(said(&world, lease_id).await.trim(), "4000");
    }
    wait_for_room(&running, &world).await;
    world.close(running).await;
}

/// The next fetch makes room, when there is too little.
async fn wait_for_room(running: &Running, world: &World) {
    let text = "x".repeat(8_000);
    let input = upload_tree(world, &[("a", &text, Mode::Plain)]);
    let lease_id = running.run(reading(input, "true")).await;
    said(world, lease_id).await;
    let cache = world.path("task/artifacts");
    let bytes: u64 =
        names_in(&cache).iter().map(|name| std::fs::metadata(cache.join(name)).unwrap().len()).sum();
    assert!(bytes <= 20_000, "{bytes} bytes in the cache");
}
