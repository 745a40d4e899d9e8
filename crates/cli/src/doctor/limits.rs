//! What the system allows a process, and which clock it reads.

use std::fs;

use rustix::process::{Resource, getrlimit};

use crate::output::{Answer, Check};

/// Files of a worker with its 1,000 attempts: a few an attempt.
const ENOUGH_FILES: u64 = 8_192;
/// Sidecars and tasks of 1,000 attempts.
const ENOUGH_PROCESSES: u64 = 4_096;
const ENOUGH_INSTANCES: u64 = 128;
const ENOUGH_WATCHES: u64 = 8_192;

pub(super) fn look() -> Vec<Check> {
    let mut checks = vec![open_files(), processes()];
    checks.extend(inotify());
    checks.extend(clock_source());
    checks
}

fn open_files() -> Check {
    let limit = getrlimit(Resource::Nofile).current;
    Check::new(
        "open files",
        enough(limit, ENOUGH_FILES),
        &shown(limit),
        "how many attempts and connections a process of ours has room for; half is for connections",
    )
    .fix_unless_yes(&format!("LimitNOFILE={ENOUGH_FILES} in the unit, or ulimit -n {ENOUGH_FILES}"))
}

fn processes() -> Check {
    let limit = getrlimit(Resource::Nproc).current;
    Check::new(
        "processes",
        enough(limit, ENOUGH_PROCESSES),
        &shown(limit),
        "how many this user may have, tasks included",
    )
    .fix_unless_yes("LimitNPROC=infinity in the unit, or ulimit -u unlimited")
}

fn enough(limit: Option<u64>, wanted: u64) -> Answer {
    Answer::yes_or(Answer::Warn, limit.is_none_or(|limit| limit >= wanted))
}

fn shown(limit: Option<u64>) -> String {
    limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string())
}

/// Where the kernel has it.
fn inotify() -> Option<Check> {
    let read = |name| {
        let text = fs::read_to_string(format!("/proc/sys/fs/inotify/{name}")).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let (instances, watches) = (read("max_user_instances")?, read("max_user_watches")?);
    let enough = instances >= ENOUGH_INSTANCES && watches >= ENOUGH_WATCHES;
    let found = format!("{instances} instances, {watches} watches a user");
    let fix = format!(
        "sysctl fs.inotify.max_user_instances={ENOUGH_INSTANCES} fs.inotify.max_user_watches={ENOUGH_WATCHES} or more"
    );
    let means = "for tasks that watch files; Jobyard itself watches none";
    Some(Check::new("inotify", Answer::yes_or(Answer::Warn, enough), &found, means).fix_unless_yes(&fix))
}

/// Where the kernel has a choice.
fn clock_source() -> Option<Check> {
    let source =
        fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource").ok()?;
    let source = source.trim();
    let is_slow = ["hpet", "acpi_pm", "jiffies", "refined-jiffies"].contains(&source);
    let means = "reading the time costs a system call with a slow one, and everything here reads it often";
    Some(
        Check::new("clock source", Answer::yes_or(Answer::Warn, !is_slow), source, means).fix_unless_yes(
            "find out why the kernel distrusts the tsc: dmesg | grep -i -e tsc -e clocksource",
        ),
    )
}
