//! Sidecars without an attempt: before the first, between two, and when nobody wants them.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use jobyard_handoff::{AttemptDirectory, EndedBy, FaultCode, TaskExit, ToSidecar};
use jobyard_runtime::{Sidecar, SidecarPool, cleanup};

use crate::world::{Draft, Live, SIDECAR, World, kill, odd_seconds, processes_with};

fn start(pool: &SidecarPool, draft: Draft<'_>) -> Live {
    let prepared = draft.try_prepare().unwrap();
    draft.start_by(pool, prepared)
}

fn open_files(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// One that was never given an attempt.
fn unused() -> Sidecar {
    let (connection, theirs) = UnixStream::pair().unwrap();
    let process = Command::new(SIDECAR)
        .env_clear()
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    Sidecar { process, connection }
}

#[test]
fn one_that_was_never_used_leaves_with_its_worker() {
    let Sidecar { mut process, connection } = unused();
    drop(connection);
    assert_eq!(process.wait().unwrap().code(), Some(0));
}

#[test]
fn one_that_is_told_to_end_leaves_though_its_worker_stays() {
    let pool = SidecarPool::new(SIDECAR);
    let world = World::new();
    let mut process = None;
    start(&pool, world.command(&["/bin/true"])).finish_with(|sidecar| {
        kill(sidecar.process.id(), "-TERM");
        process = Some((sidecar.process, sidecar.connection));
    });
    let (mut process, _connection) = process.unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(0));
}

#[test]
fn without_a_connection_it_is_of_no_use() {
    let mut process = Command::new(SIDECAR).stdin(Stdio::null()).spawn().unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(1));
}

#[test]
fn attempts_one_after_the_other_know_nothing_of_each_other() {
    let world = World::new();
    let pool = SidecarPool::new(SIDECAR);
    let seconds = odd_seconds();
    let keep = |sidecar: Sidecar| assert!(pool.give_back(sidecar).is_none());

    let live = start(&pool, world.shell("echo first; exit 7"));
    let pid = live.process.id();
    let done = live.finish_with(keep);
    assert_eq!((done.record.exit, done.stdout.as_slice()), (Some(TaskExit::Code(7)), &b"first\n"[..]));
    let files = open_files(pid);

    let live = start(&pool, world.command(&["/no/such/program"]));
    assert_eq!(live.process.id(), pid);
    let done = live.finish_with(keep);
    assert_eq!(done.record.fault.unwrap().code, FaultCode::NoSuchProgram);

    let mut live = start(&pool, world.shell(&format!("(setsid sleep {seconds} &); exec sleep {seconds}")));
    live.talk.started();
    live.stop(0);
    let done = live.finish_with(keep);
    assert_eq!((done.record.ended_by, done.record.exit), (EndedBy::Stop, Some(TaskExit::Signal(9))));
    assert_eq!(processes_with(&seconds), []);

    let mut live = start(&pool, world.command(&["/bin/true"]).with(|draft| draft.exclusive = true));
    live.talk.say(&ToSidecar::Go { sent_at_boottime_ms: crate::world::boottime_ms() });
    let done = live.finish_with(keep);
    assert_eq!((done.record.ended_by, done.record.fault), (EndedBy::Itself, None));

    let live = start(&pool, world.shell("env; pwd"));
    assert_eq!(live.process.id(), pid, "still the same one");
    let done = live.finish_with(keep);
    assert_eq!((done.record.exit, done.record.usage.log_truncated), (Some(TaskExit::Code(0)), false));
    assert!(String::from_utf8_lossy(&done.stdout).contains("JOBYARD_ATTEMPT=5\n"));
    assert_eq!(open_files(pid), files, "nothing of an attempt stays open");
    let home = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap();
    assert_eq!(home, std::path::Path::new("/"));
}

#[test]
fn an_attempt_that_needs_too_much_memory_does_not_take_its_sidecar_along() {
    let world = World::new();
    if world.runtime.abilities().memory == "none" {
        return;
    }
    let pool = SidecarPool::new(SIDECAR);
    let greedy = world.shell("x=x; while :; do x=$x$x; done");
    let live = start(&pool, greedy.with(|draft| draft.resources.memory_bytes = 32 << 20));
    let pid = live.process.id();
    let done = live.finish_with(|sidecar| assert!(pool.give_back(sidecar).is_none()));
    assert_eq!(done.record.ended_by, EndedBy::Memory);
    let live = start(&pool, world.shell("exit 3"));
    assert_eq!(live.process.id(), pid);
    let done = live.finish_with(drop);
    assert_eq!((done.record.ended_by, done.record.exit), (EndedBy::Itself, Some(TaskExit::Code(3))));
}

#[test]
fn one_that_was_killed_while_idle_is_replaced() {
    let world = World::new();
    let pool = SidecarPool::new(SIDECAR);
    let live = start(&pool, world.command(&["/bin/true"]));
    let pid = live.process.id();
    live.finish_with(|mut sidecar| {
        sidecar.process.kill().unwrap();
        sidecar.process.wait().unwrap();
        assert!(pool.give_back(sidecar).is_none());
    });
    let live = start(&pool, world.shell("exit 5"));
    assert_ne!(live.process.id(), pid);
    assert_eq!(live.finish_with(drop).record.exit, Some(TaskExit::Code(5)));
}

#[test]
fn warm_ones_are_used_first_and_a_launch_without_any_starts_its_own() {
    let world = World::new();
    let binary = world.path("sidecar");
    std::fs::copy(SIDECAR, &binary).unwrap();
    let pool = SidecarPool::new(&binary);
    assert!(pool.is_low());
    pool.fill().unwrap();
    assert!(!pool.is_low());
    pool.trim();
    assert!(!pool.is_low(), "as many as are kept");
    std::fs::remove_file(&binary).unwrap();
    // None can be started any more, so this one was there.
    let done = start(&pool, world.shell("exit 6")).finish_with(drop);
    assert_eq!(done.record.exit, Some(TaskExit::Code(6)));
    pool.close();
    let draft = world.command(&["/bin/true"]);
    let prepared = draft.try_prepare().unwrap();
    let directory = AttemptDirectory::create(world.path("a"), &prepared.plan, &prepared.environment).unwrap();
    assert_eq!(pool.begin(&directory).unwrap_err().kind(), std::io::ErrorKind::NotFound);
    assert_eq!(pool.fill().unwrap_err().kind(), std::io::ErrorKind::NotFound);
    std::fs::copy(SIDECAR, &binary).unwrap();
    let done = start(&pool, draft.with(|draft| draft.number += 100)).finish_with(drop);
    assert_eq!(done.record.exit, Some(TaskExit::Code(0)));
    cleanup(&prepared.plan).unwrap();
}
