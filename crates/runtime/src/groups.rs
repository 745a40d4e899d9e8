//! Control groups, version 1 and unified: where this process is, the parent groups of a node, a leaf for each
//! attempt with its limits.
//!
//! Invariant: everything is made below the groups this process is in; a limit set on us from outside holds for
//! our attempts.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use jobyard_handoff::Groups;

use crate::prepare::Resources;

/// A worker alone in its group moves in here, because a unified group that hands out controllers may hold no
/// process itself.
const WORKERS: &str = "jobyard-workers";

/// `cpu.max` and `cpu.cfs_quota_us` count in this period, which is the kernel's default.
const CPU_PERIOD_US: u64 = 100_000;

/// Directories, one a hierarchy, all optional: our own groups, or the parents of a node's attempts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Hierarchies {
    pub(crate) memory_v1: Option<PathBuf>,
    pub(crate) cpu_v1: Option<PathBuf>,
    pub(crate) pids_v1: Option<PathBuf>,
    pub(crate) unified: Option<PathBuf>,
    /// Controllers that children of the unified group have.
    pub(crate) memory: bool,
    pub(crate) cpu: bool,
    pub(crate) pids: bool,
}

impl Hierarchies {
    /// The groups of this process, as far as their file systems are mounted.
    pub(crate) fn own() -> io::Result<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup")?;
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        Ok(Self::parse(&groups, &mounts))
    }

    fn parse(groups: &str, mounts: &str) -> Self {
        let place = |controller: &str| locate(groups, mounts, controller);
        Self {
            memory_v1: place("memory"),
            cpu_v1: place("cpu"),
            pids_v1: place("pids"),
            unified: place("").map(leave_workers_group),
            ..Self::default()
        }
    }

    /// Makes a group of this name below each of these; what can't be made is left out.
    pub(crate) fn make_parents(&self, name: &str, aside: Aside) -> Self {
        let make = |directory: &Option<PathBuf>| {
            let child = directory.as_ref()?.join(name);
            make_directory(&child).is_ok().then_some(child)
        };
        let mut parents = Self {
            memory_v1: make(&self.memory_v1),
            cpu_v1: make(&self.cpu_v1),
            pids_v1: make(&self.pids_v1),
            unified: make(&self.unified),
            ..Self::default()
        };
        if let (Some(own), Some(parent)) = (&self.unified, &parents.unified) {
            let has = |controller| hand_down((own, parent), controller, aside);
            // A controller is in one kind of hierarchy at a time.
            parents.memory = parents.memory_v1.is_none() && has("memory");
            parents.cpu = parents.cpu_v1.is_none() && has("cpu");
            parents.pids = parents.pids_v1.is_none() && has("pids");
        }
        parents
    }

    pub(crate) fn directories(&self) -> impl Iterator<Item = &Path> {
        [&self.memory_v1, &self.cpu_v1, &self.pids_v1, &self.unified].into_iter().filter_map(|d| d.as_deref())
    }

    /// How memory is limited below these.
    pub(crate) fn memory_limits(&self) -> &'static str {
        match (&self.memory_v1, self.memory) {
            (Some(_), _) => "cgroup-v1",
            (None, true) => "cgroup-v2",
            (None, false) => "none",
        }
    }

    /// A leaf for one attempt, with its limits. On an error nothing is left behind.
    pub(crate) fn make_leaf(&self, name: &str, resources: &Resources) -> Result<Groups, GroupError> {
        let leaf = |parent: &Option<PathBuf>| parent.as_ref().map(|parent| parent.join(name));
        let groups = Groups {
            memory_v1: leaf(&self.memory_v1),
            cpu_v1: leaf(&self.cpu_v1),
            pids_v1: leaf(&self.pids_v1),
            unified: leaf(&self.unified),
            unified_memory: self.memory,
        };
        self.fill_leaf(&groups, resources).inspect_err(|_| {
            // A leaf that can't be removed now is taken over by the next of its name.
            let _ = remove_groups(&groups);
        })?;
        Ok(groups)
    }

    fn fill_leaf(&self, groups: &Groups, resources: &Resources) -> Result<(), GroupError> {
        for directory in groups.directories() {
            make_new(directory).map_err(|source| GroupError { path: directory.to_path_buf(), source })?;
        }
        if let Some(group) = &groups.memory_v1 {
            set(group, "memory.limit_in_bytes", resources.memory_bytes)?;
            // Absent where swap is not accounted.
            set_if_there(group, "memory.memsw.limit_in_bytes", resources.memory_bytes)?;
        }
        if let Some(group) = &groups.cpu_v1 {
            let shares = resources.cpu_milli.saturating_mul(1_024) / 1_000;
            set(group, "cpu.shares", shares.clamp(2, 262_144))?;
            if let Some(quota) = cpu_quota_us(resources) {
                set(group, "cpu.cfs_quota_us", quota)?;
            }
        }
        if let Some(group) = &groups.pids_v1 {
            set(group, "pids.max", resources.pids_limit.into())?;
        }
        match &groups.unified {
            Some(group) => self.fill_unified(group, resources),
            None => Ok(()),
        }
    }

    /// Makes the unified leaf of groups whose others are there already.
    pub(crate) fn renew_unified(&self, groups: &Groups, resources: &Resources) -> Result<(), GroupError> {
        let Some(group) = &groups.unified else { return Ok(()) };
        make_new(group).map_err(|source| GroupError { path: group.clone(), source })?;
        self.fill_unified(group, resources)
    }

    fn fill_unified(&self, group: &Path, resources: &Resources) -> Result<(), GroupError> {
        if self.memory {
            set(group, "memory.max", resources.memory_bytes)?;
            set_if_there(group, "memory.swap.max", 0)?;
            set_if_there(group, "memory.oom.group", 1)?;
        }
        if self.cpu {
            set(group, "cpu.weight", (resources.cpu_milli / 10).clamp(1, 10_000))?;
            if let Some(quota) = cpu_quota_us(resources) {
                write(group, "cpu.max", &format!("{quota} {CPU_PERIOD_US}"))?;
            }
        }
        if self.pids {
            set(group, "pids.max", resources.pids_limit.into())?;
        }
        Ok(())
    }
}

/// A group's file that would not take its value.
#[derive(Debug)]
pub(crate) struct GroupError {
    pub(crate) path: PathBuf,
    pub(crate) source: io::Error,
}

/// Removes the directories of an attempt; absent ones are fine. `ResourceBusy` while a process is in one.
pub(crate) fn remove_groups(groups: &Groups) -> io::Result<()> {
    let mut worst = Ok(());
    for directory in groups.directories() {
        match fs::remove_dir(directory) {
            Err(error) if error.kind() != ErrorKind::NotFound => worst = Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    worst
}

/// The greatest memory use seen begins again with what is used now.
pub(crate) fn reset_peak(groups: &Groups) -> Result<(), GroupError> {
    groups.memory_v1.as_deref().map_or(Ok(()), |group| set(group, "memory.max_usage_in_bytes", 0))
}

fn cpu_quota_us(resources: &Resources) -> Option<u64> {
    let quota = resources.cpu_limit_milli?.saturating_mul(CPU_PERIOD_US) / 1_000;
    // The kernel takes no less than a millisecond.
    Some(quota.max(1_000))
}

/// Makes a leaf whose counters begin at nothing: an empty one of that name (of an earlier worker) goes first.
fn make_new(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            fs::remove_dir(path)?;
            fs::create_dir(path)
        }
        other => other,
    }
}

/// Makes the group, or takes over the one with that name.
fn make_directory(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

fn set(group: &Path, name: &'static str, value: u64) -> Result<(), GroupError> {
    write(group, name, &value.to_string())
}

fn set_if_there(group: &Path, name: &'static str, value: u64) -> Result<(), GroupError> {
    match set(group, name, value) {
        Err(error) if error.source.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn write(group: &Path, name: &'static str, value: &str) -> Result<(), GroupError> {
    let path = group.join(name);
    // Not fs::write: these files are not to be created or truncated.
    let written = fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes()));
    written.map_err(|source| GroupError { path, source })
}

/// What becomes of the processes of our own unified group where they keep it from handing out controllers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aside {
    /// They move into a group below it.
    Move,
    /// They stay, and it is enough that they might move.
    Stay,
}

/// Makes a controller available in the children of `parent`, which is a child of `own`.
fn hand_down((own, parent): (&Path, &Path), controller: &str, aside: Aside) -> bool {
    let offered = fs::read_to_string(own.join("cgroup.controllers")).unwrap_or_default();
    if !offered.split_ascii_whitespace().any(|name| name == controller) {
        return false;
    }
    let line = format!("+{controller}");
    let enable = |group: &Path| fs::write(group.join("cgroup.subtree_control"), &line);
    match enable(own) {
        Err(error) if error.kind() == ErrorKind::ResourceBusy => match aside {
            Aside::Move => {
                move_into_workers_group(own).and_then(|()| enable(own)).is_ok() && enable(parent).is_ok()
            }
            Aside::Stay => is_writable(&own.join("cgroup.procs")),
        },
        enabled => enabled.and_then(|()| enable(parent)).is_ok(),
    }
}

fn is_writable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

/// Empties our own unified group so that it may hand out controllers.
fn move_into_workers_group(own: &Path) -> io::Result<()> {
    let workers = own.join(WORKERS);
    make_directory(&workers)?;
    for pid in fs::read_to_string(own.join("cgroup.procs"))?.lines() {
        match fs::write(workers.join("cgroup.procs"), pid) {
            // It ended in the meantime.
            Err(error) if error.raw_os_error() == Some(3) => {}
            other => other?,
        }
    }
    Ok(())
}

fn leave_workers_group(own: PathBuf) -> PathBuf {
    match own.parent() {
        Some(parent) if own.ends_with(WORKERS) => parent.to_path_buf(),
        Some(_) | None => own,
    }
}

/// Our directory in the hierarchy of a version 1 controller, or (empty name) in the unified one.
fn locate(groups: &str, mounts: &str, controller: &str) -> Option<PathBuf> {
    let own = groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?;
        controllers.split(',').any(|name| name == controller).then(|| fields.next()).flatten()
    })?;
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, mount_point) = (before.next()?, before.next()?);
        let mut after = after.split(' ');
        let kind = after.next()?;
        let options = after.nth(1)?;
        let fits = match controller {
            "" => kind == "cgroup2",
            _ => kind == "cgroup" && options.split(',').any(|option| option == controller),
        };
        // In a container the mount may show only the part of the hierarchy below its own root.
        let below = if root == "/" { own } else { own.strip_prefix(root).unwrap_or("/") };
        fits.then(|| Path::new(mount_point).join(below.trim_start_matches('/')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hybrid_machine_with_the_worker_below_the_root() {
        let groups = "8:pids:/\n4:memory:/a/b\n2:cpuacct:/\n1:cpu,cpuset:/c\n0::/d\n";
        let mounts = "30 24 0:26 / /sys/fs/cgroup/unified rw,relatime shared:4 - cgroup2 cgroup2 rw\n\
                      31 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      32 24 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuset\n";
        let own = Hierarchies::parse(groups, mounts);
        assert_eq!(own.memory_v1, Some("/sys/fs/cgroup/memory/a/b".into()));
        assert_eq!(own.cpu_v1, Some("/sys/fs/cgroup/cpu/c".into()));
        assert_eq!(own.pids_v1, None, "not mounted");
        assert_eq!(own.unified, Some("/sys/fs/cgroup/unified/d".into()));
    }

    #[test]
    fn a_unified_machine_where_the_worker_moved_aside() {
        let groups = "0::/system.slice/jobyard.service/jobyard-workers\n";
        let mounts = "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
        let own = Hierarchies::parse(groups, mounts);
        assert_eq!(own.unified, Some("/sys/fs/cgroup/system.slice/jobyard.service".into()));
        assert_eq!(own.memory_v1, None);
    }

    #[test]
    fn a_container_that_sees_only_its_own_part() {
        let groups = "4:memory:/docker/abc/x\n";
        let mounts = "31 24 0:27 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let own = Hierarchies::parse(groups, mounts);
        assert_eq!(own.memory_v1, Some("/sys/fs/cgroup/memory/x".into()));
    }
}
