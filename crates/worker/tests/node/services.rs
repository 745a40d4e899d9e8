//! Services: their restarts are told, and go on whoever comes and goes.

use jobyard_api::grpc::convert::{self, Said};
use jobyard_api::proto::{self, StopVerdict};
use jobyard_model::{EndedBy, Exit, LeaseId, ServiceRun};

use crate::world::{World, kill, shell, sidecars_of, until};

/// Started again after this long, and then after twice as long.
fn service(script: &str, backoff_ms: u64) -> proto::Launch {
    proto::Launch {
        restarts: Some(proto::Restarts { backoff_ms, final_exit_codes: vec![64] }),
        ..shell(script)
    }
}

async fn told(
    world: &World,
    lease_id: LeaseId,
    what: &str,
    wanted: impl Fn(&ServiceRun) -> bool,
) -> ServiceRun {
    let find = |found: &(LeaseId, Said)| match found {
        (found, Said::Service(run)) if *found == lease_id && wanted(run) => Some(*run),
        _ => None,
    };
    world.desk.until(what, |heard| heard.reports.iter().find_map(find)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_exit_and_each_restart_is_told() {
    let world = World::new();
    let running = world.start().await;
    let script =
        "n=$(($(cat n 2>/dev/null || echo 0) + 1)); echo $n > n; echo run $n; [ $n = 3 ] && exit 64; exit $n";
    let lease_id = running.run(service(script, 20)).await;
    let facts = world.desk.facts_of(lease_id).await;
    assert_eq!((facts.ended_by, facts.exit), (EndedBy::Itself, Exit::Code(64)));
    let run_of = |(_, said): &(LeaseId, Said)| match said {
        Said::Service(run) => Some((run.restarts, run.last_exit.exit, run.is_waiting())),
        _ => None,
    };
    let runs: Vec<_> = world.desk.heard().reports.iter().filter_map(run_of).collect();
    let [first, second] = [Exit::Code(1), Exit::Code(2)];
    // What follows quickly while a call is made may be told in one.
    assert!(runs.iter().all(|run| {
        [(0, first, true), (1, first, false), (1, second, true), (2, second, false)].contains(run)
    }));
    assert!(runs.is_sorted_by_key(|(restarts, _, waits)| (*restarts, *waits)), "{runs:?}");
    assert_eq!(runs.last(), Some(&(2, second, false)));
    assert_eq!(world.desk.heard().logs_at_end[&lease_id][0], b"run 1\nrun 2\nrun 3\n");
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_killed_while_it_waits_finds_it_again() {
    let world = World::new();
    let running = world.start().await;
    let wanted = service("echo once; exit 3", 600_000);
    let lease_id = running.run(wanted.clone()).await;
    let before = told(&world, lease_id, "the exit", ServiceRun::is_waiting).await;
    let sidecars = sidecars_of(&world);
    running.kill();
    world.desk.set(|heard| heard.reports.clear());
    let running = world.start().await;
    let after = told(&world, lease_id, "the same exit", ServiceRun::is_waiting).await;
    assert_eq!((after, sidecars_of(&world)), (before, sidecars));
    assert_eq!(running.stop_attempt(&wanted, 60_000).await, StopVerdict::Stopping);
    let facts = world.desk.facts_of(lease_id).await;
    assert_eq!((facts.ended_by, facts.exit), (EndedBy::Stop, Exit::Code(3)));
    assert_eq!(world.desk.heard().logs_at_end[&lease_id][0], b"once\n");
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn restarts_while_nobody_listens_are_counted() {
    let world = World::new();
    let running = world.start().await;
    let notes = world.path("notes");
    std::fs::write(&notes, "").unwrap();
    std::fs::set_permissions(&notes, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    let wanted = service(&format!("echo >> {}; exit 1", notes.display()), 20);
    let lease_id = running.run(wanted.clone()).await;
    told(&world, lease_id, "the first exit", ServiceRun::is_waiting).await;
    let before = world.desk.heard().reports.len();
    world.desk.set(|heard| heard.down = true);
    until("some restarts", || std::fs::read(&notes).unwrap().len() >= 5).await;
    world.desk.set(|heard| heard.down = false);
    let run = told(&world, lease_id, "the newest count", |run| run.restarts >= 3).await;
    let words = world.desk.heard().reports[before..]
        .iter()
        .filter(|(_, said)| matches!(said, Said::Service(_)))
        .count();
    assert!(words < 2 * run.restarts as usize, "those that nobody heard are told in one");
    running.stop_attempt(&wanted, 0).await;
    assert_eq!(world.desk.facts_of(lease_id).await.ended_by, EndedBy::Stop);
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn its_place_stays_its_own_while_it_waits() {
    let mut world = World::new();
    world.settings.max_attempts = 1;
    let running = world.start().await;
    let wanted = service("exit 1", 600_000);
    let lease_id = running.run(wanted.clone()).await;
    told(&world, lease_id, "the exit", ServiceRun::is_waiting).await;
    let answer = running.launch(vec![shell("exit 0")]).await.remove(0);
    assert_eq!(answer.verdict(), proto::LaunchVerdict::Full);
    running.worker.evict_all().await;
    assert_eq!(world.desk.facts_of(lease_id).await.ended_by, EndedBy::Stop);
    world.close(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sidecar_that_is_killed_while_its_service_waits_is_reported() {
    let world = World::new();
    let running = world.start().await;
    let wanted = service("exit 1", 600_000);
    let lease_id = convert::lease_id(&wanted.lease_id).unwrap();
    running.run(wanted).await;
    told(&world, lease_id, "the exit", ServiceRun::is_waiting).await;
    kill(sidecars_of(&world)[0]);
    let end = world.desk.end_of(lease_id).await;
    assert!(matches!(end, jobyard_model::AttemptEnd::Vanished { .. }), "{end:?}");
    world.close(running).await;
}
