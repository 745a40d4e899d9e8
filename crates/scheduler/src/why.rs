//! Why a waiting job isn't running yet, and what would change that.

use jobyard_model::{NodeId, NodeState, Shape, Timestamp};

use crate::feasible::{Obstacle, obstacle};

/// Why a job of a shape waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhyWaiting {
    /// A stable word: `no_nodes`, `never_fits`, `no_open_node`, `no_capacity`, `next_in_turn`.
    pub reason: &'static str,
    /// In words.
    pub summary: String,
    /// What would change it, in words.
    pub remedy: String,
    /// What stands in the way on each node.
    pub nodes: Vec<NodeWhy>,
}

/// What stands between a shape and one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeWhy {
    /// Which.
    pub node_id: NodeId,
    /// The host name.
    pub name: String,
    /// `None`: it fits here now.
    pub obstacle: Option<Obstacle>,
}

/// Looks at the nodes of the job's pool one by one and says what they add up to.
#[must_use]
pub fn why_waiting(shape: &Shape, nodes: &[NodeState], now: Timestamp) -> WhyWaiting {
    let nodes: Vec<NodeWhy> = nodes
        .iter()
        .map(|node| NodeWhy {
            node_id: node.node_id,
            name: node.name.clone(),
            obstacle: obstacle(shape, node, now),
        })
        .collect();
    let (reason, summary, remedy) = sum_up(&nodes);
    WhyWaiting { reason, summary, remedy: remedy.to_owned(), nodes }
}

fn sum_up(nodes: &[NodeWhy]) -> (&'static str, String, &'static str) {
    let count = nodes.len();
    let with = |wanted: fn(&Obstacle) -> bool| {
        nodes.iter().filter(|node| node.obstacle.as_ref().is_some_and(wanted)).count()
    };
    if count == 0 {
        let remedy = "start a worker for this pool";
        return ("no_nodes", "the pool has no nodes".to_owned(), remedy);
    }
    if nodes.iter().any(|node| node.obstacle.is_none()) {
        return ("next_in_turn", "a node has room; it is placed in its turn, unless that node is kept free for one that has waited longer".to_owned(), "nothing to do");
    }
    if with(Obstacle::is_lasting) == count {
        let summary = format!("no node that exists could ever hold it ({count} looked at)");
        return (
            "never_fits",
            summary,
            "ask for less, drop a node label, or add a node that has what it asks for",
        );
    }
    let full = with(|obstacle| matches!(obstacle, Obstacle::Full { .. } | Obstacle::Reserved));
    if full > 0 {
        let summary = format!("{full} of {count} nodes could hold it but have no room now");
        return ("no_capacity", summary, "wait for running jobs to end, or add a node");
    }
    let summary = format!("none of the {count} nodes that could hold it takes jobs now");
    ("no_open_node", summary, "uncordon a node, or look at the nodes' workers")
}
