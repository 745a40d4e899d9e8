//! Folders as inputs and outputs, on real processes: words are counted folder by folder, and a job merges what the
//! others left. On both datastores; then while each part is killed in turn; then with two of each role.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use jobyard_client::json::{Job, JobSubmit};
use jobyard_client::{ArtifactHash, Client, FolderWatch, JobId, Outcome, Status};
use jobyard_system_tests::{Datastore, Notebook, Role, Yard, YardPlan, ended, submit, until_phase};

const FOLDERS: usize = 4;
const FILES: usize = 30;

/// Counts each file of its input; one line a file.
const COUNT: &str = "cd \"$JOBYARD_INPUT\" && find . -type f | sort | while read -r file; do \
    wc -w < \"$file\"; done > \"$JOBYARD_OUTPUT/counts\"";
/// Adds up all lines of all files of its input.
const MERGE: &str = "find \"$JOBYARD_INPUT\" -name counts -exec cat {} + | \
    awk '{ sum += $1 } END { print sum }' > \"$JOBYARD_OUTPUT/total\"";

fn nobody() -> FolderWatch {
    Arc::new(|_| ())
}

/// Folders with real text of the machine in them, some of it twice.
fn real_folders(below: &Path) -> Vec<PathBuf> {
    let found = Command::new("find")
        .args(["/usr/share/doc", "-type", "f", "-name", "copyright"])
        .output()
        .expect("find");
    let text = String::from_utf8(found.stdout).expect("paths");
    let mut files: Vec<&str> = text.lines().collect();
    files.sort_unstable();
    assert!(files.len() >= FOLDERS * FILES, "only {} files of documentation here", files.len());
    let mut folders = Vec::new();
    for number in 0..FOLDERS {
        let folder = below.join(format!("texts-{number}"));
        for (place, file) in files[number * FILES..(number + 1) * FILES].iter().enumerate() {
            let deep = folder.join(format!("{}", place % 3));
            fs::create_dir_all(&deep).expect("writable");
            fs::copy(file, deep.join(format!("{place}.txt"))).expect("copied");
        }
        fs::copy(files[0], folder.join("again.txt")).expect("copied");
        folders.push(folder);
    }
    folders
}

fn words_by_hand(folders: &[PathBuf]) -> u64 {
    let output = Command::new("sh")
        .args(["-c", "find \"$@\" -type f -exec cat {} + | wc -w", "sh"])
        .args(folders)
        .env("LC_ALL", "C")
        .output()
        .expect("wc");
    String::from_utf8(output.stdout).expect("a number").trim().parse().expect("a number")
}

fn job(script: &str, input: ArtifactHash) -> JobSubmit {
    JobSubmit {
        command: ["sh", "-c", script].map(str::to_owned).to_vec(),
        input_path: Some(format!("sha256:{input}")),
        ..JobSubmit::default()
    }
}

fn output_of(job: &Job) -> ArtifactHash {
    assert_eq!(job.status, Status::Success, "{:?}", job.result);
    let output = job.result.as_ref().and_then(|result| result.output.as_deref()).expect("an output");
    output.strip_prefix("sha256:").expect("a tree").parse().expect("a hash")
}

async fn submit_counts(client: &Client, folders: &[PathBuf], script: &str) -> Vec<JobId> {
    let mut ids = Vec::new();
    for folder in folders {
        let pushed = client.artifacts().push_folder(folder, nobody()).await.expect("pushed");
        ids.push(submit(client, job(script, pushed.hash)).await);
    }
    ids
}

/// Pulls what the jobs left into one folder, gives that to a job, and reads what that left by `pull`, which is
/// `jobyard artifact pull`.
async fn merged(dir: &Path, mut pull: Command, client: &Client, ids: &[JobId]) -> u64 {
    let counts = dir.join("counts");
    fs::create_dir(&counts).expect("writable");
    for id in ids {
        let output = output_of(&ended(client, *id).await);
        let folder = counts.join(id.to_string());
        client.artifacts().pull_folder(output, &folder, nobody()).await.expect("pulled");
    }
    let pushed = client.artifacts().push_folder(&counts, nobody()).await.expect("pushed");
    assert_eq!(pushed.sent_files, 0, "the server has what its jobs left");
    let id = submit(client, job(MERGE, pushed.hash)).await;
    output_of(&ended(client, id).await);
    let total = dir.join("total");
    let pulled = tokio::task::spawn_blocking({
        pull.arg(id.to_string()).arg(&total);
        move || pull.output().expect("it runs")
    });
    let pulled = pulled.await.expect("its end");
    assert!(pulled.status.success(), "{}", String::from_utf8_lossy(&pulled.stderr));
    fs::read_to_string(total.join("total")).expect("a total").trim().parse().expect("a number")
}

async fn folders_add_up(yard: Yard) {
    let client = yard.client();
    let folders = real_folders(yard.dir());
    let ids = submit_counts(&client, &folders, COUNT).await;
    assert_eq!(
        merged(yard.dir(), yard.command(&["artifact", "pull"]), &client, &ids).await,
        words_by_hand(&folders)
    );
}

#[tokio::test]
async fn folders_add_up_on_sqlite() {
    folders_add_up(Yard::up().await).await;
}

#[tokio::test]
async fn folders_add_up_on_postgres() {
    folders_add_up(Yard::on_postgres().await).await;
}

async fn folders_add_up_while_parts_are_killed(mut yard: Yard) {
    let client = yard.client();
    let folders = real_folders(yard.dir());
    let slow = format!("sleep 1; {COUNT}");
    let ids = submit_counts(&client, &folders, &slow).await;
    until_phase(&client, ids[0], "running").await;
    for role in yard.roles().to_vec() {
        yard.kill(role);
        yard.start(role).await;
    }
    assert_eq!(
        merged(yard.dir(), yard.command(&["artifact", "pull"]), &client, &ids).await,
        words_by_hand(&folders)
    );
}

#[tokio::test]
async fn folders_add_up_while_parts_are_killed_on_sqlite() {
    folders_add_up_while_parts_are_killed(Yard::up().await).await;
}

#[tokio::test]
async fn folders_add_up_while_parts_are_killed_on_postgres() {
    folders_add_up_while_parts_are_killed(Yard::on_postgres().await).await;
}

/// An order in which the parts of an installation are killed; printed, and taken from `JOBYARD_TEST_SEED` to see it again.
struct Chance(u64);

impl Chance {
    fn new() -> Self {
        let given = std::env::var("JOBYARD_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| RandomState::new().build_hasher().finish());
        eprintln!("JOBYARD_TEST_SEED={seed}");
        Self(seed)
    }

    /// Another number below `limit` (Knuth's MMIX generator).
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % limit
    }

    fn shuffled(&mut self, roles: &[Role]) -> Vec<Role> {
        let mut rest = roles.to_vec();
        let mut order = Vec::new();
        while !rest.is_empty() {
            order.push(rest.swap_remove(self.below(rest.len())));
        }
        order
    }
}

/// Kills every role once, in this order, and starts each again before the next.
async fn kill_in_turn(yard: &mut Yard, order: &[Role]) {
    eprintln!("{order:?}");
    for role in order {
        yard.kill(*role);
        yard.start(*role).await;
    }
}

/// Each job has one end, and one attempt that succeeded: its last.
async fn each_ended_once(client: &Client, ids: &[JobId]) {
    for id in ids {
        let events = client.jobs().events(*id).await.expect("events");
        assert_eq!(events.iter().filter(|event| event.to == "success").count(), 1, "{events:?}");
        let attempts = client.jobs().attempts(*id).await.expect("attempts");
        let succeeded: Vec<u32> = attempts
            .iter()
            .filter(|attempt| attempt.outcome == Some(Outcome::Succeeded))
            .map(|attempt| attempt.number)
            .collect();
        assert_eq!(succeeded, [u32::try_from(attempts.len()).expect("few")], "{attempts:?}");
    }
}

/// Two servers, two informers and two workers. Each of the six is killed and comes back: while folders go up and jobs
/// are submitted and run, and again while the merge runs on what they left.
#[tokio::test]
async fn folders_add_up_while_any_of_a_pair_is_killed() {
    let mut yard = YardPlan::on(Datastore::Postgres).in_pairs().raise().await;
    yard.until_available("other-node").await;
    let client = yard.client();
    let mut chance = Chance::new();
    let folders = real_folders(yard.dir());
    let mut notebook = Notebook::in_folder(yard.dir());
    let held = format!("{}; {COUNT}", notebook.wait());
    let order = chance.shuffled(yard.roles());
    let submit_all = async {
        let mut ids = submit_counts(&client, &folders, &format!("sleep 1; {COUNT}")).await;
        ids.extend(submit_counts(&client, &folders, &held).await);
        ids
    };
    let (ids, ()) = tokio::join!(submit_all, kill_in_turn(&mut yard, &order));
    notebook.open_gate();
    let order = chance.shuffled(yard.roles());
    for (id, again) in ids[..FOLDERS].iter().zip(&ids[FOLDERS..]) {
        let output = output_of(&ended(&client, *id).await);
        assert_eq!(output_of(&ended(&client, *again).await), output, "the same of the same");
    }
    let pull = yard.command(&["artifact", "pull"]);
    let dir = yard.dir().to_owned();
    let merge = merged(&dir, pull, &client, &ids[..FOLDERS]);
    let (total, ()) = tokio::join!(merge, kill_in_turn(&mut yard, &order));
    assert_eq!(total, words_by_hand(&folders));
    each_ended_once(&client, &ids).await;
}

/// `run --input` sends what is here and runs at once; without an input that is there the job waits.
#[tokio::test]
async fn an_input_of_this_machine_is_sent_and_one_to_come_is_waited_for() {
    let yard = Yard::up().await;
    let folder = yard.dir().join("texts");
    fs::create_dir(&folder).expect("writable");
    fs::write(folder.join("a"), "one two\n").expect("writable");
    let run = |input: &Path| {
        let mut command = yard.command(&["run", "--input"]);
        command.arg(input).args(["--", "sh", "-c", "cat \"$JOBYARD_INPUT\"/*"]);
        command.output().expect("jobyard run")
    };
    for input in [folder.clone(), folder.join("a")] {
        let output = run(&input);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "one two\n", "{output:?}");
    }
    let client = yard.client();
    fs::write(folder.join("b"), "three\n").expect("writable");
    let elsewhere = Yard::up().await;
    let hash = elsewhere.client().artifacts().push_folder(&folder, nobody()).await.expect("pushed").hash;
    let id = submit(&client, job("cat \"$JOBYARD_INPUT\"/* > \"$JOBYARD_OUTPUT/all\"", hash)).await;
    let waits = client.jobs().get(id).await.expect("there");
    assert_eq!((waits.status, waits.reason.as_str()), (Status::Ready, "artifact_missing"));
    client.artifacts().push_folder(&folder, nobody()).await.expect("pushed");
    output_of(&ended(&client, id).await);
}
