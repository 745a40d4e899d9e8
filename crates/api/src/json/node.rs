//! A machine that offers resources.

use std::collections::BTreeMap;

use jobyard_model::node::NodeGate;
use jobyard_model::{NodeId, Resources, Runtime};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::words::{NodeGateWord, RuntimeWord};
use super::{Bytes, Cores, Time};

/// A node, as the datastore knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    /// Which.
    #[schema(value_type = String, format = "uuid")]
    pub id: NodeId,
    /// The host name.
    pub name: String,
    /// The pool it serves.
    pub pool: String,
    /// Whether it was heard of lately, is open, and is neither suspended nor quarantined.
    pub available: bool,
    /// What operators let onto it.
    #[schema(value_type = NodeGateWord)]
    pub gate: NodeGate,
    /// Why it gets no attempts until its worker has proven itself.
    pub suspended: Option<String>,
    /// Why it gets no attempts until an operator has looked at it.
    pub quarantined: Option<String>,
    /// Its last heartbeat.
    pub heard_time: Time,
    /// What it offers.
    pub capacity: NodeResources,
    /// What its attempts reserve.
    pub reserved: NodeResources,
    /// How many attempts it has.
    pub attempts: u32,
    /// The most it takes at a time.
    pub max_attempts: u32,
    /// What it is labelled with.
    pub labels: BTreeMap<String, String>,
    /// How it can isolate.
    #[schema(value_type = Vec<RuntimeWord>)]
    pub runtimes: Vec<Runtime>,
    /// `cgroup`, `pidns` or `subreaper`: what keeps a task's processes together there.
    pub containment: String,
    /// Its worker's version.
    pub version: String,
}

/// Amounts of a node, or of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeResources {
    /// Cores.
    pub cpu: Cores,
    /// Bytes.
    pub memory: Bytes,
}

impl From<Resources> for NodeResources {
    fn from(resources: Resources) -> Self {
        Self { cpu: Cores { milli: resources.cpu_milli }, memory: Bytes(resources.memory_bytes) }
    }
}
