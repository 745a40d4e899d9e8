//! The way everything goes when nothing goes wrong.

use crate::world::{World, boottime_ms, odd_seconds, processes_with};
use jobyard_handoff::{Decision, EndedBy, FromSidecar, SidecarPhase, TaskExit};

#[test]
fn a_program_runs_and_its_end_is_told() {
    let world = World::new();
    let mut live = world.shell("echo out; echo err >&2; exit 7").start();
    let hello = live.talk.hello();
    assert_eq!(hello.identity, live.plan.identity);
    assert_eq!(hello.phase, SidecarPhase::Starting);
    let mut kinds = Vec::new();
    let record = live.talk.until(|frame| match frame {
        FromSidecar::Ended(record) => Some((**record).clone()),
        FromSidecar::Started { started_at_ms, main_pid } => {
            assert!(*started_at_ms > 1_600_000_000_000 && *main_pid > 0);
            kinds.push("started");
            None
        }
        FromSidecar::Heartbeat { sent_at_boottime_ms } => {
            assert!(boottime_ms() - sent_at_boottime_ms < 20_000);
            kinds.push("heartbeat");
            None
        }
        FromSidecar::LogGrew { file_bytes } => {
            assert!(*file_bytes > 0);
            kinds.push("log");
            None
        }
        FromSidecar::Hello(_) => unreachable!("one greeting a connection"),
        FromSidecar::Service(_) => unreachable!("it is a task"),
        FromSidecar::Idle => unreachable!("nothing was acknowledged"),
    });
    assert_eq!(kinds[..3], ["started", "heartbeat", "log"]);
    assert_eq!(record.exit, Some(TaskExit::Code(7)));
    assert_eq!(record.ended_by, EndedBy::Itself);
    assert_eq!(record.fault, None);
    assert_eq!(record.survivors, 0);
    assert_eq!(record.limits, world.runtime.abilities().memory);
    assert!(record.ended_at_ms >= record.started_at_ms.unwrap());
    assert_eq!((record.usage.stdout_bytes, record.usage.stderr_bytes), (4, 4));
    assert!(record.usage.peak_memory_bytes > 0);
    assert_eq!(live.directory.decision().unwrap(), Some(Decision::Started));

    assert_eq!(live.directory.exit_record().unwrap(), Some(record.clone()));
    live.talk.acknowledge();
    assert!(live.process.wait().unwrap().success());
    let done = live.clear_up(record);
    assert_eq!((done.stdout.as_slice(), done.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
}

#[test]
fn a_signal_is_not_a_code() {
    let world = World::new();
    for (script, exit) in [
        ("echo partial; kill -9 $$", TaskExit::Signal(9)),
        ("kill -SEGV $$", TaskExit::Signal(11)),
        ("kill -ABRT $$", TaskExit::Signal(6)),
        ("kill -PIPE $$", TaskExit::Signal(13)),
        ("exit 137", TaskExit::Code(137)),
        ("exit 255", TaskExit::Code(255)),
    ] {
        let done = world.shell(script).run();
        assert_eq!(done.record.exit, Some(exit), "{script}");
        assert_eq!(done.record.ended_by, EndedBy::Itself, "{script}");
    }
}

#[test]
fn silence_makes_no_log_file() {
    let world = World::new();
    let live = world.command(&["true"]).start();
    let path = live.plan.log.path.clone();
    let done = live.finish();
    assert_eq!(done.record.usage.log_file_bytes, 0);
    assert!(!path.exists());
}

#[test]
fn a_task_finds_what_is_promised_and_nothing_of_ours() {
    let world = World::new();
    let script = "env; echo fds; ls -l /proc/self/fd; echo ppid; cat /proc/$PPID/environ; pwd; id -u; id -G; \
                  echo done > $JOBYARD_OUTPUT/result; touch here; ls -d $JOBYARD_INPUT; \
                  echo again > /dev/stdout; ulimit -c > /dev/null";
    let mut live = world
        .shell(script)
        .with(|draft| draft.environment = vec![("GREETING".into(), "a=b \n'c".into())])
        .start();
    let plan = live.plan.clone();
    let record = live.talk.ended();
    let output = std::fs::read(live.output.join("result")).unwrap();
    assert_eq!(output, b"done\n");
    live.talk.acknowledge();
    live.process.wait().unwrap();
    let done = live.clear_up(record);
    assert_eq!(done.record.exit, Some(TaskExit::Code(0)), "{}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8(done.stdout).unwrap();
    let (environment, rest) = text.split_once("fds\n").unwrap();
    let mut names: Vec<&str> = environment.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    names.sort_unstable();
    // The shell adds PWD (and _ or SHLVL, some of them) itself.
    names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name));
    let promised =
        ["GREETING", "JOBYARD_ATTEMPT", "JOBYARD_INPUT", "JOBYARD_JOB_ID", "JOBYARD_OUTPUT", "PATH"];
    assert_eq!(names, promised);
    assert!(environment.contains("GREETING=a=b \n'c\n"));
    let (descriptors, rest) = rest.split_once("ppid\n").unwrap();
    // Three of its own and the one with which ls reads the listing.
    assert_eq!(descriptors.lines().filter(|line| line.contains("->")).count(), 4, "{descriptors}");
    let mut rest = rest.lines();
    assert_eq!(rest.next().unwrap(), plan.directory.to_str().unwrap(), "the sidecar's environment is empty");
    if let Some(user) = plan.user {
        assert_eq!(rest.next().unwrap(), user.uid.to_string());
        assert_eq!(rest.next().unwrap(), user.gid.to_string(), "no supplementary groups");
    }
    assert!(text.ends_with("again\n"));
}

#[test]
fn secrets_leave_the_directory_when_the_task_starts() {
    let world = World::new();
    let seconds = odd_seconds();
    let mut live = world
        .shell(&format!("exec sleep {seconds}"))
        .with(|draft| draft.environment = vec![("TOKEN".into(), "s3cr3t-value".into())])
        .start();
    live.talk.started();
    for entry in std::fs::read_dir(live.directory.path()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap_or_default();
        assert!(!crate::world::contains(&bytes, b"s3cr3t-value"), "{}", path.display());
    }
    live.stop(0);
    assert_eq!(live.finish().record.exit, Some(TaskExit::Signal(9)));
    assert_eq!(processes_with(&seconds), []);
}

#[test]
fn a_task_of_another_user_can_not_touch_its_sidecar() {
    let world = World::new();
    if !world.is_root() {
        return;
    }
    let script =
        "kill -0 $PPID && echo reached; cat /proc/$PPID/environ /proc/$PPID/maps; ls /proc/$PPID/fd; true";
    let done = world.shell(script).run();
    assert_eq!(String::from_utf8_lossy(&done.stdout), "");
    assert!(done.stderr.len() > 20);
}
