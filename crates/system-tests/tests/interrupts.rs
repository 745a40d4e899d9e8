//! Ctrl-C of `jobyard up`: once to leave, twice to stop what runs as well.

use std::time::Duration;

use jobyard_client::{Client, JobId, Outcome, Status};
use jobyard_system_tests::{
    Notebook, Role, Signal, Yard, ended, eventually, outcomes, submit_all, until_phase,
};

const FEW: usize = 3;

async fn few_run(yard: &Yard, notebook: &Notebook) -> Vec<JobId> {
    let client = yard.client();
    let ids = submit_all(&client, vec![notebook.waiting_job(); FEW]).await;
    for id in &ids {
        until_phase(&client, *id, "running").await;
    }
    ids
}

async fn says(yard: &Yard, words: &str) {
    eventually(words, async || yard.said(Role::Up).contains(words).then_some(())).await;
}

async fn all_succeed(client: &Client, ids: &[JobId]) {
    for id in ids {
        let job = ended(client, *id).await;
        assert_eq!(job.status, Status::Success, "{:?}", job.result);
        assert_eq!((job.retry_count, job.platform_failures), (0, 0), "nobody pays");
    }
}

#[tokio::test]
async fn one_interrupt_leaves_the_attempts_to_the_next_up() {
    let mut yard = Yard::up().await;
    let mut notebook = Notebook::in_folder(yard.dir());
    let ids = few_run(&yard, &notebook).await;
    let sidecars = yard.sidecars();
    yard.signal(Role::Up, Signal::INT);
    says(&yard, "3 attempts keep running; the next `jobyard up` takes them over.").await;
    assert_eq!(yard.wait(Role::Up), Some(0));
    assert_eq!(yard.sidecars(), sidecars);
    // One ends while nobody is there, as far as it can: its outcome waits too.
    notebook.open_gate();
    eventually("all ended unheard", async || yard.sidecars().is_empty().then_some(())).await;
    yard.start(Role::Up).await;
    let client = yard.client();
    all_succeed(&client, &ids).await;
    for id in &ids {
        assert_eq!(outcomes(&client, *id).await, [Some(Outcome::Succeeded)]);
        assert_eq!(notebook.starts(*id).len(), 1);
    }
}

#[tokio::test]
async fn adopted_attempts_end_under_the_next_up() {
    let mut yard = Yard::up().await;
    let mut notebook = Notebook::in_folder(yard.dir());
    let ids = few_run(&yard, &notebook).await;
    yard.signal(Role::Up, Signal::INT);
    assert_eq!(yard.wait(Role::Up), Some(0));
    yard.start(Role::Up).await;
    let client = yard.client();
    for id in &ids {
        until_phase(&client, *id, "running").await;
    }
    notebook.open_gate();
    all_succeed(&client, &ids).await;
    for id in &ids {
        assert_eq!(notebook.starts(*id).len(), 1);
    }
}

#[tokio::test]
async fn a_second_interrupt_stops_them_at_nobodys_cost() {
    let mut yard = Yard::up().await;
    let mut notebook = Notebook::in_folder(yard.dir());
    let ids = few_run(&yard, &notebook).await;
    yard.signal(Role::Up, Signal::INT);
    says(&yard, "Press Ctrl-C again").await;
    yard.signal(Role::Up, Signal::INT);
    assert_eq!(yard.wait(Role::Up), Some(0));
    assert_eq!(yard.sidecars(), [] as [u32; 0], "nothing runs on");
    assert!(ids.iter().all(|id| notebook.ends(*id).is_empty()));
    notebook.open_gate();
    yard.start(Role::Up).await;
    let client = yard.client();
    all_succeed(&client, &ids).await;
    for id in &ids {
        assert_eq!(outcomes(&client, *id).await, [Some(Outcome::Evicted), Some(Outcome::Succeeded)]);
        assert_eq!(client.jobs().get(*id).await.expect("the job").evictions, 1);
        assert_eq!(notebook.starts(*id), [1, 2]);
    }
}

/// A service manager's SIGTERM: nobody is there to press again, and nothing is waited for.
#[tokio::test]
async fn a_terminated_up_does_not_wait_for_a_second_interrupt() {
    let mut yard = Yard::up().await;
    let mut notebook = Notebook::in_folder(yard.dir());
    let ids = few_run(&yard, &notebook).await;
    yard.terminate(Role::Up);
    assert!(!yard.said(Role::Up).contains("Press Ctrl-C"), "{}", yard.said(Role::Up));
    notebook.open_gate();
    yard.start(Role::Up).await;
    all_succeed(&yard.client(), &ids).await;
}

/// One data directory, one `up`.
#[tokio::test]
async fn a_second_up_on_the_same_directory_is_refused() {
    let yard = Yard::up().await;
    let mut second = yard.role_command(Role::Up);
    second.args(["--listen", "127.0.0.1:0"]);
    let mut second = tokio::process::Command::from(second);
    let done = tokio::time::timeout(Duration::from_secs(20), second.output()).await;
    let done = done.expect("it ends by itself").expect("it runs");
    let words = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{words}");
    assert!(words.contains("jobyard.db") && words.contains("another"), "{words}");
    assert_eq!(done.stdout, b"", "it never said ready");
    let client = yard.client();
    let job = Notebook::in_folder(yard.dir()).job("true");
    let id = client.jobs().submit(job).await.expect("the first one serves on").id;
    assert_eq!(ended(&client, id).await.status, Status::Success);
}
