//! Walks every status × event and the whole table of ends, and keeps docs/job-states.md true.
//!
//! `UPDATE_GOLDEN=1 cargo nextest run -p jobyard-model` rewrites the page.

use std::fmt::Write as _;
use std::path::Path;

use jobyard_model::lifecycle::{End, Outstanding, Policy};
use jobyard_model::retry::{Accounts, Budgets, Ended, FailReason, NextStep, Payer, next_step};
use jobyard_model::{
    AttemptEnd, EndedBy, Exit, ExitFacts, Intent, Job, JobEvent, JobId, JobKind, JobState, LastExit, LeaseId,
    Moment, NodeId, Outcome, Outputs, ServiceRun, SessionId, Status, Timestamp, Usage,
};
use uuid::Uuid;

const NOW: Moment = Moment { now: Timestamp(1_000_000), chance: 0 };
const LEASE: LeaseId = LeaseId(Uuid::from_u128(1));

fn budgets() -> Budgets {
    Budgets { max_retries: 3, backoff_ms: 1000, no_retry_exit_codes: vec![64] }
}

fn policy(kind: JobKind) -> Policy {
    Policy { kind, budgets: budgets(), start_within_ms: Some(1), exclusive: false }
}

fn job(kind: JobKind, state: JobState) -> Job {
    let id = JobId(Uuid::from_u128(9));
    let mut job = Job::create(id, policy(kind), Outstanding::default(), Timestamp(0)).job;
    job.state = state;
    job
}

fn running(kind: JobKind) -> Job {
    let claim = JobEvent::Claim {
        lease_id: LEASE,
        node_id: NodeId(Uuid::from_u128(2)),
        session: SessionId(Uuid::from_u128(3)),
        lease_until: Timestamp(NOW.now.0 - 1),
    };
    job(kind, JobState::Waiting { since: Timestamp(0) }).apply(claim, NOW).expect("claimable").job
}

fn in_status(kind: JobKind, status: Status) -> Job {
    let job = |state| job(kind, state);
    let end = |reason| JobState::Ended(End { status, reason, finished_at: NOW.now });
    match status {
        Status::Ready => job(JobState::Ready { due: Some(Timestamp(1)), artifact_missing: false }),
        Status::Waiting => job(JobState::Waiting { since: Timestamp(0) }),
        Status::Running => running(kind),
        Status::Retry => job(JobState::Retry { due: Timestamp(1) }),
        Status::FinalFailed => job(end(Some(FailReason::RetriesExhausted))),
        Status::Success | Status::Cancelled => job(end(None)),
    }
}

/// The job in this status that the event is for: one whose executable is missing, an attempt that was accepted.
fn meeting(kind: JobKind, event: &str, status: Status) -> Job {
    let lease_until = Timestamp(NOW.now.0 - 1);
    match (event, status) {
        ("artifact_arrived", Status::Ready) => {
            job(kind, JobState::Ready { due: None, artifact_missing: true })
        }
        ("renew" | "end: lease ran out", Status::Running) => {
            let accept = JobEvent::Accept { lease_id: LEASE, lease_until };
            running(kind).apply(accept, NOW).expect("placed").job
        }
        ("restart", Status::Running) => {
            let start = JobEvent::Start { lease_id: LEASE, lease_until };
            running(kind).apply(start, NOW).expect("placed").job
        }
        _ => in_status(kind, status),
    }
}

fn first_exit() -> ServiceRun {
    let last_exit = LastExit { exit: Exit::Code(1), by: EndedBy::Itself, at: Timestamp(0) };
    ServiceRun { restarts: 0, last_exit, next_start: Some(Timestamp(1)) }
}

fn exited(ended_by: EndedBy, exit: Exit) -> AttemptEnd {
    AttemptEnd::Exited(ExitFacts {
        ended_by,
        exit,
        message: String::new(),
        started_at: None,
        ended_at: Timestamp(0),
        usage: Usage::default(),
        outputs: Outputs::None,
    })
}

fn events() -> Vec<(&'static str, JobEvent)> {
    let end = |end| JobEvent::End { lease_id: LEASE, end };
    let until = Timestamp(2_000_000);
    vec![
        ("artifact_arrived", JobEvent::ArtifactArrived),
        ("due", JobEvent::Due),
        ("start_deadline_passed", JobEvent::StartDeadlinePassed),
        (
            "claim",
            JobEvent::Claim {
                lease_id: LEASE,
                node_id: NodeId(Uuid::nil()),
                session: SessionId(Uuid::nil()),
                lease_until: until,
            },
        ),
        ("accept", JobEvent::Accept { lease_id: LEASE, lease_until: until }),
        ("start", JobEvent::Start { lease_id: LEASE, lease_until: until }),
        ("finish", JobEvent::Finish { lease_id: LEASE, lease_until: until }),
        ("renew", JobEvent::Renew { lease_id: LEASE, lease_until: until }),
        ("restart", JobEvent::Restart { lease_id: LEASE, lease_until: until, run: first_exit() }),
        ("end: exit 0", end(exited(EndedBy::Itself, Exit::Code(0)))),
        ("end: exit 1", end(exited(EndedBy::Itself, Exit::Code(1)))),
        ("end: can't be run", end(exited(EndedBy::Itself, Exit::Unrunnable))),
        ("end: platform could not start it", end(exited(EndedBy::Itself, Exit::LaunchFault))),
        ("end: machine goes down", end(exited(EndedBy::Shutdown, Exit::Signal(15)))),
        ("end: surely never started", end(AttemptEnd::NotStarted { why: String::new() })),
        ("end: sidecar or boot gone", end(AttemptEnd::Vanished { why: String::new() })),
        ("end: lease ran out", end(AttemptEnd::Silent)),
        ("evict", JobEvent::Raise(Intent::Evict)),
        ("stop", JobEvent::Raise(Intent::Stop)),
        ("cancel", JobEvent::Raise(Intent::Cancel)),
        ("retry_by_hand", JobEvent::RetryByHand { after_attempt: None }),
    ]
}

fn status_table(kind: JobKind) -> String {
    let mut page = String::from("| event |");
    for status in Status::ALL {
        write!(page, " `{status}` |").expect("a string");
    }
    page.push_str("\n|---|---|---|---|---|---|---|---|\n");
    for (name, event) in events() {
        write!(page, "| {name} |").expect("a string");
        for status in Status::ALL {
            let cell = match meeting(kind, name, status).apply(event.clone(), NOW) {
                Ok(transition) if transition.job.status() == status => "(same)".to_owned(),
                Ok(transition) => format!("`{}`", transition.job.status()),
                Err(refusal) => {
                    assert_eq!(refusal.status, status, "a refusal names the status it met");
                    "–".to_owned()
                }
            };
            write!(page, " {cell} |").expect("a string");
        }
        page.push('\n');
    }
    page
}

fn step_words(step: NextStep) -> String {
    match step {
        NextStep::Succeed => "`success`".to_owned(),
        NextStep::Cancel => "`cancelled`".to_owned(),
        NextStep::Fail(reason) => format!("`final_failed` ({})", reason.as_str()),
        NextStep::Wait { delay_ms } => format!("`waiting` after {delay_ms} ms"),
        NextStep::Retry { delay_ms, payer: Payer::User } => format!("`retry` {delay_ms} ms, user pays"),
        NextStep::Retry { delay_ms, .. } => format!("`retry` {delay_ms} ms, platform pays"),
    }
}

fn ends_table() -> String {
    let accounts = [
        ("nothing spent", Accounts::default()),
        ("one unpaid in a row", Accounts { unpaid_in_row: 1, ..Accounts::default() }),
        (
            "all spent",
            Accounts { retry_count: 3, platform_failures: 3, unpaid_in_row: 9, ..Accounts::default() },
        ),
    ];
    let mut page = String::from(
        "| outcome | retryable | kind | accounts | run | evict | stop | cancel |\n|---|---|---|---|---|---|---|---|\n",
    );
    for outcome in Outcome::ALL {
        for retryable in [true, false] {
            if !retryable && outcome != Outcome::Failed {
                continue;
            }
            let ended = Ended { outcome, ended_by: None, retryable };
            for (words, spent) in &accounts {
                let of = |kind| steps_of(kind, ended, spent);
                let (task, service) = (of(JobKind::Task), of(JobKind::Service));
                let rows = match task == service {
                    true => vec![("both", task)],
                    false => vec![("task", task), ("service", service)],
                };
                for (kind, steps) in rows {
                    let outcome = outcome.as_str();
                    writeln!(page, "| `{outcome}` | {retryable} | {kind} | {words} |{steps}")
                        .expect("a string");
                }
            }
        }
    }
    page
}

/// The cells of a row: what follows, by intent.
fn steps_of(kind: JobKind, ended: Ended, spent: &Accounts) -> String {
    let step = |intent| step_words(next_step(intent, ended, spent, &policy(kind), NOW));
    Intent::ALL.into_iter().fold(String::new(), |cells, intent| format!("{cells} {} |", step(intent)))
}

fn outcome_table() -> String {
    use jobyard_model::attempt::name_outcome;
    let exits = [Exit::Code(0), Exit::Code(1), Exit::Signal(9), Exit::Unrunnable, Exit::LaunchFault];
    let mut page = String::from(
        "| ended by | exit | kind | run | evict | stop | cancel |\n|---|---|---|---|---|---|---|\n",
    );
    for ended_by in EndedBy::ALL {
        for exit in exits {
            for kind in [JobKind::Task, JobKind::Service] {
                write!(page, "| {} | {exit:?} | {} |", ended_by.as_str(), kind.as_str()).expect("a string");
                for intent in Intent::ALL {
                    let end = exited(ended_by, exit);
                    let outcome = name_outcome(&end, jobyard_model::Phase::Running, intent, kind);
                    write!(page, " `{}` |", outcome.as_str()).expect("a string");
                }
                page.push('\n');
            }
        }
    }
    page
}

#[test]
fn the_page_of_job_states_is_what_the_code_does() {
    let page = format!(
        "# Job states\n\nGenerated from `crates/model` by its test `job_states`; rewrite with \
         `UPDATE_GOLDEN=1 cargo nextest run -p jobyard-model`.\n\n\
         ## What an event makes of a status\n\nRows are events, columns the status they meet, cells the status after. \
         `–` is a refusal that changes nothing. The job is a task with nothing spent; the attempt's lease is the one \
         the event names, and has run out.\n\n{}\n\
         The same for a service. Its task process leaves and is started again inside its attempt, which `restart` \
         tells; the attempt ends as below.\n\n{}\n\
         ## What an ended attempt is called\n\nFrom what the sidecar saw and what was wanted.\n\n{}\n\
         When outputs can't be kept after exit 0 by itself, the attempt is `failed`; when they are not up in time, `lost`. \
         The exit code is kept.\n\n\
         Without a witness: surely never started, or a claim lease that ran out, is `not_started`; a dead sidecar, a \
         new boot id, or a lease that ran out after acceptance is `lost`.\n\n\
         ## What follows an ended attempt\n\nThe columns are intents. `max_retries` 3, base delay 1 s, without jitter; \
         the platform's limit is 3.\n\n{}",
        status_table(JobKind::Task),
        status_table(JobKind::Service),
        outcome_table(),
        ends_table()
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/job-states.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &page).expect("docs/ is writable");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/job-states.md is not what the code does; look at it, then rewrite it");
}

#[test]
fn every_event_of_a_foreign_lease_is_refused_in_every_status() {
    let foreign = LeaseId(Uuid::from_u128(99));
    let until = Timestamp(2_000_000);
    let fenced = [
        JobEvent::Accept { lease_id: foreign, lease_until: until },
        JobEvent::Start { lease_id: foreign, lease_until: until },
        JobEvent::Renew { lease_id: foreign, lease_until: until },
        JobEvent::Restart { lease_id: foreign, lease_until: until, run: first_exit() },
        JobEvent::End { lease_id: foreign, end: exited(EndedBy::Itself, Exit::Code(0)) },
        JobEvent::End { lease_id: foreign, end: AttemptEnd::Silent },
    ];
    for status in Status::ALL {
        for event in &fenced {
            for kind in [JobKind::Task, JobKind::Service] {
                let answer = in_status(kind, status).apply(event.clone(), NOW);
                assert!(answer.is_err(), "{status} took {}", event.name());
            }
        }
    }
}
