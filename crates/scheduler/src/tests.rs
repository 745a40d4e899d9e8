//! Placement as stories: a world, a pass, what came of it.

use std::collections::{BTreeMap, HashMap};

use jobyard_model::node::NodeGate;
use jobyard_model::{
    JobId, NodeId, NodeState, Priority, QueueHead, Resources, Runtime, SessionId, Shape, ShapeId, Timestamp,
};
use proptest::prelude::*;
use uuid::Uuid;

use crate::*;

const NOW: Timestamp = Timestamp(1_000_000);

type Change = fn(&mut NodeState);

#[derive(Default)]
struct World {
    heads: Vec<QueueHead>,
    shapes: HashMap<ShapeId, Shape>,
    nodes: Vec<NodeState>,
    memory: PlanMemory,
}

impl World {
    fn node(mut self, id: u128, cores: u64) -> Self {
        self.nodes.push(NodeState {
            node_id: NodeId(Uuid::from_u128(id)),
            session: SessionId(Uuid::from_u128(id)),
            name: format!("node-{id}"),
            pool: "default".into(),
            capacity: Resources { cpu_milli: cores * 1000, memory_bytes: cores << 30 },
            max_attempts: 1000,
            labels: BTreeMap::new(),
            runtimes: vec![Runtime::Process],
            containment: "cgroup".into(),
            door: String::new(),
            version: String::new(),
            gate: NodeGate::Open,
            suspended: None,
            quarantined: None,
            heard_at: NOW,
            reserved: Resources::default(),
            attempts: 0,
        });
        self
    }

    fn change_node(mut self, change: impl Fn(&mut NodeState)) -> Self {
        change(self.nodes.last_mut().expect("a node"));
        self
    }

    /// Jobs of one (owner, priority) and size in cores, `waited_ms` old.
    fn jobs(mut self, count: usize, (owner_id, priority): (i32, u8), cores: u64, waited_ms: i64) -> Self {
        let shape_id = ShapeId(i32::try_from(cores).expect("small"));
        let resources = Resources { cpu_milli: cores * 1000, memory_bytes: 1 << 20 };
        let shape = Shape { resources, node_labels: BTreeMap::new(), runtime: Runtime::Process };
        self.shapes.insert(shape_id, shape);
        for _ in 0..count {
            self.heads.push(QueueHead {
                job_id: JobId(Uuid::from_u128(self.heads.len() as u128)),
                owner_id,
                shape_id,
                priority: Priority::new(priority).expect("0 to 100"),
                wait_since: Timestamp(NOW.0 - waited_ms),
                avoid_node: None,
            });
        }
        self
    }

    fn pass(&mut self) -> Plan {
        let snapshot =
            Snapshot { now: NOW, heads: &self.heads, shapes: &self.shapes, nodes: &self.nodes, limit: 1000 };
        plan(snapshot, &mut self.memory)
    }

    /// Places one job a pass, as on a node that frees one place at a time; returns the priorities or owners.
    fn one_at_a_time<T>(&mut self, passes: usize, of: impl Fn(&QueueHead) -> T) -> Vec<T> {
        let mut order = Vec::new();
        for _ in 0..passes {
            let chosen = self.pass().chosen[0];
            let index = self.heads.iter().position(|head| head.job_id == chosen.job_id).expect("a head");
            order.push(of(&self.heads.remove(index)));
        }
        order
    }
}

#[test]
fn higher_priority_goes_first_and_age_decides_between_equals() {
    let mut world =
        World::default().node(1, 1).jobs(3, (1, 1), 1, 300).jobs(2, (1, 9), 1, 10).jobs(2, (1, 5), 1, 20);
    let order = world.one_at_a_time(7, |head| (head.priority.value(), head.job_id.0.as_u128()));
    assert_eq!(order, [(9, 3), (9, 4), (5, 5), (5, 6), (1, 0), (1, 1), (1, 2)]);
}

#[test]
fn an_owner_with_one_late_job_is_served_in_the_next_turn() {
    let mut world = World::default().node(1, 1).jobs(1000, (1, 50), 1, 9000).jobs(1, (2, 50), 1, 0);
    let owners = world.one_at_a_time(3, |head| head.owner_id);
    assert!(owners[..2].contains(&2), "{owners:?}");
}

#[test]
fn a_flood_of_urgent_jobs_leaves_the_lowest_lane_its_share() {
    let mut world = World::default().node(1, 1).jobs(2000, (1, 90), 1, 0).jobs(100, (2, 10), 1, 0);
    let lanes = world.one_at_a_time(630, |head| head.priority.lane().value());
    let low = lanes.iter().filter(|lane| **lane == 0).count();
    assert!((25..=40).contains(&low), "3 of 63 shares of 630 placements are 30, got {low}");
}

#[test]
fn an_idle_lane_saves_nothing_up() {
    let mut world = World::default().node(1, 1).jobs(2000, (1, 90), 1, 0);
    world.one_at_a_time(1000, |_| ());
    let mut world = world.jobs(100, (2, 10), 1, 0);
    let lanes = world.one_at_a_time(21, |head| head.priority.lane().value());
    assert!(lanes.iter().filter(|lane| **lane == 0).count() <= 2, "{lanes:?}");
}

#[test]
fn a_shape_that_does_not_fit_hides_no_other() {
    let mut world = World::default().node(1, 4).jobs(5, (1, 99), 8, 0).jobs(4, (1, 50), 1, 0);
    let plan = world.pass();
    assert_eq!(plan.chosen.len(), 4);
    assert_eq!(plan.skipped, 5);
}

#[test]
fn a_big_job_that_waited_long_gets_a_node_kept_free() {
    let busy = |node: &mut NodeState| node.reserved = Resources { cpu_milli: 1000, memory_bytes: 0 };
    let mut young =
        World::default().node(1, 8).change_node(busy).jobs(1, (1, 100), 8, 14_999).jobs(200, (1, 1), 1, 0);
    assert_eq!(young.pass().chosen.len(), 7, "young: the small ones pass");
    let mut old =
        World::default().node(1, 8).change_node(busy).jobs(1, (1, 100), 8, 15_000).jobs(200, (1, 1), 1, 0);
    let plan = old.pass();
    assert_eq!((plan.chosen.len(), plan.reserved.len()), (0, 1), "old: nothing passes it");
}

#[test]
fn a_node_kept_free_is_not_kept_from_more_urgent_lanes() {
    let busy = |node: &mut NodeState| node.reserved = Resources { cpu_milli: 1000, memory_bytes: 0 };
    let mut world = World::default().node(1, 8).change_node(busy).jobs(1, (1, 90), 1, 0);
    assert_eq!(world.pass().chosen.len(), 1);
    // From now on it is the other lane's turn first.
    let mut world = world.jobs(1, (2, 50), 8, 3_600_000).jobs(1, (1, 90), 1, 0).jobs(9, (3, 30), 1, 0);
    let plan = world.pass();
    assert_eq!(plan.reserved.len(), 1);
    assert!(!plan.chosen.is_empty(), "the urgent ones pass");
    let lane_of =
        |chosen: &Chosen| world.heads.iter().find(|head| head.job_id == chosen.job_id).unwrap().priority;
    assert!(plan.chosen.iter().all(|chosen| lane_of(chosen).value() == 90), "and nobody else");
}

#[test]
fn a_node_is_kept_for_the_most_urgent_lane_that_waits_long() {
    let busy = |node: &mut NodeState| node.reserved = Resources { cpu_milli: 1000, memory_bytes: 0 };
    let mut world = World::default().node(1, 8).change_node(busy).jobs(1, (1, 90), 1, 0);
    world.pass();
    let mut world =
        world.jobs(1, (2, 50), 8, 3_600_000).jobs(1, (1, 95), 8, 3_600_000).jobs(9, (3, 70), 1, 0);
    let plan = world.pass();
    let kept_for = plan.reserved.last().map(|(_, job_id)| *job_id);
    let urgent = world.heads.iter().find(|head| head.priority.value() == 95).map(|head| head.job_id);
    assert_eq!(kept_for, urgent);
    assert!(plan.chosen.iter().all(|chosen| Some(chosen.job_id) != urgent));
}

#[test]
fn the_fullest_node_that_fits_is_chosen() {
    let half = |node: &mut NodeState| node.reserved = Resources { cpu_milli: 2000, memory_bytes: 2 << 30 };
    let mut world = World::default().node(1, 4).node(2, 4).change_node(half).jobs(1, (1, 50), 1, 0);
    assert_eq!(world.pass().chosen[0].node_id, NodeId(Uuid::from_u128(2)));
}

#[test]
fn a_retry_prefers_another_node_and_takes_the_same_one_rather_than_none() {
    let mut world = World::default().node(1, 1).node(2, 4).jobs(1, (1, 50), 1, 0);
    world.heads[0].avoid_node = Some(NodeId(Uuid::from_u128(1)));
    assert_eq!(world.pass().chosen[0].node_id, NodeId(Uuid::from_u128(2)));
    world.nodes.pop();
    assert_eq!(world.pass().chosen[0].node_id, NodeId(Uuid::from_u128(1)));
}

#[test]
fn every_obstacle_keeps_jobs_off_and_is_named() {
    let cases: [(Change, &str, &str); 8] = [
        (|node| node.gate = NodeGate::Cordoned, "no_open_node", "is cordoned"),
        (|node| node.gate = NodeGate::Draining, "no_open_node", "is being drained"),
        (|node| node.suspended = Some("x".into()), "no_open_node", "is suspended: x"),
        (|node| node.quarantined = Some("y".into()), "no_open_node", "is quarantined: y"),
        (|node| node.heard_at = Timestamp(NOW.0 - 15_001), "no_open_node", "has not been heard of lately"),
        (|node| node.attempts = 1000, "no_capacity", "has no attempts left"),
        (|node| node.runtimes.clear(), "never_fits", "can't isolate with the wanted runtime"),
        (|node| node.capacity.memory_bytes = 0, "never_fits", "has too little memory even when empty"),
    ];
    for (change, reason, words) in cases {
        let mut world = World::default().node(1, 4).change_node(change).jobs(1, (1, 50), 1, 0);
        assert!(world.pass().chosen.is_empty(), "{words}");
        let why = why_waiting(&world.shapes[&ShapeId(1)], &world.nodes, NOW);
        let obstacle = why.nodes[0].obstacle.as_ref().expect("an obstacle");
        assert_eq!((why.reason, obstacle.describe().as_str()), (reason, words));
    }
}

#[test]
fn why_speaks_of_labels_and_of_an_empty_pool() {
    let mut world = World::default().node(1, 4).jobs(1, (1, 50), 1, 0);
    let shape = world.shapes.get_mut(&ShapeId(1)).expect("the shape");
    shape.node_labels.insert("disk".into(), "fast".into());
    let why = why_waiting(&world.shapes[&ShapeId(1)], &world.nodes, NOW);
    assert_eq!(why.nodes[0].obstacle.as_ref().expect("one").describe(), "lacks the label disk=fast");
    assert_eq!(why_waiting(&world.shapes[&ShapeId(1)], &[], NOW).reason, "no_nodes");
}

proptest! {
    /// Whatever the world: no job twice, no node over its capacity, and the same plan from the same input.
    #[test]
    fn plans_keep_to_capacity_and_are_repeatable(
        jobs in prop::collection::vec((0_i32..4, 0_u8..=100, 1_u64..6, 0_i64..40_000), 0..60),
        nodes in prop::collection::vec(1_u64..12, 0..6),
    ) {
        let build = || {
            let world = nodes.iter().zip(1..).fold(World::default(), |world, (cores, id)| world.node(id, *cores));
            jobs.iter().fold(world, |world, (owner, priority, cores, age)| world.jobs(1, (*owner, *priority), *cores, *age))
        };
        let (mut world, mut again) = (build(), build());
        let plan = world.pass();
        prop_assert_eq!(&plan, &again.pass());
        let mut used: HashMap<NodeId, u64> = HashMap::new();
        let mut seen = std::collections::HashSet::new();
        for chosen in &plan.chosen {
            prop_assert!(seen.insert(chosen.job_id));
            let head = world.heads.iter().find(|head| head.job_id == chosen.job_id).expect("a head");
            *used.entry(chosen.node_id).or_default() += world.shapes[&head.shape_id].resources.cpu_milli;
        }
        for node in &world.nodes {
            prop_assert!(used.get(&node.node_id).copied().unwrap_or(0) <= node.capacity.cpu_milli);
        }
        // Work conserving: with nothing kept free, no head is left that would still fit somewhere.
        if plan.reserved.is_empty() {
            for head in world.heads.iter().filter(|head| !seen.contains(&head.job_id)) {
                let wanted = world.shapes[&head.shape_id].resources.cpu_milli;
                let fits = world.nodes.iter().any(|node| {
                    used.get(&node.node_id).copied().unwrap_or(0) + wanted <= node.capacity.cpu_milli
                });
                prop_assert!(!fits);
            }
        }
    }
}
