//! From a launch to its outcome, and what is refused.

use jobyard_api::doors::WorkerDoor;
use jobyard_api::grpc::convert::{self, Said};
use jobyard_api::proto::{self, LaunchVerdict};
use jobyard_model::{EndedBy, Exit};

use crate::world::{World, artifact, launch, shell};

#[tokio::test(flavor = "multi_thread")]
async fn a_task_runs_and_its_outcome_comes_after_its_log() {
    let world = World::new();
    let running = world.start().await;
    let lease_id = running.run(shell("echo out; echo err >&2; exit 3")).await;
    let facts = world.desk.facts_of(lease_id).await;
    assert_eq!((facts.exit, facts.ended_by), (Exit::Code(3), EndedBy::Itself));
    assert!(facts.started_at.is_some());
    let log = world.desk.heard().logs_at_end[&lease_id].clone();
    assert_eq!(log, [b"out\n".to_vec(), b"err\n".to_vec()]);
    let said: Vec<Said> = world.desk.heard().reports.iter().map(|(_, said)| said.clone()).collect();
    let started = said.iter().position(|said| *said == Said::Started).unwrap();
    assert!(said[..started].iter().all(|said| *said == Said::Accepted), "{said:?}");
    assert!(matches!(said.last(), Some(Said::Ended(_))), "{said:?}");
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_run_is_an_outcome_too() {
    let world = World::new();
    let running = world.start().await;
    let missing = running.run(launch(&["no-such-program-anywhere"])).await;
    let nothing = running.run(launch(&[])).await;
    let huge = running.run(launch(&["/bin/true", &"x".repeat(3 << 20)])).await;
    let file = running.run(proto::Launch { file: "/no/such/file".to_owned(), ..launch(&[]) }).await;
    for (lease_id, why) in
        [(missing, "no such program"), (nothing, "empty"), (huge, "large"), (file, "/no/such/file")]
    {
        let facts = world.desk.facts_of(lease_id).await;
        assert_eq!(facts.exit, Exit::Unrunnable);
        assert!(facts.message.contains(why), "{}", facts.message);
        assert_eq!(world.desk.count(lease_id, &Said::Started), 0);
    }
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_and_a_file_of_the_node_reach_the_task() {
    let world = World::new();
    let running = world.start().await;
    let mut wanted =
        shell("printf '%s %s %s' \"$GREETING\" \"$JOBYARD_ATTEMPT\" \"$(cat $JOBYARD_INPUT/x || pwd -P)\"");
    wanted.env.insert("GREETING".to_owned(), "hello = world".to_owned());
    wanted.attempt = 7;
    let lease_id = running.run(wanted).await;
    assert_eq!(world.desk.facts_of(lease_id).await.exit, Exit::Code(0));
    let out = String::from_utf8(world.desk.heard().logs_at_end[&lease_id][0].clone()).unwrap();
    assert!(out.starts_with("hello = world 7 "), "{out}");
    let file = proto::Launch { file: "/bin/echo".to_owned(), ..launch(&["from a file"]) };
    let lease_id = running.run(file).await;
    assert_eq!(world.desk.facts_of(lease_id).await.exit, Exit::Code(0));
    assert_eq!(world.desk.heard().logs_at_end[&lease_id][0], b"from a file\n");
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launch_resent_during_or_after_the_attempt_starts_nothing() {
    let world = World::new();
    let running = world.start().await;
    let starts = world.path("starts");
    std::fs::write(&starts, "").unwrap();
    std::fs::set_permissions(&starts, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    let wanted = shell(&format!("echo started >> {}; exec sleep 0.1", starts.display()));
    let twice = running.launch(vec![wanted.clone(), wanted.clone()]).await;
    let lease_id = running.run(wanted.clone()).await;
    assert_eq!(world.desk.facts_of(lease_id).await.exit, Exit::Code(0));
    running.run(wanted).await;
    assert!(twice.iter().all(|answer| answer.verdict() == LaunchVerdict::Accepted), "{twice:?}");
    let last = running.run(launch(&["/bin/true"])).await;
    world.desk.end_of(last).await;
    assert_eq!(std::fs::read_to_string(&starts).unwrap(), "started\n");
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_say_what_they_are() {
    let mut world = World::new();
    world.settings.memory_bytes = Some(1 << 30);
    world.settings.max_attempts = 2;
    let running = world.start().await;
    let big = proto::Launch { memory_bytes: 2 << 30, ..launch(&["/bin/true"]) };
    let alien = proto::Launch { runtime: "teleport".to_owned(), ..launch(&["/bin/true"]) };
    let nameless = proto::Launch { lease_id: "short".into(), ..launch(&["/bin/true"]) };
    let refused = running.launch(vec![big, alien, nameless]).await;
    let verdicts: Vec<_> = refused.iter().map(proto::LaunchAnswer::verdict).collect();
    assert_eq!(verdicts, [LaunchVerdict::Full, LaunchVerdict::Unsupported, LaunchVerdict::Unsupported]);
    assert!(refused[1].message.contains("teleport"), "{}", refused[1].message);
    assert!(refused[2].message.contains("lease_id"), "{}", refused[2].message);

    let session = convert::id_bytes(uuid::Uuid::new_v4());
    let launches = vec![launch(&["/bin/true"])];
    let request = proto::LaunchRequest { session, launches, lease_ms: 1_000, heartbeat_ms: 100 };
    let foreign = running.worker.launch(request).await.unwrap();
    assert_eq!(foreign.answers[0].verdict(), LaunchVerdict::WrongSession);

    let held = vec![shell("exec sleep 600"), shell("exec sleep 600"), launch(&["/bin/true"])];
    let answers = running.launch(held.clone()).await;
    let verdicts: Vec<_> = answers.iter().map(proto::LaunchAnswer::verdict).collect();
    assert_eq!(verdicts, [LaunchVerdict::Accepted, LaunchVerdict::Accepted, LaunchVerdict::Full]);
    for launch in &held[..2] {
        running.stop_attempt(launch, 0).await;
        world.desk.end_of(convert::lease_id(&launch.lease_id).unwrap()).await;
    }
    let room = running.run(launch(&["/bin/true"])).await;
    world.desk.end_of(room).await;
    assert_eq!(running.launch(vec![held[2].clone()]).await[0].verdict(), LaunchVerdict::Full);
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_a_refusal() {
    let mut world = World::new();
    world.settings.disk_floor_bytes = u64::MAX;
    let running = world.start().await;
    let wanted = launch(&["/bin/true"]);
    let answer = running.launch(vec![wanted.clone()]).await.remove(0);
    assert_eq!(answer.verdict(), LaunchVerdict::DiskFull, "{}", answer.message);
    assert_eq!(running.launch(vec![wanted]).await[0].verdict(), LaunchVerdict::DiskFull);
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_directory_that_can_not_be_made_is_a_refusal() {
    let world = World::new();
    let running = world.start().await;
    // In the place of the first slot's directory.
    std::fs::write(world.path("state/a/0"), "").unwrap();
    let answer = running.launch(vec![launch(&["/bin/true"])]).await.remove(0);
    assert_eq!(answer.verdict(), LaunchVerdict::DiskFull);
    assert!(answer.message.contains("attempt directory"), "{}", answer.message);
    std::fs::remove_file(world.path("state/a/0")).unwrap();
    let lease_id = running.run(launch(&["/bin/true"])).await;
    assert_eq!(world.desk.facts_of(lease_id).await.exit, Exit::Code(0));
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exclusive_attempt_starts_only_when_its_acceptance_is_acknowledged() {
    let world = World::new();
    let running = world.start().await;
    running.worker.registered().await.unwrap();
    world.desk.set(|heard| heard.down = true);
    let started = world.path("started");
    let script = format!("echo > {}", started.display());
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(world.root.path(), open).unwrap();
    let exclusive = running.run(proto::Launch { exclusive: true, ..shell(&script) }).await;
    // Another one, launched later, runs and ends meanwhile: its end lies on disk.
    let other = running.run(launch(&["/bin/true"])).await;
    crate::world::until("the other's end on disk", || {
        crate::world::names_in(&world.path("data/spool")).contains(&other.to_string())
    })
    .await;
    assert!(!started.exists());
    world.desk.set(|heard| heard.down = false);
    assert_eq!(world.desk.facts_of(exclusive).await.exit, Exit::Code(0));
    assert!(started.exists());
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acceptance_that_was_known_already_starts_no_exclusive_attempt() {
    let world = World::new();
    let running = world.start().await;
    // The first answer is lost: the lease began with a report whose time nobody knows.
    world.desk.set(|heard| heard.answers_lost = 1);
    let lease_id = running.run(proto::Launch { exclusive: true, ..launch(&["/bin/true"]) }).await;
    assert_eq!(world.desk.facts_of(lease_id).await.exit, Exit::Code(0));
    let said: Vec<Said> = world.desk.heard().reports.iter().map(|(_, said)| said.clone()).collect();
    assert_eq!(said[..4], [Said::Accepted, Said::Accepted, Said::Renewed, Said::Started], "{said:?}");
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_all_end() {
    let world = World::new();
    let running = world.start().await;
    let hash = world.upload("#!/bin/sh\necho \"$1\"\n");
    let mut launches: Vec<_> = (0..40).map(|number| shell(&format!("echo {number}"))).collect();
    launches
        .extend((40..60).map(|number| proto::Launch { command: vec![number.to_string()], ..artifact(hash) }));
    let leases: Vec<_> = launches.iter().map(|launch| convert::lease_id(&launch.lease_id).unwrap()).collect();
    let answers = running.launch(launches).await;
    assert!(answers.iter().all(|answer| answer.verdict() == LaunchVerdict::Accepted));
    for (number, lease_id) in leases.into_iter().enumerate() {
        assert_eq!(world.desk.facts_of(lease_id).await.exit, Exit::Code(0));
        assert_eq!(world.desk.heard().logs_at_end[&lease_id][0], format!("{number}\n").into_bytes());
    }
    assert_eq!(world.desk.heard().fetches, 1);
    world.close(running).await;
}
