//! What placement sees: the heads of the queues, the shapes they have, and the nodes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::node::NodeGate;
use crate::{JobId, NodeId, Priority, Resources, Runtime, SessionId, Timestamp};

/// A shape's number in the datastore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShapeId(pub i32);

/// What placement needs to know of a job. Jobs of one shape fit or don't fit together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Shape {
    /// What is reserved on the node.
    pub resources: Resources,
    /// What the node must be labelled with.
    pub node_labels: BTreeMap<String, String>,
    /// How the task process is isolated.
    pub runtime: Runtime,
}

/// A waiting job near the front of its (lane, owner, shape).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueHead {
    /// Which.
    pub job_id: JobId,
    /// The owner's number in the datastore.
    pub owner_id: i32,
    /// What it needs.
    pub shape_id: ShapeId,
    /// How urgent it is; gives the lane.
    pub priority: Priority,
    /// Its age in the queue.
    pub wait_since: Timestamp,
    /// Where it ended badly last time.
    pub avoid_node: Option<NodeId>,
}

/// A node, as the datastore knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeState {
    /// Which.
    pub node_id: NodeId,
    /// The newest session.
    pub session: SessionId,
    /// The host name, shown to people.
    pub name: String,
    /// The pool it serves.
    pub pool: String,
    /// What it offers.
    pub capacity: Resources,
    /// The most attempts at a time.
    pub max_attempts: u32,
    /// What it is labelled with.
    pub labels: BTreeMap<String, String>,
    /// How it can isolate.
    pub runtimes: Vec<Runtime>,
    /// What keeps a task's processes together there.
    pub containment: String,
    /// Where to push to; empty when worker and informer are one process.
    pub door: String,
    /// The worker's version.
    pub version: String,
    /// Whether an operator lets attempts onto it.
    pub gate: NodeGate,
    /// Why it takes no attempts until its worker has proven itself.
    pub suspended: Option<String>,
    /// Why it takes no attempts until an operator has looked at it.
    pub quarantined: Option<String>,
    /// The last node heartbeat, by the datastore's clock.
    pub heard_at: Timestamp,
    /// What un-ended attempts on it add up to.
    pub reserved: Resources,
    /// How many un-ended attempts it has.
    pub attempts: u32,
}

/// How long after its last heartbeat a node still gets attempts: three node heartbeats of 5 s.
pub const NODE_HEARD_WITHIN_MS: u64 = 15_000;
