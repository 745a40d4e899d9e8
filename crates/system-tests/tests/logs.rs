//! Logs under stress: what is written as fast as it can be is kept whole, in bounded memory and on a bounded disk; and
//! what a node has shipped is readable when the node is gone.

use std::time::Duration;

use futures_util::TryStreamExt as _;
use jobyard_client::{Client, JobId, LogQuery, LogStream};
use jobyard_system_tests::{
    Datastore, Loudness, Notebook, Role, Yard, YardPlan, ended, eventually, many_loud_attempts,
    one_loud_attempt, submit, submit_all, until_phase,
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
    let script =
        "i=0; while [ $JOBYARD_ATTEMPT = 1 ]; do echo $i $(date +%s%N); i=$((i+1)); sleep 0.05; done";
    let id = submit(&client, notebook.job(script)).await;
    let lines = async || Some(stdout(&client, id).await?.lines().count()).filter(|lines| *lines > 20);
    let seen = eventually("some lines", lines).await;
    let killed_at = std::time::UNIX_EPOCH.elapsed().expect("a clock");
    yard.kill(Role::Worker);
    for sidecar in yard.sidecars() {
        let pid = rustix::process::Pid::from_raw(i32::try_from(sidecar).expect("a pid")).expect("a pid");
        rustix::process::kill_process(pid, jobyard_system_tests::Signal::KILL).expect("it lives");
    }
    let folder = yard.dir().join("worker");
    let node_id = std::fs::read(folder.join("node-id")).expect("an id");
    std::fs::remove_dir_all(&folder).expect("removable");
    // For the yard, which removes the groups named after it.
    std::fs::create_dir(&folder).expect("writable");
    std::fs::write(folder.join("node-id"), node_id).expect("writable");
    yard.start(Role::OtherWorker).await;
    jobyard_system_tests::until_over(&client, id, 1).await;
    assert_eq!(ended(&client, id).await.attempt, Some(2));
    yard.kill(Role::Server);
    let client = yard.client_of(Role::OtherServer);
    let query = LogQuery { stream: Some(LogStream::Stdout), attempt: Some(1), ..LogQuery::default() };
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
    let first = client.jobs().attempts(id).await.expect("attempts").remove(0);
    assert_eq!(first.outcome, Some(jobyard_client::Outcome::Lost), "{}", first.message);
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
