//! A move from `jobyard up` to one of each role on PostgreSQL, with jobs in every state on the way.

use std::path::Path;
use std::process::Command;

use futures_util::TryStreamExt as _;
use jobyard_client::json::{JobSubmit, Seconds, SecretEnv};
use jobyard_client::{Client, JobId, LogQuery, LogStream, Outcome, Status};
use jobyard_system_tests::{
    Datastore, Role, S3Server, Yard, YardPlan, bin, ended, eventually, outcomes, submit, until_phase,
};

fn shell(script: &str) -> JobSubmit {
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    JobSubmit { command, max_retries: Some(3), ..JobSubmit::default() }
}

/// Waits for a node that only the new installation has.
fn waiting(script: &str) -> JobSubmit {
    JobSubmit { node_labels: [("moved".to_owned(), "yes".to_owned())].into(), ..shell(script) }
}

async fn is_at(client: &Client, id: JobId, status: Status) {
    eventually(&format!("job {id} is {status}"), async || {
        (client.jobs().get(id).await.ok()?.status == status).then_some(())
    })
    .await;
}

async fn written(client: &Client, id: JobId) -> usize {
    let query = LogQuery { stream: Some(LogStream::Stdout), ..LogQuery::default() };
    let log = client.jobs().logs(id, &query).await.expect("a log");
    log.try_collect::<Vec<_>>().await.expect("the whole log").concat().len()
}

/// The exit code and what was said.
fn jobyard(words: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(bin("jobyard")).args(words).output().expect("jobyard runs");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[tokio::test]
async fn jobs_move_to_postgres_and_go_on() {
    let mut old = Yard::up().await;
    let client = old.client();
    let short = submit(&client, shell("echo short")).await;
    let long = submit(&client, shell("head -c 100000 /dev/zero")).await;
    for id in [short, long] {
        assert_eq!(ended(&client, id).await.status, Status::Success);
    }
    let script = old.script("count.sh", b"#!/bin/sh\necho from an artifact\n");
    let program = client.artifacts().push_file(&script).await.expect("pushed").hash;
    let uploaded = JobSubmit { binary_url: Some(format!("sha256:{program}")), ..waiting("") };
    let uploaded = submit(&client, JobSubmit { command: Vec::new(), ..uploaded }).await;
    let secret_env = SecretEnv([("TOKEN".to_owned(), "hunter2".to_owned())].into());
    let hiding = JobSubmit { secret_env, ..waiting("[ \"$TOKEN\" = \"$(echo 2retnuh | rev)\" ]") };
    let hiding = submit(&client, hiding).await;
    let keyed =
        JobSubmit { idempotency_key: Some("nightly".to_owned()), ..waiting("echo \"$JOBYARD_ATTEMPT\"") };
    let first = submit(&client, keyed.clone()).await;
    let backoff = Some(Seconds { ms: 15_000 });
    let retried = submit(&client, JobSubmit { backoff, ..shell("[ \"$JOBYARD_ATTEMPT\" -gt 1 ]") }).await;
    is_at(&client, retried, Status::Retry).await;
    let due = client.jobs().get(retried).await.expect("it is there").next_start;
    let running = submit(&client, shell("[ \"$JOBYARD_ATTEMPT\" -gt 1 ] || exec sleep 1000")).await;
    until_phase(&client, running, "running").await;

    let (data_dir, file) = (old.dir().join("data"), old.dir().join("moved"));
    let export =
        |flags: &[&str]| jobyard(&[&["export", "--data-dir", path(&data_dir), path(&file)], flags].concat());
    let (code, said) = export(&[]);
    assert!(code == Some(1) && said.contains("stop it first"), "{said}");
    old.terminate(Role::Up);
    let (code, said) = export(&[]);
    assert!(code == Some(1) && said.contains("1 attempts have not ended"), "{said}");
    assert!(!file.exists());
    let (code, said) = export(&["--running"]);
    assert_eq!(code, Some(0), "{said}");
    let text = std::fs::read_to_string(&file).expect("a file");
    assert!(!text.contains("hunter2") && text.contains("job_secret"));

    let plan = YardPlan::on(Datastore::Postgres).worker_setting("labels = { moved = \"yes\" }");
    let new = plan.moved_from(&file, &data_dir).raise().await;
    let client = new.client();
    assert_eq!(client.jobs().get(retried).await.expect("it is there").next_start, due);
    for id in [uploaded, hiding, first, retried] {
        let job = ended(&client, id).await;
        assert_eq!(job.status, Status::Success, "{:?}", job.result);
    }
    assert_eq!(outcomes(&client, retried).await, [Some(Outcome::Failed), Some(Outcome::Succeeded)]);
    assert_eq!(client.jobs().submit(keyed).await.expect("accepted").id, first, "the same key, the same job");
    assert_eq!(written(&client, short).await, 6);
    assert_eq!(written(&client, long).await, 100_000);
    assert_eq!(ended(&client, running).await.status, Status::Success);
    assert_eq!(outcomes(&client, running).await, [Some(Outcome::Lost), Some(Outcome::Succeeded)]);

    let config = new.dir().join("jobyard.toml");
    let (code, said) = jobyard(&["import", "--config", path(&config), path(&file)]);
    assert!(code == Some(1) && said.contains("in use already"), "{said}");
}

/// What lies in a bucket stays there: the datastore that moves knows where.
#[tokio::test]
async fn artifacts_and_logs_in_a_bucket_are_found_after_the_move() {
    const PLACE: &str = "s3://yard-moved/some/prefix";
    let s3 = S3Server::start_new("yard-moved").expect("an S3 server");
    let mut old = YardPlan::on(Datastore::Sqlite).artifacts_in(PLACE, &s3).raise().await;
    let client = old.client();
    let script = "head -c 100000 /dev/zero; echo kept > \"$JOBYARD_OUTPUT/file\"";
    let over = submit(&client, shell(script)).await;
    let job = ended(&client, over).await;
    assert_eq!(job.status, Status::Success, "{:?}", job.result);
    let output = job.result.and_then(|result| result.output).expect("an output");
    let program = old.script("count.sh", b"#!/bin/sh\necho from the bucket\n");
    let program = client.artifacts().push_file(&program).await.expect("pushed").hash;
    let uploaded = JobSubmit { binary_url: Some(format!("sha256:{program}")), ..waiting("") };
    let uploaded = submit(&client, JobSubmit { command: Vec::new(), ..uploaded }).await;
    let (data_dir, file) = (old.dir().join("data"), old.dir().join("moved"));
    old.terminate(Role::Up);
    let (code, said) = jobyard(&["export", "--data-dir", path(&data_dir), path(&file)]);
    assert_eq!(code, Some(0), "{said}");
    let keys = s3.keys("yard-moved").expect("a bucket");

    let plan = YardPlan::on(Datastore::Postgres).artifacts_in(PLACE, &s3);
    let plan = plan.worker_setting("labels = { moved = \"yes\" }");
    let new = plan.moved_from(&file, &data_dir).raise().await;
    let client = new.client();
    assert_eq!(ended(&client, uploaded).await.status, Status::Success);
    assert_eq!(written(&client, over).await, 100_000);
    let output = output.strip_prefix("sha256:").expect("a tree").parse().expect("a hash");
    let pulled = new.dir().join("pulled");
    client.artifacts().pull_folder(output, &pulled, std::sync::Arc::new(|_| ())).await.expect("pulled");
    assert_eq!(std::fs::read_to_string(pulled.join("file")).expect("readable"), "kept\n");
    assert_eq!(s3.keys("yard-moved").expect("a bucket"), keys, "nothing was copied or removed");
}

#[tokio::test]
async fn a_bad_file_makes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
    let file = folder.path().join("moved");
    let (code, said) = jobyard(&["export", "--data-dir", path(&from), path(&file)]);
    assert!(code == Some(2) && said.contains("there is no datastore in"), "{said}");
    std::fs::write(&file, "{\"jobyard_export\":1,\"schema\":14,\"from\":\"sqlite\"}\n").expect("writable");
    for (text, why) in [
        ("notes\n", "is not a file that `jobyard export` wrote"),
        ("{\"jobyard_export\":1,\"schema\":14,\"from\":\"sqlite\"}\n", "is cut off"),
        ("{\"jobyard_export\":2,\"schema\":14,\"from\":\"sqlite\"}\n", "has format 2"),
    ] {
        std::fs::write(&file, text).expect("writable");
        let (code, said) = jobyard(&["import", "--data-dir", path(&to), path(&file)]);
        assert!(code == Some(1) && said.contains(why), "{said}");
    }
    assert!(!to.exists(), "nothing was even opened");
}
