//! Each containment that works on this machine keeps the same promise.

use jobyard_handoff::{Containment, EndedBy, TaskExit};
use jobyard_runtime::{cleanup, clear_tree};

use crate::world::{World, kill, odd_seconds, processes_with, wait_until};

fn weaker_ones() -> Vec<World> {
    let own = World::new();
    let mut kinds = vec![Containment::Subreaper];
    if own.is_root() {
        kinds.push(Containment::PidNamespace { user_namespace: false });
    }
    kinds.into_iter().map(World::contained_by).collect()
}

#[test]
fn the_strongest_here_is_found_by_trying() {
    let world = World::new();
    let abilities = world.runtime.abilities();
    if world.is_root() && std::path::Path::new("/sys/fs/cgroup/unified/cgroup.procs").exists() {
        assert_eq!(abilities.containment, Containment::Cgroup);
        assert_eq!(abilities.memory, "cgroup-v1");
        assert!(abilities.pids && abilities.cpu);
    }
}

#[test]
fn ends_and_codes_are_the_same_everywhere() {
    for world in weaker_ones() {
        let kind = world.runtime.abilities().containment;
        let done = world.shell("echo out; exit 7").run();
        assert_eq!(done.record.exit, Some(TaskExit::Code(7)), "{kind:?}");
        assert_eq!((done.stdout.as_slice(), done.record.limits.as_str()), (&b"out\n"[..], "none"));
        let done = world.shell("kill -SEGV $$").run();
        assert_eq!(done.record.exit, Some(TaskExit::Signal(11)), "{kind:?}");
        let done = world.command(&["/no/such"]).run();
        assert!(done.record.fault.is_some(), "{kind:?}");
        let done = world.shell("trap 'exit 4' TERM; while :; do sleep 0.02; done").timeout_ms(200).run();
        assert_eq!((done.record.ended_by, done.record.exit), (EndedBy::Timeout, Some(TaskExit::Code(4))));
        let done =
            world.shell("trap '' TERM; while :; do sleep 0.02; done").timeout_ms(200).grace_ms(200).run();
        assert_eq!(done.record.exit, Some(TaskExit::Signal(9)), "{kind:?}");
    }
}

#[test]
fn daemons_go_with_the_task_everywhere() {
    for world in weaker_ones() {
        for script in
            ["(setsid sleep NN &) & exit 0", "(setsid sh -c 'sleep NN & sleep NN' &); sleep 0.1; exit 0"]
        {
            let seconds = odd_seconds();
            let done = world.shell(&script.replace("NN", &seconds)).run();
            assert_eq!(done.record.exit, Some(TaskExit::Code(0)));
            assert_eq!(processes_with(&seconds), [], "{:?}", world.runtime.abilities().containment);
        }
    }
}

#[test]
fn a_killed_sidecar_s_tree_can_be_cleared_everywhere() {
    for world in weaker_ones() {
        let seconds = odd_seconds();
        let script = format!("(setsid sleep {seconds} &) ; sleep {seconds} & echo up; exec sleep {seconds}");
        let mut live = world.shell(&script).start();
        live.wait_for_output("up");
        wait_until("all three", || processes_with(&seconds).len() >= 3);
        kill(live.process.id(), "-KILL");
        live.process.wait().unwrap();
        assert_eq!(clear_tree(&live.plan).unwrap().survivors, 0);
        assert_eq!(processes_with(&seconds), [], "{:?}", world.runtime.abilities().containment);
        assert!(!live.directory.is_held().unwrap());
        cleanup(&live.plan).unwrap();
    }
}

#[test]
fn a_namespace_shows_its_own_processes() {
    let own = World::new();
    if !own.is_root() {
        return;
    }
    let world = World::contained_by(Containment::PidNamespace { user_namespace: false });
    let done = world.shell("echo $$; ls -d /proc/[0-9]* | wc -l; kill -9 1; kill -9 -1; echo no").run();
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(text.starts_with("2\n"), "{text}");
    let seen: u32 = text.lines().nth(1).unwrap().parse().unwrap();
    assert!(seen <= 5, "{text}");
}

#[test]
fn a_namespace_without_root() {
    let world = World::contained_by(Containment::PidNamespace { user_namespace: true });
    let seconds = odd_seconds();
    let done = world
        .shell(&format!("id -u; (setsid sleep {seconds} &); exit 3"))
        .with(|draft| draft.own_user = false)
        .run();
    if let Some(fault) = &done.record.fault {
        // Machines may forbid it; the probe finds that out.
        assert_eq!(fault.code, jobyard_handoff::FaultCode::NamespaceFailed);
        return;
    }
    assert_eq!(done.record.exit, Some(TaskExit::Code(3)));
    assert_eq!(processes_with(&seconds), []);
}
