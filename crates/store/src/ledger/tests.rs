//! Stories of rows: what is loaded, what happens, what is written.

use jobyard_model::lifecycle::{Outstanding, Policy};
use jobyard_model::retry::Budgets;
use jobyard_model::{
    AttemptEnd, EndedBy, Exit, ExitFacts, Intent, Job, JobEvent, JobId, JobKind, LeaseId, LeaseSettings,
    NodeId, Outputs, Priority, Resources, SessionId, ShapeId, Timestamp, Usage,
};
use uuid::Uuid;

use super::{Ledger, Past, PastAttempt, Terms, Writes};
use crate::rows::{AttemptRow, JobRow, Seat};
use crate::wake::WakeTopic;
use crate::{Report, ReportItem, Verdict};

const JOB: JobId = JobId(Uuid::from_u128(1));
const LEASE: LeaseId = LeaseId(Uuid::from_u128(2));
const NODE: NodeId = NodeId(Uuid::from_u128(3));
const SESSION: SessionId = SessionId(Uuid::from_u128(4));
const NOW: Timestamp = Timestamp(1_000_000);

fn terms(now: Timestamp) -> Terms {
    Terms { now, leases: LeaseSettings::default() }
}

fn seat() -> Seat {
    Seat { owner_id: 1, pool_id: 1, shape_id: ShapeId(1), priority: Priority::TASK_DEFAULT }
}

fn created() -> Writes {
    let policy = Policy {
        kind: JobKind::Task,
        budgets: Budgets { max_retries: 3, backoff_ms: 1_000, no_retry_exit_codes: vec![3, -1] },
        start_within_ms: Some(5_000),
        exclusive: false,
    };
    let mut ledger = Ledger::new(terms(NOW));
    ledger.create(Job::create(JOB, policy, Outstanding::default(), NOW), seat(), "ann");
    ledger.into_writes().unwrap()
}

fn running() -> (JobRow, AttemptRow) {
    let mut ledger = Ledger::new(terms(NOW));
    ledger.load(created().inserted_jobs.remove(0), None).unwrap();
    let claim = JobEvent::Claim {
        lease_id: LEASE,
        node_id: NODE,
        session: SESSION,
        lease_until: NOW.plus_ms(10_000),
    };
    ledger.claim(JOB, claim, Resources::DEFAULT, "informer").unwrap();
    let mut writes = ledger.into_writes().unwrap();
    (writes.updated_jobs.remove(0).after, writes.inserted_attempts.remove(0))
}

fn loaded() -> Ledger {
    let (row, attempt) = running();
    let mut ledger = Ledger::new(terms(NOW.plus_ms(50)));
    ledger.load(row, Some(attempt)).unwrap();
    ledger
}

fn item(report: Report) -> ReportItem {
    ReportItem { job_id: JOB, attempt: 1, lease_id: LEASE, report }
}

fn exit(code: i32) -> Report {
    Report::Ended(AttemptEnd::Exited(ExitFacts {
        ended_by: EndedBy::Itself,
        exit: Exit::Code(code),
        message: "a\0b".repeat(4_000),
        started_at: None,
        ended_at: NOW,
        usage: Usage::default(),
        outputs: Outputs::None,
    }))
}

fn verdicts(ledger: &mut Ledger, reports: Vec<Report>) -> Vec<Verdict> {
    reports.into_iter().map(|report| ledger.report(&item(report)).verdict).collect()
}

#[test]
fn a_new_job_is_one_row_one_event_and_a_wake_up() {
    let writes = created();
    assert_eq!((writes.inserted_jobs.len(), writes.events.len()), (1, 1));
    assert!(writes.wakes.has(WakeTopic::Placement) && writes.wakes.has(WakeTopic::Events));
    let row = &writes.inserted_jobs[0];
    assert_eq!(row.no_retry_exit_codes.as_deref(), Some("[3, -1]"));
    assert_eq!(JobRow::new(&row.to_job(None).unwrap(), row.seat().unwrap(), None).as_ref(), Some(row));
}

#[test]
fn a_whole_life_in_one_batch_ends_once() {
    let mut ledger = loaded();
    let reports = vec![Report::Accepted, Report::Started, exit(0), exit(0), Report::Renewed, exit(1)];
    use Verdict::{Accepted, Already, Stale};
    assert_eq!(verdicts(&mut ledger, reports), [Accepted, Accepted, Accepted, Already, Stale, Stale]);
    let writes = ledger.into_writes().unwrap();
    assert_eq!((writes.deleted_jobs.len(), writes.updated_jobs.len()), (1, 0));
    assert_eq!((writes.deleted_attempts.len(), writes.updated_attempts.len()), (1, 0));
    assert_eq!((writes.history.len(), writes.ends.len()), (1, 1));
    assert_eq!(writes.ends[0].started_ms, Some(NOW.0 + 50));
    assert!(!writes.history[0].end_json.contains("\\u0000") && writes.history[0].end_json.len() < 9_000);
    assert!(writes.nodes[&(NODE, SESSION)].reset);
    assert!(writes.wakes.has(WakeTopic::Placement) && writes.wakes.has(WakeTopic::Logs));
}

#[test]
fn a_renewal_touches_the_attempt_alone_and_appends_no_event() {
    let mut ledger = loaded();
    verdicts(&mut ledger, vec![Report::Started]);
    let writes = ledger.into_writes().unwrap();
    let (row, attempt) = (writes.updated_jobs[0].after.clone(), writes.updated_attempts[0].clone());

    let mut ledger = Ledger::new(terms(NOW.plus_ms(60_000)));
    ledger.load(row, Some(attempt)).unwrap();
    assert_eq!(
        verdicts(&mut ledger, vec![Report::Renewed, Report::Accepted]),
        [Verdict::Accepted, Verdict::Already]
    );
    let writes = ledger.into_writes().unwrap();
    assert_eq!(writes.updated_attempts[0].heard_ms, NOW.0 + 60_000);
    assert_eq!(writes.updated_attempts[0].lease_until_ms, NOW.0 + 240_000);
    assert!(writes.updated_jobs.is_empty() && writes.events.is_empty());
}

#[test]
fn a_foreign_lease_writes_nothing() {
    let mut ledger = loaded();
    let stranger = ReportItem { lease_id: LeaseId(Uuid::from_u128(9)), ..item(exit(0)) };
    assert_eq!(ledger.strangers(std::slice::from_ref(&stranger)), [(JOB, 1)]);
    assert_eq!(ledger.report(&stranger).verdict, Verdict::Stale);
    let newer = ReportItem { attempt: 2, ..item(exit(0)) };
    assert_eq!(ledger.report(&newer).verdict, Verdict::Unknown);
    let unknown = ReportItem { job_id: JobId(Uuid::from_u128(8)), ..item(exit(0)) };
    assert_eq!(ledger.report(&unknown).verdict, Verdict::Unknown);
    assert!(ledger.into_writes().unwrap().is_empty());
}

#[test]
fn history_tells_the_same_report_from_another() {
    let Report::Ended(end) = exit(0) else { unreachable!() };
    let mut ledger = Ledger::new(terms(NOW));
    let past = PastAttempt { lease_id: LEASE, fingerprint: end.fingerprint() };
    ledger.load_past(Past::from([((JOB, 1), past)]));
    assert_eq!(
        verdicts(&mut ledger, vec![exit(0), exit(7), Report::Accepted]),
        [Verdict::Already, Verdict::Stale, Verdict::Stale]
    );
}

#[test]
fn an_early_renewal_is_asked_for_again_and_an_intent_comes_with_every_answer() {
    let mut ledger = loaded();
    ledger.apply(JOB, JobEvent::Raise(Intent::Cancel), "ann").unwrap();
    let answer = ledger.report(&item(Report::Renewed));
    assert_eq!((answer.verdict, answer.intent), (Verdict::Later, Intent::Cancel));
    assert!(ledger.into_writes().unwrap().wakes.has(WakeTopic::Stops));
}

#[test]
fn only_what_fails_to_launch_counts_against_a_node() {
    let silent = |ledger: &mut Ledger, end| ledger.apply(JOB, JobEvent::End { lease_id: LEASE, end }, "i");
    let mut ledger = loaded();
    ledger.terms.now = NOW.plus_ms(20_000);
    silent(&mut ledger, AttemptEnd::Silent).unwrap();
    assert_eq!(ledger.into_writes().unwrap().nodes[&(NODE, SESSION)].bad, 1);
    let mut ledger = loaded();
    silent(&mut ledger, AttemptEnd::NotStarted { why: "full".to_owned() }).unwrap();
    assert!(ledger.into_writes().unwrap().nodes.is_empty());
}
