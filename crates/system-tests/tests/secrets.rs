//! Secrets of jobs in a real installation: their task has them, and nothing else shows them; the wrong key and a
//! swapped ciphertext start nothing.

use std::path::Path;

use jobyard_client::json::{JobSubmit, SecretEnv};
use jobyard_client::{Client, JobId, Outcome, Status};
use jobyard_system_tests::{Datastore, Role, Yard, YardPlan, ended, eventually, submit, until_phase};

const SECRET: &str = "hunter2-in-the-clear";
const FILED: &str = "filed-in-the-clear";

/// Says that it has its secrets without saying them, and waits until it may go.
fn script(go: &Path) -> String {
    format!(
        "[ \"$TOKEN\" = \"$(printf %s raelc-eht-ni-2retnuh | rev)\" ] && \
         [ \"$FILED\" = \"$(printf %s raelc-eht-ni-delif | rev)\" ] && echo has them; \
         until [ -e {} ]; do sleep 0.05; done",
        go.display()
    )
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Files below the folder that have this text in them.
fn files_with(folder: &Path, text: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().expect("its kind"));
        if kind.is_dir() {
            files_with(&path, text, found);
        } else if kind.is_file() && contains(&std::fs::read(&path).unwrap_or_default(), text) {
            found.push(path.display().to_string());
        }
    }
}

/// Every answer of the API that speaks of the job, as JSON.
async fn answers(yard: &Yard, id: JobId) -> String {
    let mut seen = String::new();
    let id = id.to_string();
    for words in [
        vec!["get", &id],
        vec!["attempts", &id],
        vec!["events", &id],
        vec!["why", &id],
        vec!["ps"],
        vec!["logs", &id],
        vec!["node", "ls"],
    ] {
        let mut command = yard.command(&words);
        if words[0] != "logs" {
            command.args(["-o", "json"]);
        }
        let output = command.output().expect("jobyard runs");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        seen.push_str(&String::from_utf8_lossy(&output.stdout));
    }
    seen
}

async fn nothing_shows_them(yard: &Yard, id: JobId) {
    for secret in [SECRET, FILED] {
        let mut found = Vec::new();
        files_with(yard.dir(), secret, &mut found);
        assert_eq!(found, [""; 0]);
        assert!(!contains(&yard.dump(), secret));
        assert!(!answers(yard, id).await.contains(secret));
    }
}

async fn a_task_has_its_secrets_and_nothing_else_shows_them(datastore: Datastore) {
    let yard = YardPlan::on(datastore).raise().await;
    let client = yard.client();
    let outside = tempfile::tempdir().expect("a folder");
    let (go, filed) = (yard.dir().join("go"), outside.path().join("filed"));
    std::fs::write(&filed, format!("{FILED}\n")).expect("writable");
    let filed = format!("FILED={}", filed.display());
    let mut command = yard.command(&["submit", "--secret-env", "TOKEN", "--secret-env-file", &filed]);
    command.args(["--idempotency-key", "nightly", "--", "sh", "-c", &script(&go)]);
    let submit = |secret: &str| {
        let output = command.env("TOKEN", secret).output().expect("jobyard runs");
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let mut submit = submit;
    let (code, said) = submit(SECRET);
    assert_eq!(code, Some(0), "{said}");
    let id: JobId = said.trim().parse().expect("an id");
    assert_eq!(submit(SECRET), (code, said), "the same job");
    let (code, said) = submit("another");
    assert!(code == Some(1) && said.contains("idempotency key"), "{said}");

    until_phase(&client, id, "running").await;
    eventually("it says so", async || answers(&yard, id).await.contains("has them").then_some(())).await;
    nothing_shows_them(&yard, id).await;
    std::fs::write(&go, "").expect("writable");
    let job = ended(&client, id).await;
    assert_eq!((job.status, job.attempt), (Status::Success, Some(1)));
    nothing_shows_them(&yard, id).await;
}

#[tokio::test]
async fn a_task_has_its_secrets_and_nothing_else_shows_them_on_sqlite() {
    a_task_has_its_secrets_and_nothing_else_shows_them(Datastore::Sqlite).await;
}

#[tokio::test]
async fn a_task_has_its_secrets_and_nothing_else_shows_them_on_postgres() {
    a_task_has_its_secrets_and_nothing_else_shows_them(Datastore::Postgres).await;
}

async fn hiding(client: &Client, secret: &str) -> JobId {
    let job = JobSubmit {
        command: ["sh", "-c", &format!("[ \"$TOKEN\" = {secret} ]")].map(str::to_owned).to_vec(),
        max_retries: Some(0),
        secret_env: SecretEnv([("TOKEN".to_owned(), secret.to_owned())].into()),
        ..JobSubmit::default()
    };
    submit(client, job).await
}

/// What the first attempt says that could not be launched. (Those before it met a worker that was just leaving.)
async fn why_not_launched(client: &Client, id: JobId) -> String {
    eventually("a failed launch", async || {
        let attempts = client.jobs().attempts(id).await.ok()?;
        assert!(attempts.iter().all(|attempt| attempt.started_time.is_none()), "{attempts:?}");
        let failed = attempts.into_iter().find(|attempt| attempt.outcome == Some(Outcome::LaunchFailed));
        failed.map(|attempt| attempt.message)
    })
    .await
}

#[tokio::test]
async fn a_wrong_key_starts_nothing_and_a_new_one_beside_it_opens_what_the_old_one_sealed() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    yard.terminate(Role::Worker);
    let id = hiding(&client, "one").await;
    yard.terminate(Role::Server);
    yard.write_secret_keys(&["0f"]);
    yard.start(Role::Server).await;
    yard.start(Role::Worker).await;
    let why = why_not_launched(&client, id).await;
    assert!(why.contains("is not in this server's `server.secret_key_file`"), "{why}");

    yard.terminate(Role::Server);
    yard.write_secret_keys(&["0f", "5e"]);
    yard.start(Role::Server).await;
    let job = ended(&client, id).await;
    assert_eq!(job.status, Status::Success, "{:?}", job.result);
    let sealed_by = yard.sql("SELECT DISTINCT key_id FROM job_secret");
    let id = hiding(&client, "two").await;
    assert_eq!(ended(&client, id).await.status, Status::Success);
    let keys = yard.sql("SELECT DISTINCT key_id FROM job_secret ORDER BY 1");
    assert_eq!(keys.lines().count(), 2, "the first key of the file seals: {keys}");
    assert!(keys.contains(&sealed_by));
}

#[tokio::test]
async fn what_was_sealed_for_one_job_opens_for_no_other() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    yard.terminate(Role::Worker);
    let ids = [hiding(&client, "one").await, hiding(&client, "two").await];
    let swapped = yard.sql(
        "UPDATE job_secret SET sealed = other.sealed FROM job_secret other \
         WHERE other.job_id <> job_secret.job_id RETURNING 1",
    );
    assert_eq!(swapped.lines().filter(|line| *line == "1").count(), 2, "{swapped}");
    yard.start(Role::Worker).await;
    for id in ids {
        let why = why_not_launched(&client, id).await;
        assert!(why.contains("sealed for another job"), "{why}");
        client.jobs().cancel(id).await.expect("cancelled");
    }
}

#[tokio::test]
async fn a_server_that_can_not_keep_secrets_says_so_before_it_serves() {
    let mut yard = Yard::on_postgres().await;
    let key = yard.dir().join("secret.key");
    yard.terminate(Role::Server);
    std::fs::write(&key, "not a key").expect("writable");
    yard.launch_with(Role::Server, &[]);
    assert_eq!(yard.wait(Role::Server), Some(2));
    let said = yard.said(Role::Server);
    assert!(said.contains("line 1 is no key") && !said.contains("not a key"), "{said}");
}
