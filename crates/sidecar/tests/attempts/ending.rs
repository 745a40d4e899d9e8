//! Ends that are not the task's own idea, and what must not survive any end.

use std::time::{Duration, Instant};

use jobyard_handoff::{EndedBy, TaskExit};

use crate::world::{World, kill, odd_seconds, processes_with, wait_until};

#[test]
fn a_grandchild_that_holds_the_pipe_holds_nothing_up() {
    let world = World::new();
    for script in ["echo before; sleep NN & exit 3", "echo before; (sleep NN | cat) & exit 3"] {
        let seconds = odd_seconds();
        let begin = Instant::now();
        let done = world.shell(&script.replace("NN", &seconds)).run();
        assert_eq!(done.record.exit, Some(TaskExit::Code(3)));
        assert_eq!(done.record.ended_by, EndedBy::Itself);
        assert_eq!(done.stdout, b"before\n");
        assert!(begin.elapsed() < Duration::from_secs(5));
        assert_eq!(processes_with(&seconds), []);
    }
}

#[test]
fn a_timeout_ends_the_whole_tree() {
    let world = World::new();
    for script in ["echo before; sleep NN & wait", "echo before; sleep NN | cat"] {
        let seconds = odd_seconds();
        let done = world.shell(&script.replace("NN", &seconds)).timeout_ms(300).run();
        assert_eq!(done.record.ended_by, EndedBy::Timeout);
        assert!(done.record.message.unwrap().contains("0.300 s"));
        assert!((300..4_000).contains(&done.record.usage.wall_ms), "{}", done.record.usage.wall_ms);
        assert_eq!(done.stdout, b"before\n");
        assert_eq!(processes_with(&seconds), []);
    }
}

#[test]
fn daemons_that_left_the_session_go_too() {
    let world = World::new();
    for script in [
        "(setsid sleep NN &) & exit 0",
        "nohup sleep NN >/dev/null 2>&1 & exit 0",
        "(setsid sh -c 'sleep NN & sleep NN' >/dev/null 2>&1 &); exit 0",
    ] {
        let seconds = odd_seconds();
        let done = world.shell(&script.replace("NN", &seconds)).run();
        assert_eq!(done.record.exit, Some(TaskExit::Code(0)), "{script}");
        assert_eq!(done.record.ended_by, EndedBy::Itself);
        assert_eq!(processes_with(&seconds), [], "{script}");
    }
}

#[test]
fn who_ignores_term_is_killed_after_the_grace() {
    let world = World::new();
    let script = "trap '' TERM INT; echo ready; while :; do sleep 0.05; done";
    let done = world.shell(script).timeout_ms(200).grace_ms(300).run();
    assert_eq!(done.record.ended_by, EndedBy::Timeout);
    assert_eq!(done.record.exit, Some(TaskExit::Signal(9)));
    assert!((500..4_000).contains(&done.record.usage.wall_ms), "{}", done.record.usage.wall_ms);

    let mut live = world.shell(script).start();
    live.wait_for_output("ready");
    live.stop(300);
    let done = live.finish();
    assert_eq!((done.record.ended_by, done.record.exit), (EndedBy::Stop, Some(TaskExit::Signal(9))));
}

#[test]
fn a_later_stop_can_only_hurry() {
    let world = World::new();
    let mut live = world.shell("trap '' TERM; echo ready; while :; do sleep 0.05; done").start();
    live.wait_for_output("ready");
    live.stop(60_000);
    live.stop(3_600_000);
    live.stop(0);
    let begin = Instant::now();
    assert_eq!(live.finish().record.exit, Some(TaskExit::Signal(9)));
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[test]
fn who_listens_to_term_ends_as_it_likes() {
    let world = World::new();
    let mut live =
        world.shell("trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 0.05; done").start();
    live.wait_for_output("ready");
    live.stop(10_000);
    let done = live.finish();
    assert_eq!((done.record.ended_by, done.record.exit), (EndedBy::Stop, Some(TaskExit::Code(4))));
    assert!(done.stdout.ends_with(b"bye\n"));
}

#[test]
fn a_stop_that_comes_first_is_still_a_stop() {
    let world = World::new();
    let mut live = world.shell("sleep 300").start();
    live.stop(0);
    let done = live.finish();
    assert_eq!((done.record.ended_by, done.record.exit), (EndedBy::Stop, Some(TaskExit::Signal(9))));
}

#[test]
fn sigterm_to_the_sidecar_is_the_machine_going_down() {
    let world = World::new();
    let mut live =
        world.shell("trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.05; done").start();
    live.wait_for_output("ready");
    kill(live.process.id(), "-TERM");
    let record = live.talk.ended();
    assert_eq!((record.ended_by, record.exit), (EndedBy::Shutdown, Some(TaskExit::Code(0))));
    // Nobody acknowledges: it leaves all the same, well and soon.
    assert!(live.process.wait().unwrap().success());
    assert_eq!(live.directory.exit_record().unwrap(), Some(record.clone()));
    live.clear_up(record);
}

#[test]
fn out_of_memory_is_named_and_takes_the_whole_group() {
    let world = World::new();
    if world.runtime.abilities().memory == "none" {
        return;
    }
    let hungry = "x=$(head -c 300000000 /dev/zero | tr '\\0' x); echo survived";
    let small = |draft: &mut crate::world::Draft<'_>| draft.resources.memory_bytes = 32 << 20;
    // The main process itself, or a child of one that would go on.
    let seconds = odd_seconds();
    for script in [hungry.to_owned(), format!("sleep {seconds} & ( {hungry} ); exec sleep {seconds}")] {
        let done = world.shell(&script).with(small).run();
        assert_eq!(done.record.ended_by, EndedBy::Memory, "{:?}", done.record);
        assert!(done.record.message.unwrap().contains("32 MiB"));
        assert!(done.record.usage.peak_memory_bytes > 30 << 20);
        assert_eq!(done.stdout, b"");
        assert_eq!(processes_with(&seconds), []);
    }
    // Proof is the counter, not the number.
    for script in ["exit 137", "kill -9 $$"] {
        assert_eq!(world.shell(script).with(small).run().record.ended_by, EndedBy::Itself);
    }
}

#[test]
fn groups_used_again_count_from_nothing() {
    let world = World::new();
    let run = |script: &str, memory_bytes| {
        let draft = world.shell(script).with(|draft| {
            draft.number = 1;
            draft.resources.memory_bytes = memory_bytes;
        });
        let mut live = draft.start();
        let record = live.talk.ended();
        live.talk.acknowledge();
        assert!(live.process.wait().unwrap().success());
        world.runtime.retire(&live.plan).unwrap();
        live.directory.remove().unwrap();
        (record, live.plan)
    };
    let heavy = "x=$(head -c 40000000 /dev/zero | tr '\\0' x); [ ${#x} = 40000000 ]";
    let (first, plan) = run(heavy, 512 << 20);
    let is_kept = plan.groups.memory_v1.as_deref().is_some_and(std::path::Path::exists);
    let (second, _) = run("exit 0", 512 << 20);
    assert_eq!(first.exit, Some(jobyard_handoff::TaskExit::Code(0)));
    assert!(second.usage.peak_memory_bytes < first.usage.peak_memory_bytes / 2, "{:?}", second.usage);
    assert!(second.usage.cpu_user_ms < first.usage.cpu_user_ms, "{:?}", second.usage);
    if world.runtime.abilities().memory != "cgroup-v1" || plan.user.is_none() {
        return;
    }
    assert!(is_kept);
    let (greedy, plan) = run("x=x; while :; do x=$x$x; done", 32 << 20);
    assert_eq!(greedy.ended_by, EndedBy::Memory);
    assert!(plan.groups.directories().all(|group| !group.exists()), "they would say it again");
    let (last, _) = run("exit 1", 32 << 20);
    assert_eq!(last.ended_by, EndedBy::Itself);
}

#[test]
fn groups_used_again_after_a_kill_run_the_next_attempt() {
    let world = World::new();
    for _ in 0..3 {
        let draft = world.shell("sleep 300 & exit 7").with(|draft| draft.number = 1);
        let mut live = draft.start();
        let record = live.talk.ended();
        live.talk.acknowledge();
        assert!(live.process.wait().unwrap().success());
        assert_eq!(record.exit, Some(jobyard_handoff::TaskExit::Code(7)), "{record:?}");
        world.runtime.retire(&live.plan).unwrap();
        live.directory.remove().unwrap();
    }
}

#[test]
fn a_fork_bomb_stays_in_its_box() {
    let world = World::new();
    if !world.runtime.abilities().pids {
        return;
    }
    let script = "bomb() { bomb | bomb & }; bomb; sleep 300";
    let done = world
        .shell(script)
        .with(|draft| draft.resources.pids_limit = 64)
        .timeout_ms(1_000)
        .grace_ms(200)
        .run();
    assert!(matches!(done.record.ended_by, EndedBy::Timeout | EndedBy::Itself), "{:?}", done.record);
    assert_eq!(done.record.survivors, 0);
}

#[test]
fn nobody_to_work_for_ends_it_in_the_end() {
    let world = World::new();
    let seconds = odd_seconds();
    let live =
        world.shell(&format!("sleep {seconds}")).with(|draft| draft.times.orphan_limit_ms = 300).start();
    let (directory, plan, mut process) = (live.directory.clone(), live.plan.clone(), live.process);
    wait_until("the task", || !processes_with(&seconds).is_empty());
    drop(live.talk);
    assert!(process.wait().unwrap().success(), "the file is the message");
    let record = directory.exit_record().unwrap().unwrap();
    assert_eq!(record.ended_by, EndedBy::Stop);
    assert!(record.message.unwrap().contains("no worker"));
    assert_eq!(processes_with(&seconds), []);
    jobyard_runtime::cleanup(&plan).unwrap();
}

#[test]
fn two_hundred_in_a_row_leave_nothing() {
    let world = World::new();
    let seconds = odd_seconds();
    for _ in 0..200 {
        let done = world.shell(&format!("(setsid sleep {seconds} &) & exit 0")).run();
        assert_eq!(done.record.exit, Some(TaskExit::Code(0)));
    }
    assert_eq!(processes_with(&seconds), []);
}
