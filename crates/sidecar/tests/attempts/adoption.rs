//! The worker goes and another comes; the sidecar dies; the machine was another one.

use std::path::PathBuf;

use jobyard_handoff::{
    AttemptDirectory, Decision, EndedBy, SidecarPhase, Situation, StopReason, TaskExit, ToSidecar,
};
use jobyard_runtime::{cleanup, clear_tree};

use crate::world::{Talk, World, begin, kill, odd_seconds, processes_with, wait_until};

#[test]
fn a_new_worker_takes_over_and_the_old_connection_ends() {
    let world = World::new();
    let mut live = world.shell("echo first; while :; do sleep 0.05; done").start();
    let main_pid = live.talk.started();
    live.wait_for_output("first");
    let boot = world.runtime.boot_id();
    assert_eq!(live.directory.situation(&live.plan, boot).unwrap(), Situation::Alive);

    let mut second = Talk::over(live.directory.connect().unwrap());
    let hello = second.hello();
    assert_eq!(hello.identity, live.plan.identity);
    assert_eq!((hello.phase, hello.main_pid), (SidecarPhase::Running, main_pid));
    assert!(hello.started_at_ms.is_some() && hello.log_file_bytes > 0);
    second.heartbeat();
    while live.talk.next().is_some() {}

    let mut third = Talk::over(live.directory.connect().unwrap());
    third.hello();
    while second.next().is_some() {}
    third.say(&ToSidecar::Stop { reason: StopReason::Evict, grace_ms: 0 });
    live.talk = third;
    let done = live.finish();
    assert_eq!(done.record.ended_by, EndedBy::Stop);
}

#[test]
fn an_end_nobody_was_there_for_is_in_the_file() {
    let world = World::new();
    let go = world.path("go");
    let script = format!("while [ ! -e {} ]; do sleep 0.02; done; exit 9", go.display());
    let mut live = world.shell(&script).start();
    live.talk.started();
    let (directory, plan, mut process) = (live.directory.clone(), live.plan.clone(), live.process);
    drop(live.talk);
    std::fs::write(go, "").unwrap();
    assert!(process.wait().unwrap().success());
    let situation = directory.situation(&plan, world.runtime.boot_id()).unwrap();
    let Situation::Ended(record) = situation else { unreachable!("{situation:?}") };
    assert_eq!(record.exit, Some(TaskExit::Code(9)));
    cleanup(&plan).unwrap();
    directory.remove().unwrap();
}

#[test]
fn the_end_is_told_again_until_it_is_acknowledged() {
    let world = World::new();
    let mut live = world.shell("exit 2").start();
    let record = live.talk.ended();
    let mut second = Talk::over(live.directory.connect().unwrap());
    assert_eq!(second.hello().phase, SidecarPhase::Ended);
    assert_eq!(second.ended(), record);
    live.talk = second;
    // The new connection has told it once; finish() waits for another telling.
    let mut third = Talk::over(live.directory.connect().unwrap());
    assert_eq!(third.ended(), record);
    third.acknowledge();
    assert!(live.process.wait().unwrap().success());
    live.clear_up(record);
}

#[test]
fn a_record_that_can_not_be_written_stays_until_it_is_heard() {
    let world = World::new();
    // It must not end before the place for its record is gone.
    let mut live = world.shell("while [ ! -e go ]; do sleep 0.01; done; exit 8").start();
    live.talk.hello();
    // No place for the record: what a directory taken away leaves.
    std::fs::remove_file(live.directory.path().join("exit")).unwrap();
    std::fs::write(live.plan.directory.join("go"), "").unwrap();
    let go = live.talk.ended();
    drop(live.talk);
    // Nobody is connected, and still it is there.
    let mut second = Talk::over(live.directory.connect().unwrap());
    assert_eq!(second.ended(), go);
    second.acknowledge();
    assert!(live.process.wait().unwrap().success());
    cleanup(&live.plan).unwrap();
    live.directory.remove().unwrap();
}

#[test]
fn a_killed_sidecar_frees_its_lock_and_another_process_clears_the_tree() {
    let world = World::new();
    let seconds = odd_seconds();
    let script = format!("(setsid sleep {seconds} &) ; sleep {seconds} & echo up; exec sleep {seconds}");
    let mut live = world.shell(&script).start();
    live.wait_for_output("up");
    wait_until("all three", || processes_with(&seconds).len() >= 3);
    kill(live.process.id(), "-KILL");
    live.process.wait().unwrap();
    while live.talk.next().is_some() {}
    let situation = live.directory.situation(&live.plan, world.runtime.boot_id()).unwrap();
    assert_eq!(situation, Situation::Died);
    // As another worker would, from the file alone.
    let plan = AttemptDirectory::at(live.directory.path()).plan().unwrap();
    assert_eq!(plan, live.plan);
    let cleared = clear_tree(&plan).unwrap();
    assert_eq!(cleared.survivors, 0);
    assert_eq!(processes_with(&seconds), []);
    assert_eq!(clear_tree(&plan).unwrap().killed, 0);
    cleanup(&plan).unwrap();
    live.directory.remove().unwrap();
}

#[test]
fn the_first_to_decide_wins() {
    let world = World::new();
    let draft = world.shell("echo never");
    let prepared = draft.try_prepare().unwrap();
    let directory = AttemptDirectory::create(world.path("a"), &prepared.plan, &prepared.environment).unwrap();
    let boot = world.runtime.boot_id();
    assert_eq!(directory.situation(&prepared.plan, boot).unwrap(), Situation::NotStarted);
    // A sidecar that comes up now starts nothing.
    let mut sidecar = begin(&directory);
    assert!(sidecar.process.wait().unwrap().success());
    assert!(!prepared.plan.log.path.exists());
    assert_eq!(directory.decision().unwrap(), Some(Decision::NotStarted));
    assert_eq!(directory.situation(&prepared.plan, "another boot").unwrap(), Situation::OtherBoot);
    cleanup(&prepared.plan).unwrap();
}

#[test]
fn a_second_sidecar_leaves_the_first_alone() {
    let world = World::new();
    let mut live = world.shell("while :; do sleep 0.05; done").start();
    live.talk.started();
    let mut second = begin(&live.directory);
    assert!(!second.process.wait().unwrap().success());
    live.stop(0);
    assert_eq!(live.finish().record.ended_by, EndedBy::Stop);
}

#[test]
fn a_name_longer_than_a_socket_s_may_be() {
    let world = World::new();
    let folder: PathBuf = world.path(&"d".repeat(200));
    std::fs::create_dir(&folder).unwrap();
    let draft = world.shell("while :; do sleep 0.05; done");
    let prepared = draft.try_prepare().unwrap();
    let directory =
        AttemptDirectory::create(folder.join("a"), &prepared.plan, &prepared.environment).unwrap();
    let mut sidecar = begin(&directory);
    Talk::over(sidecar.connection).started();
    let mut talk = Talk::over(directory.connect().unwrap());
    talk.say(&ToSidecar::Stop { reason: StopReason::Stop, grace_ms: 0 });
    talk.ended();
    talk.acknowledge();
    assert!(sidecar.process.wait().unwrap().success());
    cleanup(&prepared.plan).unwrap();
}

#[test]
fn one_whose_directory_is_gone_stops_once_no_worker_is_there() {
    let world = World::new();
    let seconds = odd_seconds();
    let draft = world.shell(&format!("sleep {seconds}")).with(|draft| draft.times.heartbeat_ms = 20);
    let mut live = draft.start();
    live.talk.started();
    std::fs::remove_dir_all(live.directory.path()).unwrap();
    // While its worker is there, nothing is lost.
    for _ in 0..3 {
        live.talk.heartbeat();
    }
    assert!(!processes_with(&seconds).is_empty());
    let (plan, mut process) = (live.plan, live.process);
    drop(live.talk);
    assert!(process.wait().unwrap().success());
    assert_eq!(processes_with(&seconds), []);
    cleanup(&plan).unwrap();
}

#[test]
fn one_whose_directory_is_gone_still_tells_its_worker_how_it_ended() {
    let world = World::new();
    let mut live = world.shell("read line < gate; exit 4").start_with(|plan, _| {
        let gate = plan.directory.join("gate");
        assert!(
            std::process::Command::new("mkfifo").args(["-m", "666"]).arg(gate).status().unwrap().success()
        );
    });
    live.talk.started();
    std::fs::remove_dir_all(live.directory.path()).unwrap();
    std::fs::write(live.plan.directory.join("gate"), "go\n").unwrap();
    assert_eq!(live.talk.ended().exit, Some(TaskExit::Code(4)));
    live.talk.acknowledge();
    live.process.wait().unwrap();
    cleanup(&live.plan).unwrap();
}
