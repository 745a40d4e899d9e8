//! Services: they stay up, whatever leaves, until somebody stops them.

use futures_util::TryStreamExt as _;
use jobyard_client::json::{Job, JobSubmit, Seconds};
use jobyard_client::{Client, EndedBy, JobId, JobKind, LogQuery, LogStream, NodeId, Outcome, Status};
use jobyard_system_tests::{
    Notebook, Role, Yard, ended, eventually, outcomes, submit, until_over, until_phase,
};
use rustix::process::{Pid, Signal, kill_process};

/// A service that writes down each start; the first delay before a restart is `backoff_ms`.
fn service(notebook: &Notebook, script: &str, backoff_ms: u64) -> JobSubmit {
    JobSubmit {
        kind: Some(JobKind::Service),
        backoff: Some(Seconds { ms: backoff_ms }),
        ..notebook.job(script)
    }
}

/// One that runs until it is told to end.
fn steady(notebook: &Notebook) -> JobSubmit {
    service(notebook, "sleep 600", 100)
}

/// One that leaves at once, and waits longer than any test for its next start.
fn waiting(notebook: &Notebook) -> JobSubmit {
    service(notebook, "exit 3", 60_000)
}

/// The same, with delays that don't hold up the next attempt.
fn leaving(notebook: &Notebook) -> JobSubmit {
    service(notebook, "exit 3", 4_000)
}

async fn until_job(client: &Client, id: JobId, what: &str, is_so: impl Fn(&Job) -> bool) -> Job {
    eventually(what, async || client.jobs().get(id).await.ok().filter(|job| is_so(job))).await
}

async fn until_restarting(client: &Client, id: JobId) -> Job {
    until_job(client, id, "it waits for its next start", |job| job.reason == "restarting").await
}

/// Stopped, and with it nothing of it left.
async fn stopped(yard: &Yard, id: JobId) -> Job {
    let job = ended(&yard.client(), id).await;
    assert_eq!(job.status, Status::Success, "{:?}", job.result);
    assert_eq!(job.result.as_ref().map(|result| result.outcome), Some(Outcome::Stopped));
    assert_eq!((job.retry_count, job.next_start), (0, None));
    eventually("no sidecar is left", async || yard.sidecars().is_empty().then_some(())).await;
    job
}

async fn node_named(client: &Client, name: &str) -> NodeId {
    let nodes = client.nodes().list().await.expect("the fleet");
    nodes.iter().find(|node| node.name == name).expect("the node").id
}

async fn log(client: &Client, id: JobId) -> String {
    let stdout = LogQuery { stream: Some(LogStream::Stdout), ..LogQuery::default() };
    let pieces = client.jobs().logs(id, &stdout).await.expect("a log");
    let pieces: Vec<_> = pieces.try_collect().await.expect("whole");
    String::from_utf8(pieces.concat()).expect("text")
}

/// Exit 0, a code and a signal: each is followed by a restart in the same attempt, until it is stopped.
async fn stays_up(yard: Yard) {
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let script = "n=$(($(cat n 2>/dev/null || echo 0) + 1)); echo $n > n; echo run $n; \
                  case $n in 1) exit 0;; 2) exit 7;; 3) kill -9 $$;; esac; \
                  trap 'echo told; exit 4' TERM; while :; do sleep 0.05; done";
    let id = submit(&client, service(&notebook, script, 100)).await;
    let job = until_job(&client, id, "three restarts", |job| job.restarts == 3).await;
    assert_eq!((job.status, job.priority, job.next_start), (Status::Running, 75, None));
    let last = job.last_exit.expect("it left");
    assert_eq!((last.exit_code, last.signal, last.ended_by), (None, Some(9), EndedBy::Itself));
    eventually("the fourth run", async || log(&client, id).await.ends_with("run 4\n").then_some(())).await;
    assert_eq!(notebook.starts(id), [1, 1, 1, 1], "all of the first attempt");

    for _ in 0..2 {
        client.jobs().stop(id).await.expect("repeatable");
    }
    let job = stopped(&yard, id).await;
    assert_eq!((job.restarts, job.attempt, job.platform_failures), (3, Some(1), 0));
    assert_eq!(job.result.and_then(|result| result.exit_code), Some(4), "it had its grace");
    assert_eq!(log(&client, id).await, "run 1\nrun 2\nrun 3\nrun 4\ntold\n");
    let history = client.jobs().events(id).await.expect("its history");
    let told: Vec<_> = history.iter().filter(|event| event.why.contains("restart")).collect();
    assert!(told.iter().any(|event| event.to == "restarting" && event.why.starts_with("exit 7")), "{told:?}");
    assert!(told.iter().any(|event| event.from == "restarting" && event.to == "running"), "{told:?}");
}

#[tokio::test]
async fn a_service_stays_up_until_it_is_stopped_on_sqlite() {
    stays_up(Yard::up().await).await;
}

#[tokio::test]
async fn a_service_stays_up_until_it_is_stopped_on_postgres() {
    stays_up(Yard::on_postgres().await).await;
}

#[tokio::test]
async fn a_service_is_stopped_while_it_waits_and_a_task_never() {
    let yard = Yard::up().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let id = submit(&client, waiting(&notebook)).await;
    let job = until_restarting(&client, id).await;
    assert!(job.next_start.is_some() && job.last_exit.is_some_and(|last| last.exit_code == Some(3)));
    let shown = yard.command(&["get", &id.to_string()]).output().expect("it runs");
    let shown = String::from_utf8(shown.stdout).expect("text");
    for wanted in ["service", "restarting", "0 restarts, the last process left with exit 3", "next start"] {
        assert!(shown.contains(wanted), "{wanted} is not in:\n{shown}");
    }
    let told = yard.command(&["stop", &id.to_string()]).output().expect("it runs");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    stopped(&yard, id).await;
    assert_eq!(notebook.starts(id), [1]);

    let task = submit(&client, notebook.job("sleep 600")).await;
    let refused = yard.command(&["stop", &task.to_string()]).output().expect("it runs");
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("not_a_service"));
    assert_ne!(client.jobs().get(task).await.expect("the job").status, Status::Success);
}

#[tokio::test]
async fn a_service_is_cancelled_like_any_job() {
    let yard = Yard::up().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let (runs, waits) = (submit(&client, steady(&notebook)).await, submit(&client, waiting(&notebook)).await);
    until_phase(&client, runs, "running").await;
    until_restarting(&client, waits).await;
    for id in [runs, waits] {
        client.jobs().cancel(id).await.expect("wanted");
        assert_eq!(ended(&client, id).await.status, Status::Cancelled);
    }
    eventually("no sidecar is left", async || yard.sidecars().is_empty().then_some(())).await;
}

#[tokio::test]
async fn an_exit_that_can_not_work_again_ends_a_service() {
    let yard = Yard::up().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let script = "n=$(($(cat n 2>/dev/null || echo 0) + 1)); echo $n > n; [ $n = 2 ] && exit 64; exit 1";
    let job = JobSubmit { no_retry_exit_codes: vec![64], ..service(&notebook, script, 100) };
    let id = submit(&client, job).await;
    let job = ended(&client, id).await;
    assert_eq!((job.status, job.reason.as_str()), (Status::FinalFailed, "not_retryable"));
    assert_eq!((job.attempt, job.restarts), (Some(1), 1));
    let gone = JobSubmit {
        kind: Some(JobKind::Service),
        command: vec!["/no/such/program".to_owned()],
        ..JobSubmit::default()
    };
    let id = submit(&client, gone).await;
    assert_eq!(ended(&client, id).await.reason, "not_retryable");
}

/// Drained: it moves to the other node, then waits when there is none, and comes back.
#[tokio::test]
async fn a_drained_service_moves_and_waits_and_comes_back() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let (runs, waits) = (submit(&client, steady(&notebook)).await, submit(&client, waiting(&notebook)).await);
    until_phase(&client, runs, "running").await;
    until_restarting(&client, waits).await;
    yard.start(Role::OtherWorker).await;
    yard.until_available("other-node").await;
    client.nodes().drain(node_named(&client, "node").await).await.expect("drained");
    for id in [runs, waits] {
        let first = until_over(&client, id, 1).await;
        assert_eq!((first.outcome, first.node_name.as_str()), (Some(Outcome::Evicted), "node"));
        let second = eventually("it runs elsewhere", async || {
            let newest = client.jobs().attempts(id).await.ok()?.pop()?;
            (newest.number == 2 && newest.started_time.is_some()).then_some(newest)
        })
        .await;
        assert_eq!(second.node_name, "other-node");
    }
    client.nodes().drain(node_named(&client, "other-node").await).await.expect("drained");
    let job = until_job(&client, runs, "it waits", |job| job.status == Status::Waiting).await;
    assert_eq!((job.evictions, job.retry_count, job.platform_failures), (2, 0, 0));
    client.nodes().uncordon(node_named(&client, "node").await).await.expect("uncordoned");
    until_phase(&client, runs, "running").await;
    for id in [runs, waits] {
        client.jobs().stop(id).await.expect("wanted");
        assert_eq!(ended(&client, id).await.status, Status::Success);
    }
    eventually("no sidecar is left", async || yard.sidecars().is_empty().then_some(())).await;
}

/// The node is drained, and the service stopped before its worker heard of either: it is over, and not placed again.
#[tokio::test]
async fn a_service_stopped_while_a_drain_evicts_it_is_over() {
    let yard = Yard::on_postgres().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let id = submit(&client, steady(&notebook)).await;
    until_phase(&client, id, "running").await;
    yard.freeze(Role::Worker);
    let node = node_named(&client, "node").await;
    client.nodes().drain(node).await.expect("drained");
    assert_eq!(client.jobs().stop(id).await.expect("wanted").status, Status::Running);
    yard.wake(Role::Worker);
    let job = stopped(&yard, id).await;
    assert_eq!((job.attempt, job.evictions), (Some(1), 0));
}

/// The worker is killed while the service waits: the next one finds it, and its restart comes when it was to come.
async fn outlives_its_worker(mut yard: Yard) {
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let once = "if [ -e again ]; then sleep 600; fi; touch again; exit 3";
    let comes_back = submit(&client, service(&notebook, once, 8_000)).await;
    let waits = submit(&client, waiting(&notebook)).await;
    let before = until_restarting(&client, comes_back).await;
    until_restarting(&client, waits).await;
    let sidecars = yard.sidecars();
    assert_eq!(sidecars.len(), 2);
    let role = yard.worker_role();
    yard.kill(role);
    yard.start(role).await;
    assert_eq!(yard.sidecars(), sidecars, "nobody else went");
    let job = until_job(&client, comes_back, "its restart", |job| job.restarts == 1).await;
    assert_eq!((job.reason.as_str(), job.last_exit), ("running", before.last_exit));
    eventually("it runs again", async || (notebook.starts(comes_back) == [1, 1]).then_some(())).await;
    for id in [comes_back, waits] {
        client.jobs().stop(id).await.expect("wanted");
        let job = ended(&client, id).await;
        assert_eq!((job.status, job.attempt, job.platform_failures), (Status::Success, Some(1), 0));
    }
    eventually("no sidecar is left", async || yard.sidecars().is_empty().then_some(())).await;
}

#[tokio::test]
async fn a_service_that_waits_outlives_its_worker_on_sqlite() {
    outlives_its_worker(Yard::up().await).await;
}

#[tokio::test]
async fn a_service_that_waits_outlives_its_worker_on_postgres() {
    outlives_its_worker(Yard::on_postgres().await).await;
}

/// Its node falls silent for longer than the lease: it is placed again, and what runs there still is stopped later.
#[tokio::test]
async fn a_service_whose_node_is_lost_is_placed_again() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let (runs, waits) = (submit(&client, steady(&notebook)).await, submit(&client, leaving(&notebook)).await);
    until_phase(&client, runs, "running").await;
    until_restarting(&client, waits).await;
    yard.freeze(Role::Worker);
    yard.start(Role::OtherWorker).await;
    for id in [runs, waits] {
        assert_eq!(until_over(&client, id, 1).await.outcome, Some(Outcome::Lost));
        eventually("it runs elsewhere", async || {
            let newest = client.jobs().attempts(id).await.ok()?.pop()?;
            (newest.node_name == "other-node" && newest.started_time.is_some()).then_some(())
        })
        .await;
        assert_eq!(client.jobs().get(id).await.expect("the job").platform_failures, 1);
    }
    let kept = client.jobs().attempts(waits).await.expect("attempts");
    assert_eq!(kept[0].last_exit.and_then(|last| last.exit_code), Some(3), "what it went through is kept");
    assert_eq!(yard.sidecars().len(), 4, "the old ones don't know yet");
    yard.wake(Role::Worker);
    eventually("the old sidecars are stopped", async || (yard.sidecars().len() == 2).then_some(())).await;
    for id in [runs, waits] {
        client.jobs().stop(id).await.expect("wanted");
        assert_eq!(ended(&client, id).await.status, Status::Success);
        assert_eq!(outcomes(&client, id).await, [Some(Outcome::Lost), Some(Outcome::Stopped)]);
    }
}

/// The sidecar is killed while the service waits: the platform pays, and the next attempt is a fresh one.
#[tokio::test]
async fn a_service_whose_sidecar_is_killed_while_it_waits_is_placed_again() {
    let yard = Yard::up().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let id = submit(&client, leaving(&notebook)).await;
    until_restarting(&client, id).await;
    let [sidecar] = yard.sidecars()[..] else { unreachable!("one attempt runs") };
    let pid = Pid::from_raw(i32::try_from(sidecar).expect("a pid")).expect("a pid");
    kill_process(pid, Signal::KILL).expect("it is there");
    assert_eq!(until_over(&client, id, 1).await.outcome, Some(Outcome::Lost));
    let job = until_job(&client, id, "the second attempt waits too", |job| {
        job.attempt == Some(2) && job.reason == "restarting"
    })
    .await;
    assert_eq!((job.restarts, job.platform_failures, job.retry_count), (0, 1, 0));
    client.jobs().stop(id).await.expect("wanted");
    stopped(&yard, id).await;
}
