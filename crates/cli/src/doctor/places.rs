//! Where things lie: the data directory and its disk, and the state of attempts.

use std::io::{self, Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use jobyard_worker::{WorkerSettings, attempt_state};
use rustix::fs::{fdatasync, statvfs};

use crate::output::{Answer, Check, bytes};

/// With less than this a disk is full soon.
const LITTLE_BYTES: u64 = 1 << 30;
const FLUSHES: usize = 21;
/// A disk with a cache that survives a power cut, or a fast one, needs less.
const SLOW_FLUSH: Duration = Duration::from_millis(10);

pub(super) fn look(settings: &WorkerSettings) -> Vec<Check> {
    let directory = &settings.data_dir;
    // What is not there yet will be made below what is.
    let there = directory.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    let mut checks = vec![writable(directory, there), disk(there, settings.disk_floor_bytes)];
    checks.extend(flush(there).ok());
    checks.push(state(settings));
    checks
}

fn writable(directory: &Path, there: &Path) -> Check {
    let tried = tempfile::tempfile_in(there);
    let found = match &tried {
        Ok(_) if there == directory => directory.display().to_string(),
        Ok(_) => format!("{} is not there yet; it can be made", directory.display()),
        Err(error) => format!("{} can't be written to: {error}", there.display()),
    };
    Check::new("data directory", Answer::yes_or(Answer::No, tried.is_ok()), &found, "identity, logs and outcomes are kept there")
        .needed()
        .fix_unless_yes("make it, owned by the user that runs the worker, or name another: worker.data_dir, for `up` --data-dir")
}

fn disk(there: &Path, floor_bytes: u64) -> Check {
    let free = statvfs(there).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    let (answer, found) = match free {
        Ok(free) if free < floor_bytes => (Answer::No, format!("{} free", bytes(free))),
        Ok(free) if free < LITTLE_BYTES => (Answer::Warn, format!("{} free", bytes(free))),
        Ok(free) => (Answer::Yes, format!("{} free", bytes(free))),
        Err(error) => (Answer::No, error.to_string()),
    };
    let means = format!("below {} launches are refused", bytes(floor_bytes));
    Check::new("disk space", answer, &found, &means)
        .needed()
        .fix_unless_yes("make room, or move the data directory")
}

/// How long a small write takes until it is durable: the middle of some.
fn flush(there: &Path) -> io::Result<Check> {
    let mut file = tempfile::tempfile_in(there)?;
    let mut times = Vec::new();
    for _ in 0..FLUSHES {
        let started = Instant::now();
        file.rewind()?;
        file.write_all(&[0; 4096])?;
        fdatasync(&file)?;
        times.push(started.elapsed());
    }
    times.sort_unstable();
    let middle = times[FLUSHES / 2];
    let found = format!("{:.2} ms for 4 KiB", middle.as_secs_f64() * 1e3);
    Ok(Check::new(
        "disk flush",
        Answer::yes_or(Answer::Warn, middle <= SLOW_FLUSH),
        &found,
        "with an embedded datastore here, every acknowledged call waits for one; those at the same time share it",
    )
    .fix_unless_yes("put the data directory on a disk whose cache survives a power cut"))
}

fn state(settings: &WorkerSettings) -> Check {
    let (directory, in_memory) = attempt_state(settings);
    let found = format!("{} is {}", directory.display(), if in_memory { "in memory" } else { "on disk" });
    Check::new(
        "attempt state",
        Answer::yes_or(Answer::Warn, in_memory),
        &found,
        "on disk the start of an attempt takes longer, and a busy disk holds it up",
    )
    .fix_unless_yes("name a folder on a tmpfs: worker.state_dir")
}
