//! The plan of a pass.

use std::collections::{BTreeMap, HashMap};

use jobyard_model::{JobId, Lane, NodeId, NodeState, QueueHead, SessionId, Shape, ShapeId, Timestamp};

use crate::feasible::{Obstacle, obstacle};
use crate::memory::PlanMemory;

/// How long a head waits while smaller jobs pass before a node is kept free for it (design §3).
pub(crate) const RESERVE_AFTER_MS: u64 = 15_000;

/// What a pass plans on.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    /// The datastore's clock.
    pub now: Timestamp,
    /// The heads of every (lane, owner, shape).
    pub heads: &'a [QueueHead],
    /// The shapes of the heads.
    pub shapes: &'a HashMap<ShapeId, Shape>,
    /// The pool's nodes.
    pub nodes: &'a [NodeState],
    /// The most placements of the pass.
    pub limit: usize,
}

/// A job and the node chosen for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen {
    /// Which.
    pub job_id: JobId,
    /// Where.
    pub node_id: NodeId,
    /// The node's session.
    pub session: SessionId,
}

/// What a pass decided.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// In the order decided.
    pub chosen: Vec<Chosen>,
    /// Nodes kept free, each for the job named; the last one holds.
    pub reserved: Vec<(NodeId, JobId)>,
    /// Heads whose group was given up in this pass, since the first of them fits nowhere now.
    pub skipped: usize,
}

/// Chooses nodes for waiting jobs (design §3, "Placement"): lanes share the placements of a pass and spill over;
/// inside a lane higher priority goes first, then the owner served longest ago, then age, then id. A shape that does
/// not fit gives up its own group's turn and hides no other. Among feasible nodes the best fit wins, another node than
/// the one that failed last is preferred, and the lowest id breaks ties.
#[must_use]
pub fn plan(snapshot: Snapshot<'_>, memory: &mut PlanMemory) -> Plan {
    let mut queues = Queues::new(snapshot.heads);
    memory.start_pass(|lane| queues.has(lane));
    let mut nodes = snapshot.nodes.to_vec();
    nodes.sort_by_key(|node| node.node_id);
    let mut desk = Desk { now: snapshot.now, nodes, kept: BTreeMap::new() };
    let mut plan = Plan::default();
    while plan.chosen.len() < snapshot.limit {
        let Some(lane) = memory.next_lane(|lane| queues.has(lane)) else { break };
        let Some(head) = queues.next(lane, memory) else { break };
        let Some(shape) = snapshot.shapes.get(&head.shape_id) else {
            plan.skipped += queues.give_up(lane, &head);
            continue;
        };
        match desk.place(&head, shape) {
            Some(chosen) => {
                queues.take(lane, &head);
                memory.served(lane, head.owner_id);
                plan.chosen.push(chosen);
            }
            None => {
                plan.reserved.extend(desk.keep_free(&head, shape).map(|node_id| (node_id, head.job_id)));
                plan.skipped += queues.give_up(lane, &head);
            }
        }
    }
    plan
}

/// The nodes with what the plan has put on them so far.
struct Desk {
    now: Timestamp,
    nodes: Vec<NodeState>,
    /// Nodes kept free, each for a head of this lane.
    kept: BTreeMap<NodeId, Lane>,
}

impl Desk {
    fn place(&mut self, head: &QueueHead, shape: &Shape) -> Option<Chosen> {
        let now = self.now;
        let lane = head.priority.lane();
        let is_kept =
            |node: &NodeState| self.kept.get(&node.node_id).is_some_and(|kept_for| lane <= *kept_for);
        let node = self
            .nodes
            .iter_mut()
            .filter(|node| !is_kept(node) && obstacle(shape, node, now).is_none())
            .min_by_key(|node| {
                (head.avoid_node == Some(node.node_id), room_left(shape, node), node.node_id)
            })?;
        node.reserved = node.reserved.plus(shape.resources);
        node.attempts += 1;
        Some(Chosen { job_id: head.job_id, node_id: node.node_id, session: node.session })
    }

    /// Keeps the emptiest node that could hold the shape free for a head that has waited long; one a pass, for the
    /// head of the most urgent lane that comes first. It is kept from that lane and those below: when a node that is
    /// never empty enough were kept from urgent jobs as well, they would wait for as long as that lasts.
    fn keep_free(&mut self, head: &QueueHead, shape: &Shape) -> Option<NodeId> {
        let lane = head.priority.lane();
        let is_outdone = self.kept.values().any(|kept_for| lane <= *kept_for);
        if is_outdone || self.now.ms_since(head.wait_since) < RESERVE_AFTER_MS {
            return None;
        }
        let only_full =
            |node: &&NodeState| matches!(obstacle(shape, node, self.now), Some(Obstacle::Full { .. }));
        let node = self.nodes.iter().filter(only_full).max_by_key(|node| {
            let free = node.capacity.minus(node.reserved);
            (
                thousandths(free.cpu_milli, shape.resources.cpu_milli).min(1000),
                std::cmp::Reverse(node.node_id),
            )
        })?;
        self.kept = BTreeMap::from([(node.node_id, lane)]);
        Some(node.node_id)
    }
}

/// What would be left of the node, as the sum of each resource's share in thousandths: the less, the better the fit.
fn room_left(shape: &Shape, node: &NodeState) -> u64 {
    let left = node.capacity.minus(node.reserved).minus(shape.resources);
    thousandths(left.cpu_milli, node.capacity.cpu_milli)
        + thousandths(left.memory_bytes, node.capacity.memory_bytes)
}

fn thousandths(part: u64, whole: u64) -> u64 {
    let share = u128::from(part) * 1000 / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// The heads, by lane and group, each group in its own order.
struct Queues {
    lanes: [Vec<Group>; 5],
}

/// The heads of one (owner, shape) in one lane, the next one last.
struct Group {
    owner_id: i32,
    shape_id: ShapeId,
    heads: Vec<QueueHead>,
}

impl Queues {
    fn new(heads: &[QueueHead]) -> Self {
        let mut groups: BTreeMap<(Lane, i32, ShapeId), Vec<QueueHead>> = BTreeMap::new();
        for head in heads {
            groups.entry((head.priority.lane(), head.owner_id, head.shape_id)).or_default().push(*head);
        }
        let mut lanes: [Vec<Group>; 5] = Default::default();
        for ((lane, owner_id, shape_id), mut heads) in groups {
            heads.sort_by_key(|head| std::cmp::Reverse(urgency(head)));
            lanes[usize::from(lane.value())].push(Group { owner_id, shape_id, heads });
        }
        Self { lanes }
    }

    fn has(&self, lane: Lane) -> bool {
        !self.lanes[usize::from(lane.value())].is_empty()
    }

    /// The head whose turn it is in this lane.
    fn next(&self, lane: Lane, memory: &PlanMemory) -> Option<QueueHead> {
        let firsts = self.lanes[usize::from(lane.value())].iter().filter_map(|group| group.heads.last());
        let turn = |head: &&QueueHead| {
            let priority = std::cmp::Reverse(head.priority);
            (priority, memory.turn_of(head.owner_id), head.wait_since, head.job_id)
        };
        firsts.min_by_key(turn).copied()
    }

    /// Removes the head that was placed.
    fn take(&mut self, lane: Lane, head: &QueueHead) {
        let groups = &mut self.lanes[usize::from(lane.value())];
        if let Some(group) = groups.iter_mut().find(|group| group.is_of(head)) {
            group.heads.pop();
        }
        groups.retain(|group| !group.heads.is_empty());
    }

    /// Removes the whole group: what doesn't fit for its first doesn't fit for the others. Returns how many.
    fn give_up(&mut self, lane: Lane, head: &QueueHead) -> usize {
        let groups = &mut self.lanes[usize::from(lane.value())];
        let Some(index) = groups.iter().position(|group| group.is_of(head)) else { return 0 };
        groups.remove(index).heads.len()
    }
}

impl Group {
    fn is_of(&self, head: &QueueHead) -> bool {
        self.owner_id == head.owner_id && self.shape_id == head.shape_id
    }
}

fn urgency(head: &QueueHead) -> (std::cmp::Reverse<u8>, Timestamp, JobId) {
    (std::cmp::Reverse(head.priority.value()), head.wait_since, head.job_id)
}
