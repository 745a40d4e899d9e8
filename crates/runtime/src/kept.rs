//! Groups that are kept for the next attempt of the same name, because making and removing them costs as much as the
//! rest of a short attempt.
//!
//! Invariant: an attempt can't tell kept groups from new ones. Kept are only those of an attempt that could not change
//! them (a user of its own), left nothing in them, and was killed by no limit; given out only for the same resources.
//! The leaf of the unified hierarchy is always a new one: some kernels kill at once whatever is cloned into a group
//! in which `cgroup.kill` was ever written.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jobyard_handoff::{ExecPlan, Groups};

use crate::groups::{Hierarchies, remove_groups, reset_peak};
use crate::prepare::Resources;

/// Charges that may be left when nothing runs: the kernel keeps some in stock for each processor, and what the task
/// read stays in the page cache.
const MAX_LEFT_BYTES: u64 = 1 << 20;

/// By the names of attempts.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeptGroups(Arc<Mutex<HashMap<String, Leaf>>>);

#[derive(Debug)]
struct Leaf {
    groups: Groups,
    resources: Resources,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    InUse,
    Kept,
}

impl KeptGroups {
    /// Kept ones for an attempt of this name, as if they were new. Others of its name are removed.
    pub(crate) fn take(&self, parents: &Hierarchies, name: &str, resources: &Resources) -> Option<Groups> {
        let leaf = self.leaves().remove(name).filter(|leaf| leaf.state == State::Kept)?;
        let is_fit =
            leaf.resources == *resources && is_whole(&leaf.groups) && reset_peak(&leaf.groups).is_ok();
        if is_fit && parents.renew_unified(&leaf.groups, resources).is_ok() {
            self.note(name, &leaf.groups, resources);
            return Some(leaf.groups);
        }
        // What stays is in the way of the new ones, which says so.
        let _ = remove_groups(&leaf.groups);
        None
    }

    /// An attempt of this name has these.
    pub(crate) fn note(&self, name: &str, groups: &Groups, resources: &Resources) {
        let leaf = Leaf { groups: groups.clone(), resources: *resources, state: State::InUse };
        self.leaves().insert(name.to_owned(), leaf);
    }

    /// Keeps the groups of an attempt that is over. False: they are not worth it, or not ours; remove them.
    pub(crate) fn keep(&self, plan: &ExecPlan) -> bool {
        let name = plan.groups.members().and_then(Path::file_name).and_then(OsStr::to_str);
        let Some(name) = name else { return false };
        let is_clean = is_clean(plan) && remove_unified(&plan.groups).is_ok();
        let mut leaves = self.leaves();
        match leaves.get_mut(name).filter(|leaf| leaf.groups == plan.groups) {
            Some(leaf) if is_clean => leaf.state = State::Kept,
            Some(_) | None => {
                leaves.remove(name);
                return false;
            }
        }
        true
    }

    /// Removes all that are kept.
    pub(crate) fn clear(&self) -> io::Result<()> {
        let mut leaves = self.leaves();
        let mut worst = Ok(());
        for (_, leaf) in leaves.extract_if(|_, leaf| leaf.state == State::Kept) {
            worst = remove_groups(&leaf.groups).and(worst);
        }
        worst
    }

    fn leaves(&self) -> MutexGuard<'_, HashMap<String, Leaf>> {
        // Each change of the map is one step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the leaves below the node's groups that are nobody's: empty, and of no name that is in use.
pub(crate) fn sweep(parents: &Hierarchies, is_in_use: &dyn Fn(&str) -> bool) -> io::Result<()> {
    for parent in parents.directories() {
        for entry in fs::read_dir(parent)? {
            let entry = entry?;
            let is_free = entry.file_name().to_str().is_some_and(|name| !is_in_use(name));
            if is_free && entry.file_type()?.is_dir() {
                // Busy: a process is in it, which only one that is not swept away may have.
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
    Ok(())
}

fn is_whole(groups: &Groups) -> bool {
    groups.directories().all(|group| groups.unified.as_deref() == Some(group) || group.is_dir())
}

fn remove_unified(groups: &Groups) -> io::Result<()> {
    groups.unified.as_deref().map_or(Ok(()), fs::remove_dir)
}

fn is_clean(plan: &ExecPlan) -> bool {
    let groups = &plan.groups;
    // Version 2 has no way to begin its peak anew by name.
    let is_fit = plan.user.is_some_and(|user| user.private) && !groups.unified_memory;
    is_fit
        && groups
            .members()
            .is_some_and(|group| text(group, "cgroup.procs").is_some_and(|text| text.is_empty()))
        && groups.memory_v1.as_deref().is_none_or(|group| {
            let left = text(group, "memory.usage_in_bytes").and_then(|text| text.trim().parse().ok());
            let is_killed = text(group, "memory.oom_control").is_none_or(|text| {
                text.lines().any(|line| line.starts_with("oom_kill ") && line != "oom_kill 0")
            });
            left.is_some_and(|left: u64| left <= MAX_LEFT_BYTES) && !is_killed
        })
}

fn text(group: &Path, name: &str) -> Option<String> {
    fs::read_to_string(group.join(name)).ok()
}
