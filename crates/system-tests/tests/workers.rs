//! Workers that freeze, or die at bad moments.

use std::path::Path;
use std::sync::Arc;

use jobyard_client::json::{JobSubmit, Seconds};
use jobyard_client::{EndedBy, Outcome, Status};
use jobyard_system_tests::{
    Datastore, Notebook, Role, Yard, YardPlan, ended, eventually, outcomes, submit, until_over, until_phase,
};

/// Killed after it accepted and before there is a sidecar: the executable can't be fetched from a frozen server. The
/// next one makes sure that it never starts, and says so.
#[tokio::test]
async fn a_worker_dies_between_accepting_and_starting() {
    let mut yard = YardPlan::on(Datastore::Postgres).claim_lease_seconds(20).raise().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let script = yard.script("note.sh", b"#!/bin/sh\nexec /bin/sh -c \"$1\"\n");
    let pushed = client.artifacts().push_file(&script).await.expect("the script goes up");
    let mut job = notebook.job("true");
    job.command = vec![job.command.remove(2)];
    job.binary_url = Some(format!("sha256:{}", pushed.hash));
    yard.kill(Role::Informer);
    let id = submit(&client, job).await;
    yard.freeze(Role::Server);
    yard.start(Role::Informer).await;
    let attempts = yard.dir().join("state/a");
    eventually("it was accepted", async || attempts.join("0/plan").exists().then_some(())).await;
    assert_eq!(yard.sidecars(), [] as [u32; 0]);
    yard.kill(Role::Worker);
    yard.start(Role::Worker).await;
    yard.wake(Role::Server);
    let first = until_over(&client, id, 1).await;
    assert_eq!(first.outcome, Some(Outcome::NotStarted));
    assert_eq!(first.message, "the worker was restarted before it started");
    let job = ended(&client, id).await;
    assert_eq!(job.status, Status::Success, "{:?}", job.result);
    assert_eq!((job.retry_count, job.platform_failures), (0, 0), "nobody pays");
    assert_eq!(notebook.starts(id), [2]);
}

/// Bytes of all files in a folder.
fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|found| found.len()).sum()
}

/// Killed while a large input comes in. The next one knows that it was never whole, and nothing of it is left over.
#[tokio::test]
async fn a_worker_dies_while_it_stages_a_large_input() {
    const BYTES: u64 = 128 << 20;
    let mut yard = YardPlan::on(Datastore::Postgres).claim_lease_seconds(20).raise().await;
    let client = yard.client();
    let input = yard.dir().join("input");
    std::fs::create_dir(&input).expect("writable");
    let file = std::fs::File::create(input.join("large")).expect("writable");
    file.set_len(BYTES).expect("room");
    let pushed = client.artifacts().push_folder(&input, Arc::new(|_| ())).await.expect("pushed");
    let id = submit(
        &client,
        JobSubmit {
            command: ["sh", "-c", "[ $(wc -c < $JOBYARD_INPUT/large) = 134217728 ]"]
                .map(str::to_owned)
                .to_vec(),
            input_path: Some(format!("sha256:{}", pushed.hash)),
            ..JobSubmit::default()
        },
    )
    .await;
    let cache = yard.dir().join("task/artifacts");
    eventually("a part of it came in", async || (bytes_in(&cache) > 1 << 20).then_some(())).await;
    yard.freeze(Role::Server);
    yard.kill(Role::Worker);
    let part = bytes_in(&cache);
    assert!(part < BYTES, "all of it is here already");
    yard.start(Role::Worker).await;
    yard.wake(Role::Server);
    let first = until_over(&client, id, 1).await;
    assert_eq!(first.outcome, Some(Outcome::NotStarted), "{}", first.message);
    let job = ended(&client, id).await;
    assert_eq!(job.status, Status::Success, "{:?}", job.result);
    assert_eq!((job.retry_count, job.platform_failures), (0, 0), "nobody pays");
    let whole = bytes_in(&cache);
    assert!((BYTES..BYTES + part).contains(&whole), "{whole} bytes in the cache, {part} of the first try");
}

/// A worker freezes for longer than the lease. Its attempts are lost and placed on the other node; when it wakes, the
/// outcome of one comes too late, and the sidecar of the other is stopped.
#[tokio::test]
async fn a_frozen_worker_wakes_to_find_its_attempts_lost() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    let mut notebook = Notebook::in_folder(yard.dir());
    let short = submit(&client, notebook.waiting_job()).await;
    let long = submit(&client, notebook.job("if [ $JOBYARD_ATTEMPT = 1 ]; then sleep 600; fi")).await;
    for id in [short, long] {
        until_phase(&client, id, "running").await;
    }
    yard.freeze(Role::Worker);
    notebook.open_gate();
    yard.start(Role::OtherWorker).await;
    for id in [short, long] {
        let lost = until_over(&client, id, 1).await;
        assert_eq!((lost.outcome, lost.node_name.as_str()), (Some(Outcome::Lost), "node"));
        let job = ended(&client, id).await;
        assert_eq!((job.status, job.platform_failures, job.retry_count), (Status::Success, 1, 0));
    }
    assert_eq!(notebook.ends(short), [1, 2], "the old one ended well, and nobody could know");
    assert_eq!(yard.sidecars().len(), 2, "one waits to be heard, the other one's task runs on");
    yard.wake(Role::Worker);
    eventually("the old sidecar is stopped", async || yard.sidecars().is_empty().then_some(())).await;
    for id in [short, long] {
        assert_eq!(outcomes(&client, id).await, [Some(Outcome::Lost), Some(Outcome::Succeeded)]);
        let attempts = client.jobs().attempts(id).await.expect("attempts");
        assert_eq!(attempts[1].node_name, "other-node");
    }
    assert_eq!(notebook.ends(long), [2]);
}

/// Down for longer than the lease with its sidecar alive: the same, but for a new worker that finds them.
#[tokio::test]
async fn a_worker_that_comes_back_late_stops_what_is_not_its_own_any_more() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let id = submit(&client, notebook.job("if [ $JOBYARD_ATTEMPT = 1 ]; then sleep 600; fi")).await;
    until_phase(&client, id, "running").await;
    yard.kill(Role::Worker);
    let lost = until_over(&client, id, 1).await;
    assert_eq!(lost.outcome, Some(Outcome::Lost));
    assert_eq!(yard.sidecars().len(), 1);
    yard.start(Role::Worker).await;
    let job = ended(&client, id).await;
    assert_eq!((job.status, job.platform_failures, job.retry_count), (Status::Success, 1, 0));
    eventually("the old sidecar is stopped", async || yard.sidecars().is_empty().then_some(())).await;
    assert_eq!(notebook.ends(id), [2]);
}

/// An exclusive job whose first attempt runs until it is told to end, and says when it began and left.
fn exclusive(notebook: &Notebook) -> JobSubmit {
    let clock = "$(date +%s%3N)";
    let (began, left) = (notebook.note("began", clock), notebook.note("left", clock));
    let script = format!(
        "{began}; if [ $JOBYARD_ATTEMPT = 1 ]; then trap '{left}; exit 1' TERM; while :; do sleep 0.1; done; fi"
    );
    let stop_grace = Some(Seconds { ms: 1_000 });
    JobSubmit { exclusive: Some(true), stop_grace, ..notebook.job(&script) }
}

/// Until when the one attempt may live, by the datastore's clock.
fn lease_until_ms(yard: &Yard) -> u64 {
    yard.sql("SELECT lease_until_ms FROM attempt_live").parse().expect("one attempt")
}

/// Nobody renews it and nobody can tell it so: an exclusive task is stopped by its own sidecar before its lease ends.
#[tokio::test]
async fn an_exclusive_task_is_gone_before_its_lease_is() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let id = submit(&client, exclusive(&notebook)).await;
    until_phase(&client, id, "running").await;
    yard.kill(Role::Server);
    eventually("it has left", async || notebook.numbers("left", id).first().copied()).await;
    assert!(notebook.numbers("left", id)[0] < lease_until_ms(&yard));
    yard.start(Role::Server).await;
    let lost = until_over(&client, id, 1).await;
    assert_eq!((lost.outcome, lost.exit_code), (Some(Outcome::Lost), Some(1)), "{lost:?}");
    assert_eq!(lost.ended_by, Some(EndedBy::Lease));
    let job = ended(&client, id).await;
    assert_eq!((job.status, job.platform_failures, job.retry_count), (Status::Success, 1, 0));
}

/// Its worker is frozen: the next attempt, elsewhere, begins five seconds after the lease and no sooner.
#[tokio::test]
async fn an_exclusive_job_pauses_after_silence() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let id = submit(&client, exclusive(&notebook)).await;
    until_phase(&client, id, "running").await;
    yard.freeze(Role::Worker);
    yard.start(Role::OtherWorker).await;
    eventually("it has left", async || notebook.numbers("left", id).first().copied()).await;
    let lease_until_ms = lease_until_ms(&yard);
    assert!(notebook.numbers("left", id)[0] < lease_until_ms);
    let job = ended(&client, id).await;
    assert_eq!((job.status, job.platform_failures, job.retry_count), (Status::Success, 1, 0));
    let began = notebook.numbers("began", id);
    assert!(began[1] >= lease_until_ms + 5_000, "lease until {lease_until_ms}, began {began:?}");
}
