//! Control groups: one that a service manager would make for a worker, and those that killed workers leave.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How deep below the mount groups are looked for.
const DEPTH: usize = 5;
const PATIENCE: Duration = Duration::from_secs(2);

/// A group for a worker and whatever it starts, as systemd makes one for a unit.
pub struct Unit {
    path: PathBuf,
}

impl Unit {
    /// Below the test's own group, in the unified hierarchy. `None` where that can't be had.
    #[must_use]
    pub fn make() -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let root = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"]
            .into_iter()
            .map(Path::new)
            .find(|root| root.join("cgroup.controllers").exists())?;
        let path = root.join(own).join(format!("yard-unit-{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        Some(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The processes in it, those of groups below it not counted.
    #[must_use]
    pub fn members(&self) -> Vec<u32> {
        let listing = fs::read_to_string(self.path.join("cgroup.procs")).expect("a listing");
        listing.lines().map(|line| line.parse().expect("a pid")).collect()
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Ends everything in the groups of this name, and removes them.
pub(crate) fn remove_named(name: &str) {
    let mut found = Vec::new();
    find(Path::new("/sys/fs/cgroup"), name, DEPTH, &mut found);
    for path in found {
        remove(&path);
    }
}

fn find(folder: &Path, name: &str, depth: usize, found: &mut Vec<PathBuf>) {
    for path in folders(folder) {
        if path.ends_with(name) {
            found.push(path);
        } else if depth > 0 {
            find(&path, name, depth - 1, found);
        }
    }
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

/// Whoever is killed leaves a moment later.
fn remove(path: &Path) {
    let until = Instant::now() + PATIENCE;
    // Only the unified hierarchy has it; elsewhere the group is empty when its unified twin is.
    let _absent = fs::write(path.join("cgroup.kill"), "1");
    while !remove_empty(path) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn remove_empty(path: &Path) -> bool {
    let below = folders(path).iter().filter(|child| !remove_empty(child)).count() == 0;
    below && (fs::remove_dir(path).is_ok() || !path.exists())
}
