//! Properties that hold for whatever happens to a job, in whatever order.

use jobyard_model::attempt::name_outcome;
use jobyard_model::lifecycle::{Outstanding, Policy, RefusalKind};
use jobyard_model::retry::{Budgets, MAX_DELAY_MS, PLATFORM_LIMIT, retry_delay_ms};
use jobyard_model::{
    AttemptEnd, EndedBy, Exit, ExitFacts, Intent, Job, JobEvent, JobId, JobKind, JobState, LastExit, LeaseId,
    Moment, NodeId, Outcome, Outputs, Phase, ServiceRun, SessionId, Status, Timestamp, Usage,
};
use proptest::prelude::*;
use uuid::Uuid;

/// What may happen next; leases are chosen when it does, so that live and stale ones both occur.
#[derive(Debug, Clone)]
enum Step {
    Wait(u32),
    Claim,
    Accept,
    Start,
    Renew,
    Restart(u32, bool),
    End(AttemptEnd, bool),
    Raise(Intent),
    RetryByHand(Option<u32>),
    Due,
    Deadline,
    Artifact,
}

fn ends() -> impl Strategy<Value = AttemptEnd> {
    let exits = prop_oneof![
        Just(Exit::Code(0)),
        Just(Exit::Code(1)),
        Just(Exit::Code(64)),
        Just(Exit::Signal(9)),
        Just(Exit::Unrunnable),
        Just(Exit::LaunchFault),
    ];
    let facts = (prop::sample::select(EndedBy::ALL.to_vec()), exits).prop_map(|(ended_by, exit)| {
        AttemptEnd::Exited(ExitFacts {
            ended_by,
            exit,
            message: String::new(),
            started_at: None,
            ended_at: Timestamp(0),
            usage: Usage::default(),
            outputs: Outputs::None,
        })
    });
    prop_oneof![
        4 => facts,
        1 => Just(AttemptEnd::Vanished { why: String::new() }),
        1 => Just(AttemptEnd::NotStarted { why: String::new() }),
        1 => Just(AttemptEnd::Silent),
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0_u32..200_000).prop_map(Step::Wait),
        4 => Just(Step::Claim),
        2 => Just(Step::Accept),
        2 => Just(Step::Start),
        1 => Just(Step::Renew),
        2 => (0_u32..4, any::<bool>()).prop_map(|(restarts, waits)| Step::Restart(restarts, waits)),
        4 => (ends(), prop::bool::weighted(0.2)).prop_map(|(end, stale)| Step::End(end, stale)),
        1 => prop::sample::select(Intent::ALL.to_vec()).prop_map(Step::Raise),
        1 => prop::option::of(0_u32..6).prop_map(Step::RetryByHand),
        3 => Just(Step::Due),
        1 => Just(Step::Deadline),
        1 => Just(Step::Artifact),
    ]
}

fn policy(kind: JobKind, exclusive: bool, max_retries: u32) -> Policy {
    let budgets = Budgets { max_retries, backoff_ms: 1000, no_retry_exit_codes: vec![64] };
    Policy { kind, budgets, start_within_ms: None, exclusive }
}

fn new_job(policy: Policy) -> Job {
    Job::create(JobId(Uuid::from_u128(1)), policy, Outstanding::default(), Timestamp(0)).job
}

fn service_run(restarts: u32, waits: bool) -> ServiceRun {
    let last_exit = LastExit { exit: Exit::Code(1), by: EndedBy::Itself, at: Timestamp(0) };
    ServiceRun { restarts, last_exit, next_start: waits.then_some(Timestamp(9)) }
}

fn event_of(step: &Step, job: &Job, leases: u128, now: Timestamp) -> Option<JobEvent> {
    let live = job.live_attempt().map_or(LeaseId(Uuid::from_u128(leases)), |attempt| attempt.lease_id);
    let lease_until = now.plus_ms(180_000);
    Some(match step {
        Step::Wait(_) => return None,
        Step::Claim => JobEvent::Claim {
            lease_id: LeaseId(Uuid::from_u128(leases + 1)),
            node_id: NodeId(Uuid::nil()),
            session: SessionId(Uuid::nil()),
            lease_until: now.plus_ms(10_000),
        },
        Step::Accept => JobEvent::Accept { lease_id: live, lease_until },
        Step::Start => JobEvent::Start { lease_id: live, lease_until },
        Step::Renew => JobEvent::Renew { lease_id: live, lease_until },
        Step::Restart(restarts, waits) => {
            JobEvent::Restart { lease_id: live, lease_until, run: service_run(*restarts, *waits) }
        }
        Step::End(end, stale) => {
            let lease_id = if *stale { LeaseId(Uuid::from_u128(0)) } else { live };
            JobEvent::End { lease_id, end: end.clone() }
        }
        Step::Raise(intent) => JobEvent::Raise(*intent),
        Step::RetryByHand(after_attempt) => JobEvent::RetryByHand { after_attempt: *after_attempt },
        Step::Due => JobEvent::Due,
        Step::Deadline => JobEvent::StartDeadlinePassed,
        Step::Artifact => JobEvent::ArtifactArrived,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_job_keeps_its_promises_whatever_happens(
        max_retries in 0_u32..5, exclusive: bool, service: bool, chance: u32,
        steps in prop::collection::vec(steps(), 1..60),
    ) {
        let kind = if service { JobKind::Service } else { JobKind::Task };
        let mut job = new_job(policy(kind, exclusive, max_retries));
        let mut now = Timestamp(0);
        let mut leases = 100_u128;
        for step in &steps {
            if let Step::Wait(ms) = step { now = now.plus_ms(u64::from(*ms)); }
            let Some(event) = event_of(step, &job, leases, now) else { continue };
            let before = job.clone();
            let Ok(transition) = job.clone().apply(event, Moment { now, chance }) else { continue };
            let after = &transition.job;
            prop_assert!(after.last_attempt >= before.last_attempt, "attempt numbers only grow");
            prop_assert!(service || after.accounts.retry_count <= max_retries);
            prop_assert!(after.accounts.platform_failures <= PLATFORM_LIMIT);
            if transition.ended.is_some() {
                prop_assert!(before.live_attempt().is_some() && after.live_attempt().is_none());
            } else {
                prop_assert_eq!(before.live_attempt().map(|a| a.number).or(Some(after.last_attempt)),
                    after.live_attempt().map(|a| a.number).or(Some(after.last_attempt)), "an attempt vanishes only by ending");
            }
            if before.status().is_end() && after.round == before.round {
                prop_assert_eq!(before.status(), after.status(), "a round has one end");
            }
            if after.round == before.round && after.live_attempt().map(|a| a.number) == before.live_attempt().map(|a| a.number) {
                prop_assert!(after.intent >= before.intent, "intent is only raised");
            }
            if let (Some(live), None) = (after.live_attempt(), before.live_attempt()) {
                leases += 1;
                prop_assert_eq!(live.number, before.last_attempt + 1);
                prop_assert_eq!(live.service, None, "restarts are counted anew");
            }
            if let Some(live) = after.live_attempt() {
                prop_assert!(live.service.is_none() || (service && live.phase >= Phase::Running));
                let known = before.live_attempt().and_then(|before| before.service);
                prop_assert!(live.service == known || live.service.is_some_and(|run| run.is_after(known.as_ref())));
            }
            prop_assert!(service || after.intent != Intent::Stop, "only a service is stopped");
            job = transition.job;
        }
    }

    #[test]
    fn delays_double_to_the_cap_and_never_fall_below_the_base(base_ms in 1_u64..1 << 40, retries: u32, chance: u32) {
        let delay_ms = retry_delay_ms(base_ms, retries, chance);
        prop_assert!(delay_ms >= base_ms.min(MAX_DELAY_MS));
        prop_assert!(delay_ms <= MAX_DELAY_MS + MAX_DELAY_MS / 10);
        prop_assert!(retry_delay_ms(base_ms, retries.saturating_add(1), chance) >= delay_ms, "never shorter than the one before");
    }
}

/// Ends the live attempt and says where the job is then, claiming it again when it may be.
fn fail_once(job: Job, now: &mut Timestamp, end: AttemptEnd) -> Job {
    let moment = |now| Moment { now, chance: 0 };
    let waiting = match job.state {
        JobState::Retry { due } => {
            *now = due.max(*now);
            job.apply(JobEvent::Due, moment(*now)).expect("due").job
        }
        JobState::Waiting { since } => {
            *now = since.max(*now);
            job
        }
        other => panic!("not claimable: {other:?}"),
    };
    let lease_id = LeaseId(Uuid::from_u128(u128::from(waiting.last_attempt) + 1));
    let claim = JobEvent::Claim {
        lease_id,
        node_id: NodeId(Uuid::nil()),
        session: SessionId(Uuid::nil()),
        lease_until: *now,
    };
    let running = waiting.apply(claim, moment(*now)).expect("claimable").job;
    running.apply(JobEvent::End { lease_id, end }, moment(*now)).expect("live").job
}

fn exit(exit: Exit) -> AttemptEnd {
    AttemptEnd::Exited(ExitFacts {
        ended_by: EndedBy::Itself,
        exit,
        message: String::new(),
        started_at: None,
        ended_at: Timestamp(0),
        usage: Usage::default(),
        outputs: Outputs::None,
    })
}

#[test]
fn three_retries_are_three_further_attempts_after_one_two_and_four_seconds() {
    let mut job = new_job(policy(JobKind::Task, false, 3));
    let (mut now, mut waits) = (Timestamp(0), Vec::new());
    loop {
        job = fail_once(job, &mut now, exit(Exit::Code(1)));
        match job.state {
            JobState::Retry { due } => waits.push(due.ms_since(now)),
            _ => break,
        }
    }
    assert_eq!((job.status(), job.last_attempt, waits), (Status::FinalFailed, 4, vec![1000, 2000, 4000]));
}

#[test]
fn what_the_platform_loses_is_charged_to_the_platform_alone() {
    let mut job = new_job(policy(JobKind::Task, false, 0));
    let mut now = Timestamp(0);
    while !job.status().is_end() {
        job = fail_once(job, &mut now, AttemptEnd::Vanished { why: String::new() });
    }
    assert_eq!((job.last_attempt, job.accounts.retry_count, job.accounts.platform_failures), (4, 0, 3));
}

#[test]
fn what_never_started_costs_nothing_and_waits_longer_each_time() {
    let mut job = new_job(policy(JobKind::Task, false, 0));
    let (mut now, mut waits) = (Timestamp(0), Vec::new());
    for _ in 0..9 {
        job = fail_once(job, &mut now, AttemptEnd::NotStarted { why: String::new() });
        let JobState::Waiting { since } = job.state else { panic!("{:?}", job.state) };
        waits.push(since.ms_since(now) / 1000);
    }
    assert_eq!(waits, [0, 1, 2, 4, 8, 16, 32, 60, 60]);
    assert_eq!((job.accounts.retry_count, job.accounts.platform_failures), (0, 0));
}

#[test]
fn an_exit_that_can_not_work_again_is_not_retried() {
    for end in [exit(Exit::Code(64)), exit(Exit::Unrunnable)] {
        let job = fail_once(new_job(policy(JobKind::Task, false, 3)), &mut Timestamp(0), end);
        assert_eq!((job.status(), job.last_attempt), (Status::FinalFailed, 1));
    }
}

#[test]
fn an_exclusive_job_that_fell_silent_is_held_back_five_seconds_after_its_lease() {
    let mut now = Timestamp(500_000);
    let job = fail_once(new_job(policy(JobKind::Task, true, 3)), &mut now, AttemptEnd::Silent);
    let JobState::Waiting { since } = job.state else { panic!("{:?}", job.state) };
    assert_eq!(since.ms_since(now), 5_000);
}

#[test]
fn a_lease_that_has_not_run_out_is_not_given_up() {
    let lease_id = LeaseId(Uuid::from_u128(1));
    let claim = JobEvent::Claim {
        lease_id,
        node_id: NodeId(Uuid::nil()),
        session: SessionId(Uuid::nil()),
        lease_until: Timestamp(10),
    };
    let job = new_job(policy(JobKind::Task, false, 3));
    let job = job.apply(claim, Moment { now: Timestamp(1), chance: 0 }).expect("claimable").job;
    let silent = JobEvent::End { lease_id, end: AttemptEnd::Silent };
    let refusal = job.apply(silent, Moment { now: Timestamp(9), chance: 0 }).expect_err("too early");
    assert_eq!(refusal.kind, RefusalKind::NotDue);
}

#[test]
fn a_kill_is_memory_only_when_the_sidecar_saw_it() {
    let plain = exit(Exit::Signal(9));
    assert_eq!(name_outcome(&plain, Phase::Running, Intent::Run, JobKind::Task), Outcome::Failed);
    let code = exit(Exit::Code(137));
    assert_eq!(name_outcome(&code, Phase::Running, Intent::Run, JobKind::Task), Outcome::Failed);
}

#[test]
fn a_service_forgets_what_the_platform_lost_more_than_ten_minutes_ago() {
    let mut job = new_job(policy(JobKind::Service, false, 0));
    let mut now = Timestamp(0);
    let vanished = AttemptEnd::Vanished { why: String::new() };
    for _ in 0..20 {
        now = now.plus_ms(200_001);
        job = fail_once(job, &mut now, vanished.clone());
        assert_eq!(job.status(), Status::Retry, "three in ten minutes are borne for ever");
    }
    while !job.status().is_end() {
        job = fail_once(job, &mut now, vanished.clone());
    }
    assert_eq!((job.status(), job.accounts.platform_failures), (Status::FinalFailed, 3));
    assert_eq!(job.last_attempt, 22, "those that came one after the other were too many");
}

#[test]
fn a_service_outlives_any_number_of_its_own_failures_but_not_one_that_can_not_work_again() {
    let mut job = new_job(policy(JobKind::Service, false, 0));
    let mut now = Timestamp(0);
    for _ in 0..9 {
        job = fail_once(job, &mut now, exit(Exit::Code(1)));
        assert_eq!(job.status(), Status::Retry);
    }
    let job = fail_once(job, &mut now, exit(Exit::Code(64)));
    assert_eq!(job.status(), Status::FinalFailed);
}

fn running_service() -> (Job, LeaseId, Moment) {
    let moment = Moment { now: Timestamp(1), chance: 0 };
    let lease_id = LeaseId(Uuid::from_u128(1));
    let claim = JobEvent::Claim {
        lease_id,
        node_id: NodeId(Uuid::nil()),
        session: SessionId(Uuid::nil()),
        lease_until: Timestamp(10),
    };
    let start = JobEvent::Start { lease_id, lease_until: Timestamp(20) };
    let job = new_job(policy(JobKind::Service, false, 3));
    let placed = job.apply(claim, moment).expect("claimable").job;
    (placed.apply(start, moment).expect("placed").job, lease_id, moment)
}

#[test]
fn a_restart_is_told_once_renews_the_lease_and_leaves_the_job_running() {
    let (job, lease_id, moment) = running_service();
    let restart = |run, until| JobEvent::Restart { lease_id, lease_until: Timestamp(until), run };
    let left = job.apply(restart(service_run(0, true), 30), moment).expect("news");
    assert_eq!(left.job.status(), Status::Running);
    assert_eq!(left.job.live_attempt().map(|attempt| attempt.lease_until), Some(Timestamp(30)));
    let told = |change: &jobyard_model::lifecycle::Change| (change.from, change.to, change.why.clone());
    assert_eq!(told(&left.changes[0]), ("running", "restarting", "exit 1; restart 1 follows".to_owned()));
    let again = left.job.clone().apply(restart(service_run(0, true), 40), moment).expect_err("known");
    assert_eq!(again.kind, RefusalKind::AlreadySo);
    let up = left.job.apply(restart(service_run(1, false), 40), moment).expect("news");
    assert_eq!(told(&up.changes[0]), ("restarting", "running", "restart 1".to_owned()));
    let late = up.job.apply(restart(service_run(0, true), 50), moment).expect_err("older than what is known");
    assert_eq!(late.kind, RefusalKind::AlreadySo);
}

#[test]
fn a_service_is_stopped_wherever_it_is_and_a_task_never() {
    let moment = Moment { now: Timestamp(1), chance: 0 };
    let stop = JobEvent::Raise(Intent::Stop);
    let waiting = new_job(policy(JobKind::Service, false, 3));
    assert_eq!(waiting.apply(stop.clone(), moment).expect("stopped").job.status(), Status::Success);
    let (running, lease_id, moment) = running_service();
    let evicted = running.apply(JobEvent::Raise(Intent::Evict), moment).expect("wanted").job;
    let wanted = evicted.apply(stop.clone(), moment).expect("wanted").job;
    assert_eq!((wanted.status(), wanted.intent), (Status::Running, Intent::Stop));
    // It left by itself before it could be told to.
    let ended = wanted.apply(JobEvent::End { lease_id, end: exit(Exit::Code(1)) }, moment).expect("live");
    assert_eq!(ended.job.status(), Status::Success);
    assert_eq!(ended.ended.map(|ended| ended.outcome), Some(Outcome::Stopped));
    let task = new_job(policy(JobKind::Task, false, 3));
    assert_eq!(task.apply(stop, moment).expect_err("a task").kind, RefusalKind::WrongKind);
}
