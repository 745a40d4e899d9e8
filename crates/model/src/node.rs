//! A machine that offers resources.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{NodeId, Resources, Runtime, SessionId};

/// The most attempts one node takes at a time, whatever its resources.
pub const MAX_ATTEMPTS_PER_NODE: u32 = 1_000;

/// `launch_failed` attempts or expired claim leases in a row after which a node is suspended.
pub const SUSPEND_AFTER: u32 = 5;

/// Whether new attempts may be placed on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(i16)]
pub enum NodeGate {
    /// Takes attempts.
    Open = 0,
    /// An operator wants no new attempts here.
    Cordoned = 1,
    /// An operator wants the node empty: no new attempts, and those it has are evicted.
    Draining = 2,
}

impl NodeGate {
    /// The number in the datastore.
    #[must_use]
    pub fn code(self) -> i16 {
        self as i16
    }

    /// The gate with this number in the datastore.
    #[must_use]
    pub fn from_code(code: i16) -> Option<Self> {
        [Self::Open, Self::Cordoned, Self::Draining].into_iter().find(|gate| gate.code() == code)
    }

    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Cordoned => "cordoned",
            Self::Draining => "draining",
        }
    }
}

/// What a worker says of its node when it registers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRegistration {
    /// Made once in the worker's data directory.
    pub node_id: NodeId,
    /// New at each start of the worker.
    pub session: SessionId,
    /// The kernel's boot id: another one proves that nothing of the old boot runs any more.
    pub boot_id: String,
    /// The host name, shown to people.
    pub name: String,
    /// The pool it serves.
    pub pool: String,
    /// What it offers.
    pub capacity: Resources,
    /// The most attempts at a time.
    pub max_attempts: u32,
    /// Matched against a job's `node_labels`.
    pub labels: BTreeMap<String, String>,
    /// How task processes can be isolated here.
    pub runtimes: Vec<Runtime>,
    /// `cgroup`, `pidns` or `subreaper`: what keeps a task's processes together here.
    pub containment: String,
    /// Where the informer pushes to; a unix socket path, or empty when both are one process.
    pub door: String,
    /// The worker's version.
    pub version: String,
}
