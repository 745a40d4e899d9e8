//! Services: started again whenever they leave, until somebody wants otherwise.

use jobyard_handoff::{
    Containment, EndedBy, FaultCode, RestartPlan, ServiceState, SidecarPhase, TaskExit, ToSidecar,
};

use crate::world::{
    Draft, Live, Talk, World, boottime_ms, contains, kill, odd_seconds, processes_with, read_log, wait_until,
};

/// With short delays; code 64 is final.
fn service(draft: &mut Draft<'_>) {
    draft.restart = Some(RestartPlan {
        first_delay_ms: 100,
        longest_delay_ms: 400,
        final_exit_codes: vec![64],
        ..RestartPlan::default()
    });
}

/// That would not be started again before the test is over.
fn slow_service(draft: &mut Draft<'_>) {
    draft.restart =
        Some(RestartPlan { first_delay_ms: 600_000, longest_delay_ms: 600_000, ..RestartPlan::default() });
}

/// One of each that works here.
fn worlds() -> Vec<World> {
    let own = World::new();
    let mut kinds = vec![Containment::Subreaper];
    if own.is_root() {
        kinds.push(Containment::PidNamespace { user_namespace: false });
    }
    kinds.into_iter().map(World::contained_by).chain([own]).collect()
}

/// The shell's words for "the first, second … of my runs", which it keeps count of in its working directory.
const COUNT: &str = "n=$(($(cat n 2>/dev/null || echo 0) + 1)); echo $n > n";

/// The shell's words for this text, so that only who is given it has it on its command line.
fn read_from(world: &World, name: &str, text: &str) -> String {
    let path = world.path(name);
    std::fs::write(&path, text).unwrap();
    format!("$(cat {})", path.display())
}

fn delay_ms(state: &ServiceState) -> Option<u64> {
    state.next_start_at_ms.map(|at| at - state.last_exit_at_ms)
}

#[test]
fn each_exit_is_followed_by_a_restart_after_a_longer_delay() {
    for world in worlds() {
        let kind = world.runtime.abilities().containment;
        let script = format!(
            "{COUNT}; echo run $n $TOKEN; echo err $n >&2; \
             case $n in 1) exit 0;; 2) exit 1;; 3) kill -9 $$;; 4) exit 7;; *) exit 64;; esac"
        );
        let mut live = world
            .shell(&script)
            .with(service)
            .with(|draft| draft.environment = vec![("TOKEN".into(), "s3cr3t".into())])
            .start();
        live.talk.started();
        let exits = [TaskExit::Code(0), TaskExit::Code(1), TaskExit::Signal(9), TaskExit::Code(7)];
        for (restarts, (exit, delay)) in (0..).zip(exits.into_iter().zip([100, 200, 400, 400])) {
            let left = live.talk.service();
            assert_eq!(
                (left.restarts, left.last_exit, left.out_of_memory),
                (restarts, exit, false),
                "{kind:?}"
            );
            assert_eq!(delay_ms(&left), Some(delay), "{kind:?}");
            assert!(live.directory.environment().is_err(), "it is on no disk");
            let up = live.talk.service();
            assert_eq!(up, ServiceState { restarts: restarts + 1, next_start_at_ms: None, ..left });
        }
        let done = live.finish();
        assert_eq!((done.record.ended_by, done.record.exit), (EndedBy::Itself, Some(TaskExit::Code(64))));
        assert!(done.record.usage.wall_ms >= 1_100, "the delays are part of it");
        let stdout: String = (1..=5).map(|run| format!("run {run} s3cr3t\n")).collect();
        let stderr: String = (1..=5).map(|run| format!("err {run}\n")).collect();
        assert_eq!(String::from_utf8(done.stdout).unwrap(), stdout, "{kind:?}");
        assert_eq!(String::from_utf8(done.stderr).unwrap(), stderr, "{kind:?}");
    }
}

#[test]
fn nothing_of_the_run_before_is_left_beside_the_next() {
    for world in worlds() {
        let kind = world.runtime.abilities().containment;
        let (first, next) = (odd_seconds(), odd_seconds());
        let script = format!(
            "{COUNT}; if [ $n = 1 ]; then (setsid sleep {} &); sleep {} & sleep 0.1; exit 1; fi; exec sleep {next}",
            read_from(&world, "first", &first),
            read_from(&world, "first", &first),
        );
        let mut live = world.shell(&script).with(service).start();
        assert_eq!(live.talk.service().last_exit, TaskExit::Code(1));
        assert_eq!(processes_with(&first), [], "{kind:?}: cleared when it is told");
        assert_eq!(live.talk.service().restarts, 1);
        wait_until("the second run", || !processes_with(&next).is_empty());
        assert_eq!(processes_with(&first), []);
        live.stop(0);
        let done = live.finish();
        assert_eq!(
            (done.record.ended_by, done.record.exit),
            (EndedBy::Stop, Some(TaskExit::Signal(9))),
            "{kind:?}"
        );
    }
}

#[test]
fn a_stop_while_it_waits_ends_it_at_once() {
    let world = World::new();
    let mut live = world.shell("echo once; exit 3").with(slow_service).start();
    live.talk.service();
    live.stop(60_000);
    let done = live.finish();
    assert_eq!((done.record.ended_by, done.record.exit), (EndedBy::Stop, Some(TaskExit::Code(3))));
    assert_eq!(done.stdout, b"once\n");
}

#[test]
fn a_stop_while_it_runs_gives_it_its_grace_and_no_restart() {
    let world = World::new();
    for (trap, grace_ms, exit) in [
        ("trap 'echo bye; exit 0' TERM", 60_000, TaskExit::Code(0)),
        ("trap 'echo bye; exit 5' TERM", 60_000, TaskExit::Code(5)),
        ("trap 'echo bye' TERM", 300, TaskExit::Signal(9)),
    ] {
        let script = format!("{COUNT}; [ $n = 1 ] && exit 1; {trap}; echo up; while :; do sleep 0.05; done");
        let mut live = world.shell(&script).with(service).start();
        live.wait_for_output("up");
        live.stop(grace_ms);
        let done = live.finish();
        assert_eq!((done.record.ended_by, done.record.exit), (EndedBy::Stop, Some(exit)), "{trap}");
        assert_eq!(done.stdout, b"up\nbye\n", "{trap}");
    }
}

#[test]
fn heartbeats_go_on_while_it_waits() {
    let world = World::new();
    let mut live = world.shell("exit 1").with(slow_service).start();
    live.talk.service();
    live.talk.heartbeat();
    live.talk.heartbeat();
    live.stop(0);
    live.finish();
}

#[test]
fn a_new_worker_learns_how_it_stands() {
    let world = World::new();
    let mut live = world.shell("echo here; exit 1").with(slow_service).start();
    let told = live.talk.service();
    let mut second = Talk::over(live.directory.connect().unwrap());
    let hello = second.hello();
    assert_eq!(hello.phase, SidecarPhase::BackingOff);
    assert!(hello.started_at_ms.is_some() && hello.log_file_bytes > 0);
    assert_eq!(second.service(), told);
    second.heartbeat();
    while live.talk.next().is_some() {}
    live.talk = second;
    live.stop(0);
    assert_eq!(live.finish().record.exit, Some(TaskExit::Code(1)));
}

#[test]
fn it_needs_no_worker_to_be_started_again() {
    let world = World::new();
    let mut live = world.shell(&format!("{COUNT}; echo run $n; exit 1")).with(service).start();
    live.talk.started();
    let Live { directory, plan, output, process, talk } = live;
    drop(talk);
    wait_until("the fourth run", || contains(&read_log(&plan.log.path).0, b"run 4\n"));
    let mut talk = Talk::over(directory.connect().unwrap());
    assert!(talk.service().restarts >= 3);
    let mut live = Live { directory, plan, output, process, talk };
    live.stop(0);
    live.finish();
}

#[test]
fn the_machine_going_down_ends_it_wherever_it_is() {
    let world = World::new();
    for script in ["exit 1", "echo up; exec sleep 600"] {
        let mut live = world.shell(script).with(slow_service).start();
        match script {
            "exit 1" => drop(live.talk.service()),
            _ => live.wait_for_output("up"),
        }
        kill(live.process.id(), "-TERM");
        let record = live.talk.ended();
        assert_eq!(record.ended_by, EndedBy::Shutdown, "{script}");
        assert!(live.process.wait().unwrap().success());
        live.clear_up(record);
    }
}

#[test]
fn a_program_that_is_gone_can_not_be_started_again() {
    let world = World::new();
    let program = world.path("program");
    std::fs::write(&program, "#!/bin/sh\nrm $0 2>/dev/null; echo only once; exit 1\n").unwrap();
    let mut permissions = std::fs::metadata(&program).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
    std::fs::set_permissions(&program, permissions).unwrap();
    // Which may remove it.
    let draft = world.command(&[program.to_str().unwrap()]).with(|draft| draft.own_user = false);
    let mut live = draft.with(service).start();
    assert_eq!(live.talk.service().last_exit, TaskExit::Code(1));
    let done = live.finish();
    assert_eq!(done.record.fault.map(|fault| fault.code), Some(FaultCode::NoSuchProgram));
    assert_eq!((done.record.ended_by, done.record.exit), (EndedBy::Itself, None));
    assert_eq!(done.stdout, b"only once\n");
}

#[test]
fn a_program_that_never_was_there_is_no_service() {
    let world = World::new();
    let done = world.command(&["/no/such"]).with(service).run();
    assert_eq!(done.record.fault.map(|fault| fault.code), Some(FaultCode::NoSuchProgram));
}

#[test]
fn out_of_memory_is_a_reason_to_be_started_again() {
    let world = World::new();
    if world.runtime.abilities().memory == "none" {
        return;
    }
    let seconds = odd_seconds();
    let hungry = "x=$(head -c 300000000 /dev/zero | tr '\\0' x)";
    let script = format!(
        "{COUNT}; s={}; case $n in 1) {hungry};; 2) sleep $s & ( {hungry} ); exec sleep $s;; 3) exit 137;; \
         *) exit 64;; esac",
        read_from(&world, "seconds", &seconds)
    );
    let small = |draft: &mut Draft<'_>| draft.resources.memory_bytes = 32 << 20;
    let mut live = world.shell(&script).with(service).with(small).start();
    // The whole tree went with the one that was killed, and what another run did is not held against it.
    for (restarts, out_of_memory) in [(0, true), (1, true), (2, false)] {
        let left = live.talk.service();
        assert_eq!((left.restarts, left.out_of_memory), (restarts, out_of_memory), "{left:?}");
        assert_eq!(processes_with(&seconds), []);
        live.talk.service();
    }
    let done = live.finish();
    assert_eq!((done.record.ended_by, done.record.exit), (EndedBy::Itself, Some(TaskExit::Code(64))));
}

#[test]
fn an_exclusive_one_that_is_not_renewed_ends_before_its_lease_while_it_waits() {
    let world = World::new();
    let mut live = world
        .shell("exit 1")
        .with(slow_service)
        .with(|draft| {
            draft.exclusive = true;
            draft.times.lease_ms = 2_000;
            draft.times.lease_margin_ms = 500;
            draft.times.stop_grace_ms = 300;
        })
        .start();
    let sent = boottime_ms();
    live.talk.say(&ToSidecar::Go { sent_at_boottime_ms: sent });
    live.talk.service();
    let done = live.finish();
    let took = boottime_ms() - sent;
    assert_eq!((done.record.ended_by, done.record.exit), (EndedBy::Lease, Some(TaskExit::Code(1))));
    assert!((1_200..2_000).contains(&took), "{took}");
}

#[test]
fn nobody_to_work_for_ends_it_while_it_waits() {
    let world = World::new();
    let live =
        world.shell("exit 1").with(slow_service).with(|draft| draft.times.orphan_limit_ms = 300).start();
    let Live { directory, plan, mut process, mut talk, .. } = live;
    talk.service();
    drop(talk);
    assert!(process.wait().unwrap().success(), "the file is the message");
    let record = directory.exit_record().unwrap().unwrap();
    assert_eq!(record.ended_by, EndedBy::Stop);
    assert!(record.message.unwrap().contains("no worker"));
    jobyard_runtime::cleanup(&plan).unwrap();
}

#[test]
fn what_it_wrote_last_is_in_the_log_before_its_exit_is_told() {
    let world = World::new();
    let script = "head -c 300000 /dev/zero | tr '\\0' x; echo last words >&2; exit 1";
    let mut live = world.shell(script).with(slow_service).start();
    live.talk.service();
    let (stdout, stderr) = read_log(&live.plan.log.path);
    assert_eq!(stdout.len(), 300_000);
    assert!(contains(&stderr, b"last words\n"));
    live.stop(0);
    live.finish();
}
