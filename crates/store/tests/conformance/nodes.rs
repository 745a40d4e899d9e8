//! Nodes and pools.

use jobyard_model::node::{NodeGate, SUSPEND_AFTER};
use jobyard_model::{
    AttemptEnd, EndedBy, Exit, Intent, JobState, NodeId, Outcome, Resources, SessionId, Status,
};
use jobyard_store::{Control, HeartbeatAnswer, NodeHeartbeat, NotStarted, RegisterAnswer, Report, Verdict};
use uuid::Uuid;

use super::world::{Node, World, ann, exit, exit_with, item, spec, unique};

fn heartbeat(node: &Node) -> NodeHeartbeat {
    NodeHeartbeat { node_id: node.id(), session: node.registration.session, nonce: unique(), proven: false }
}

async fn beat(world: &World, node: &Node) -> HeartbeatAnswer {
    world.store.heartbeat_node(heartbeat(node)).await.unwrap()
}

fn restarted(node: &Node) -> Node {
    let mut again = node.clone();
    again.registration.session = SessionId(Uuid::from_u128(u128::from(unique()) << 64 | 9));
    again
}

async fn register(world: &World, node: &Node) -> RegisterAnswer {
    world.store.register_node(&node.registration).await.unwrap()
}

pub(crate) async fn a_node_registers_and_is_heard(world: &World) {
    let node = world.node().await;
    let state = world.store.nodes().await.unwrap().remove(0);
    let registration = &node.registration;
    assert_eq!((state.node_id, state.session), (registration.node_id, registration.session));
    assert_eq!(
        (&state.name, &state.pool, &state.door),
        (&registration.name, &registration.pool, &registration.door)
    );
    assert_eq!((state.capacity, state.max_attempts), (registration.capacity, registration.max_attempts));
    assert_eq!((&state.labels, &state.runtimes), (&registration.labels, &registration.runtimes));
    assert_eq!((state.gate, state.suspended, state.quarantined), (NodeGate::Open, None, None));
    assert_eq!(state.reserved, Resources::default());

    world.pass(60_000).await;
    assert_eq!(beat(world, &node).await, HeartbeatAnswer::Heard { suspended: None, gate: NodeGate::Open });
    let heard_again = world.store.nodes().await.unwrap()[0].heard_at;
    let now = world.store.now().await.unwrap();
    assert!(now.ms_since(heard_again) < 30_000);
    let mut nobody = node.clone();
    nobody.registration.node_id = NodeId(Uuid::from_u128(1));
    assert_eq!(beat(world, &nobody).await, HeartbeatAnswer::Unknown);
    nobody.registration.pool = "nowhere".to_owned();
    let known = vec!["default".to_owned()];
    assert_eq!(register(world, &nobody).await, RegisterAnswer::UnknownPool { known });
    assert_eq!(world.store.nodes().await.unwrap().len(), 1);
}

pub(crate) async fn the_newest_session_wins(world: &World) {
    let old = world.node().await;
    let claimed = world.running(spec(), &old).await;
    assert_eq!(register(world, &old).await, RegisterAnswer::Welcome { ended: 0 });
    let new = restarted(&old);
    assert_eq!(register(world, &new).await, RegisterAnswer::Welcome { ended: 0 });
    assert_eq!(register(world, &new).await, RegisterAnswer::Welcome { ended: 0 });
    assert_eq!(register(world, &old).await, RegisterAnswer::Superseded);
    assert_eq!(beat(world, &old).await, HeartbeatAnswer::Superseded);
    assert!(matches!(beat(world, &new).await, HeartbeatAnswer::Heard { .. }));
    assert_eq!(world.store.nodes().await.unwrap().len(), 1);
    // The same boot: its sidecars live, and the new session speaks for them.
    assert_eq!(world.report(&claimed, Report::Renewed).await, Verdict::Accepted);
}

pub(crate) async fn a_new_boot_proves_the_old_one_gone(world: &World) {
    let node = world.node().await;
    let other = world.node().await;
    let gone = world.running(spec(), &node).await;
    let cancelled = world.running(spec(), &node).await;
    let elsewhere = world.running(spec(), &other).await;
    assert_eq!(world.store.cancel(cancelled.job_id, &ann()).await.unwrap(), Control::Done);
    let mut booted = restarted(&node);
    booted.registration.boot_id = "another boot".to_owned();
    assert_eq!(register(world, &booted).await, RegisterAnswer::Welcome { ended: 2 });
    assert_eq!(register(world, &booted).await, RegisterAnswer::Welcome { ended: 0 });
    let record = world.job(gone.job_id).await;
    assert_eq!((record.job.status(), record.job.accounts.platform_failures), (Status::Retry, 1));
    assert!(matches!(record.last_end, Some((1, Outcome::Lost, AttemptEnd::Vanished { .. }))));
    assert_eq!(world.status(cancelled.job_id).await, Status::Cancelled);
    assert_eq!(world.status(elsewhere.job_id).await, Status::Running);
    assert_eq!(world.end(&gone, exit(0)).await, Verdict::Stale);
}

pub(crate) async fn two_boots_that_take_turns_are_quarantined(world: &World) {
    let first = world.node().await;
    let mut second = restarted(&first);
    second.registration.boot_id = "another boot".to_owned();
    register(world, &second).await;
    let running = world.running(spec(), &second).await;
    let mut third = restarted(&first);
    third.registration.boot_id.clone_from(&first.registration.boot_id);
    assert_eq!(register(world, &third).await, RegisterAnswer::Welcome { ended: 0 });
    assert!(world.store.nodes().await.unwrap()[0].quarantined.is_some());
    // Neither proves anything about the other's attempts.
    assert_eq!(world.status(running.job_id).await, Status::Running);
    let job_id = world.submit(spec()).await;
    assert!(world.claim(&[job_id], &third).await.is_empty());
    world.store.set_node_gate(first.id(), NodeGate::Open, &ann()).await.unwrap();
    assert_eq!(world.store.nodes().await.unwrap()[0].quarantined, None);
    assert_eq!(world.claim(&[job_id], &third).await.len(), 1);
}

pub(crate) async fn claim_leases_that_run_out_suspend_a_node(world: &World) {
    let node = world.node().await;
    world.settle().await;
    let jobs = world.submit_many(SUSPEND_AFTER as usize, &spec()).await;
    let claims = world.claim(&jobs, &node).await;
    // The first four: two fall silent, two fail to launch.
    let fault = || exit_with(EndedBy::Itself, Exit::LaunchFault, "no fork");
    world.end(&claims[0], fault()).await;
    world.end(&claims[1], fault()).await;
    assert_eq!(suspended(world).await, None);
    world.pass_in_service(15_000).await;
    assert_eq!(world.store.expire_silent(100).await.unwrap().expired, 3);
    assert!(suspended(world).await.is_some());
    let HeartbeatAnswer::Heard { suspended: Some(_), .. } = beat(world, &node).await else { panic!() };
    let job_id = world.submit(spec()).await;
    assert!(world.claim(&[job_id], &node).await.is_empty());

    let proven = NodeHeartbeat { proven: true, ..heartbeat(&node) };
    let answer = world.store.heartbeat_node(proven).await.unwrap();
    assert_eq!(answer, HeartbeatAnswer::Heard { suspended: None, gate: NodeGate::Open });
    let claimed = world.claim(&[job_id], &node).await.remove(0);
    world.report(&claimed, Report::Started).await;
    world.end(&claimed, fault()).await;
    assert_eq!(suspended(world).await, None);
}

/// A worker that was killed with claims in flight: those run out, and the one after it is not blamed.
pub(crate) async fn claims_of_a_worker_that_is_gone_suspend_no_node(world: &World) {
    let node = world.node().await;
    world.settle().await;
    let jobs = world.submit_many(20, &spec()).await;
    assert_eq!(world.claim(&jobs, &node).await.len(), 20);
    let again = restarted(&node);
    assert!(matches!(register(world, &again).await, RegisterAnswer::Welcome { .. }));
    world.pass_in_service(15_000).await;
    assert_eq!(world.store.expire_silent(100).await.unwrap().expired, 20);
    assert_eq!(suspended(world).await, None);
    beat(world, &again).await;
    world.placed(spec(), &again).await;
}

async fn suspended(world: &World) -> Option<String> {
    world.store.nodes().await.unwrap().remove(0).suspended
}

pub(crate) async fn refusals_do_not_suspend_a_node(world: &World) {
    let node = world.node().await;
    let jobs = world.submit_many(10, &spec()).await;
    let claims = world.claim(&jobs, &node).await;
    let refuse = |claim: &jobyard_store::Claimed| NotStarted {
        job_id: claim.job_id,
        lease_id: claim.lease_id,
        why: "full".to_owned(),
    };
    assert_eq!(world.store.end_not_started(claims.iter().map(refuse).collect()).await.unwrap(), 10);
    assert_eq!(suspended(world).await, None);

    // A start between failures begins the count anew.
    let fault = || Report::Ended(exit_with(EndedBy::Itself, Exit::LaunchFault, "no fork"));
    for _ in 0..2 {
        for _ in 1..SUSPEND_AFTER {
            let claimed = world.placed(spec(), &node).await;
            world.report_all(vec![item(&claimed, fault())]).await;
        }
        world.running(spec(), &node).await;
    }
    assert_eq!(suspended(world).await, None);
}

pub(crate) async fn a_drain_evicts(world: &World) {
    let node = world.node().await;
    let other = world.node().await;
    let moved = world.running(spec(), &node).await;
    let cancelled = world.running(spec(), &node).await;
    let untouched = world.running(spec(), &other).await;
    world.store.cancel(cancelled.job_id, &ann()).await.unwrap();
    assert!(world.store.set_node_gate(node.id(), NodeGate::Draining, &ann()).await.unwrap());
    let HeartbeatAnswer::Heard { gate: NodeGate::Draining, .. } = beat(world, &node).await else { panic!() };
    assert_eq!(world.job(moved.job_id).await.job.intent, Intent::Evict);
    assert_eq!(world.job(cancelled.job_id).await.job.intent, Intent::Cancel);
    assert_eq!(world.job(untouched.job_id).await.job.intent, Intent::Run);
    assert_eq!(world.store.pending_stops(10).await.unwrap().len(), 2);

    world.end(&moved, exit_with(EndedBy::Stop, Exit::Signal(15), "")).await;
    let record = world.job(moved.job_id).await;
    assert_eq!((record.job.accounts.evictions, record.job.accounts.retry_count), (1, 0));
    assert_eq!((record.job.intent, record.job.avoid_node), (Intent::Run, Some(node.id())));
    assert!(matches!(record.job.state, JobState::Waiting { .. }));
    assert_eq!(world.claim(&[moved.job_id], &other).await.len(), 1);
    let nobody = NodeId(Uuid::from_u128(1));
    assert!(!world.store.set_node_gate(nobody, NodeGate::Cordoned, &ann()).await.unwrap());
}

pub(crate) async fn what_is_on_a_node_is_known(world: &World) {
    let (node, other) = (world.node().await, world.node().await);
    let first = world.running(spec(), &node).await;
    let elsewhere = world.running(spec(), &other).await;
    let second = world.placed(spec(), &node).await;
    let on = async |node: &Node, limit| world.store.jobs_on_node(node.id(), limit).await.unwrap();
    assert_eq!(on(&node, 10).await, [first.job_id, second.job_id]);
    assert_eq!(on(&node, 1).await, [first.job_id]);
    assert_eq!(on(&other, 10).await, [elsewhere.job_id]);
    world.end(&first, exit(0)).await;
    assert_eq!(on(&node, 10).await, [second.job_id]);
}

pub(crate) async fn pools_exist_by_put(world: &World) {
    world.store.put_pool("gpu", &ann()).await.unwrap();
    world.store.put_pool("gpu", &ann()).await.unwrap();
    let names: Vec<_> = world.store.pools().await.unwrap().into_iter().map(|pool| pool.name).collect();
    assert_eq!(names, ["default", "gpu"]);
    let mut node = world.node().await;
    node.registration.pool = "gpu".to_owned();
    register(world, &node).await;
    assert!(world.store.place_snapshot("default", 1, 1).await.unwrap().nodes.is_empty());
    assert_eq!(world.store.place_snapshot("gpu", 1, 1).await.unwrap().nodes.len(), 1);
}
