//! Whether a shape can be placed on a node, and if not, what stands in the way.

use jobyard_model::node::NodeGate;
use jobyard_model::placement::NODE_HEARD_WITHIN_MS;
use jobyard_model::{NodeState, Resources, Shape, Timestamp};

/// What keeps a shape off a node. The order is that of the checks: what can't change by itself comes last to be
/// said only when nothing else stands in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// The node can't isolate in the wanted way.
    Runtime,
    /// The node lacks a wanted label.
    Label {
        /// The label's key.
        key: String,
        /// The value that is wanted.
        wanted: String,
    },
    /// The node could not hold the shape even if it were empty.
    TooSmall {
        /// `cpu` or `memory`.
        resource: &'static str,
    },
    /// No heartbeat lately.
    NotHeard,
    /// An operator wants no attempts here.
    Cordoned,
    /// An operator wants the node empty.
    Draining,
    /// It failed to start attempts and has not proven itself since.
    Suspended(String),
    /// Two machines claim to be this node.
    Quarantined(String),
    /// What it has is reserved by un-ended attempts.
    Full {
        /// `cpu`, `memory` or `attempts`.
        resource: &'static str,
    },
    /// It is kept free for a job that has waited long.
    Reserved,
}

impl Obstacle {
    /// Whether the node can never hold the shape, however long one waits.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        matches!(self, Self::Runtime | Self::Label { .. } | Self::TooSmall { .. })
    }

    /// In words, for people.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Runtime => "can't isolate with the wanted runtime".to_owned(),
            Self::Label { key, wanted } => format!("lacks the label {key}={wanted}"),
            Self::TooSmall { resource } => format!("has too little {resource} even when empty"),
            Self::NotHeard => "has not been heard of lately".to_owned(),
            Self::Cordoned => "is cordoned".to_owned(),
            Self::Draining => "is being drained".to_owned(),
            Self::Suspended(why) => format!("is suspended: {why}"),
            Self::Quarantined(why) => format!("is quarantined: {why}"),
            Self::Full { resource } => format!("has no {resource} left"),
            Self::Reserved => "is kept free for a job that has waited long".to_owned(),
        }
    }
}

/// The first obstacle between a shape and a node; `None`: it fits now. Lasting ones come first.
#[must_use]
pub fn obstacle(shape: &Shape, node: &NodeState, now: Timestamp) -> Option<Obstacle> {
    lasting(shape, node).or_else(|| closed(node, now)).or_else(|| full(shape.resources, node))
}

fn lasting(shape: &Shape, node: &NodeState) -> Option<Obstacle> {
    if !node.runtimes.contains(&shape.runtime) {
        return Some(Obstacle::Runtime);
    }
    let lacking = shape.node_labels.iter().find(|(key, wanted)| node.labels.get(*key) != Some(*wanted));
    if let Some((key, wanted)) = lacking {
        return Some(Obstacle::Label { key: key.clone(), wanted: wanted.clone() });
    }
    short_of(node.capacity, shape.resources).map(|resource| Obstacle::TooSmall { resource })
}

fn closed(node: &NodeState, now: Timestamp) -> Option<Obstacle> {
    if now.ms_since(node.heard_at) > NODE_HEARD_WITHIN_MS {
        return Some(Obstacle::NotHeard);
    }
    if let Some(why) = &node.quarantined {
        return Some(Obstacle::Quarantined(why.clone()));
    }
    match node.gate {
        NodeGate::Cordoned => return Some(Obstacle::Cordoned),
        NodeGate::Draining => return Some(Obstacle::Draining),
        NodeGate::Open => {}
    }
    node.suspended.clone().map(Obstacle::Suspended)
}

fn full(wanted: Resources, node: &NodeState) -> Option<Obstacle> {
    if node.attempts >= node.max_attempts {
        return Some(Obstacle::Full { resource: "attempts" });
    }
    short_of(node.capacity.minus(node.reserved), wanted).map(|resource| Obstacle::Full { resource })
}

fn short_of(offered: Resources, wanted: Resources) -> Option<&'static str> {
    if wanted.memory_bytes > offered.memory_bytes {
        Some("memory")
    } else if wanted.cpu_milli > offered.cpu_milli {
        Some("cpu")
    } else {
        None
    }
}
