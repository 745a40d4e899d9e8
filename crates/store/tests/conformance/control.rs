//! Cancel and retry by hand, in every status.

use jobyard_model::{EndedBy, Exit, Intent, JobId, JobSpec, Outcome, Status};
use jobyard_store::{Control, Report, Verdict};

use super::world::{World, ann, exit, exit_with, item, new_job_id, spec};

async fn cancel(world: &World, job_id: JobId) -> Control {
    world.store.cancel(job_id, &ann()).await.unwrap()
}

async fn retry(world: &World, job_id: JobId, after: Option<u32>) -> Control {
    world.store.retry(job_id, after, &ann()).await.unwrap()
}

pub(crate) async fn cancel_in_every_status(world: &World) {
    let node = world.node().await;
    let now = world.store.now().await.unwrap();
    let ready = world.submit(JobSpec { run_at: Some(now.plus_ms(3_600_000)), ..spec() }).await;
    let waiting = world.submit(spec()).await;
    let retrying = world.running(spec(), &node).await;
    world.end(&retrying, exit(1)).await;
    for job_id in [ready, waiting, retrying.job_id] {
        assert_eq!(cancel(world, job_id).await, Control::Done);
        assert_eq!(world.status(job_id).await, Status::Cancelled);
        assert_eq!(cancel(world, job_id).await, Control::Nothing);
    }
    let running = world.running(spec(), &node).await;
    assert_eq!(cancel(world, running.job_id).await, Control::Done);
    assert_eq!(world.status(running.job_id).await, Status::Running);
    assert_eq!(cancel(world, running.job_id).await, Control::Nothing);
    let answer = world.report_all(vec![item(&running, Report::Renewed)]).await[0];
    assert_eq!((answer.verdict, answer.intent), (Verdict::Accepted, Intent::Cancel));
    world.end(&running, exit_with(EndedBy::Stop, Exit::Signal(15), "")).await;
    assert_eq!(world.status(running.job_id).await, Status::Cancelled);
    let ended = world.ended(spec(), &node).await;
    assert_eq!(cancel(world, ended).await, Control::Nothing);
    assert_eq!(world.status(ended).await, Status::Success);
}

pub(crate) async fn cancel_meets_exit_zero(world: &World) {
    let node = world.node().await;
    let claimed = world.running(spec(), &node).await;
    cancel(world, claimed.job_id).await;
    assert_eq!(world.end(&claimed, exit(0)).await, Verdict::Accepted);
    let record = world.job(claimed.job_id).await;
    assert_eq!(record.job.status(), Status::Success);
    assert_eq!(record.last_end.map(|(_, outcome, _)| outcome), Some(Outcome::Succeeded));
    assert!(world.store.pending_stops(10).await.unwrap().is_empty());
}

pub(crate) async fn a_stop_is_pending_until_the_end(world: &World) {
    let mut node = world.node().await;
    let first = world.running(JobSpec { stop_grace_ms: 3_000, ..spec() }, &node).await;
    let second = world.placed(spec(), &node).await;
    world.running(spec(), &node).await;
    cancel(world, second.job_id).await;
    cancel(world, first.job_id).await;
    // The worker restarts: the order goes to its newest session.
    node.registration.session = jobyard_model::SessionId(uuid::Uuid::from_u128(606));
    node.registration.door = "/run/new.sock".to_owned();
    world.store.register_node(&node.registration).await.unwrap();

    let stops = world.store.pending_stops(10).await.unwrap();
    assert_eq!(stops.iter().map(|stop| stop.job_id).collect::<Vec<_>>(), [first.job_id, second.job_id]);
    let stop = &stops[0];
    assert_eq!((stop.lease_id, stop.attempt, stop.intent), (first.lease_id, 1, Intent::Cancel));
    assert_eq!((stop.session, stop.door.as_str()), (node.registration.session, "/run/new.sock"));
    assert_eq!((stop.grace_ms, stop.node_id), (3_000, node.id()));
    assert_eq!(world.store.pending_stops(1).await.unwrap().len(), 1);

    world.end(&first, exit_with(EndedBy::Stop, Exit::Signal(15), "")).await;
    let stops = world.store.pending_stops(10).await.unwrap();
    assert_eq!(stops.iter().map(|stop| stop.job_id).collect::<Vec<_>>(), [second.job_id]);
}

pub(crate) async fn retry_by_hand_begins_a_round(world: &World) {
    let node = world.node().await;
    let claimed = world.running(JobSpec { max_retries: 0, ..spec() }, &node).await;
    assert_eq!(retry(world, claimed.job_id, None).await, Control::Refused(Status::Running));
    world.end(&claimed, exit(1)).await;
    assert_eq!(world.status(claimed.job_id).await, Status::FinalFailed);
    assert_eq!(retry(world, claimed.job_id, None).await, Control::Done);
    let record = world.job(claimed.job_id).await;
    assert_eq!((record.job.status(), record.job.round), (Status::Waiting, 2));
    assert_eq!((record.job.last_attempt, record.started_at), (1, None));

    let second = world.claim(&[claimed.job_id], &node).await.remove(0);
    assert_eq!(second.attempt, 2);
    world.report(&second, Report::Started).await;
    assert_eq!(world.end(&claimed, exit(0)).await, Verdict::Stale);
    world.end(&second, exit(0)).await;
    let record = world.job(claimed.job_id).await;
    assert_eq!((record.job.status(), record.job.round), (Status::Success, 2));
    assert_eq!(retry(world, claimed.job_id, None).await, Control::Refused(Status::Success));
    let attempts = world.store.attempts(claimed.job_id).await.unwrap();
    assert_eq!(attempts.iter().map(|attempt| attempt.round).collect::<Vec<_>>(), [1, 2]);

    let cancelled = world.submit(spec()).await;
    cancel(world, cancelled).await;
    assert_eq!(retry(world, cancelled, None).await, Control::Done);
    assert_eq!(cancel(world, cancelled).await, Control::Done);
    assert_eq!(world.status(cancelled).await, Status::Cancelled);
}

pub(crate) async fn retry_names_the_attempt_seen(world: &World) {
    let node = world.node().await;
    let claimed = world.running(JobSpec { max_retries: 0, ..spec() }, &node).await;
    world.end(&claimed, exit(1)).await;
    assert_eq!(retry(world, claimed.job_id, Some(0)).await, Control::Nothing);
    assert_eq!(world.status(claimed.job_id).await, Status::FinalFailed);
    assert_eq!(retry(world, claimed.job_id, Some(1)).await, Control::Done);
    let second = world.claim(&[claimed.job_id], &node).await.remove(0);
    // The same click again, after the new attempt began.
    assert_eq!(retry(world, claimed.job_id, Some(1)).await, Control::Nothing);
    world.report(&second, Report::Started).await;
    assert_eq!(world.job(claimed.job_id).await.job.round, 2);
}

pub(crate) async fn a_control_of_nothing_is_not_found(world: &World) {
    assert_eq!(cancel(world, new_job_id()).await, Control::NotFound);
    assert_eq!(retry(world, new_job_id(), None).await, Control::NotFound);
    assert!(world.store.audit(None, 10).await.unwrap().is_empty());
}
