//! The README's walkthrough: 200 jobs count the words of 200 real files, a program outside Jobyard adds them up, and
//! the total is what `wc` says. On both datastores; then again while each part is killed in turn.

use std::path::{Path, PathBuf};
use std::process::Command;

use futures_util::TryStreamExt;
use jobyard_client::json::JobSubmit;
use jobyard_client::{Client, JobFilter, JobId, Status};
use jobyard_system_tests::{
    DEADLINE, Datastore, Notebook, Signal, Yard, YardPlan, bin, eventually, processes_named,
};

const FILES: usize = 200;

/// Real text of the machine: documentation of installed packages.
fn real_files() -> Vec<PathBuf> {
    let found = Command::new("find")
        .args(["/usr/share/doc", "/usr/share/common-licenses", "-type", "f", "-name", "copyright"])
        .output()
        .expect("find");
    let text = String::from_utf8(found.stdout).expect("paths");
    let mut files: Vec<PathBuf> = text.lines().map(PathBuf::from).collect();
    files.sort();
    assert!(files.len() >= FILES, "only {} files of documentation on this machine", files.len());
    files.truncate(FILES);
    files
}

fn words_by_hand(files: &[PathBuf]) -> u64 {
    // A task inherits no locale, and what a word is depends on it.
    let output = Command::new("wc").arg("-w").args(files).env("LC_ALL", "C").output().expect("wc");
    let text = String::from_utf8(output.stdout).expect("numbers");
    let total = text.lines().rev().find(|line| line.ends_with(" total")).expect("a total");
    total.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
}

async fn submit_counts(yard: &Yard, client: &Client, files: &[PathBuf]) -> Vec<JobId> {
    let script = yard.script("count.sh", b"#!/bin/sh\nwc -w < \"$1\"\n");
    let pushed = client.artifacts().push_file(&script).await.expect("the script goes up");
    let job = |file: &PathBuf| JobSubmit {
        binary_url: Some(format!("sha256:{}", pushed.hash)),
        command: vec![file.display().to_string()],
        labels: [("set".to_owned(), "docs".to_owned())].into(),
        ..JobSubmit::default()
    };
    let mut ids = Vec::new();
    for file in files {
        ids.push(client.jobs().submit(job(file)).await.expect("accepted").id);
    }
    ids
}

async fn wait_for_all(client: &Client, ids: &[JobId]) {
    for id in ids {
        let job = client.jobs().wait_for(*id, DEADLINE).await.expect("an end");
        assert_eq!(job.status, Status::Success, "job {id}: {:?}", job.result);
    }
}

/// The program outside Jobyard, built on the client library.
fn sum_logs(yard: &Yard) -> String {
    let secret = yard.command(&[]);
    let envs: Vec<_> = secret.get_envs().filter_map(|(key, value)| Some((key, value?))).collect();
    let output = Command::new(bin("examples/sum_logs")).arg("set=docs").envs(envs).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

async fn counts_add_up(yard: &Yard) {
    let client = yard.client();
    let files = real_files();
    let ids = submit_counts(yard, &client, &files).await;
    wait_for_all(&client, &ids).await;
    assert_eq!(sum_logs(yard), format!("{} words in {FILES} files\n", words_by_hand(&files)));
}

#[tokio::test]
async fn two_hundred_counts_add_up_on_sqlite() {
    counts_add_up(&Yard::up().await).await;
}

#[tokio::test]
async fn two_hundred_counts_add_up_on_postgres() {
    counts_add_up(&Yard::on_postgres().await).await;
}

/// Kills a sidecar that beats now; which job it belongs to is chance.
async fn kill_a_sidecar(yard: &Yard) {
    let state = yard.dir().join("state").display().to_string();
    let id = eventually("a live sidecar", async || {
        processes_named("jobyard-sidecar").into_iter().find(|id| names(*id, &state))
    })
    .await;
    if let Some(pid) = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw) {
        // It may have ended since it was seen; then nothing was harmed and the next one is as good.
        let _gone = rustix::process::kill_process(pid, Signal::KILL);
    }
}

fn names(id: u32, dir: &str) -> bool {
    let at = |file: &str| std::fs::read_link(format!("/proc/{id}/{file}")).unwrap_or_default();
    at("cwd").starts_with(Path::new(dir))
        || std::fs::read(format!("/proc/{id}/cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(dir))
}

/// The same count while the parts are killed one after the other. Every second job waits until that is over.
async fn counts_survive(mut yard: Yard) {
    let client = yard.client();
    let files = real_files();
    let mut notebook = Notebook::in_folder(yard.dir());
    let mut hashes = Vec::new();
    for (name, first) in [("slow.sh", "sleep 0.5".to_owned()), ("held.sh", notebook.wait())] {
        let script = yard.script(name, format!("#!/bin/sh\n{first}\nwc -w < \"$1\"\n").as_bytes());
        hashes.push(client.artifacts().push_file(&script).await.expect("the script goes up").hash);
    }
    let jobs: Vec<JobSubmit> = files
        .iter()
        .zip(hashes.iter().cycle())
        .map(|(file, hash)| JobSubmit {
            binary_url: Some(format!("sha256:{hash}")),
            command: vec![file.display().to_string()],
            labels: [("set".to_owned(), "docs".to_owned())].into(),
            ..JobSubmit::default()
        })
        .collect();
    let ids: Vec<JobId> =
        client.jobs().submit_batch(jobs).await.expect("accepted").items.iter().map(|item| item.id).collect();
    kill_a_sidecar(&yard).await;
    for role in yard.roles().to_vec() {
        yard.kill(role);
        yard.start(role).await;
    }
    yard.restart_datastore();
    kill_a_sidecar(&yard).await;
    notebook.open_gate();
    wait_for_all(&client, &ids).await;
    assert_eq!(sum_logs(&yard), format!("{} words in {FILES} files\n", words_by_hand(&files)));
    history_is_whole(&client, &ids).await;
}

/// Every job has one end, its attempts are numbered without a gap, and all but the last say why they ended.
async fn history_is_whole(client: &Client, ids: &[JobId]) {
    let filter = JobFilter { labels: vec![("set".into(), "docs".into())], ..JobFilter::default() };
    let listed: Vec<JobId> =
        client.jobs().list_all(filter).map_ok(|job| job.id).try_collect().await.expect("all jobs");
    assert_eq!(listed.len(), ids.len(), "nothing lost, nothing twice");
    let mut troubled = 0;
    for id in ids {
        let attempts = client.jobs().attempts(*id).await.expect("attempts");
        let numbers: Vec<u32> = attempts.iter().map(|attempt| attempt.number).collect();
        assert_eq!(numbers, (1..=u32::try_from(attempts.len()).expect("few")).collect::<Vec<_>>());
        assert!(attempts.iter().all(|attempt| attempt.outcome.is_some()), "{attempts:?}");
        let succeeded =
            attempts.iter().filter(|attempt| attempt.outcome == Some(jobyard_client::Outcome::Succeeded));
        assert_eq!(succeeded.count(), 1, "{attempts:?}");
        troubled += usize::from(attempts.len() > 1);
        let ends = client.jobs().events(*id).await.expect("events");
        assert_eq!(ends.iter().filter(|event| event.to == "success").count(), 1, "{ends:?}");
    }
    assert!(troubled > 0, "at least the killed sidecar's job shows what happened");
}

#[tokio::test]
async fn the_counts_survive_kills_on_sqlite() {
    counts_survive(Yard::up().await).await;
}

#[tokio::test]
async fn the_counts_survive_kills_on_postgres() {
    counts_survive(Yard::on_postgres().await).await;
}

#[tokio::test]
async fn the_counts_survive_kills_of_any_of_a_pair() {
    counts_survive(YardPlan::on(Datastore::Postgres).in_pairs().raise().await).await;
}

/// A Python script, a shell script, a small compiled program, and a script with a CR in its first line.
async fn executables_run(yard: Yard) {
    let client = yard.client();
    let source = yard.dir().join("small.c");
    std::fs::write(&source, "#include <stdio.h>\nint main(void) { puts(\"compiled\"); return 0; }\n")
        .expect("writable");
    let compiled = yard.dir().join("small");
    assert!(Command::new("cc").arg(&source).arg("-o").arg(&compiled).status().expect("cc").success());
    let cases = [
        (yard.script("say.py", b"#!/usr/bin/env python3\nprint('python')\n"), "python\n"),
        (yard.script("say.sh", b"#!/bin/sh\necho shell\n"), "shell\n"),
        (compiled, "compiled\n"),
    ];
    for (path, says) in cases {
        let output = yard.command(&["run"]).arg(&path).output().expect("jobyard run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stdout), says);
    }
    let windows = yard.script("windows.sh", b"#!/bin/sh\r\necho never\n");
    let pushed = client.artifacts().push_file(&windows).await.expect("it goes up");
    let submit = JobSubmit { binary_url: Some(format!("sha256:{}", pushed.hash)), ..JobSubmit::default() };
    let id = client.jobs().submit(submit).await.expect("accepted").id;
    let job = client.jobs().wait_for(id, DEADLINE).await.expect("an end");
    let result = job.result.expect("a result");
    assert_eq!((job.status, job.reason.as_str()), (Status::FinalFailed, "not_retryable"));
    assert!(result.message.contains("carriage return"), "{}", result.message);
    assert_eq!(client.jobs().attempts(id).await.expect("attempts").len(), 1, "no retry can mend it");
}

#[tokio::test]
async fn scripts_and_programs_run_on_sqlite() {
    executables_run(Yard::up().await).await;
}

#[tokio::test]
async fn scripts_and_programs_run_on_postgres() {
    executables_run(Yard::on_postgres().await).await;
}
