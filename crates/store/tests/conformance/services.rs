//! Services: restarts that are told, stops, and what is left of an attempt.

use jobyard_model::node::NodeGate;
use jobyard_model::{
    EndedBy, Exit, Intent, JobKind, JobSpec, LastExit, Outcome, ServiceRun, Status, Timestamp,
};
use jobyard_store::{Control, EventCursor, EventFilter, Report, Verdict};

use super::world::{World, ann, exit, exit_with, item, spec};

fn service() -> JobSpec {
    JobSpec { kind: JobKind::Service, ..spec() }
}

fn run(restarts: u32, next_start: Option<i64>) -> ServiceRun {
    let last_exit = LastExit { exit: Exit::Code(3), by: EndedBy::Itself, at: Timestamp(7) };
    ServiceRun { restarts, last_exit, next_start: next_start.map(Timestamp) }
}

pub(crate) async fn restarts_are_told_and_kept(world: &World) {
    let node = world.node().await;
    let claimed = world.running(service(), &node).await;
    let job_id = claimed.job_id;
    let reason = async || world.job(job_id).await.reason(Timestamp(0));
    assert_eq!((world.job(job_id).await.service(), reason().await), (None, "running"));
    world.pass(50_000).await;
    let before = world.store.attempts(job_id).await.unwrap().remove(0);
    for (told, is_news, wanted) in [
        (run(0, Some(9)), true, "restarting"),
        (run(0, Some(9)), false, "restarting"),
        (run(1, None), true, "running"),
        (run(0, Some(9)), false, "running"),
        (run(4, Some(19)), true, "restarting"),
    ] {
        let verdict = world.report(&claimed, Report::Service(told)).await;
        assert_eq!(verdict, if is_news { Verdict::Accepted } else { Verdict::Already }, "{told:?}");
        let record = world.job(job_id).await;
        assert_eq!((record.job.status(), reason().await), (Status::Running, wanted));
        if is_news {
            assert_eq!(record.service(), Some(told));
        }
    }
    let attempt = world.store.attempts(job_id).await.unwrap().remove(0);
    assert_eq!(attempt.service, Some(run(4, Some(19))));
    assert!(attempt.lease_until > before.lease_until, "its sidecar said so: the lease is renewed");
    assert_eq!(restarts_in_history(world).await, ["restarting", "running", "restarting"]);

    // Its sidecar dies, and the next attempt counts anew; what was is in the history.
    let gone = jobyard_model::AttemptEnd::Vanished { why: "the sidecar died".to_owned() };
    assert_eq!(world.end(&claimed, gone).await, Verdict::Accepted);
    let record = world.job(job_id).await;
    assert_eq!((record.job.status(), record.service()), (Status::Retry, Some(run(4, Some(19)))));
    world.pass(1_200).await;
    world.store.release_due(10).await.unwrap();
    let second = world.claim(&[job_id], &node).await.remove(0);
    assert_eq!(
        world.report(&second, Report::Service(run(0, Some(1)))).await,
        Verdict::Later,
        "not running yet"
    );
    world.report(&second, Report::Started).await;
    assert_eq!(world.job(job_id).await.service(), None);
    assert_eq!(world.report(&claimed, Report::Service(run(9, None))).await, Verdict::Stale);
    let attempts = world.store.attempts(job_id).await.unwrap();
    let kept: Vec<_> = attempts.iter().map(|attempt| attempt.service).collect();
    assert_eq!(kept, [Some(run(4, Some(19))), None]);
}

async fn restarts_in_history(world: &World) -> Vec<String> {
    let page = world.store.events_after(EventCursor::default(), &EventFilter::default(), 100).await.unwrap();
    let restarts = page.items.into_iter().filter(|event| event.why.contains("restart"));
    restarts.map(|event| event.to).collect()
}

pub(crate) async fn a_task_has_no_restarts(world: &World) {
    let node = world.node().await;
    let claimed = world.running(spec(), &node).await;
    assert_eq!(world.report(&claimed, Report::Service(run(0, Some(1)))).await, Verdict::Already);
    assert_eq!(world.job(claimed.job_id).await.service(), None);
}

pub(crate) async fn a_service_is_stopped_in_every_status(world: &World) {
    let node = world.node().await;
    let stop = async |job_id| world.store.stop(job_id, &ann()).await.unwrap();
    let now = world.store.now().await.unwrap();
    let ready = world.submit(JobSpec { run_at: Some(now.plus_ms(3_600_000)), ..service() }).await;
    let waiting = world.submit(service()).await;
    let retrying = world.running(service(), &node).await;
    world.end(&retrying, exit_with(EndedBy::Lease, Exit::Code(1), "")).await;
    for job_id in [ready, waiting, retrying.job_id] {
        assert_eq!(stop(job_id).await, Control::Done);
        assert_eq!(world.status(job_id).await, Status::Success);
        assert_eq!(stop(job_id).await, Control::Nothing);
    }
    let running = world.running(service(), &node).await;
    assert_eq!(stop(running.job_id).await, Control::Done);
    assert_eq!(stop(running.job_id).await, Control::Nothing);
    let stops = world.store.pending_stops(10).await.unwrap();
    assert_eq!((stops.len(), stops[0].intent, stops[0].grace_ms), (1, Intent::Stop, 10_000));
    let answer = world.report_all(vec![item(&running, Report::Service(run(0, Some(1))))]).await[0];
    assert_eq!((answer.verdict, answer.intent), (Verdict::Accepted, Intent::Stop));
    // It left by itself before it was told: that counts as stopped.
    world.end(&running, exit(1)).await;
    let record = world.job(running.job_id).await;
    assert_eq!(record.job.status(), Status::Success);
    assert_eq!(record.last_end.map(|(_, outcome, _)| outcome), Some(Outcome::Stopped));

    let task = world.submit(spec()).await;
    assert_eq!(stop(task).await, Control::WrongKind);
    assert_eq!(world.status(task).await, Status::Waiting);
    assert_eq!(stop(super::world::new_job_id()).await, Control::NotFound);
    let trail = world.store.audit(None, 100).await.unwrap();
    assert_eq!(trail.iter().filter(|row| row.action == "job.stop").count(), 4, "only what was done");
}

pub(crate) async fn a_service_stopped_while_a_drain_evicts_it_is_over(world: &World) {
    let node = world.node().await;
    let (stopped, moved) = (world.running(service(), &node).await, world.running(service(), &node).await);
    assert!(world.store.set_node_gate(node.id(), NodeGate::Draining, &ann()).await.unwrap());
    assert_eq!(world.store.stop(stopped.job_id, &ann()).await.unwrap(), Control::Done);
    for claimed in [&stopped, &moved] {
        world.end(claimed, exit_with(EndedBy::Stop, Exit::Signal(15), "")).await;
    }
    assert_eq!(world.status(stopped.job_id).await, Status::Success);
    let record = world.job(moved.job_id).await;
    assert_eq!((record.job.status(), record.job.intent), (Status::Waiting, Intent::Run));
    assert_eq!(record.job.accounts.evictions, 1);
}
