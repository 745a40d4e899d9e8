//! Goldens of what people see. `INSTA_UPDATE=always` rewrites them.

use jiff::tz::TimeZone;
use jobyard_client::json::{Artifact, Attempt, Event, Job, Node, Page, Token, TokenCreated, Tree, Why};
use serde_json::{Value, json};

use super::*;

const ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

fn plain() -> Style {
    Style { colour: Colour::Plain, width: None, zone: TimeZone::UTC }
}

fn job(over: &Value) -> Job {
    let mut document = json!({
        "id": ID, "owner_id": "search", "submitted_by": "nightly", "name": "count", "kind": "task",
        "status": "running", "reason": "running", "binary_url": null, "command": ["sh", "-c", "echo 'a b'"],
        "env": {"LANG": "C"}, "created_time": "2026-05-01T09:30:00.000Z", "started_time": "2026-05-01T09:30:01.500Z",
        "finished_time": null, "run_at": null, "start_within": null, "retry_count": 1, "max_retries": 3, "backoff": 1,
        "no_retry_exit_codes": [], "platform_failures": 0, "evictions": 2, "round": 1, "timeout": 5400,
        "stop_grace": 10, "resources": {"cpu": 0.5, "memory": 268_435_456, "cpu_limit": 2}, "io_class": "mixed",
        "runtime": "process", "priority": 50, "preemptible": false, "exclusive": false, "pool": "default",
        "node_labels": {"zone": "a"}, "labels": {"set": "docs"}, "origin": null, "idempotency_key": "k-1",
        "intent": "run", "result": null, "attempt": 2,
    });
    document.as_object_mut().unwrap().extend(over.as_object().unwrap().clone());
    serde_json::from_value(document).unwrap()
}

fn ended() -> Job {
    job(&json!({
        "status": "final_failed", "reason": "retries_exhausted", "finished_time": "2026-05-01T09:35:00.000Z",
        "result": {"attempt": 2, "outcome": "failed", "exit_code": 3, "signal": null, "message": "",
                   "usage": {"wall": 298.5, "cpu_user": 1.25, "cpu_system": 0.05, "peak_memory_bytes": 1_610_612_736_u64,
                             "limits": "cgroup-v2"}},
    }))
}

fn attempts() -> Vec<Attempt> {
    serde_json::from_value(json!([
        {"number": 1, "round": 1, "node_id": ID, "node_name": "w-12", "phase": null, "intent": "run",
         "outcome": "failed", "ended_by": "itself", "exit_code": 3, "signal": null, "message": "",
         "placed_time": "2026-05-01T09:30:01.000Z", "accepted_time": "2026-05-01T09:30:01.000Z",
         "started_time": "2026-05-01T09:30:01.500Z", "finished_time": "2026-05-01T09:30:02.750Z", "lease_until": null,
         "usage": {"wall": 1.25, "cpu_user": 0.9, "cpu_system": 0.05, "peak_memory_bytes": 7_340_032,
                   "limits": "cgroup-v1"}},
        {"number": 2, "round": 1, "node_id": ID, "node_name": "w-13", "phase": null, "intent": "cancel",
         "outcome": "cancelled", "ended_by": "stop", "exit_code": null, "signal": 9, "message": "killed after the grace",
         "placed_time": "2026-05-01T09:31:00.000Z", "accepted_time": null, "started_time": null,
         "finished_time": "2026-05-01T09:32:00.000Z", "lease_until": null, "usage": null},
        {"number": 3, "round": 2, "node_id": ID, "node_name": "w-12", "phase": "starting", "intent": "run",
         "outcome": null, "ended_by": null, "exit_code": null, "signal": null, "message": "",
         "placed_time": "2026-05-01T09:33:00.000Z", "accepted_time": null, "started_time": null,
         "finished_time": null, "lease_until": "2026-05-01T09:36:00.000Z", "usage": null},
    ]))
    .unwrap()
}

#[test]
fn a_list_of_jobs() {
    let hostile =
        job(&json!({"name": "a\nb\u{1b}[31m\u{202e}", "status": "waiting", "reason": "", "attempt": null,
                             "started_time": null}));
    let list = JobList(Page { items: vec![job(&json!({})), ended(), hostile], next_cursor: None });
    insta::assert_snapshot!(list.table(&plain()));
}

#[test]
fn an_empty_list_has_its_heading_alone() {
    let list = JobList(Page { items: Vec::new(), next_cursor: None });
    assert_eq!(list.table(&plain()), "ID  STATUS  NAME  ATTEMPT  CREATED  RAN  RESULT\n");
}

#[test]
fn a_narrow_terminal_wraps_text_and_leaves_ids_whole() {
    let wordy = job(&json!({"name": "a name of many words that does not fit into what is left of the line"}));
    let list = JobList(Page { items: vec![wordy], next_cursor: None });
    let table = list.table(&Style { width: Some(120), ..plain() });
    assert!(table.contains(ID), "{table}");
    assert!(table.lines().count() > 2 && table.lines().all(|line| line.chars().count() <= 120), "{table}");
}

#[test]
fn a_job_with_its_attempts() {
    insta::assert_snapshot!(JobDetail { job: ended(), attempts: attempts() }.table(&plain()));
}

#[test]
fn a_service_that_waits_for_its_next_start() {
    let last_exit =
        json!({"exit_code": null, "signal": 9, "ended_by": "memory", "time": "2026-05-01T09:34:00.000Z"});
    let over = json!({
        "kind": "service", "reason": "restarting", "timeout": null, "restarts": 4, "last_exit": last_exit,
        "next_start": "2026-05-01T09:34:16.000Z",
    });
    let attempt: Attempt = serde_json::from_value(json!({
        "number": 3, "round": 1, "node_id": ID, "node_name": "w-12", "phase": "running", "intent": "run",
        "outcome": null, "ended_by": null, "exit_code": null, "signal": null, "message": "",
        "placed_time": "2026-05-01T09:33:00.000Z", "accepted_time": null, "started_time": null,
        "finished_time": null, "lease_until": "2026-05-01T09:36:00.000Z", "usage": null, "restarts": 4,
        "last_exit": last_exit, "next_start": "2026-05-01T09:34:16.000Z",
    }))
    .unwrap();
    insta::assert_snapshot!(JobDetail { job: job(&over), attempts: vec![attempt] }.table(&plain()));
}

#[test]
fn colours_are_beside_the_word_and_only_where_they_are_wanted() {
    let coloured = JobOutcomes(vec![ended()]).table(&Style { colour: Colour::Wanted, ..plain() });
    assert!(coloured.contains("\u{1b}[") && coloured.contains("final_failed"), "{coloured:?}");
    assert!(!JobOutcomes(vec![ended()]).table(&plain()).contains('\u{1b}'));
}

#[test]
fn a_history() {
    let events: Vec<Event> = serde_json::from_value(json!([
        {"cursor": "0-1", "time": "2026-05-01T09:30:00.000Z", "job_id": ID, "attempt": null, "who": "nightly",
         "from": "", "to": "waiting", "why": ""},
        {"cursor": "0-2", "time": "2026-05-01T09:30:01.000Z", "job_id": ID, "attempt": 1, "who": "informer",
         "from": "waiting", "to": "placed", "why": "on w-12"},
    ]))
    .unwrap();
    insta::assert_snapshot!(EventList { items: events }.table(&plain()));
}

#[test]
fn why_a_job_waits() {
    let why: Why = serde_json::from_value(json!({
        "status": "waiting", "reason": "no_node_fits", "summary": "no node has 4 cores to spare",
        "remedy": "wait for w-12, or ask for less", "gates": [
            {"gate": "artifact", "open": true, "detail": "there", "opens_time": null},
            {"gate": "backoff", "open": false, "detail": "after a failure", "opens_time": "2026-05-01T09:31:00.000Z"},
        ],
        "nodes": [
            {"node_id": ID, "name": "w-12", "fits": false, "obstacle": "1.5 of 8 cores free", "lasting": false},
            {"node_id": ID, "name": "w-13", "fits": false, "obstacle": "has 2 cores", "lasting": true},
            {"node_id": ID, "name": "w-14", "fits": true, "obstacle": "", "lasting": false},
        ],
    }))
    .unwrap();
    insta::assert_snapshot!(why.table(&plain()));
}

fn node(over: &Value) -> Node {
    let mut document = json!({
        "id": ID, "name": "w-12", "pool": "default", "available": true, "gate": "open", "suspended": null,
        "quarantined": null, "heard_time": "2026-05-01T09:30:00.000Z", "capacity": {"cpu": 8, "memory": 17_179_869_184_u64},
        "reserved": {"cpu": 0.5, "memory": 268_435_456}, "attempts": 3, "max_attempts": 1000, "labels": {},
        "runtimes": ["process"], "containment": "cgroup", "version": "0.1.0",
    });
    document.as_object_mut().unwrap().extend(over.as_object().unwrap().clone());
    serde_json::from_value(document).unwrap()
}

#[test]
fn the_fleet() {
    let items = vec![
        node(&json!({})),
        node(&json!({"name": "w-13", "gate": "cordoned"})),
        node(&json!({"name": "w-14", "gate": "draining", "available": false})),
        node(&json!({"name": "w-15", "suspended": "5 launches failed in a row", "available": false})),
        node(&json!({"name": "w-16", "available": false})),
    ];
    insta::assert_snapshot!(NodeList { items }.table(&plain()));
}

#[test]
fn tokens_and_artifacts() {
    let token: Token = serde_json::from_value(json!({
        "id": ID, "name": "nightly", "role": "submitter", "owners": ["search", "ads"],
        "created_time": "2026-05-01T09:30:00.000Z", "expires_time": "2026-06-01T09:30:00.000Z", "revoked_time": null,
    }))
    .unwrap();
    insta::assert_snapshot!(TokenList { items: vec![token.clone()] }.table(&plain()));
    let created = TokenSecret(TokenCreated { secret: "jy_secret".to_owned(), token });
    assert_eq!(created.table(&plain()), "jy_secret\n");
    let artifact = Artifact { sha256: "ab".repeat(32), size_bytes: 7 };
    assert_eq!(ArtifactName(artifact).table(&plain()), format!("sha256:{}\n", "ab".repeat(32)));
    let tree = Tree { sha256: "cd".repeat(32), files: 2, size_bytes: 7 };
    assert_eq!(TreeName(tree).table(&plain()), format!("sha256:{}\n", "cd".repeat(32)));
}

/// What the API sends, `-o json` prints: no field more or less, none in another order of nesting.
#[test]
fn json_is_the_documents_own() {
    let wanted = serde_json::to_value(ended()).unwrap();
    let detail = JobDetail { job: ended(), attempts: attempts() };
    assert_eq!(serde_json::to_value(&detail).unwrap(), wanted);
    assert_eq!(serde_json::to_value(JobOutcomes(vec![ended()])).unwrap(), wanted);
    let two = serde_json::to_value(JobOutcomes(vec![ended(), ended()])).unwrap();
    assert_eq!(two, json!({"items": [wanted, wanted], "next_cursor": null}));
    let list = JobList(Page { items: vec![ended()], next_cursor: Some("c".to_owned()) });
    assert_eq!(serde_json::to_value(list).unwrap(), json!({"items": [wanted], "next_cursor": "c"}));
}
