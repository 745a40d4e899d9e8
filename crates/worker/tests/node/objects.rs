//! What a job names in S3: its executable and its input on the way down, its outputs on the way up.

use bytes::Bytes;
use jobyard_api::proto;
use jobyard_model::{Exit, LeaseId, Outputs};
use jobyard_tree::Tree;

use crate::world::{World, shell};

fn put(world: &World, path: &str, etag: &str, content: &str) {
    let object = (etag.to_owned(), Bytes::copy_from_slice(content.as_bytes()));
    world.desk.set(|heard| drop(heard.objects.insert(path.to_owned(), object)));
}

fn reading(url: &str, script: &str) -> proto::Launch {
    proto::Launch { input_url: url.to_owned(), ..shell(script) }
}

fn running(url: &str) -> proto::Launch {
    proto::Launch { executable_url: url.to_owned(), ..proto::Launch { command: Vec::new(), ..shell("") } }
}

async fn said(world: &World, lease_id: LeaseId) -> String {
    let facts = world.desk.facts_of(lease_id).await;
    assert_eq!(facts.exit, Exit::Code(0), "{}", facts.message);
    String::from_utf8(world.desk.heard().logs_at_end[&lease_id][0].clone()).unwrap()
}

const SHOW: &str = "cd \"$JOBYARD_INPUT\" && find . -type f | sort | xargs cat && ! touch new";

#[tokio::test(flavor = "multi_thread")]
async fn objects_below_a_prefix_are_a_folder_and_are_fetched_once() {
    let world = World::new();
    let worker = world.start().await;
    for (path, content) in [("a", "one "), ("b/c", "two "), ("b/d", "three "), ("e", "")] {
        put(&world, path, "1", content);
    }
    for _ in 0..2 {
        let lease_id = worker.run(reading("s3://bucket/in/", SHOW)).await;
        assert_eq!(said(&world, lease_id).await, "one two three ");
    }
    assert_eq!(world.desk.heard().object_fetches, [0, 0, 0], "the second time they are there");
    put(&world, "b/c", "2", "TWO ");
    let lease_id = worker.run(reading("s3://bucket/in/", SHOW)).await;
    assert_eq!(said(&world, lease_id).await, "one TWO three ");
    assert_eq!(world.desk.heard().object_fetches.len(), 4);
    // The same names at another place are other objects.
    let lease_id = worker.run(reading("s3://bucket/other/", SHOW)).await;
    assert_eq!(said(&world, lease_id).await, "one TWO three ");
    assert_eq!(world.desk.heard().object_fetches.len(), 7);
    world.close(worker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_that_is_cut_off_goes_on_where_it_was() {
    let world = World::new();
    let worker = world.start().await;
    put(&world, "a", "1", "0123456789");
    world.desk.set(|heard| heard.object_cut = Some(4));
    let lease_id = worker.run(reading("s3://bucket/a", SHOW)).await;
    assert_eq!(said(&world, lease_id).await, "0123456789");
    assert_eq!(world.desk.heard().object_fetches, [0, 4]);
    world.close(worker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_changes_while_it_is_read_is_read_anew() {
    let world = World::new();
    let worker = world.start().await;
    put(&world, "a", "1", "old old old ");
    world.desk.set(|heard| heard.object_change = Some(("2".to_owned(), "new new new ".into())));
    let lease_id = worker.run(reading("s3://bucket/in/", SHOW)).await;
    assert_eq!(said(&world, lease_id).await, "new new new ");
    assert_eq!(world.desk.heard().object_fetches, [0, 0], "nothing of the old one is in it");
    world.close(worker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_executable_is_run_under_its_name_and_fetched_once() {
    let world = World::new();
    let worker = world.start().await;
    put(&world, "say.sh", "1", "#!/bin/sh\nbasename \"$0\"; echo \"$1\"\n");
    for word in ["one", "two"] {
        let launch = running("s3://bucket/bin/say.sh");
        let lease_id = worker.run(proto::Launch { command: vec![word.to_owned()], ..launch }).await;
        assert_eq!(said(&world, lease_id).await, format!("say.sh\n{word}\n"));
    }
    assert_eq!(world.desk.heard().object_fetches, [0]);
    world.close(worker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_files_fails_for_good() {
    let world = World::new();
    let worker = world.start().await;
    let nothing = worker.run(reading("s3://bucket/in/", "true")).await;
    let facts = world.desk.facts_of(nothing).await;
    assert_eq!(facts.exit, Exit::Unrunnable);
    assert!(facts.message.contains("there is nothing below s3://bucket/in/"), "{}", facts.message);
    for (path, why) in [
        ("../../x", "`.` or `..`"),
        ("/etc/x", "absolute"),
        ("a//b", "empty part"),
        ("a\nb", "control character"),
    ] {
        world.desk.set(|heard| heard.objects.clear());
        put(&world, path, "1", "x");
        let lease_id = worker.run(reading("s3://bucket/in/", "true")).await;
        let facts = world.desk.facts_of(lease_id).await;
        assert_eq!(facts.exit, Exit::Unrunnable, "{path}");
        assert!(facts.message.contains(why), "{path}: {}", facts.message);
    }
    world.desk.set(|heard| heard.objects.clear());
    put(&world, "a", "1", "file");
    put(&world, "a/b", "1", "below it");
    let lease_id = worker.run(reading("s3://bucket/in/", "true")).await;
    let facts = world.desk.facts_of(lease_id).await;
    assert_eq!(facts.exit, Exit::Unrunnable);
    assert!(facts.message.contains("can't be file and folder"), "{}", facts.message);
    world.close(worker).await;
}

fn leaving(script: &str) -> proto::Launch {
    proto::Launch { output_url: "s3://bucket/out".to_owned(), ..shell(script) }
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_go_up_file_by_file_and_their_manifest_last() {
    let world = World::new();
    let worker = world.start().await;
    let script = "cd \"$JOBYARD_OUTPUT\" && mkdir sub && printf one > sub/a && printf one > b";
    let lease_id = worker.run(leaving(script)).await;
    let facts = world.desk.facts_of(lease_id).await;
    let Outputs::Kept(hash) = facts.outputs else { panic!("{facts:?}") };
    {
        let heard = world.desk.heard();
        let names: Vec<_> = heard.outputs.keys().map(String::as_str).collect();
        assert_eq!(names, ["_manifest.json", "b", "sub/a"]);
        assert_eq!(heard.order[1..], ["output", "output", "manifest", "end"]);
        let (manifest, named) = Tree::decode(&heard.outputs["_manifest.json"]).unwrap().encode().unwrap();
        assert_eq!((manifest.as_slice(), named), (&heard.outputs["_manifest.json"][..], hash));
        assert_eq!(heard.stored, 0, "nothing goes into the artifact store");
    }
    world.close(worker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_that_may_not_go_there_fail_the_attempt() {
    let world = World::new();
    let worker = world.start().await;
    let taken = worker.run(leaving("printf x > \"$JOBYARD_OUTPUT/_manifest.json\"")).await;
    let facts = world.desk.facts_of(taken).await;
    assert_eq!((facts.exit, facts.outputs), (Exit::Code(0), Outputs::Refused));
    assert!(facts.message.contains("_manifest.json"), "{}", facts.message);
    world.desk.set(|heard| heard.stores_refused = "access denied".to_owned());
    let denied = worker.run(leaving("printf x > \"$JOBYARD_OUTPUT/x\"")).await;
    let facts = world.desk.facts_of(denied).await;
    assert_eq!((facts.exit, facts.outputs), (Exit::Code(0), Outputs::Refused));
    assert!(facts.message.contains("access denied"), "{}", facts.message);
    assert!(world.desk.heard().outputs.is_empty());
    world.close(worker).await;
}
