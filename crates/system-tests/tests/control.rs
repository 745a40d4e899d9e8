//! What people want of a job or a node, carried through to the processes: cancel, timeout, retry, drain, cordon.

use std::time::Duration;

use jobyard_client::json::{Bytes, JobSubmit, ResourcesSubmit, RetryRequest, Seconds};
use jobyard_client::{Client, EndedBy, JobId, Outcome, Status};
use jobyard_system_tests::{
    Notebook, Role, Yard, ended, eventually, outcomes, submit, submit_all, until_over, until_phase,
};

/// Nothing of the job is left on the node.
async fn the_node_is_empty(yard: &Yard) {
    eventually("no sidecar is left", async || yard.sidecars().is_empty().then_some(())).await;
}

async fn cancelled(client: &Client, id: JobId) {
    let job = ended(client, id).await;
    assert_eq!(job.status, Status::Cancelled);
    assert_eq!((job.retry_count, job.platform_failures), (0, 0));
}

async fn the_only_node(client: &Client) -> jobyard_client::NodeId {
    client.nodes().list().await.expect("the fleet")[0].id
}

/// A waiting job, a running one, one that does not listen, and one that ends well all the same.
async fn cancels(yard: Yard) {
    let client = yard.client();
    let mut notebook = Notebook::in_folder(yard.dir());
    let node = the_only_node(&client).await;

    client.nodes().cordon(node).await.expect("cordoned");
    let waiting = submit(&client, notebook.job("true")).await;
    assert_eq!(client.jobs().cancel(waiting).await.expect("done").status, Status::Cancelled);
    assert_eq!(client.jobs().cancel(waiting).await.expect("repeatable").status, Status::Cancelled);
    client.nodes().uncordon(node).await.expect("uncordoned");

    let running = submit(&client, notebook.waiting_job()).await;
    until_phase(&client, running, "running").await;
    client.jobs().cancel(running).await.expect("wanted");
    cancelled(&client, running).await;
    let attempt = until_over(&client, running, 1).await;
    assert_eq!((attempt.outcome, attempt.signal), (Some(Outcome::Cancelled), Some(15)));

    let deaf =
        format!("trap '{}' TERM; while :; do sleep 0.1; done", notebook.note("told", "$JOBYARD_ATTEMPT"));
    let grace = Some(Seconds { ms: 300 });
    let deaf = submit(&client, JobSubmit { stop_grace: grace, ..notebook.job(&deaf) }).await;
    until_phase(&client, deaf, "running").await;
    eventually("it listens", async || (!notebook.starts(deaf).is_empty()).then_some(())).await;
    client.jobs().cancel(deaf).await.expect("wanted");
    cancelled(&client, deaf).await;
    let attempt = until_over(&client, deaf, 1).await;
    assert_eq!(
        (attempt.outcome, attempt.signal),
        (Some(Outcome::Cancelled), Some(9)),
        "KILL after the grace"
    );

    // It ends well by itself before the stop gets there, or because of it.
    let clean = submit(&client, notebook.waiting_job()).await;
    until_phase(&client, clean, "running").await;
    notebook.open_gate();
    client.jobs().cancel(clean).await.expect("repeatable");
    let job = ended(&client, clean).await;
    let attempt = until_over(&client, clean, 1).await;
    match attempt.ended_by {
        Some(EndedBy::Itself) => assert_eq!((job.status, attempt.exit_code), (Status::Success, Some(0))),
        by => assert_eq!((job.status, by), (Status::Cancelled, Some(EndedBy::Stop))),
    }
    assert!(notebook.starts(waiting).is_empty() && notebook.ends(running).is_empty());
    the_node_is_empty(&yard).await;
}

#[tokio::test]
async fn cancel_reaches_a_job_wherever_it_is_on_sqlite() {
    cancels(Yard::up().await).await;
}

#[tokio::test]
async fn cancel_reaches_a_job_wherever_it_is_on_postgres() {
    cancels(Yard::on_postgres().await).await;
}

/// Exit 0 that the sidecar saw before the Stop could get there is success, though cancel was wanted first.
#[tokio::test]
async fn exit_zero_beats_a_cancel_that_comes_too_late() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    let mut notebook = Notebook::in_folder(yard.dir());
    let id = submit(&client, notebook.waiting_job()).await;
    until_phase(&client, id, "running").await;
    yard.freeze(Role::Worker);
    notebook.open_gate();
    eventually("it has ended", async || (notebook.ends(id) == [1]).then_some(())).await;
    assert_eq!(client.jobs().cancel(id).await.expect("wanted").status, Status::Running);
    yard.wake(Role::Worker);
    let job = ended(&client, id).await;
    assert_eq!(job.status, Status::Success, "{:?}", job.result);
    assert_eq!(outcomes(&client, id).await, [Some(Outcome::Succeeded)]);
    yard.terminate(Role::Worker);
}

/// Cancelled between the claim and the worker's answer: Launch and Stop lie at a frozen worker's door together.
#[tokio::test]
async fn cancel_while_the_launch_is_in_flight() {
    let yard = Yard::on_postgres().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    yard.freeze(Role::Worker);
    let id = submit(&client, notebook.waiting_job()).await;
    until_phase(&client, id, "placed").await;
    client.jobs().cancel(id).await.expect("wanted");
    yard.wake(Role::Worker);
    cancelled(&client, id).await;
    the_node_is_empty(&yard).await;
    assert_eq!(outcomes(&client, id).await.len(), 1, "it was not placed again");
    assert!(notebook.ends(id).is_empty());
}

/// Cancelled from a node that can't be reached: it ends with its lease, and what runs there still is stopped later.
#[tokio::test]
async fn cancel_on_a_frozen_node_ends_with_the_lease() {
    let yard = Yard::on_postgres().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let id = submit(&client, notebook.waiting_job()).await;
    until_phase(&client, id, "running").await;
    yard.freeze(Role::Worker);
    client.jobs().cancel(id).await.expect("wanted");
    cancelled(&client, id).await;
    assert_eq!(until_over(&client, id, 1).await.outcome, Some(Outcome::Lost));
    assert_eq!(yard.sidecars().len(), 1);
    yard.wake(Role::Worker);
    the_node_is_empty(&yard).await;
    assert!(notebook.ends(id).is_empty());
}

#[tokio::test]
async fn a_timeout_ends_an_attempt_and_the_user_pays() {
    let yard = Yard::up().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let job = JobSubmit {
        timeout: Some(Seconds { ms: 500 }),
        backoff: Some(Seconds { ms: 100 }),
        max_retries: Some(1),
        ..notebook.waiting_job()
    };
    let id = submit(&client, job).await;
    let job = ended(&client, id).await;
    assert_eq!((job.status, job.reason.as_str()), (Status::FinalFailed, "retries_exhausted"));
    assert_eq!((job.retry_count, job.platform_failures), (1, 0));
    assert_eq!(outcomes(&client, id).await, [Some(Outcome::TimedOut), Some(Outcome::TimedOut)]);
    assert!(job.result.expect("a result").message.contains("longer than its limit"));
    the_node_is_empty(&yard).await;

    // A new round begins with what the job was, and a repeated call begins no second one.
    let again = client.jobs().retry(id).await.expect("a new round");
    assert_eq!((again.round, again.retry_count), (2, 0));
    let late = RetryRequest { after_attempt: Some(1) };
    assert_eq!(client.jobs().retry_after(id, late).await.expect("nothing is done").round, 2);
    ended(&client, id).await;
    let numbers: Vec<_> =
        client.jobs().attempts(id).await.expect("attempts").iter().map(|a| (a.number, a.round)).collect();
    assert_eq!(numbers, [(1, 1), (2, 1), (3, 2), (4, 2)], "numbers go on");
}

/// Its time is over and it is being told so; then it is cancelled. What is wanted decides what follows.
#[tokio::test]
async fn a_cancel_during_the_grace_of_a_timeout_cancels() {
    let yard = Yard::up().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let deaf =
        format!("trap '{}' TERM; while :; do sleep 0.1; done", notebook.note("told", "$JOBYARD_ATTEMPT"));
    let job = JobSubmit {
        timeout: Some(Seconds { ms: 500 }),
        stop_grace: Some(Seconds { ms: 2_000 }),
        ..notebook.job(&deaf)
    };
    let id = submit(&client, job).await;
    eventually("it is told to end", async || (notebook.numbers("told", id) == [1]).then_some(())).await;
    client.jobs().cancel(id).await.expect("wanted");
    cancelled(&client, id).await;
    let attempts = client.jobs().attempts(id).await.expect("attempts");
    assert_eq!(attempts.len(), 1, "it is not tried again");
    assert_eq!(attempts[0].ended_by, Some(EndedBy::Timeout), "the first reason is the one told");
    the_node_is_empty(&yard).await;
}

/// Retried by hand while the first round's attempt is unheard: what that one says later is refused.
#[tokio::test]
async fn a_late_outcome_does_not_end_the_round_after_it() {
    let yard = Yard::on_postgres().await;
    let client = yard.client();
    let mut notebook = Notebook::in_folder(yard.dir());
    let id = submit(&client, notebook.waiting_job()).await;
    until_phase(&client, id, "running").await;
    yard.freeze(Role::Worker);
    client.jobs().cancel(id).await.expect("wanted");
    cancelled(&client, id).await;
    assert_eq!(client.jobs().retry(id).await.expect("a new round").round, 2);
    notebook.open_gate();
    eventually("the old one ends well", async || (notebook.ends(id) == [1]).then_some(())).await;
    yard.wake(Role::Worker);
    let job = ended(&client, id).await;
    assert_eq!((job.status, job.round), (Status::Success, 2));
    let told = outcomes(&client, id).await;
    assert_eq!(told.first(), Some(&Some(Outcome::Lost)), "the late word changed nothing");
    assert_eq!(told.last(), Some(&Some(Outcome::Succeeded)));
    assert_eq!(notebook.ends(id).len(), 2, "the new round ran its own");
}

/// A drained node's jobs go on elsewhere, at nobody's cost.
#[tokio::test]
async fn a_drain_moves_jobs_to_another_node() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    let mut notebook = Notebook::in_folder(yard.dir());
    let ids = submit_all(&client, vec![notebook.waiting_job(); 3]).await;
    for id in &ids {
        until_phase(&client, *id, "running").await;
    }
    yard.start(Role::OtherWorker).await;
    yard.until_available("other-node").await;
    let nodes = client.nodes().list().await.expect("the fleet");
    let node = nodes.iter().find(|node| node.name == "node").expect("the first").id;
    client.nodes().drain(node).await.expect("drained");
    for id in &ids {
        assert_eq!(until_over(&client, *id, 1).await.outcome, Some(Outcome::Evicted));
    }
    notebook.open_gate();
    for id in &ids {
        let job = ended(&client, *id).await;
        assert_eq!(job.status, Status::Success, "{:?}", job.result);
        assert_eq!((job.evictions, job.retry_count, job.platform_failures), (1, 0, 0));
        let attempts = client.jobs().attempts(*id).await.expect("attempts");
        assert_eq!(attempts.last().expect("one").node_name, "other-node");
        assert_eq!(notebook.ends(*id).len(), 1);
    }
}

/// Drained between the claim and the worker's answer: the attempt leaves before or after its start, and nobody pays.
#[tokio::test]
async fn a_drain_while_the_launch_is_in_flight() {
    let yard = Yard::on_postgres().await;
    let client = yard.client();
    let mut notebook = Notebook::in_folder(yard.dir());
    let node = the_only_node(&client).await;
    yard.freeze(Role::Worker);
    let id = submit(&client, notebook.waiting_job()).await;
    until_phase(&client, id, "placed").await;
    client.nodes().drain(node).await.expect("drained");
    yard.wake(Role::Worker);
    let first = until_over(&client, id, 1).await;
    assert!(matches!(first.outcome, Some(Outcome::Evicted | Outcome::NotStarted)), "{first:?}");
    the_node_is_empty(&yard).await;
    assert_eq!(client.jobs().get(id).await.expect("the job").status, Status::Waiting);
    client.nodes().uncordon(node).await.expect("uncordoned");
    notebook.open_gate();
    let job = ended(&client, id).await;
    assert_eq!((job.status, job.retry_count, job.platform_failures), (Status::Success, 0, 0));
    assert_eq!(notebook.ends(id).len(), 1);
}

/// A drain of the only node, then of none: jobs wait, visibly, and come back.
#[tokio::test]
async fn a_drained_node_takes_jobs_again_once_it_may() {
    let yard = Yard::up().await;
    let client = yard.client();
    let mut notebook = Notebook::in_folder(yard.dir());
    let node = the_only_node(&client).await;
    let id = submit(&client, notebook.waiting_job()).await;
    until_phase(&client, id, "running").await;
    client.nodes().drain(node).await.expect("drained");
    assert_eq!(until_over(&client, id, 1).await.outcome, Some(Outcome::Evicted));
    waits_for(&client, id, "no_open_node").await;
    notebook.open_gate();
    client.nodes().uncordon(node).await.expect("uncordoned");
    let job = ended(&client, id).await;
    assert_eq!(
        (job.status, job.evictions, job.retry_count, job.platform_failures),
        (Status::Success, 1, 0, 0)
    );
}

async fn waits_for(client: &Client, id: JobId, reason: &str) -> jobyard_client::json::Why {
    eventually(reason, async || {
        let why = client.jobs().why(id).await.ok()?;
        (why.reason == reason && why.status == Status::Waiting).then_some(why)
    })
    .await
}

#[tokio::test]
async fn a_cordoned_node_keeps_jobs_waiting_and_they_say_so() {
    let yard = Yard::up().await;
    let client = yard.client();
    let mut notebook = Notebook::in_folder(yard.dir());
    let node = the_only_node(&client).await;
    let before = submit(&client, notebook.waiting_job()).await;
    until_phase(&client, before, "running").await;
    client.nodes().cordon(node).await.expect("cordoned");
    let id = submit(&client, notebook.job("true")).await;
    let why = waits_for(&client, id, "no_open_node").await;
    assert_eq!(why.nodes.len(), 1);
    assert_eq!((why.nodes[0].fits, why.nodes[0].obstacle.as_str()), (false, "is cordoned"));
    assert!(why.remedy.contains("uncordon"), "{}", why.remedy);
    notebook.open_gate();
    assert_eq!(ended(&client, before).await.status, Status::Success, "what it had goes on");
    assert_eq!(client.jobs().get(id).await.expect("the job").status, Status::Waiting);
    client.nodes().uncordon(node).await.expect("uncordoned");
    assert_eq!(ended(&client, id).await.status, Status::Success);
}

/// No node could ever hold it; others are not held up, and a limit on waiting ends it.
#[tokio::test]
async fn a_job_too_big_for_any_node_says_so() {
    let yard = Yard::up().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let resources = Some(ResourcesSubmit { memory: Some(Bytes(1 << 44)), ..ResourcesSubmit::default() });
    let id = submit(&client, JobSubmit { resources, ..notebook.job("true") }).await;
    let why = waits_for(&client, id, "never_fits").await;
    assert!(why.nodes[0].lasting, "{why:?}");
    assert_eq!(why.nodes[0].obstacle, "has too little memory even when empty");
    let small = submit(&client, notebook.job("true")).await;
    assert_eq!(ended(&client, small).await.status, Status::Success);
    let start_within = Some(Seconds { ms: 300 });
    let impatient = submit(&client, JobSubmit { resources, start_within, ..notebook.job("true") }).await;
    let job = ended(&client, impatient).await;
    assert_eq!((job.status, job.reason.as_str()), (Status::FinalFailed, "expired"));
    assert_eq!((job.retry_count, job.platform_failures), (0, 0));
}

/// Never uploaded, and uploaded in time.
#[tokio::test]
async fn a_job_waits_for_its_executable_as_long_as_it_says() {
    let yard = Yard::up().await;
    let client = yard.client();
    let script = yard.script("late.sh", b"#!/bin/sh\necho here at last\n");
    let hash = sha256(&script);
    let job = |start_within: Duration| JobSubmit {
        binary_url: Some(format!("sha256:{hash}")),
        start_within: Some(Seconds { ms: u64::try_from(start_within.as_millis()).expect("short") }),
        ..JobSubmit::default()
    };
    let never = submit(&client, job(Duration::from_secs(2))).await;
    let why = client.jobs().why(never).await.expect("why");
    assert_eq!((why.status, why.reason.as_str()), (Status::Ready, "artifact_missing"));
    let job_over = ended(&client, never).await;
    assert_eq!((job_over.status, job_over.reason.as_str()), (Status::FinalFailed, "expired"));
    assert_eq!((job_over.retry_count, job_over.attempt), (0, None));

    let late = submit(&client, job(Duration::from_secs(60))).await;
    assert_eq!(client.jobs().get(late).await.expect("the job").status, Status::Ready);
    client.artifacts().push_file(&script).await.expect("it goes up");
    assert_eq!(ended(&client, late).await.status, Status::Success);
    assert_eq!(client.jobs().get(never).await.expect("the job").status, Status::FinalFailed, "over is over");
}

fn sha256(path: &std::path::Path) -> String {
    let output = std::process::Command::new("sha256sum").arg(path).output().expect("sha256sum runs");
    let text = String::from_utf8(output.stdout).expect("text");
    text.split_whitespace().next().expect("a hash").to_owned()
}
