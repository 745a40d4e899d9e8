//! What waits, and claiming it.

use std::collections::HashSet;
use std::sync::Arc;

use jobyard_model::node::NodeGate;
use jobyard_model::{JobSpec, Priority, Resources, SessionId, Status};
use jobyard_store::{Placement, Report, Verdict};
use uuid::Uuid;

use super::world::{Node, World, ann, exit, item, spec};

pub(crate) async fn no_job_is_claimed_twice(world: &World) {
    const JOBS: usize = 400;
    world.submit_many(JOBS, &spec()).await;
    let node = world.node().await;
    let mut claimers = Vec::new();
    for number in 0..8 {
        let store = if number % 2 == 0 { Arc::clone(&world.store) } else { world.dialect.another().await };
        let (node_id, session) = (node.id(), node.registration.session);
        claimers.push(tokio::spawn(async move {
            let mut claimed = Vec::new();
            loop {
                let heads = store.place_snapshot("default", 30, 30).await.unwrap().heads;
                if heads.is_empty() {
                    return claimed;
                }
                let place =
                    |head: &jobyard_model::QueueHead| Placement { job_id: head.job_id, node_id, session };
                claimed.extend(store.claim(heads.iter().map(place).collect()).await.unwrap());
            }
        }));
    }
    let mut claimed = Vec::new();
    for claimer in claimers {
        claimed.extend(claimer.await.unwrap());
    }
    let jobs: HashSet<_> = claimed.iter().map(|claim| claim.job_id).collect();
    let leases: HashSet<_> = claimed.iter().map(|claim| claim.lease_id).collect();
    assert_eq!((claimed.len(), jobs.len(), leases.len()), (JOBS, JOBS, JOBS));
    assert!(claimed.iter().all(|claim| claim.attempt == 1));
    assert_eq!(world.store.nodes().await.unwrap()[0].attempts as usize, JOBS);
}

pub(crate) async fn a_claim_names_only_what_waits(world: &World) {
    let node = world.node().await;
    let cancelled = world.submit(spec()).await;
    world.store.cancel(cancelled, &ann()).await.unwrap();
    let running = world.running(spec(), &node).await.job_id;
    let waiting = world.submit(spec()).await;
    let nobody = super::world::new_job_id();
    let claimed = world.claim(&[cancelled, running, waiting, waiting, nobody], &node).await;
    assert_eq!(claimed.iter().map(|claim| claim.job_id).collect::<Vec<_>>(), [waiting]);
}

pub(crate) async fn every_group_has_a_head(world: &World) {
    let resources = |cpu_milli| Resources { cpu_milli, ..Resources::DEFAULT };
    let mut wanted = HashSet::new();
    for owner in ["a", "b", "c"] {
        for priority in [5, 50, 95] {
            for cpu_milli in [100, 4_000] {
                let spec = JobSpec {
                    owner: owner.to_owned(),
                    priority: Priority::new(priority).unwrap(),
                    resources: resources(cpu_milli),
                    ..spec()
                };
                wanted.insert(world.submit_many(3, &spec).await[0]);
            }
        }
    }
    let snapshot = world.store.place_snapshot("default", 1, 1_000).await.unwrap();
    let heads: HashSet<_> = snapshot.heads.iter().map(|head| head.job_id).collect();
    assert_eq!(heads, wanted);
    assert!(snapshot.more);
    assert_eq!(snapshot.shapes.len(), 2);
    for head in &snapshot.heads {
        assert!(snapshot.shapes.contains_key(&head.shape_id));
    }
}

pub(crate) async fn one_job_of_b_behind_a_thousand_of_a(world: &World) {
    world.submit_many(1_000, &JobSpec { owner: "a".to_owned(), ..spec() }).await;
    let behind = world.submit(JobSpec { owner: "b".to_owned(), ..spec() }).await;
    let snapshot = world.store.place_snapshot("default", 16, 64).await.unwrap();
    assert!(snapshot.heads.iter().any(|head| head.job_id == behind));
    assert_eq!(snapshot.heads.len(), 17);
    assert!(snapshot.more);
}

pub(crate) async fn heads_come_in_order(world: &World) {
    let with = |priority| JobSpec { priority: Priority::new(priority).unwrap(), ..spec() };
    let low = world.submit_many(2, &with(41)).await;
    let high = world.submit_many(2, &with(59)).await;
    let other_lane = world.submit(with(60)).await;
    let snapshot = world.store.place_snapshot("default", 10, 100).await.unwrap();
    let order: Vec<_> = snapshot.heads.iter().map(|head| head.job_id).collect();
    assert_eq!(order, [high[0], high[1], low[0], low[1], other_lane]);
    assert!(!snapshot.more);
    assert!(snapshot.heads.iter().all(|head| head.wait_since <= snapshot.now));
}

pub(crate) async fn a_snapshot_knows_its_limits(world: &World) {
    world.submit_many(50, &spec()).await;
    let backing_off = world.node().await;
    let claimed = world.running(spec(), &backing_off).await;
    world.end(&claimed, exit(1)).await;
    let snapshot = world.store.place_snapshot("default", 20, 10).await.unwrap();
    assert_eq!((snapshot.heads.len(), snapshot.more), (10, true));
    assert_eq!(snapshot.nodes.len(), 1);
    assert_eq!(snapshot.nodes[0].node_id, backing_off.id());
    let snapshot = world.store.place_snapshot("default", 100, 1_000).await.unwrap();
    assert_eq!((snapshot.heads.len(), snapshot.more), (50, false));
    let nowhere = world.store.place_snapshot("nowhere", 20, 10).await.unwrap();
    assert!(nowhere.heads.is_empty() && nowhere.nodes.is_empty());
}

pub(crate) async fn a_closed_node_gets_no_claim(world: &World) {
    let node = world.node().await;
    let job_id = world.submit(spec()).await;
    let mut old = node.clone();
    old.registration.session = SessionId(Uuid::from_u128(404));
    let mut nobody = old.clone();
    nobody.registration.node_id = jobyard_model::NodeId(Uuid::from_u128(405));
    assert!(world.claim(&[job_id], &old).await.is_empty());
    assert!(world.claim(&[job_id], &nobody).await.is_empty());
    for gate in [NodeGate::Cordoned, NodeGate::Draining] {
        world.store.set_node_gate(node.id(), gate, &ann()).await.unwrap();
        assert!(world.claim(&[job_id], &node).await.is_empty());
    }
    world.store.set_node_gate(node.id(), NodeGate::Open, &ann()).await.unwrap();
    assert_eq!(world.claim(&[job_id], &node).await.len(), 1);
}

pub(crate) async fn a_thousand_jobs_in_one_claim_and_one_report(world: &World) {
    let node: Node = world.node().await;
    let jobs = world.submit_many(1_000, &spec()).await;
    let claimed = world.claim(&jobs, &node).await;
    assert_eq!(claimed.len(), 1_000);
    let items = claimed
        .iter()
        .flat_map(|claim| {
            [Report::Accepted, Report::Started, Report::Ended(exit(0))].map(|report| item(claim, report))
        })
        .collect();
    let answers = world.report_all(items).await;
    assert!(answers.iter().all(|answer| answer.verdict == Verdict::Accepted));
    let counts = world.store.summary().await.unwrap().counts;
    let success = counts.iter().find(|count| count.status == Status::Success).unwrap();
    assert_eq!(success.count, 1_000);
    assert_eq!(world.store.nodes().await.unwrap()[0].attempts, 0);
}
