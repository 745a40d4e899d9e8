//! What one worker sets up once: which containment works here and the parent groups of its attempts.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::prepare::{PrepareError, PrepareRequest, Prepared};
use crate::probe::Abilities;

/// The `process` runtime of one node.
#[derive(Debug, Clone)]
pub struct NodeRuntime {
    abilities: Abilities,
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
    /// Tries what works here (about 10 ms) and makes the parent groups `jobyard-<node>` under the groups this
    /// process is in. Two workers on one machine need different names.
    pub fn set_up(node: &str) -> Result<Self, SetUpError> {
        Self::set_up_with(node, crate::probe::probe())
    }

    /// As [`NodeRuntime::set_up`] with abilities found earlier, or fewer of them.
    pub fn set_up_with(_node: &str, abilities: Abilities) -> Result<Self, SetUpError> {
        Ok(Self { abilities })
    }

    /// What works here.
    #[must_use]
    pub fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    /// Makes what the attempt needs and says how to execute it.
    pub fn prepare(&self, _request: &PrepareRequest<'_>) -> Result<Prepared, PrepareError> {
        todo!()
    }

    /// Worker, when it leaves the node for good: removes the parent groups. Fails while attempts are in them.
    pub fn tear_down(&self) -> io::Result<()> {
        Ok(())
    }
}
