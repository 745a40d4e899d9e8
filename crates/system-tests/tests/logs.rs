//! Logs under stress: what is written as fast as it can be is kept whole, in bounded memory and on a bounded disk; and
//! what a node has shipped is readable when the node is gone.

use std::path::Path;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use jobyard_client::json::JobSubmit;
use jobyard_client::{Client, JobId, JobKind, LogQuery, LogStream, Outcome, Status};
use jobyard_system_tests::{
    Datastore, Loudness, Notebook, Role, Signal, Yard, YardPlan, ended, eventually, many_loud_attempts,
    one_loud_attempt, submit, submit_all, until_over, until_phase,
};

/// docs/operations.md, "Logs": by how much a role may grow.
const ROLE_BOUND_BYTES: u64 = 64 << 20;
/// The same: what a sidecar has for itself.
const SIDECAR_BOUND_BYTES: u64 = 512 << 10;

fn is_bounded(loudness: &Loudness, written_bytes: u64) {
    eprintln!("{loudness:?}");
    for bytes in &loudness.roles_grown_bytes {
        assert!(*bytes <= ROLE_BOUND_BYTES, "a role grew by {bytes} bytes: {loudness:?}");
    }
    assert!(loudness.sidecars_bytes <= loudness.sidecars as u64 * SIDECAR_BOUND_BYTES, "{loudness:?}");
    // What was sent twice, because an answer was lost, is the only waste.
    assert!(loudness.stored_bytes <= written_bytes + written_bytes / 8, "{loudness:?}");
    assert!(loudness.stored_files as u64 <= 16 + written_bytes / (256 << 10), "crumbs: {loudness:?}");
}

#[tokio::test]
async fn one_attempt_writes_as_fast_as_it_can_on_sqlite() {
    let yard = YardPlan::on(Datastore::Sqlite).raise().await;
    is_bounded(&one_loud_attempt(&yard, 200_000_000).await, 200_000_000);
}

#[tokio::test]
async fn one_attempt_writes_as_fast_as_it_can_on_postgres() {
    let yard = YardPlan::on(Datastore::Postgres).raise().await;
    is_bounded(&one_loud_attempt(&yard, 100_000_000).await, 100_000_000);
}

#[tokio::test]
async fn two_hundred_attempts_write_at_once() {
    // So many starts at once may take longer than the short leases of a yard.
    let yard = YardPlan::on(Datastore::Sqlite).lease_seconds(60).claim_lease_seconds(60).raise().await;
    is_bounded(&many_loud_attempts(&yard, 200, 500_000).await, 200 * 500_000);
}

async fn stdout(client: &Client, id: JobId) -> Option<String> {
    let query = LogQuery { stream: Some(LogStream::Stdout), ..LogQuery::default() };
    let pieces = client.jobs().logs(id, &query).await.ok()?;
    let bytes = pieces.map_ok(|piece| piece.to_vec()).try_concat().await.ok()?;
    Some(String::from_utf8(bytes).expect("text"))
}

/// B076: its worker is killed, then its sidecar and the task with it, and the data directory is gone. What was written
/// half a second before is there, through either server, and the attempt says how it ended.
#[tokio::test]
async fn what_a_lost_node_has_shipped_is_readable_through_either_server() {
    let mut yard = YardPlan::on(Datastore::Postgres).in_pairs().raise().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    yard.terminate(Role::OtherWorker);
    let enough = yard.dir().join("enough");
    let script = format!(
        "i=0; while [ ! -e {} ]; do echo $i $(date +%s%N); i=$((i+1)); sleep 0.05; done",
        enough.display()
    );
    let id = submit(&client, notebook.job(&script)).await;
    // Not the first one, if that was placed on the node that has just gone.
    let number = until_phase(&client, id, "running").await.number;
    let lines = async || Some(stdout(&client, id).await?.lines().count()).filter(|lines| *lines > 20);
    let seen = eventually("some lines", lines).await;
    let killed_at = std::time::UNIX_EPOCH.elapsed().expect("a clock");
    yard.kill(Role::Worker);
    for sidecar in yard.sidecars() {
        let pid = rustix::process::Pid::from_raw(i32::try_from(sidecar).expect("a pid")).expect("a pid");
        rustix::process::kill_process(pid, Signal::KILL).expect("it lives");
    }
    let folder = yard.dir().join("worker");
    let node_id = std::fs::read(folder.join("node-id")).expect("an id");
    std::fs::remove_dir_all(&folder).expect("removable");
    // For the yard, which removes the groups named after it.
    std::fs::create_dir(&folder).expect("writable");
    std::fs::write(folder.join("node-id"), node_id).expect("writable");
    std::fs::write(enough, "").expect("writable");
    yard.start(Role::OtherWorker).await;
    let lost = until_over(&client, id, number).await;
    assert_eq!(lost.outcome, Some(Outcome::Lost), "{}", lost.message);
    assert_eq!(ended(&client, id).await.status, Status::Success);
    yard.kill(Role::Server);
    let client = yard.client_of(Role::OtherServer);
    let query = LogQuery { stream: Some(LogStream::Stdout), attempt: Some(number), ..LogQuery::default() };
    let pieces = client.jobs().logs(id, &query).await.expect("a log");
    let log = pieces.map_ok(|piece| piece.to_vec()).try_concat().await.expect("all of it");
    let log = String::from_utf8(log).expect("text");
    let mut last = Duration::ZERO;
    for (number, line) in log.lines().enumerate() {
        let (count, at) = line.split_once(' ').expect("two words");
        assert_eq!(count, number.to_string(), "no gap");
        last = Duration::from_nanos(at.parse().expect("a time"));
    }
    assert!(log.lines().count() >= seen, "what was readable is readable");
    eprintln!("shipped until {:?} before the kill", killed_at.saturating_sub(last));
}

/// Nothing of what is sent again and again while the datastore is away stays in the artifact directory.
#[tokio::test]
async fn an_outage_of_the_datastore_leaves_no_segments_behind() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    let mut notebook = Notebook::in_folder(yard.dir());
    let script = format!("{}; seq 100000 400000; {}", notebook.wait(), notebook.wait());
    let ids = submit_all(&client, vec![notebook.job(&script)]).await;
    until_phase(&client, ids[0], "running").await;
    yard.stop_datastore();
    notebook.open_gate();
    let refused = "could not be carried out";
    eventually("several refused reports", async || {
        (yard.said(Role::Server).matches(refused).count() >= 6).then_some(())
    })
    .await;
    yard.start_datastore();
    assert_eq!(ended(&client, ids[0]).await.attempt, Some(1));
    let wanted: String = (100_000..=400_000).map(|number| format!("{number}\n")).collect();
    assert!(stdout(&client, ids[0]).await.is_some_and(|log| log == wanted), "it is whole");
    let folder = yard.dir().join("artifacts/segments");
    let output =
        std::process::Command::new("find").arg(folder).args(["-type", "f", "-printf", "%s\n"]).output();
    let sizes = String::from_utf8(output.expect("find").stdout).expect("numbers");
    let stored: usize = sizes.lines().map(|size| size.parse::<usize>().expect("a number")).sum();
    assert!(stored <= wanted.len(), "{stored} bytes of segments for a log of {}", wanted.len());
}

const ROUNDS: u32 = 40;
/// Of each round.
const ROUND_BYTES: usize = 100_000;
const LIMIT_BYTES: u64 = 500_000;

/// A service that says eight times as much as its node may hold, while its worker is killed and stopped in between:
/// nothing of it is cut, nothing is lost, and the node holds no more than the limit.
async fn a_service_may_say_more_than_the_limit(yard: YardPlan) {
    let mut yard = yard.worker_setting(&format!("log_limit_bytes = {LIMIT_BYTES}")).raise().await;
    let client = yard.client();
    let go = yard.dir().join("go");
    std::fs::create_dir(&go).expect("writable");
    // The process leaves after each half of the rounds, so the log also goes on over a restart of the service.
    let script = format!(
        "n=$(cat {go}/round 2>/dev/null || echo 0); while :; do \
           head -c {ROUND_BYTES} /dev/zero | tr '\\0' $((n % 10)); n=$((n+1)); \
           until [ -e {go}/$n ]; do sleep 0.02; done; [ $n = {} ] && exit 0; done",
        ROUNDS / 2,
        go = go.display(),
    );
    let job = JobSubmit {
        kind: Some(JobKind::Service),
        command: ["/bin/sh", "-c", &script].map(str::to_owned).to_vec(),
        ..JobSubmit::default()
    };
    let id = submit(&client, job).await;
    let logs = match yard.worker_role() {
        Role::Up => yard.dir().join("data/worker/logs"),
        _ => yard.dir().join("worker/logs"),
    };
    let mut wanted = String::new();
    for round in 0..ROUNDS {
        wanted.extend(std::iter::repeat_n(char::from_digit(round % 10, 10).expect("a digit"), ROUND_BYTES));
        let last = LogQuery {
            stream: Some(LogStream::Stdout),
            from: Some(wanted.len() as u64 - 1),
            ..LogQuery::default()
        };
        eventually("the round is readable", async || {
            let pieces = client.jobs().logs(id, &last).await.ok()?;
            let bytes = pieces.map_ok(|piece| piece.to_vec()).try_concat().await.ok()?;
            (!bytes.is_empty()).then_some(())
        })
        .await;
        let lies_there = bytes_below(&logs);
        assert!(lies_there <= LIMIT_BYTES, "{lies_there} bytes in round {round}");
        match round % 10 {
            3 => yard.kill(yard.worker_role()),
            6 => yard.terminate(yard.worker_role()),
            _ => {}
        }
        // While it is away the service says what it may.
        std::fs::write(go.join("round"), (round + 1).to_string()).expect("writable");
        std::fs::write(go.join((round + 1).to_string()), "").expect("writable");
        if matches!(round % 10, 3 | 6) {
            yard.start(yard.worker_role()).await;
        }
    }
    client.jobs().stop(id).await.expect("it may");
    assert_eq!(ended(&client, id).await.status, Status::Success);
    let log = stdout(&client, id).await.expect("a log");
    // The round that it was in when it was stopped.
    assert!(log.starts_with(&wanted), "{} bytes of {}", log.len(), wanted.len());
    assert!(!log.contains("[jobyard"), "nothing is cut");
    assert_eq!(bytes_below(&logs), 0, "nothing is left on the node");
}

/// Of all files there.
fn bytes_below(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).expect("a folder");
    // One may be given back in between.
    files.filter_map(|file| file.ok()?.metadata().ok()).map(|file| file.len()).sum()
}

#[tokio::test]
async fn a_service_may_say_more_than_the_limit_on_sqlite() {
    a_service_may_say_more_than_the_limit(YardPlan::on(Datastore::Sqlite)).await;
}

#[tokio::test]
async fn a_service_may_say_more_than_the_limit_on_postgres() {
    a_service_may_say_more_than_the_limit(YardPlan::on(Datastore::Postgres)).await;
}
