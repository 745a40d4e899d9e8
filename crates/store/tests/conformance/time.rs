//! What time alone brings about, and what holds it back.

use jobyard_model::lifecycle::JobState;
use jobyard_model::{AttemptEnd, JobSpec, Outcome, Status};
use jobyard_store::{Report, Verdict};

use super::world::{World, ann, exit, spec};

async fn expire(world: &World) -> (u64, bool, u64) {
    let report = world.store.expire_silent(100).await.unwrap();
    (report.expired, report.paused.is_some(), report.held_back)
}

pub(crate) async fn silence_is_judged_while_servers_are_heard(world: &World) {
    let node = world.node().await;
    world.settle().await;
    let claimed = world.running(spec(), &node).await;
    world.pass_in_service(170_000).await;
    assert_eq!(expire(world).await, (0, false, 0));
    world.pass_in_service(15_000).await;
    assert_eq!(expire(world).await, (1, false, 0));
    assert_eq!(expire(world).await, (0, false, 0));
    assert_eq!(world.status(claimed.job_id).await, Status::Retry);
    let attempts = world.store.attempts(claimed.job_id).await.unwrap();
    assert_eq!(attempts[0].end, Some((Outcome::Lost, AttemptEnd::Silent)));
}

pub(crate) async fn a_stale_stamp_holds_silence_back(world: &World) {
    let node = world.node().await;
    world.settle().await;
    let claimed = world.running(spec(), &node).await;
    world.pass_in_service(170_000).await;
    // Lease over, but the last stamp is 20 seconds old.
    world.pass(20_000).await;
    assert_eq!(expire(world).await, (0, true, 1));
    assert_eq!(world.status(claimed.job_id).await, Status::Running);
    world.store.stamp_report_clock().await.unwrap();
    assert_eq!(expire(world).await, (1, false, 0));
}

pub(crate) async fn a_gap_holds_silence_back_for_a_lease(world: &World) {
    let node = world.node().await;
    world.settle().await;
    let heard = world.running(spec(), &node).await;
    let silent = world.running(spec(), &node).await;
    // Every server was down for ten minutes.
    world.pass(600_000).await;
    assert_eq!(expire(world).await, (0, true, 2));
    world.pass_in_service(100_000).await;
    assert_eq!(expire(world).await, (0, true, 2));
    assert_eq!(world.report(&heard, Report::Renewed).await, Verdict::Accepted);
    assert_eq!(expire(world).await, (0, true, 1));
    world.pass_in_service(100_000).await;
    assert_eq!(expire(world).await, (1, false, 0));
    assert_eq!(world.status(heard.job_id).await, Status::Running);
    assert_eq!(world.status(silent.job_id).await, Status::Retry);
}

pub(crate) async fn a_step_back_holds_silence_back(world: &World) {
    let node = world.node().await;
    world.settle().await;
    let claimed = world.running(spec(), &node).await;
    world.pass(-3_600_000).await;
    world.store.stamp_report_clock().await.unwrap();
    assert_eq!(expire(world).await, (0, true, 0));
    // The lease does not last an hour longer for it.
    world.pass_in_service(190_000).await;
    assert_eq!(expire(world).await, (1, false, 0));
    assert_eq!(world.status(claimed.job_id).await, Status::Retry);
}

pub(crate) async fn a_renewal_keeps_an_attempt(world: &World) {
    let node = world.node().await;
    world.settle().await;
    let claimed = world.running(spec(), &node).await;
    for _ in 0..6 {
        world.pass_in_service(60_000).await;
        assert_eq!(world.report(&claimed, Report::Renewed).await, Verdict::Accepted);
        assert_eq!(expire(world).await, (0, false, 0));
    }
    let JobState::Running(attempt) = world.job(claimed.job_id).await.job.state else { panic!() };
    let now = world.store.now().await.unwrap();
    assert!(attempt.lease_until.ms_since(now) > 150_000);
}

pub(crate) async fn a_claim_lease_runs_out(world: &World) {
    let node = world.node().await;
    world.settle().await;
    let claimed = world.placed(spec(), &node).await;
    world.pass_in_service(15_000).await;
    assert_eq!(expire(world).await, (1, false, 0));
    let record = world.job(claimed.job_id).await;
    assert!(matches!(record.job.state, JobState::Waiting { .. }));
    assert_eq!(record.last_end, Some((1, Outcome::NotStarted, AttemptEnd::Silent)));
    assert_eq!(world.report(&claimed, Report::Accepted).await, Verdict::Stale);
    // The second in a row waits, and nobody pays.
    let second = world.claim(&[claimed.job_id], &node).await.remove(0);
    world.pass_in_service(15_000).await;
    assert_eq!(expire(world).await, (1, false, 0));
    let record = world.job(second.job_id).await;
    let accounts = record.job.accounts;
    assert_eq!((accounts.unpaid_in_row, accounts.retry_count, accounts.platform_failures), (2, 0, 0));
    let now = world.store.now().await.unwrap();
    let JobState::Waiting { since } = record.job.state else { panic!() };
    assert!(since > now);
    assert!(world.store.place_snapshot("default", 9, 9).await.unwrap().heads.is_empty());
    assert!(world.claim(&[second.job_id], &node).await.is_empty());
    world.pass(2_000).await;
    assert_eq!(world.claim(&[second.job_id], &node).await.len(), 1);
}

pub(crate) async fn start_within_ends_a_job(world: &World) {
    let node = world.node().await;
    let wants = JobSpec { start_within_ms: Some(60_000), ..spec() };
    let waits = world.submit(wants.clone()).await;
    let started = world.running(wants, &node).await;
    let patient = world.submit(spec()).await;
    assert_eq!(world.store.release_due(100).await.unwrap(), 0);
    world.pass(61_000).await;
    assert_eq!(world.store.release_due(100).await.unwrap(), 1);
    let record = world.job(waits).await;
    assert_eq!((record.job.status(), record.reason(record.created_at)), (Status::FinalFailed, "expired"));
    assert_eq!(world.status(started.job_id).await, Status::Running);
    assert_eq!(world.status(patient).await, Status::Waiting);
}

pub(crate) async fn run_at_is_kept(world: &World) {
    let now = world.store.now().await.unwrap();
    // Further away than any delay: that is what the user wanted, not a clock that stepped back.
    let later = JobSpec { run_at: Some(now.plus_ms(400 * 24 * 3_600_000)), ..spec() };
    let soon = JobSpec { run_at: Some(now.plus_ms(60_000)), ..spec() };
    let later = world.submit(later).await;
    let soon = world.submit(soon).await;
    world.pass(50_000).await;
    assert_eq!(world.store.release_due(100).await.unwrap(), 0);
    world.pass(11_000).await;
    assert_eq!(world.store.release_due(100).await.unwrap(), 1);
    assert_eq!(world.status(soon).await, Status::Waiting);
    assert_eq!(world.status(later).await, Status::Ready);
}

pub(crate) async fn what_a_step_back_left_far_ahead_is_due(world: &World) {
    let node = world.node().await;
    world.store.stamp_report_clock().await.unwrap();
    let retrying = world.running(spec(), &node).await;
    world.end(&retrying, exit(1)).await;
    let waiting = world.submit(spec()).await;
    world.pass(-3_600_000).await;
    world.store.stamp_report_clock().await.unwrap();
    assert_eq!(world.store.release_due(100).await.unwrap(), 1);
    assert_eq!(world.status(retrying.job_id).await, Status::Waiting);
    world.pass(1).await;
    assert_eq!(world.claim(&[retrying.job_id, waiting], &node).await.len(), 2);
}

pub(crate) async fn an_exclusive_job_pauses_after_silence(world: &World) {
    let node = world.node().await;
    world.settle().await;
    let wants = JobSpec { exclusive: true, backoff_ms: 1, ..spec() };
    let claimed = world.running(wants, &node).await;
    world.store.cancel(world.submit(spec()).await, &ann()).await.unwrap();
    let JobState::Running(attempt) = world.job(claimed.job_id).await.job.state else { panic!() };
    world.pass_in_service(180_500).await;
    assert_eq!(expire(world).await, (1, false, 0));
    let JobState::Retry { due } = world.job(claimed.job_id).await.job.state else { panic!() };
    // Where time passes by shifting rows, both have been shifted.
    let silent = world.store.attempts(claimed.job_id).await.unwrap().remove(0);
    let lease_until = silent.lease_until.unwrap();
    assert!(due >= lease_until.plus_ms(5_000), "{due:?} {lease_until:?} {attempt:?}");
}
