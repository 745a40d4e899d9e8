//! Logs are bytes.

use jobyard_handoff::log_parts::{part, parts};
use jobyard_handoff::{RestartPlan, TaskExit};

use crate::world::{World, contains, read_log, wait_until};

#[test]
fn binary_output_arrives_byte_for_byte() {
    let world = World::new();
    let script =
        "printf 'a\\377\\376b\\n\\303\\n\\0'; head -c 1048576 /dev/urandom | tee $JOBYARD_OUTPUT/same";
    let mut live = world.shell(script).start();
    let record = live.talk.ended();
    let same = std::fs::read(live.output.join("same")).unwrap();
    live.talk.acknowledge();
    live.process.wait().unwrap();
    let done = live.clear_up(record);
    assert_eq!(done.record.exit, Some(TaskExit::Code(0)));
    assert_eq!(done.stdout[..8], *b"a\xff\xfeb\n\xc3\n\0");
    assert!(done.stdout[8..] == same, "1 MiB of noise");
    assert_eq!(done.record.usage.stdout_bytes, 8 + (1 << 20));
}

/// Whether the last bytes of a file are these.
fn ends_with(path: &std::path::Path, bytes: &[u8]) -> bool {
    use std::os::unix::fs::FileExt as _;
    let mut last = vec![0; bytes.len()];
    let Ok(file) = std::fs::File::open(path) else { return false };
    let Some(at) = file.metadata().ok().and_then(|file| file.len().checked_sub(bytes.len() as u64)) else {
        return false;
    };
    file.read_exact_at(&mut last, at).is_ok() && last == bytes
}

#[test]
fn a_line_of_64_mib_takes_no_memory() {
    let world = World::new();
    let script = "head -c 67108864 /dev/zero | tr '\\0' x; echo; echo END; read line < $JOBYARD_INPUT/go";
    let mut live = world.shell(&script.replace("read line", "exec sleep 300; read line")).start();
    let file = live.plan.log.path.clone();
    wait_until("the end of the line", || ends_with(&file, b"END\n"));
    let status = std::fs::read_to_string(format!("/proc/{}/status", live.process.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    let peak_kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak_kib < 1_024, "{peak_kib} KiB");
    live.stop(0);
    let done = live.finish();
    assert_eq!(done.stdout.len(), (64 << 20) + 5);
    assert!(done.stdout.ends_with(b"x\nEND\n"));
    assert!(!done.record.usage.log_truncated);
}

#[test]
fn the_limit_cuts_says_so_and_disturbs_nobody() {
    let world = World::new();
    let script = "head -c 1000000 /dev/zero | tr '\\0' y; echo err >&2; exit 3";
    let done = world.shell(script).with(|draft| draft.log_limit_bytes = 100_000).run();
    assert_eq!(done.record.exit, Some(TaskExit::Code(3)));
    assert!(done.record.usage.log_truncated);
    assert_eq!(done.record.usage.stdout_bytes, 1_000_000, "counting goes on");
    let kept = done.stdout.iter().filter(|byte| **byte == b'y').count();
    assert!((99_990..=100_000 + 10).contains(&kept), "{kept}");
    assert!(contains(&done.stdout, b"[jobyard: the log limit of 100000 bytes is reached here"));
}

#[test]
fn the_last_line_before_a_crash_is_there() {
    let world = World::new();
    let done = world.shell("echo one; echo two >&2; printf 'last words'; kill -SEGV $$").run();
    assert_eq!(done.record.exit, Some(TaskExit::Signal(11)));
    assert_eq!((done.stdout, done.stderr), (b"one\nlast words".to_vec(), b"two\n".to_vec()));
}

#[test]
fn a_full_disk_loses_output_and_nothing_else() {
    let world = World::new();
    let done = world.shell("echo lost; exit 5").start_with(|plan, _| plan.log.path = "/dev/full".into());
    let mut live = done;
    let record = live.talk.ended();
    assert_eq!(record.exit, Some(TaskExit::Code(5)));
    assert!(record.usage.log_truncated);
    assert_eq!((record.usage.stdout_bytes, record.usage.log_file_bytes), (5, 0));
    live.talk.acknowledge();
    live.process.wait().unwrap();
    live.plan.log.path = world.path("none");
    live.clear_up(record);
}

#[test]
fn a_log_folder_that_is_gone_loses_output_and_nothing_else() {
    let world = World::new();
    let done =
        world.shell("echo lost; exit 5").start_with(|plan, _| plan.log.path = "/no/such/log".into()).finish();
    assert_eq!(done.record.exit, Some(TaskExit::Code(5)));
    assert!(done.record.usage.log_truncated);
}

#[test]
fn growth_is_gathered() {
    let world = World::new();
    let script = "i=0; while [ $i -lt 2000 ]; do echo line; i=$((i+1)); done";
    let mut live = world.shell(script).start();
    let mut notices = Vec::new();
    let record = live.talk.until(|frame| match frame {
        jobyard_handoff::FromSidecar::LogGrew { file_bytes } => {
            notices.push(*file_bytes);
            None
        }
        jobyard_handoff::FromSidecar::Ended(record) => Some((**record).clone()),
        _ => None,
    });
    assert!(notices.is_sorted() && notices.len() < 500, "{}", notices.len());
    assert_eq!(notices.last(), Some(&record.usage.log_file_bytes), "all is told before the end is");
    live.talk.acknowledge();
    live.process.wait().unwrap();
    assert_eq!(live.clear_up(record).stdout.len(), 10_000);
}

/// A service whose log nobody delivers, and then somebody does: each process says 30,000 bytes and leaves.
#[test]
fn the_log_of_a_service_is_limited_by_what_lies_there() {
    let world = World::new();
    let restart = RestartPlan { first_delay_ms: 1, longest_delay_ms: 1, ..RestartPlan::default() };
    let draft = world.shell("head -c 30000 /dev/zero | tr '\\0' x").with(|draft| {
        draft.log_limit_bytes = 100_000;
        draft.restart = Some(restart);
    });
    let mut live = draft.start();
    let log = live.plan.log.path.clone();
    let (mut read, mut looked) = (Vec::new(), 0);
    while looked < 2 {
        let runs = live.talk.service().restarts + 6;
        while live.talk.service().restarts < runs {}
        let files: Vec<_> = parts(&log).unwrap().into_iter().map(|from| part(&log, from)).collect();
        let lies_there: u64 = files.iter().map(|file| file.metadata().unwrap().len()).sum();
        assert!((80_000..=100_000).contains(&lies_there), "{lies_there} bytes");
        let (last, delivered) = files.split_last().unwrap();
        assert!(delivered.len() >= 2 && last.exists(), "{files:?}");
        for file in delivered {
            read.extend(read_log(file).0);
            std::fs::remove_file(file).unwrap();
        }
        looked += 1;
    }
    live.stop(0);
    let record = live.talk.ended();
    for from in parts(&log).unwrap() {
        read.extend(read_log(&part(&log, from)).0);
    }
    let text = String::from_utf8(read).unwrap();
    let notices = text.split("\n[jobyard: 100000 bytes of log waited to be sent; ").skip(1);
    let missing = notices.map(|notice| notice.split_once(" bytes of output are missing here]\n").unwrap().0);
    let missing: Vec<u64> = missing.map(|missing| missing.parse().unwrap()).collect();
    assert!(missing.len() >= 2, "it went on after the first time: {missing:?}");
    let kept = text.bytes().filter(|byte| *byte == b'x').count() as u64;
    assert_eq!(kept + missing.iter().sum::<u64>(), record.usage.stdout_bytes, "{missing:?}");
    assert!(record.usage.log_truncated);
    live.talk.acknowledge();
    live.process.wait().unwrap();
    live.clear_up(record);
}
