//! Exclusive attempts: started on `Go` only, gone before the lease is.

use jobyard_handoff::{Decision, EndedBy, SidecarPhase, Situation, TaskExit, ToSidecar};

use crate::world::{Draft, World, boottime_ms, odd_seconds, processes_with, wait_until};

fn exclusive(draft: &mut Draft<'_>) {
    draft.exclusive = true;
    draft.times.lease_ms = 2_000;
    draft.times.lease_margin_ms = 500;
    draft.times.stop_grace_ms = 300;
}

#[test]
fn nothing_starts_before_go() {
    let world = World::new();
    let mut live = world.shell("echo here").with(exclusive).start();
    assert_eq!(live.talk.hello().phase, SidecarPhase::Waiting);
    assert_eq!(live.directory.decision().unwrap(), None);
    live.talk.say(&ToSidecar::Go { sent_at_boottime_ms: boottime_ms() });
    live.talk.started();
    assert_eq!(live.directory.decision().unwrap(), Some(Decision::Started));
    assert_eq!(live.finish().stdout, b"here\n");
}

#[test]
fn a_stop_before_go_starts_nothing() {
    let world = World::new();
    let mut live = world.shell("echo here").with(exclusive).start();
    live.talk.hello();
    live.stop(1_000);
    let directory = live.directory.clone();
    let record = live.talk.ended();
    assert_eq!((record.ended_by, record.exit, record.started_at_ms), (EndedBy::Stop, None, None));
    assert_eq!(directory.decision().unwrap(), Some(Decision::NotStarted));
    live.talk.acknowledge();
    live.process.wait().unwrap();
    assert_eq!(live.clear_up(record).stdout, b"");
}

#[test]
fn a_go_that_comes_too_late_starts_nothing() {
    let world = World::new();
    let mut live = world.shell("echo here").with(exclusive).start();
    live.talk.hello();
    live.talk.say(&ToSidecar::Go { sent_at_boottime_ms: boottime_ms() - 1_300 });
    let done = live.finish();
    assert_eq!((done.record.ended_by, done.record.started_at_ms), (EndedBy::Lease, None));
}

#[test]
fn without_renewal_the_task_is_gone_a_margin_before_the_lease() {
    let world = World::new();
    for (script, exit) in [
        ("trap 'exit 6' TERM; while :; do sleep 0.02; done", TaskExit::Code(6)),
        ("trap '' TERM; while :; do sleep 0.02; done", TaskExit::Signal(9)),
    ] {
        let mut live = world.shell(script).with(exclusive).start();
        let sent = boottime_ms();
        live.talk.say(&ToSidecar::Go { sent_at_boottime_ms: sent });
        let done = live.finish();
        let took = boottime_ms() - sent;
        assert_eq!((done.record.ended_by, done.record.exit), (EndedBy::Lease, Some(exit)));
        assert!((1_200..2_000).contains(&took), "{took}");
    }
}

#[test]
fn renewals_count_from_their_send() {
    let world = World::new();
    let mut live = world.shell("trap 'exit 6' TERM; while :; do sleep 0.02; done").with(exclusive).start();
    let sent = boottime_ms();
    live.talk.say(&ToSidecar::Go { sent_at_boottime_ms: sent });
    live.talk.started();
    live.talk.say(&ToSidecar::Renewed { sent_at_boottime_ms: sent + 1_000 });
    live.talk.say(&ToSidecar::Renewed { sent_at_boottime_ms: sent + 400 });
    let done = live.finish();
    let took = boottime_ms() - sent;
    assert_eq!(done.record.ended_by, EndedBy::Lease);
    assert!((2_200..3_000).contains(&took), "{took}");
}

#[test]
fn others_run_on_when_the_worker_is_gone() {
    let world = World::new();
    let seconds = odd_seconds();
    let live = world
        .shell(&format!("sleep {seconds}"))
        .with(|draft| {
            exclusive(draft);
            draft.exclusive = false;
            draft.times.lease_ms = 700;
        })
        .start();
    let (directory, plan, mut process) = (live.directory, live.plan, live.process);
    wait_until("the task", || !processes_with(&seconds).is_empty());
    drop(live.talk);
    let begin = boottime_ms();
    wait_until("well past the lease", || boottime_ms() - begin > 1_500);
    assert_eq!(processes_with(&seconds).len(), 2);
    let boot = world.runtime.boot_id();
    assert_eq!(directory.situation(&plan, boot).unwrap(), Situation::Alive);
    let mut talk = crate::world::Talk::over(directory.connect().unwrap());
    talk.say(&ToSidecar::Stop { reason: jobyard_handoff::StopReason::Stop, grace_ms: 0 });
    talk.ended();
    talk.acknowledge();
    assert!(process.wait().unwrap().success());
    jobyard_runtime::cleanup(&plan).unwrap();
}
