//! What one worker sets up once: which containment works here and the parent groups of its attempts.

use std::fmt;
use std::io;
use std::path::PathBuf;

use jobyard_handoff::{Containment, ExecPlan, read_boot_id};

use crate::directories::{cleanup, empty_folders};
use crate::groups::{Aside, Hierarchies};
use crate::kept::{KeptGroups, sweep};
use crate::prepare::{NodeParts, PrepareError, PrepareRequest, Prepared, prepare};
use crate::probe::{Abilities, Namespaces, probe};

/// The `process` runtime of one node.
#[derive(Debug, Clone)]
pub struct NodeRuntime {
    abilities: Abilities,
    parents: Hierarchies,
    kept: KeptGroups,
    boot_id: String,
}

/// What [`NodeRuntime::examine`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined {
    /// What a worker would have.
    pub abilities: Abilities,
    /// The unified hierarchy (version 2) is mounted.
    pub unified: bool,
    /// Controllers of version 1 are mounted.
    pub version_1: bool,
    /// Beside what containment needs.
    pub namespaces: Namespaces,
}

/// Why a node can't be set up.
#[derive(Debug)]
pub struct SetUpError {
    /// What we were doing.
    pub doing: &'static str,
    /// To what.
    pub path: PathBuf,
    /// Why it failed.
    pub source: io::Error,
}

impl fmt::Display for SetUpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "could not {} {}", self.doing, self.path.display())
    }
}

impl std::error::Error for SetUpError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl NodeRuntime {
    /// Tries what works here (a few ms) and makes the parent groups `jobyard-<node>` under the groups this
    /// process is in. Two workers on one machine need different names, of letters, digits, `-` and `_`.
    pub fn set_up(node: &str) -> Result<Self, SetUpError> {
        let is_name =
            !node.is_empty() && node.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
        if !is_name {
            let source = io::ErrorKind::InvalidInput.into();
            return Err(SetUpError { doing: "name the groups of the node", path: node.into(), source });
        }
        let boot_id = read_boot_id().map_err(|source| {
            let path = PathBuf::from("/proc/sys/kernel/random/boot_id");
            SetUpError { doing: "read the boot id from", path, source }
        })?;
        // No groups at all is a machine that can do less, not an error.
        let own = Hierarchies::own().unwrap_or_default();
        let parents = own.make_parents(&format!("jobyard-{node}"), Aside::Move);
        let abilities = probe(&parents);
        Ok(Self { abilities, parents, kept: KeptGroups::default(), boot_id })
    }

    /// What a worker would find here if it started now: tried as [`set_up`](Self::set_up) tries it, and taken back.
    /// Nobody is moved to another group for it; where a worker would move aside, it is enough that it may.
    pub fn examine() -> io::Result<Examined> {
        let own = Hierarchies::own().unwrap_or_default();
        let parents = own.make_parents(&format!("jobyard-try-{}", std::process::id()), Aside::Stay);
        let abilities = probe(&parents);
        remove(&parents)?;
        let unified = own.unified.is_some();
        let version_1 = [&own.memory_v1, &own.cpu_v1, &own.pids_v1].into_iter().any(Option::is_some);
        Ok(Examined { abilities, unified, version_1, namespaces: Namespaces::tried() })
    }

    /// The same node with a weaker containment than it has, for those who must do without groups (and tests).
    #[must_use]
    pub fn with_containment(mut self, containment: Containment) -> Self {
        if containment != Containment::Cgroup {
            self.abilities =
                Abilities { containment, memory: "none", pids: false, cpu: false, ..self.abilities };
        }
        self
    }

    /// What works here.
    #[must_use]
    pub fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    /// The boot this runtime was set up in.
    #[must_use]
    pub fn boot_id(&self) -> &str {
        &self.boot_id
    }

    /// Makes what the attempt needs and says how to execute it. A few system calls, no fork; about 0.2 ms.
    pub fn prepare(&self, request: &PrepareRequest<'_>) -> Result<Prepared, PrepareError> {
        let containment = self.abilities.containment;
        let Self { parents, kept, boot_id, .. } = self;
        prepare(&NodeParts { boot_id, containment, parents, kept }, request)
    }

    /// Clears up after an attempt like [`crate::cleanup`], but keeps its groups for the next attempt of its name where
    /// that one won't notice. For attempts prepared here; for others it is the same.
    pub fn retire(&self, plan: &ExecPlan) -> io::Result<()> {
        if self.kept.keep(plan) { empty_folders(plan) } else { cleanup(plan) }
    }

    /// Worker, at its start: removes groups that an earlier one kept or forgot. `is_in_use` knows the names of attempts
    /// that may still be going on.
    pub fn sweep(&self, is_in_use: impl Fn(&str) -> bool) -> io::Result<()> {
        sweep(&self.parents, &is_in_use)
    }

    /// Worker, when it leaves the node for good: removes the groups it kept and their parents. Fails while attempts are
    /// in them.
    pub fn tear_down(&self) -> io::Result<()> {
        self.kept.clear()?;
        remove(&self.parents)
    }
}

fn remove(parents: &Hierarchies) -> io::Result<()> {
    for directory in parents.directories() {
        match std::fs::remove_dir(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}
