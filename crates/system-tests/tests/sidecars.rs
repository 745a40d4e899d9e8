//! A killed sidecar: nothing of its task survives it, and the platform pays.

use std::fs;

use jobyard_client::json::JobSubmit;
use jobyard_client::{JobId, Outcome, Status};
use jobyard_system_tests::{
    Notebook, Role, Yard, ended, eventually, outcomes, processes_named, submit, until_over, until_phase,
};
use rustix::process::{Pid, Signal, kill_process};

/// Seconds to sleep that no other process on the machine sleeps, to be found by.
fn odd_seconds(folder: &std::path::Path) -> String {
    let name = folder.file_name().expect("a name").to_string_lossy();
    let number = name.bytes().fold(17_u64, |sum, byte| (sum * 31 + u64::from(byte)) % 1_000_000);
    format!("9{number:06}.5")
}

/// A task with a child, a child that left its session, and a daemon that forked twice and forgot its parent. It stays
/// only in its first attempt.
fn family(notebook: &Notebook, seconds: &str) -> JobSubmit {
    let daemon = format!("setsid sh -c 'setsid sleep {seconds} >/dev/null 2>&1 </dev/null & exit 0'");
    notebook.job(&format!(
        "if [ $JOBYARD_ATTEMPT -gt 1 ]; then exit 0; fi; \
         sleep {seconds} & setsid sleep {seconds} & {daemon}; trap '' TERM HUP; wait"
    ))
}

async fn kill_the_sidecar(yard: &Yard) {
    let [id] = yard.sidecars()[..] else { unreachable!("one attempt runs") };
    let pid = Pid::from_raw(i32::try_from(id).expect("a pid")).expect("a pid");
    kill_process(pid, Signal::KILL).expect("it is there");
}

/// The job was retried, at the platform's cost, and its history says why.
async fn the_platform_paid(yard: &Yard, id: JobId) {
    let client = yard.client();
    let lost = until_over(&client, id, 1).await;
    assert_eq!((lost.outcome, lost.ended_by), (Some(Outcome::Lost), None));
    assert!(lost.message.contains("the sidecar died"), "{}", lost.message);
    let job = ended(&client, id).await;
    assert_eq!(job.status, Status::Success);
    assert_eq!((job.retry_count, job.platform_failures), (0, 1));
    assert_eq!(outcomes(&client, id).await, [Some(Outcome::Lost), Some(Outcome::Succeeded)]);
    let events = client.jobs().events(id).await.expect("its history");
    let retry = events.iter().find(|event| event.to == "retry").expect("the step is there");
    assert_eq!((retry.from.as_str(), retry.attempt, retry.why.as_str()), ("running", Some(1), "lost"));
}

async fn nothing_survives(yard: Yard) {
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let seconds = odd_seconds(yard.dir());
    let sleepers = format!("sleep {seconds}");
    let id = submit(&client, family(&notebook, &seconds)).await;
    until_phase(&client, id, "running").await;
    let whole = async || (exactly(&sleepers).len() == 3).then_some(());
    eventually("three sleepers", whole).await;
    kill_the_sidecar(&yard).await;
    let lost = until_over(&client, id, 1).await;
    assert_eq!(exactly(&sleepers), [] as [u32; 0], "none lives when the end is told: {lost:?}");
    the_platform_paid(&yard, id).await;
}

/// The processes with just this command line.
fn exactly(line: &str) -> Vec<u32> {
    let mut ids = processes_named(line);
    ids.retain(|id| {
        let own = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&own).replace('\0', " ").trim() == line
    });
    ids
}

#[tokio::test]
async fn nothing_of_a_task_survives_its_sidecar_on_sqlite() {
    nothing_survives(Yard::up().await).await;
}

#[tokio::test]
async fn nothing_of_a_task_survives_its_sidecar_on_postgres() {
    nothing_survives(Yard::on_postgres().await).await;
}

/// Killed while no worker is there: the next one clears up, before it says that the attempt is lost.
#[tokio::test]
async fn the_next_worker_clears_up_after_a_sidecar_that_died_alone() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let seconds = odd_seconds(yard.dir());
    let sleepers = format!("sleep {seconds}");
    let id = submit(&client, family(&notebook, &seconds)).await;
    until_phase(&client, id, "running").await;
    eventually("three sleepers", async || (exactly(&sleepers).len() == 3).then_some(())).await;
    yard.kill(Role::Worker);
    kill_the_sidecar(&yard).await;
    yard.start(Role::Worker).await;
    until_over(&client, id, 1).await;
    assert_eq!(exactly(&sleepers), [] as [u32; 0]);
    the_platform_paid(&yard, id).await;
}
