//! Nodes, pools, and what passes between informer and datastore about them.

use std::collections::HashMap;

use jobyard_model::node::NodeGate;
use jobyard_model::{
    Intent, JobId, JobSpec, LeaseId, NodeId, NodeState, QueueHead, SessionId, Shape, ShapeId, Timestamp,
};

/// A pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolRecord {
    /// Its name.
    pub name: String,
    /// By the datastore's clock.
    pub created_at: Timestamp,
}

/// What became of a registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegisterAnswer {
    /// The session is the newest; how many attempts of an older boot were ended with it.
    Welcome {
        /// Attempts proven gone.
        ended: u64,
    },
    /// A newer session of this node has registered since.
    Superseded,
    /// No such pool; pools don't come to exist by a node's word.
    UnknownPool {
        /// The pools there are.
        known: Vec<String>,
    },
}

/// A sign of life of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeHeartbeat {
    /// Which.
    pub node_id: NodeId,
    /// Its session.
    pub session: SessionId,
    /// Fresh and random; launches name a recent one once they cross hosts.
    pub nonce: u64,
    /// The worker ran `/bin/true` through a sidecar since it was told that it is suspended.
    pub proven: bool,
}

/// What became of a node heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeartbeatAnswer {
    /// Noted.
    Heard {
        /// Why the node gets no attempts; prove it with a probe.
        suspended: Option<String>,
        /// What operators let onto it.
        gate: NodeGate,
    },
    /// A newer session of this node exists: this worker must not go on.
    Superseded,
    /// The datastore doesn't know the node: register again.
    Unknown,
}

/// What a placement pass plans on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlaceSnapshot {
    /// The datastore's clock.
    pub now: Timestamp,
    /// Sorted by lane, owner, shape, then priority (more urgent first), age and id.
    pub heads: Vec<QueueHead>,
    /// The shapes of the heads.
    pub shapes: HashMap<ShapeId, Shape>,
    /// The pool's nodes, by id.
    pub nodes: Vec<NodeState>,
    /// Some group has more heads than were read.
    pub more: bool,
}

/// A job and the node chosen for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    /// Which.
    pub job_id: JobId,
    /// Where.
    pub node_id: NodeId,
    /// The node's session.
    pub session: SessionId,
}

/// An attempt that is durable in phase `placed` and may be pushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// Which job.
    pub job_id: JobId,
    /// Its number.
    pub attempt: u32,
    /// The fence.
    pub lease_id: LeaseId,
    /// Where.
    pub node_id: NodeId,
    /// The node's session.
    pub session: SessionId,
    /// All the worker needs.
    pub spec: JobSpec,
}

/// An attempt that surely never started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotStarted {
    /// Which job.
    pub job_id: JobId,
    /// The fence.
    pub lease_id: LeaseId,
    /// The refusal, or what became of the connect.
    pub why: String,
}

/// A live attempt that is wanted to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopOrder {
    /// Which job.
    pub job_id: JobId,
    /// Its number.
    pub attempt: u32,
    /// The fence.
    pub lease_id: LeaseId,
    /// Where.
    pub node_id: NodeId,
    /// The node's newest session, not the one it was placed for.
    pub session: SessionId,
    /// Where to push to.
    pub door: String,
    /// `Evict`, `Stop` or `Cancel`.
    pub intent: Intent,
    /// Between TERM and KILL.
    pub grace_ms: u64,
}
