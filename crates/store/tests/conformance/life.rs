//! From claim to end.

use jobyard_model::lifecycle::JobState;
use jobyard_model::{
    ArtifactHash, AttemptEnd, EndedBy, Exit, ExitFacts, Intent, JobId, JobSpec, LeaseId, Outcome, Outputs,
    Phase, Resources, Status,
};
use jobyard_store::{NotStarted, Report, ReportItem, Verdict};
use uuid::Uuid;

use super::world::{World, exit, exit_with, item, new_job_id, spec};

pub(crate) async fn from_submit_to_end(world: &World) {
    let node = world.node().await;
    let claimed = world.placed(spec(), &node).await;
    assert_eq!((claimed.attempt, claimed.node_id, &claimed.spec), (1, node.id(), &spec()));
    let steps = [
        (Report::Accepted, Phase::Starting),
        (Report::Started, Phase::Running),
        (Report::Finishing, Phase::Finishing),
    ];
    for (report, phase) in steps {
        assert_eq!(world.report(&claimed, report).await, Verdict::Accepted);
        let JobState::Running(attempt) = world.job(claimed.job_id).await.job.state else { panic!() };
        assert_eq!((attempt.phase, attempt.lease_id), (phase, claimed.lease_id));
    }
    assert_eq!(world.report(&claimed, Report::Renewed).await, Verdict::Accepted);
    assert_eq!(world.end(&claimed, exit(0)).await, Verdict::Accepted);

    let record = world.job(claimed.job_id).await;
    assert_eq!(record.job.status(), Status::Success);
    assert!(record.started_at.is_some());
    assert_eq!(record.last_end, Some((1, Outcome::Succeeded, exit(0))));
    assert!(world.claim(&[claimed.job_id], &node).await.is_empty());
}

pub(crate) async fn outputs_are_part_of_the_outcome(world: &World) {
    let node = world.node().await;
    let end = |outputs| {
        let AttemptEnd::Exited(facts) = exit(0) else { panic!() };
        AttemptEnd::Exited(ExitFacts { outputs, ..facts })
    };
    let kept = Outputs::Kept(ArtifactHash([9; 32]));
    let cases = [
        (kept, Status::Success, Outcome::Succeeded, (0, 0)),
        (Outputs::Refused, Status::Retry, Outcome::Failed, (1, 0)),
        (Outputs::Late, Status::Retry, Outcome::Lost, (0, 1)),
    ];
    for (outputs, status, outcome, spent) in cases {
        let claimed = world.placed(spec(), &node).await;
        // Said at once, as by a worker whose start could not be delivered.
        assert_eq!(world.report(&claimed, Report::Finishing).await, Verdict::Accepted);
        assert_eq!(world.report(&claimed, Report::Started).await, Verdict::Already);
        assert_eq!(world.end(&claimed, end(outputs)).await, Verdict::Accepted);
        let record = world.job(claimed.job_id).await;
        assert_eq!(record.job.status(), status, "{outputs:?}");
        assert!(record.started_at.is_some());
        let accounts = record.job.accounts;
        assert_eq!((accounts.retry_count, accounts.platform_failures), spent, "{outputs:?}");
        assert_eq!(record.last_end, Some((1, outcome, end(outputs))));
        // Whoever sends again after a restart may have found out otherwise.
        assert_eq!(world.end(&claimed, end(Outputs::Refused)).await, Verdict::Already);
    }
}

pub(crate) async fn a_failure_is_retried_after_its_delay(world: &World) {
    let node = world.node().await;
    let claimed = world.running(JobSpec { max_retries: 1, ..spec() }, &node).await;
    world.end(&claimed, exit(1)).await;
    let record = world.job(claimed.job_id).await;
    assert_eq!((record.job.status(), record.job.accounts.retry_count), (Status::Retry, 1));
    assert_eq!(record.job.avoid_node, Some(node.id()));
    assert_eq!(world.store.release_due(100).await.unwrap(), 0);
    assert!(world.claim(&[claimed.job_id], &node).await.is_empty());

    world.pass(2_000).await;
    assert_eq!(world.store.release_due(100).await.unwrap(), 1);
    let second = world.claim(&[claimed.job_id], &node).await.remove(0);
    assert_eq!(second.attempt, 2);
    assert_ne!(second.lease_id, claimed.lease_id);
    world.report(&second, Report::Started).await;
    world.end(&second, exit(2)).await;
    let record = world.job(claimed.job_id).await;
    assert_eq!(
        (record.job.status(), record.reason(record.created_at)),
        (Status::FinalFailed, "retries_exhausted")
    );
}

pub(crate) async fn a_stale_lease_is_refused(world: &World) {
    let node = world.node().await;
    let claimed = world.running(spec(), &node).await;
    let stranger = LeaseId(Uuid::from_u128(77));
    for report in [Report::Accepted, Report::Started, Report::Renewed, Report::Ended(exit(0))] {
        let bad = ReportItem { lease_id: stranger, ..item(&claimed, report) };
        assert_eq!(world.report_all(vec![bad]).await[0].verdict, Verdict::Stale);
    }
    assert_eq!(world.status(claimed.job_id).await, Status::Running);
    let newer = ReportItem { attempt: 2, ..item(&claimed, Report::Renewed) };
    assert_eq!(world.report_all(vec![newer]).await[0].verdict, Verdict::Unknown);
    let nobody = ReportItem { job_id: new_job_id(), ..item(&claimed, Report::Renewed) };
    assert_eq!(world.report_all(vec![nobody]).await[0].verdict, Verdict::Unknown);
}

pub(crate) async fn the_same_report_again_is_already(world: &World) {
    let node = world.node().await;
    let claimed = world.placed(spec(), &node).await;
    use Verdict::{Accepted, Already};
    for (report, again) in
        [(Report::Accepted, Already), (Report::Started, Already), (Report::Renewed, Accepted)]
    {
        assert_eq!(world.report(&claimed, report.clone()).await, Accepted);
        assert_eq!(world.report(&claimed, report).await, again);
    }
    assert_eq!(world.report(&claimed, Report::Accepted).await, Already);
    assert_eq!(world.end(&claimed, exit(1)).await, Accepted);
    assert_eq!(world.end(&claimed, exit(1)).await, Already);
    assert_eq!(world.end(&claimed, exit(0)).await, Verdict::Stale);
    assert_eq!(world.status(claimed.job_id).await, Status::Retry);
    assert_eq!(world.store.attempts(claimed.job_id).await.unwrap().len(), 1);
}

pub(crate) async fn a_late_outcome_after_lost_is_stale(world: &World) {
    let node = world.node().await;
    world.settle().await;
    let claimed = world.running(spec(), &node).await;
    world.pass_in_service(190_000).await;
    assert_eq!(world.store.expire_silent(100).await.unwrap().expired, 1);
    assert_eq!(world.end(&claimed, exit(0)).await, Verdict::Stale);
    assert_eq!(world.report(&claimed, Report::Renewed).await, Verdict::Stale);
    let record = world.job(claimed.job_id).await;
    assert_eq!((record.job.status(), record.job.accounts.platform_failures), (Status::Retry, 1));
    assert_eq!(record.last_end, Some((1, Outcome::Lost, AttemptEnd::Silent)));
}

pub(crate) async fn one_bad_item_fails_no_other(world: &World) {
    let node = world.node().await;
    let jobs = world.submit_many(3, &spec()).await;
    let claims = world.claim(&jobs, &node).await;
    let nobody = ReportItem { job_id: JobId(Uuid::nil()), ..item(&claims[0], Report::Started) };
    let items = vec![
        item(&claims[0], Report::Accepted),
        item(&claims[0], Report::Started),
        nobody,
        ReportItem { lease_id: claims[0].lease_id, ..item(&claims[1], Report::Started) },
        item(&claims[0], Report::Ended(exit(0))),
        item(&claims[0], Report::Ended(exit(0))),
        item(&claims[2], Report::Ended(exit_with(EndedBy::Itself, Exit::LaunchFault, "no fork"))),
    ];
    let verdicts: Vec<_> = world.report_all(items).await.iter().map(|answer| answer.verdict).collect();
    use Verdict::{Accepted, Already, Stale, Unknown};
    assert_eq!(verdicts, [Accepted, Accepted, Unknown, Stale, Accepted, Already, Accepted]);
    assert_eq!(world.status(jobs[0]).await, Status::Success);
    assert_eq!(world.status(jobs[1]).await, Status::Running);
    assert_eq!(world.status(jobs[2]).await, Status::Retry);
}

pub(crate) async fn nul_and_ten_megabytes_end_a_job_all_the_same(world: &World) {
    let node = world.node().await;
    let jobs = world.submit_many(2, &spec()).await;
    let claims = world.claim(&jobs, &node).await;
    let nul = exit_with(EndedBy::Itself, Exit::Code(1), "a\0b");
    let huge = exit_with(EndedBy::Itself, Exit::Code(1), &"é\0".repeat(5 << 20));
    let items =
        vec![item(&claims[0], Report::Ended(nul.clone())), item(&claims[1], Report::Ended(huge.clone()))];
    assert!(world.report_all(items).await.iter().all(|answer| answer.verdict == Verdict::Accepted));
    let Some((_, Outcome::Failed, AttemptEnd::Exited(facts))) = world.job(jobs[0]).await.last_end else {
        panic!()
    };
    assert_eq!(facts.message, "a\u{fffd}b");
    let Some((_, _, AttemptEnd::Exited(facts))) = world.job(jobs[1]).await.last_end else { panic!() };
    assert!(facts.message.len() <= 4_096 && facts.message.starts_with("é\u{fffd}é"));
    assert_eq!(world.end(&claims[0], nul).await, Verdict::Already);
    assert_eq!(world.end(&claims[1], huge).await, Verdict::Already);
}

pub(crate) async fn a_claim_can_be_given_back(world: &World) {
    let node = world.node().await;
    let claimed = world.placed(spec(), &node).await;
    let give_back =
        |lease_id, why: &str| NotStarted { job_id: claimed.job_id, lease_id, why: why.to_owned() };
    let stale = give_back(LeaseId(Uuid::from_u128(5)), "full");
    let mine = give_back(claimed.lease_id, "f\0ull");
    let ended = world.store.end_not_started(vec![stale, mine.clone(), mine]).await.unwrap();
    assert_eq!(ended, 1);
    let record = world.job(claimed.job_id).await;
    assert_eq!((record.job.status(), record.job.accounts.retry_count), (Status::Waiting, 0));
    let why = AttemptEnd::NotStarted { why: "f\u{fffd}ull".to_owned() };
    assert_eq!(record.last_end, Some((1, Outcome::NotStarted, why)));
    assert_eq!(world.report(&claimed, Report::Accepted).await, Verdict::Stale);
    let again = world.claim(&[claimed.job_id], &node).await;
    assert_eq!(again[0].attempt, 2);
}

pub(crate) async fn what_runs_is_reserved(world: &World) {
    let node = world.node().await;
    let big = JobSpec { resources: Resources { cpu_milli: 2_000, memory_bytes: 1 << 30 }, ..spec() };
    let first = world.running(big, &node).await;
    world.placed(spec(), &node).await;
    let state = world.store.nodes().await.unwrap().remove(0);
    assert_eq!(state.attempts, 2);
    assert_eq!(state.reserved, Resources { cpu_milli: 2_100, memory_bytes: (1 << 30) + (128 << 20) });
    // Its outputs go up, its process is gone.
    assert_eq!(world.report(&first, Report::Finishing).await, Verdict::Accepted);
    let state = world.store.nodes().await.unwrap().remove(0);
    assert_eq!((state.attempts, state.reserved), (2, Resources::DEFAULT));
    world.end(&first, exit(0)).await;
    let state = world.store.nodes().await.unwrap().remove(0);
    assert_eq!((state.attempts, state.reserved), (1, Resources::DEFAULT));
    let intent = world.job(first.job_id).await.job.intent;
    assert_eq!(intent, Intent::Run);
}
