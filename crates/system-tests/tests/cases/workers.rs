//! Workers that are busy, frozen, on another clock, or on their way out (area 6), and what a task can see of them.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use jobyard_client::json::JobSubmit;
use jobyard_client::{LogStream, Outcome, Status};
use jobyard_system_tests::{Role, Signal, Yard, eventually, processes_named};

use crate::support::{
    accept, ended, odd_seconds, open_folder, program, says, seconds, shell, signal, written,
};

fn lock_files(folder: PathBuf) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "lock")).collect()
}

/// A process that has nothing to do with us.
struct Bystander(Child);

impl Bystander {
    fn start() -> Self {
        Self(Command::new("sleep").arg(odd_seconds()).stdin(Stdio::null()).spawn().expect("sleep"))
    }

    fn lives(&mut self) -> bool {
        self.0.try_wait().expect("waitable").is_none()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.0.kill().expect("killable");
        self.0.wait().expect("waitable");
    }
}

/// B080: who holds a lock is asked of the kernel; a number in a file proves nothing.
#[tokio::test]
async fn a_lock_file_left_behind_with_a_living_process_id_stops_nobody() {
    let mut yard = Yard::up().await;
    yard.kill(Role::Up);
    let mut bystander = Bystander::start();
    let mut locks = lock_files(yard.dir().join("data"));
    locks.extend(lock_files(yard.dir().join("data/worker")));
    assert_eq!(locks.len(), 2, "{locks:?}");
    for lock in locks {
        std::fs::write(lock, format!("{}\n", bystander.0.id())).expect("writable");
    }
    yard.start(Role::Up).await;
    let client = yard.client();
    let id = accept(&client, program(&["true"])).await;
    assert_eq!(ended(&client, id).await.status, Status::Success);
    assert!(bystander.lives(), "it was ended in passing");
}

/// B083: tasks that eat all the processor time there is, for longer than a lease.
#[tokio::test]
async fn a_busy_node_is_not_taken_for_a_dead_one() {
    let yard = Yard::up().await;
    let client = yard.client();
    let busy = JobSubmit { timeout: seconds(8_000), ..shell("while :; do :; done") };
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(accept(&client, busy.clone()).await);
    }
    for id in ids {
        let job = ended(&client, id).await;
        let outcome = job.result.map(|result| result.outcome);
        assert_eq!((outcome, job.attempt), (Some(Outcome::TimedOut), Some(1)));
    }
}

/// B083: worker and sidecar are frozen for longer than a lease, and wake up again.
#[tokio::test]
async fn a_copy_that_was_given_up_on_is_ended_when_its_node_wakes_up() {
    let yard = Yard::on_postgres().await;
    let client = yard.client();
    let sleep = odd_seconds();
    let script = format!("if [ $JOBYARD_ATTEMPT = 1 ]; then echo up; exec sleep {sleep}; fi");
    let id = accept(&client, JobSubmit { stop_grace: seconds(500), ..shell(&script) }).await;
    says(&client, id, "up").await;
    let frozen: Vec<u32> = yard.sidecars().into_iter().chain([yard.id(Role::Worker)]).collect();
    assert_eq!(frozen.len(), 2, "a sidecar and its worker");
    for process in &frozen {
        signal(*process, Signal::STOP);
    }
    let jobs = client.jobs();
    let given_up = async || jobs.attempts(id).await.ok()?.first()?.outcome;
    assert_eq!(eventually("the first attempt is given up", given_up).await, Outcome::Lost);
    assert_eq!(processes_named(&sleep).len(), 1, "nobody could end it");
    for process in &frozen {
        signal(*process, Signal::CONT);
    }
    eventually("the old copy goes", async || processes_named(&sleep).is_empty().then_some(())).await;
    let job = ended(&client, id).await;
    assert_eq!((job.status, job.platform_failures, job.retry_count), (Status::Success, 1, 0));
    let attempts = client.jobs().attempts(id).await.expect("attempts");
    let outcomes: Vec<_> = attempts.iter().filter_map(|attempt| attempt.outcome).collect();
    // Pushes to the frozen worker may have come back in between.
    assert_eq!((outcomes[0], outcomes.last()), (Outcome::Lost, Some(&Outcome::Succeeded)), "{outcomes:?}");
    assert!(outcomes[1..outcomes.len() - 1].iter().all(|outcome| *outcome == Outcome::NotStarted));
}

/// What moves the wall clock of a process; its monotonic clocks stay.
const OTHER_CLOCK: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
int clock_gettime(clockid_t clock, struct timespec *time) {
    long answer = syscall(SYS_clock_gettime, clock, time);
    const char *ahead = getenv("CASE_CLOCK_AHEAD_SECONDS");
    if (answer == 0 && clock == CLOCK_REALTIME && ahead) time->tv_sec += atol(ahead);
    return (int)answer;
}
"#;

fn other_clock(yard: &Yard) -> String {
    let source = yard.dir().join("other_clock.c");
    let library = yard.dir().join("other_clock.so");
    std::fs::write(&source, OTHER_CLOCK).expect("writable");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    assert!(built.expect("cc").success());
    library.display().to_string()
}

/// B087: what counts is the datastore's clock, and a monotonic one for durations.
#[tokio::test]
async fn a_worker_on_another_clock_runs_jobs_like_any_other() {
    let mut yard = Yard::on_postgres().await;
    let library = other_clock(&yard);
    let client = yard.client();
    for (ahead, script) in [("-120", "exit 0"), ("3600", "sleep 7")] {
        yard.terminate(Role::Worker);
        let environment = [("LD_PRELOAD", library.as_str()), ("CASE_CLOCK_AHEAD_SECONDS", ahead)];
        yard.start_with(Role::Worker, &environment).await;
        // The second one lives longer than a lease.
        let runs = accept(&client, shell(script)).await;
        let late = accept(&client, JobSubmit { timeout: seconds(1_000), ..shell("sleep 60") }).await;
        for (id, wanted) in [(late, Outcome::TimedOut), (runs, Outcome::Succeeded)] {
            let job = ended(&client, id).await;
            let result = job.result.expect("a result");
            assert_eq!((result.outcome, job.attempt), (wanted, Some(1)), "{ahead} s ahead: {result:?}");
            assert!(job.created_time <= job.started_time.expect("started"), "{ahead} s ahead: {result:?}");
            assert!(job.started_time <= job.finished_time, "{ahead} s ahead");
        }
    }
    // Its own log says that the clock really was another one.
    let said = yard.said(Role::Worker);
    let hours: std::collections::BTreeSet<&str> =
        said.lines().filter_map(|line| line.split_once('T')?.1.get(..2)).collect();
    assert!(hours.len() > 1, "the clock was never moved:\n{said}");
}

/// B088: a worker that is told to go leaves its attempts to the next one.
#[tokio::test]
async fn a_worker_that_is_replaced_costs_no_attempt() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    let folder = open_folder();
    let go = folder.path().join("go");
    let script = format!("echo up; while [ ! -e {} ]; do sleep 0.05; done", go.display());
    let mut ids = Vec::new();
    for _ in 0..8 {
        ids.push(accept(&client, shell(&script)).await);
    }
    for id in &ids {
        says(&client, *id, "up").await;
    }
    yard.terminate(Role::Worker);
    yard.start(Role::Worker).await;
    yard.kill(Role::Worker);
    yard.start(Role::Worker).await;
    std::fs::write(&go, "").expect("writable");
    for id in ids {
        let job = ended(&client, id).await;
        assert_eq!((job.status, job.attempt, job.evictions), (Status::Success, Some(1), 0));
    }
}

/// B107.
#[tokio::test]
async fn a_task_finds_none_of_our_secrets() {
    let mut yard = Yard::on_postgres().await;
    let secret = yard.secret();
    let planted = "zzz-planted-secret";
    for role in [Role::Informer, Role::Worker] {
        yard.terminate(role);
        let environment = [("FOO_SECRET", planted), ("JOBYARD_TOKEN", &secret), ("JOBYARD_NAME", "x")];
        yard.start_with(role, &environment).await;
    }
    let worker = std::fs::read(format!("/proc/{}/environ", yard.id(Role::Worker))).expect("readable by us");
    assert!(String::from_utf8_lossy(&worker).contains(planted), "it was planted");
    let client = yard.client();
    let script = "env; cat /proc/$PPID/environ; cat /proc/1/environ; cat /proc/*/cmdline | tr '\\0' ' '; \
                  ls -l /proc/$PPID/fd /proc/self/fd; set; true";
    let id = accept(&client, shell(script)).await;
    assert_eq!(ended(&client, id).await.status, Status::Success);
    let mut seen = written(&client, id, LogStream::Stdout).await;
    seen.extend(written(&client, id, LogStream::Stderr).await);
    let seen = String::from_utf8_lossy(&seen);
    assert!(seen.contains("JOBYARD_JOB_ID="), "{seen}");
    for ours in [planted, &secret, "FOO_SECRET", "report.sock", "JOBYARD_TOKEN"] {
        assert!(!seen.contains(ours), "{ours} in:\n{seen}");
    }
}
