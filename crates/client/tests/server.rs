//! The library against a real server, which is stopped and killed on the way.

#[path = "server/folders.rs"]
mod folders;
mod yard;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use jobyard_client::json::{JobSubmit, Seconds, TokenCreate};
use jobyard_client::{Change, Error, EventFilter, FollowOptions, JobFilter, LogQuery, Role, Status};
use jobyard_model::node::NodeGate;
use jobyard_model::{Exit, Intent};
use jobyard_store::{LogStream, Store as _};
use yard::{Yard, eventually};

fn job(name: &str) -> JobSubmit {
    JobSubmit { name: Some(name.to_owned()), command: vec!["x".to_owned()], ..JobSubmit::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_submitted_read_and_listed() {
    let yard = Yard::start().await;
    let jobs = yard.client().jobs();
    let one = jobs.submit(job("one")).await.expect("accepted");
    assert_eq!((one.owner_id.as_str(), one.submitted_by.as_str()), ("search", "tester"));
    let again = JobSubmit { idempotency_key: one.idempotency_key.clone(), ..job("one") };
    assert_eq!(jobs.submit(again).await.expect("the same").id, one.id);
    let batch = jobs.submit_batch((0..7).map(|_| job("many")).collect()).await.expect("accepted");
    assert!(batch.items.iter().all(|item| item.created));

    let filter = JobFilter { name: Some("many".to_owned()), limit: Some(3), ..JobFilter::default() };
    let page = jobs.list(&filter).await.expect("a page");
    assert_eq!(page.items.len(), 3);
    let listed: Vec<_> = jobs.list_all(filter).map_ok(|job| job.id).try_collect().await.expect("all pages");
    let mut wanted: Vec<_> = batch.items.iter().map(|item| item.id).collect();
    wanted.reverse();
    assert_eq!(listed, wanted);

    let odd = JobFilter { text: Some("a&b=c #?%\u{e4}".to_owned()), ..JobFilter::default() };
    assert!(jobs.list(&odd).await.expect("no such job").items.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_refused_with_every_fault_and_leaves_nothing() {
    let yard = Yard::start().await;
    let jobs = yard.client().jobs();
    let document = serde_json::json!({"comand": ["x"], "priority": 1000, "resources": {"cpu": -1}});
    let error = jobs.submit_document(document).await.expect_err("refused");
    let Error::Problem(problem) = &error else { panic!("{error}") };
    let pointers: Vec<_> = problem.errors.iter().map(|fault| fault.pointer.as_str()).collect();
    for pointer in ["/comand", "/priority", "/resources/cpu"] {
        assert!(pointers.contains(&pointer), "{pointers:?}");
    }
    assert!(jobs.list(&JobFilter::default()).await.expect("a list").items.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_and_watching_outlast_a_server_that_is_killed_and_comes_back() {
    let mut yard = Yard::start().await;
    let id = yard.submit(&["x"]).await;
    let client = yard.client();
    let waiting = tokio::spawn({
        let jobs = client.jobs();
        async move { jobs.wait(id).await }
    });
    let created = client.jobs().events(id).await.expect("a history").pop().expect("the creation").cursor;
    let filter = EventFilter { job_id: Some(id), ..EventFilter::default() };
    let mut changes = client.events().watch(filter, Some(created.clone()));
    let mut seen = Vec::new();
    let task = yard.node("w").await.start(id).await;
    follow_until(&mut changes, "running", &mut seen).await;

    yard.kill_server().await;
    task.exit(Exit::Code(0)).await;
    yard.serve().await;

    follow_until(&mut changes, "success", &mut seen).await;
    let history = client.jobs().events(id).await.expect("a history");
    let wanted: Vec<_> =
        history.into_iter().map(|event| event.cursor).filter(|cursor| *cursor != created).collect();
    assert_eq!(seen, wanted);
    let ended = waiting.await.expect("no panic").expect("waited");
    assert_eq!((ended.status, ended.result.and_then(|result| result.exit_code)), (Status::Success, Some(0)));
}

/// Notes the events up to the one that leads to this status or phase.
async fn follow_until(
    changes: &mut BoxStream<'static, Result<Change, Error>>,
    to: &str,
    seen: &mut Vec<String>,
) {
    loop {
        match changes.next().await.expect("no end").expect("outlasted") {
            Change::Event(event) => {
                seen.push(event.cursor);
                if event.to == to {
                    return;
                }
            }
            Change::Missed => panic!("nothing is older than the history kept"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_has_a_limit_for_those_who_want_one() {
    let yard = Yard::start().await;
    let id = yard.submit(&["x"]).await;
    let error = yard.client().jobs().wait_for(id, Duration::from_millis(50)).await.expect_err("it waits on");
    assert!(matches!(error, Error::StillRunning { job_id } if job_id == id), "{error}");
}

/// What was followed so far, a text a (attempt, stream).
type Told = Arc<Mutex<BTreeMap<(u32, &'static str), String>>>;

async fn has_told(told: &Told, attempt: u32, stream: &'static str, text: &str) {
    let has = async || (told.lock().expect("no panic").get(&(attempt, stream))? == text).then_some(());
    eventually(&format!("{text} of {attempt} {stream}"), has).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_followed_through_attempts_and_servers_without_gap_or_double() {
    let mut yard = Yard::start().await;
    let jobs = yard.client().jobs();
    let wanted = JobSubmit { max_retries: Some(1), backoff: Some(Seconds { ms: 1 }), ..job("chatty") };
    let id = jobs.submit(wanted).await.expect("accepted").id;
    let told = Told::default();
    let following = tokio::spawn({
        let (mut log, told) = (jobs.follow(id, FollowOptions::default()), told.clone());
        async move {
            while let Some(piece) = log.try_next().await? {
                let mut told = told.lock().expect("no panic");
                let text = told.entry((piece.attempt, piece.stream.as_str())).or_default();
                assert_eq!(text.len() as u64, piece.from, "no gap and no double");
                text.push_str(std::str::from_utf8(&piece.bytes).expect("text"));
            }
            Ok::<_, Error>(())
        }
    });
    let node = yard.node("w").await;
    let first = node.start(id).await;
    first.write(LogStream::Stdout, 0, b"one ").await;
    has_told(&told, 1, "stdout", "one ").await;
    yard.stop_server().await;
    first.write(LogStream::Stdout, 4, b"two ").await;
    yard.serve().await;
    has_told(&told, 1, "stdout", "one two ").await;
    yard.kill_server().await;
    first.write(LogStream::Stderr, 0, b"oh").await;
    first.exit(Exit::Code(1)).await;
    yard.serve().await;
    eventually("the delay is over", async || {
        yard.store.release_due(10).await.expect("looked");
        (jobs.get(id).await.ok()?.status == Status::Waiting).then_some(())
    })
    .await;
    let second = node.start(id).await;
    second.write(LogStream::Stdout, 0, b"again").await;
    second.exit(Exit::Code(0)).await;

    following.await.expect("no panic").expect("outlasted");
    let told = told.lock().expect("no panic").clone();
    let wanted = [((1, "stderr"), "oh"), ((1, "stdout"), "one two "), ((2, "stdout"), "again")];
    assert_eq!(told, wanted.map(|(of, text)| (of, text.to_owned())).into());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_read_whole_in_parts_and_from_its_end() {
    let yard = Yard::start().await;
    let jobs = yard.client().jobs();
    let id = yard.submit(&["x"]).await;
    let task = yard.node("w").await.start(id).await;
    task.write(LogStream::Stdout, 0, b"a\nb\n").await;
    task.write(LogStream::Stderr, 0, b"\xff\x00").await;
    task.write(LogStream::Stdout, 4, b"c\n").await;
    let out = Some(jobyard_client::LogStream::Stdout);
    let cases: [(LogQuery, &[u8]); 5] = [
        (LogQuery::default(), b"a\nb\n\xff\x00c\n"),
        (LogQuery { stream: Some(jobyard_client::LogStream::Stderr), ..LogQuery::default() }, b"\xff\x00"),
        (LogQuery { stream: out, from: Some(1), to: Some(5), ..LogQuery::default() }, b"\nb\nc"),
        (LogQuery { stream: out, tail: Some(2), ..LogQuery::default() }, b"b\nc\n"),
        (LogQuery { attempt: Some(1), stream: out, from: Some(6), ..LogQuery::default() }, b""),
    ];
    for (query, wanted) in cases {
        let pieces: Vec<_> = jobs.logs(id, &query).await.expect("a log").try_collect().await.expect("whole");
        assert_eq!(pieces.concat(), wanted, "{query:?}");
    }
    let both = LogQuery { from: Some(1), ..LogQuery::default() };
    assert_eq!(
        jobs.logs(id, &both).await.err().and_then(|error| Some(error.code()?.to_owned())).as_deref(),
        Some("invalid_request")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_and_retry_do_no_harm_when_repeated() {
    let yard = Yard::start().await;
    let jobs = yard.client().jobs();
    let id = yard.submit(&["x"]).await;
    for _ in 0..2 {
        assert_eq!(jobs.cancel(id).await.expect("cancelled").status, Status::Cancelled);
    }
    let retried = jobs.retry(id).await.expect("retried");
    assert_eq!((retried.status, retried.round), (Status::Waiting, 2));
    jobs.retry(id).await.expect_err("it is not over");
    assert_eq!(jobs.get(id).await.expect("there").round, 2);
    let attempts = jobs.attempts(id).await.expect("a list");
    assert!(attempts.is_empty());
    assert_eq!(jobs.why(id).await.expect("a reason").status, Status::Waiting);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_job_is_cancelled_when_its_task_has_gone() {
    let yard = Yard::start().await;
    let jobs = yard.client().jobs();
    let id = yard.submit(&["x"]).await;
    let task = yard.node("w").await.start(id).await;
    let wanted = jobs.cancel(id).await.expect("wanted");
    assert_eq!((wanted.status, wanted.intent), (Status::Running, Intent::Cancel));
    task.stopped().await;
    let ended = jobs.wait(id).await.expect("waited");
    assert_eq!((ended.status, ended.result.and_then(|result| result.signal)), (Status::Cancelled, Some(15)));
}

#[tokio::test(flavor = "multi_thread")]
async fn artifacts_go_up_once_and_come_back_whole() {
    let yard = Yard::start().await;
    let artifacts = yard.client().artifacts();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (here, back) = (directory.path().join("here"), directory.path().join("back"));
    for size in [0, 1, 3_000_000] {
        let content: Vec<u8> = (0..size).map(|index: u32| (index % 251) as u8).collect();
        std::fs::write(&here, &content).expect("written");
        let pushed = artifacts.push_file(&here).await.expect("pushed");
        assert!(pushed.sent);
        assert!(!artifacts.push_file(&here).await.expect("there").sent);
        assert_eq!(artifacts.pull_to_file(pushed.hash, &back).await.expect("pulled"), u64::from(size));
        assert!(std::fs::read(&back).expect("there") == content);
    }
    let folder = artifacts.push_file(directory.path()).await.expect_err("a folder is no file");
    assert!(matches!(folder, Error::File { .. }), "{folder}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_what_and_who_did() {
    let yard = Yard::start().await;
    let admin = yard.client();
    let wanted =
        TokenCreate { name: "reader".to_owned(), role: Role::Viewer, owners: Vec::new(), expires_in: None };
    let created = admin.tokens().create(&wanted).await.expect("made");
    let reader = yard.client_with(&created.secret);
    assert_eq!(reader.me().await.expect("known").name, "reader");
    let refused = reader.jobs().submit(job("x")).await.expect_err("too weak");
    assert!(matches!(&refused, Error::Problem(problem) if problem.status == 403), "{refused}");
    admin.tokens().revoke(created.token.id).await.expect("revoked");
    let unknown = reader.me().await.expect_err("revoked");
    assert!(matches!(&unknown, Error::Problem(problem) if problem.status == 401), "{unknown}");
    assert_eq!(admin.tokens().list().await.expect("a list").len(), 2);
    let audit = admin.audit().list(None).await.expect("a page");
    assert!(audit.items.iter().any(|entry| entry.who == "tester"), "{audit:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fleet_is_seen_and_steered() {
    let yard = Yard::start().await;
    yard.node("w-12").await;
    let client = yard.client();
    let node = client.nodes().list().await.expect("a list").remove(0);
    assert_eq!((node.name.as_str(), node.gate), ("w-12", NodeGate::Open));
    assert_eq!(client.nodes().cordon(node.id).await.expect("cordoned").gate, NodeGate::Cordoned);
    assert_eq!(client.nodes().drain(node.id).await.expect("draining").gate, NodeGate::Draining);
    assert_eq!(client.nodes().uncordon(node.id).await.expect("open").gate, NodeGate::Open);
    client.pools().put("gpu").await.expect("made");
    client.pools().put("a\nb").await.expect_err("no name for a pool");
    let pools: Vec<_> =
        client.pools().list().await.expect("a list").into_iter().map(|pool| pool.name).collect();
    assert_eq!(pools, ["default", "gpu"]);
    let summary = client.summary().await.expect("a summary");
    assert_eq!((summary.nodes, summary.datastore.as_str()), (1, "sqlite"));
    client.alive().await.expect("it lives");
}
