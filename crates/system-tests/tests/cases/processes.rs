//! Retries, timeouts, and processes that don't want to go (area 4).

use jobyard_client::json::{Bytes, JobSubmit, ResourcesSubmit};
use jobyard_client::{Client, JobId, LogStream, Outcome, Status};
use jobyard_system_tests::{Signal, Yard, eventually, processes_named};

use crate::support::{
    accept, ended, odd_seconds, open_file, open_folder, says, seconds, shell, signal, whole_node, written,
};

/// How a job must end: outcome, exit code, signal.
type End = (Outcome, Option<i32>, Option<i32>);

const CODE_0: End = (Outcome::Succeeded, Some(0), None);

fn killed_by(number: i32) -> End {
    (Outcome::Failed, None, Some(number))
}

fn timed_out(job: JobSubmit) -> JobSubmit {
    JobSubmit { timeout: seconds(700), stop_grace: seconds(300), ..job }
}

/// Scripts in which NN stands for the seconds of a `sleep` that must be gone when the job is over.
fn stories() -> Vec<(JobSubmit, End, &'static str)> {
    let by_term = (Outcome::TimedOut, None, Some(15));
    let double_fork = "python3 -c '\nimport os\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: \
                       os.execvp(\"sleep\", [\"sleep\", \"NN\"])\n    os._exit(0)\nos.wait()'";
    vec![
        // B057
        (timed_out(shell("echo before; sleep NN & wait")), by_term, "before\n"),
        (timed_out(shell("echo before; sleep NN | cat")), by_term, "before\n"),
        (shell("echo before; sleep NN & exit 3"), (Outcome::Failed, Some(3), None), "before\n"),
        // B058
        (shell("(setsid sleep NN &) & exit 0"), CODE_0, ""),
        (shell("nohup sleep NN >/dev/null 2>&1 & exit 0"), CODE_0, ""),
        (shell(double_fork), CODE_0, ""),
        // B060
        (
            timed_out(shell("trap '' TERM INT; echo deaf; while :; do sleep 0.05; done")),
            (Outcome::TimedOut, None, Some(9)),
            "deaf\n",
        ),
        // B062
        (shell("echo partial; kill -9 $$"), killed_by(9), "partial\n"),
        (shell("kill -SEGV $$"), killed_by(11), ""),
        (shell("kill -ABRT $$"), killed_by(6), ""),
        (shell("kill -PIPE $$"), killed_by(13), ""),
        // B104: the number proves nothing.
        (shell("exit 137"), (Outcome::Failed, Some(137), None), ""),
    ]
}

/// B057, B058, B060, B062, half of B104.
#[tokio::test]
async fn each_end_is_told_for_what_it_was_and_nothing_is_left_of_it() {
    let yard = Yard::up().await;
    let client = yard.client();
    let sleep = odd_seconds();
    let mut submitted = Vec::new();
    for (mut job, end, said) in stories() {
        job.command[2] = job.command[2].replace("NN", &sleep);
        let script = job.command[2].clone();
        submitted.push((accept(&client, job).await, script, end, said));
    }
    for (id, script, end, said) in submitted {
        let job = ended(&client, id).await;
        let result = job.result.expect("a result");
        assert_eq!((result.outcome, result.exit_code, result.signal), end, "{script}: {}", result.message);
        let wanted = if end == CODE_0 { Status::Success } else { Status::FinalFailed };
        assert_eq!((job.status, job.attempt), (wanted, Some(1)), "{script}");
        let log = written(&client, id, LogStream::Stdout).await;
        assert_eq!(String::from_utf8_lossy(&log), said, "{script}");
    }
    assert_eq!(processes_named(&sleep), Vec::<u32>::new());
}

/// B060: also when it is cancelled instead.
#[tokio::test]
async fn a_process_that_ignores_term_is_cancelled_all_the_same() {
    let yard = Yard::up().await;
    let client = yard.client();
    let sleep = odd_seconds();
    let script = format!("trap '' TERM INT; echo deaf; while :; do sleep 0.05; done; sleep {sleep}");
    let id = accept(&client, JobSubmit { stop_grace: seconds(300), ..shell(&script) }).await;
    says(&client, id, "deaf").await;
    client.jobs().cancel(id).await.expect("it may");
    let job = ended(&client, id).await;
    let result = job.result.expect("a result");
    assert_eq!((job.status, result.outcome, result.signal), (Status::Cancelled, Outcome::Cancelled, Some(9)));
    assert_eq!(processes_named(&sleep), Vec::<u32>::new());
}

/// B104, on nodes that can limit memory.
#[tokio::test]
async fn running_out_of_memory_is_named() {
    let yard = Yard::up().await;
    let client = yard.client();
    let resources = ResourcesSubmit { memory: Some(Bytes(32 << 20)), ..ResourcesSubmit::default() };
    let small = |script| JobSubmit { resources: Some(resources), ..shell(script) };
    let hungry = accept(&client, small("exec python3 -c 'x = bytearray(10**9)'")).await;
    let job = ended(&client, hungry).await;
    let result = job.result.expect("a result");
    if result.usage.as_ref().is_none_or(|usage| usage.limits == "none") {
        return;
    }
    assert_eq!((job.status, result.outcome), (Status::FinalFailed, Outcome::OomKilled), "{}", result.message);
    assert!(result.message.contains("32 MiB"), "{}", result.message);
    let killed = ended(&client, accept(&client, small("kill -9 $$")).await).await.result.expect("a result");
    assert_eq!((killed.outcome, killed.signal), (Outcome::Failed, Some(9)));
}

/// B064. `expires` waits as long as the timeout of `patient` lasts and more, so both have waited too long to run if
/// waiting counted.
#[tokio::test]
async fn a_timeout_counts_no_waiting_and_begins_anew_with_each_attempt() {
    let yard = Yard::up().await;
    let client = yard.client();
    let folder = open_folder();
    let go = folder.path().join("go");
    let script = format!("echo up; while [ ! -e {} ]; do sleep 0.05; done", go.display());
    let holds = accept(&client, whole_node(shell(&script))).await;
    says(&client, holds, "up").await;
    let patient = JobSubmit { timeout: seconds(1_000), ..whole_node(shell("sleep 0.3")) };
    let patient = accept(&client, patient).await;
    let expires = JobSubmit { start_within: seconds(1_500), ..whole_node(shell("true")) };
    let expires = ended(&client, accept(&client, expires).await).await;
    assert_eq!(
        (expires.status, expires.reason.as_str(), expires.attempt),
        (Status::FinalFailed, "expired", None)
    );
    std::fs::write(&go, "").expect("writable");
    assert_eq!(ended(&client, holds).await.status, Status::Success);
    let job = ended(&client, patient).await;
    assert_eq!((job.status, job.attempt), (Status::Success, Some(1)), "{:?}", job.result);

    // Two attempts that together take longer than the timeout.
    let twice = "sleep 0.8; [ $JOBYARD_ATTEMPT = 2 ]";
    let twice =
        JobSubmit { max_retries: Some(1), backoff: seconds(1), timeout: seconds(1_500), ..shell(twice) };
    let job = ended(&client, accept(&client, twice).await).await;
    assert_eq!((job.status, job.attempt), (Status::Success, Some(2)), "{:?}", job.result);
}

/// B067: `max_retries` 2 is three starts, with the worker killed in the midst of one.
#[tokio::test]
async fn a_limit_of_retries_holds_across_a_killed_worker() {
    let mut yard = Yard::up().await;
    let client = yard.client();
    let folder = open_folder();
    let (starts, go) = (open_file(&folder, "starts"), folder.path().join("go"));
    let script = format!(
        "echo $JOBYARD_ATTEMPT >> {}; while [ $JOBYARD_ATTEMPT = 2 ] && [ ! -e {} ]; do sleep 0.05; done; exit 1",
        starts.display(),
        go.display()
    );
    let job = JobSubmit { max_retries: Some(2), backoff: seconds(1), ..shell(&script) };
    let id = accept(&client, job).await;
    let started = async || std::fs::read_to_string(&starts).is_ok_and(|text| text == "1\n2\n").then_some(());
    eventually("the second start", started).await;
    yard.kill(yard.worker_role());
    yard.start(yard.worker_role()).await;
    std::fs::write(&go, "").expect("writable");
    let job = ended(&client, id).await;
    assert_eq!((job.status, job.reason.as_str()), (Status::FinalFailed, "retries_exhausted"));
    assert_eq!((job.retry_count, job.attempt, job.platform_failures), (2, Some(3), 0));
    // The shared file is what the processes themselves did, whatever our books say.
    assert_eq!(std::fs::read_to_string(&starts).expect("starts"), "1\n2\n3\n");
}

async fn holder(client: &Client, sleep: &str) -> JobId {
    let job =
        JobSubmit { stop_grace: seconds(0), ..whole_node(shell(&format!("echo up; exec sleep {sleep}"))) };
    let id = accept(client, job).await;
    says(client, id, "up").await;
    id
}

/// B070: what a node gives is what live attempts reserve, so nobody has to give it back.
#[tokio::test]
async fn a_node_that_was_full_is_free_again_after_a_crash_and_after_a_cancel() {
    let mut yard = Yard::up().await;
    let client = yard.client();
    let sleep = odd_seconds();
    let lost = holder(&client, &sleep).await;
    yard.kill(yard.worker_role());
    for id in yard.sidecars().into_iter().chain(processes_named(&sleep)) {
        signal(id, Signal::KILL);
    }
    yard.start(yard.worker_role()).await;
    client.jobs().cancel(lost).await.expect("it may");
    let next = accept(&client, whole_node(shell("true"))).await;
    assert_eq!(ended(&client, next).await.status, Status::Success);
    assert_eq!(ended(&client, lost).await.status, Status::Cancelled);

    let cancelled = holder(&client, &sleep).await;
    let next = accept(&client, whole_node(shell("true"))).await;
    client.jobs().cancel(cancelled).await.expect("it may");
    assert_eq!(ended(&client, next).await.status, Status::Success);
    assert_eq!(processes_named(&sleep), Vec::<u32>::new());
}
