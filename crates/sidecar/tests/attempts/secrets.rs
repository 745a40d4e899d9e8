//! Secrets of a task: in its environment, and nowhere else; neither on a disk nor, once it is over, in memory.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use jobyard_handoff::{AttemptDirectory, Containment, RestartPlan, TaskExit};
use jobyard_runtime::{Prepared, Sidecar, SidecarPool, cleanup};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::world::{Draft, Live, SIDECAR, Talk, World, assert_no_member, begin, contains, kill, wait_until};

/// Put together at run time, so that no program has it in its text.
fn secret() -> String {
    ["hunter", "2", "-of-", &std::process::id().to_string(), "-in-the-clear"].concat()
}

/// An attempt whose environment got this secret as the worker adds it.
fn start_hiding(pool: &SidecarPool, draft: Draft<'_>, secret: &str) -> Live {
    let Prepared { plan, mut environment, output } = draft.try_prepare().unwrap();
    environment.variables.push(("TOKEN".into(), secret.into()));
    environment.secret = true;
    draft.start_by(pool, Prepared { plan, environment, output })
}

/// Whether the process has this text anywhere in its memory. Only root may look.
fn has_in_memory(pid: u32, text: &str) -> bool {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let memory = File::open(format!("/proc/{pid}/mem")).unwrap();
    let spans = maps.lines().filter(|line| !line.contains("[v")).map(|line| {
        let (first, last) = line.split_whitespace().next().unwrap().split_once('-').unwrap();
        [first, last].map(|place| u64::from_str_radix(place, 16).unwrap())
    });
    spans.into_iter().any(|[first, last]| {
        let mut bytes = vec![0; usize::try_from(last - first).unwrap()];
        memory.read_at(&mut bytes, first).is_ok() && contains(&bytes, text.as_bytes())
    })
}

#[test]
fn a_task_sees_them_and_the_next_one_does_not() {
    let world = World::new();
    let pool = SidecarPool::new(SIDECAR);
    let secret = secret();
    let directory = world.path("attempt-1");
    let look = format!("echo \"$TOKEN\"; ls {}; sleep 1000 & echo up; wait", directory.display());
    // As the sidecar's own user, so that the directory is open to it.
    let draft = world.shell(&look).with(|draft| draft.own_user = false);
    let mut live = start_hiding(&pool, draft, &secret);
    let pid = live.process.id();
    live.wait_for_output("up");
    if world.is_root() {
        assert!(!has_in_memory(pid, &secret), "the sidecar of a task keeps no copy");
    }
    for entry in fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        if let Ok(bytes) = fs::read(&path) {
            assert!(!contains(&bytes, secret.as_bytes()), "{}", path.display());
        }
    }
    live.stop(0);
    let done = live.finish_with(|sidecar| assert!(pool.give_back(sidecar).is_none()));
    let out = String::from_utf8(done.stdout).unwrap();
    assert!(out.starts_with(&format!("{secret}\n")), "{out}");
    assert!(out.contains("plan\n") && !out.contains("environment\n"), "{out}");

    let live = start_hiding(&pool, world.shell("env; exit 3"), "another");
    assert_eq!(live.process.id(), pid, "the same sidecar");
    let done = live.finish_with(|sidecar| assert!(pool.give_back(sidecar).is_none()));
    assert_eq!(done.record.exit, Some(TaskExit::Code(3)));
    let draft = world.shell("env; exit 4");
    let prepared = draft.try_prepare().unwrap();
    let live = draft.start_by(&pool, prepared);
    assert_eq!(live.process.id(), pid);
    let done = live.finish_with(drop);
    assert_eq!(done.record.exit, Some(TaskExit::Code(4)));
    let out = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(out.contains("JOBYARD_ATTEMPT") && !out.contains("TOKEN"), "{out}");
}

#[test]
fn nothing_is_started_while_they_lie_in_the_directory() {
    let world = World::new();
    let mark = world.path("scratch-1/work/mark");
    let draft = world.shell("touch mark");
    let Prepared { plan, mut environment, .. } = draft.try_prepare().unwrap();
    environment.secret = true;
    let directory = AttemptDirectory::create(world.path("attempt-1"), &plan, &environment).unwrap();
    let file = directory.path().join("environment");
    let chattr = |how: &str| Command::new("chattr").arg(how).arg(&file).output();
    if !chattr("+i").is_ok_and(|done| done.status.success()) {
        // Only root may, and not everywhere: here nothing keeps a sidecar from removing it.
        return;
    }
    let Sidecar { mut process, connection } = begin(&directory);
    let mut talk = Talk::over(connection);
    let record = talk.ended();
    talk.acknowledge();
    assert!(chattr("-i").unwrap().status.success());
    let fault = record.fault.unwrap();
    assert!(fault.message.contains("could not be taken out of the attempt directory"), "{}", fault.message);
    assert!(record.started_at_ms.is_none() && !mark.exists());
    process.wait().unwrap();
    cleanup(&plan).unwrap();
    directory.remove().unwrap();
}

#[test]
fn a_service_is_started_again_with_them_and_then_nobody_has_them() {
    let mut worlds = vec![World::contained_by(Containment::Subreaper), World::new()];
    worlds.push(World::contained_by(Containment::PidNamespace { user_namespace: !worlds[0].is_root() }));
    for world in worlds {
        let pool = SidecarPool::new(SIDECAR);
        let secret = secret();
        let draft = world.shell("echo \"run $TOKEN\"; exit 1").with(|draft| {
            draft.restart = Some(RestartPlan { first_delay_ms: 50, ..RestartPlan::default() });
        });
        let mut live = start_hiding(&pool, draft, &secret);
        let pid = live.process.id();
        for _ in 0..3 {
            live.talk.service();
        }
        assert!(live.directory.environment().is_err(), "it is on no disk");
        if world.is_root() {
            assert!(has_in_memory(pid, &secret), "it needs them again");
        }
        live.stop(0);
        let done = live.finish_with(|sidecar| {
            if world.is_root() {
                assert!(!has_in_memory(pid, &secret), "overwritten before the next attempt");
            }
            drop(sidecar);
        });
        let out = String::from_utf8(done.stdout).unwrap();
        assert!(out.matches(&format!("run {secret}\n")).count() >= 2, "{out}");
    }
}

#[test]
fn a_sidecar_with_secrets_leaves_no_core_file() {
    let whole =
        Rlimit { current: getrlimit(Resource::Core).maximum, maximum: getrlimit(Resource::Core).maximum };
    setrlimit(Resource::Core, whole).unwrap();
    let world = World::new();
    let crash = |hides: bool| {
        let draft = world.shell("echo up; sleep 1000").with(|draft| {
            draft.restart = Some(RestartPlan::default());
        });
        let pool = SidecarPool::new(SIDECAR);
        let mut live = match hides {
            true => start_hiding(&pool, draft, &secret()),
            false => draft.start(),
        };
        live.wait_for_output("up");
        kill(live.process.id(), "-SEGV");
        let dumped = live.process.wait().unwrap().core_dumped();
        jobyard_runtime::clear_tree(&live.plan).unwrap();
        wait_until("cleared", || !live.directory.is_held().unwrap());
        assert_no_member(&live.plan);
        dumped
    };
    // Where the machine keeps no core files at all, this shows nothing.
    let usual = crash(false);
    assert!(!crash(true), "others leave one: {usual}");
}
