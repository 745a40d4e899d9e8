//! Artifacts and log segments in a bucket, on real processes: work goes on while the bucket is away, and nothing is lost.

use std::time::Duration;

use futures_util::TryStreamExt;
use jobyard_client::json::JobSubmit;
use jobyard_client::{ArtifactHash, Client, JobId, LogQuery, RetryPolicy, Status, Token};
use jobyard_system_tests::{
    ACCESS_KEY_ID, Datastore, Notebook, Role, S3Server, SECRET_ACCESS_KEY, Yard, YardPlan, ended, eventually,
    submit,
};

const BUCKET: &str = "yard-artifacts";

async fn yard(datastore: Datastore, s3: &S3Server) -> Yard {
    YardPlan::on(datastore).artifacts_in("s3://yard-artifacts/some/prefix", s3).raise().await
}

async fn read_log(client: &Client, id: JobId) -> Result<Vec<u8>, jobyard_client::Error> {
    let pieces = client.jobs().logs(id, &LogQuery::default()).await?;
    pieces.map_ok(|piece| piece.to_vec()).try_concat().await
}

fn lines(from: u32, to: u32) -> Vec<u8> {
    (from..=to).map(|line| format!("{line}\n")).collect::<String>().into_bytes()
}

/// A client that takes the first answer.
fn impatient(yard: &Yard) -> Client {
    let token = Token::new(&yard.secret()).expect("a token");
    let none = Duration::ZERO;
    let policy = RetryPolicy { busy_for: none, outage_for: none, ..RetryPolicy::default() };
    let builder = Client::builder().url(yard.client().url()).expect("a url").token(token);
    builder.retry_policy(policy).build().expect("a client")
}

/// A program and a folder go into the bucket, run, and what they leave comes out of it.
async fn a_folder_is_counted(datastore: Datastore) {
    let s3 = S3Server::start_new(BUCKET).expect("an S3 server");
    let yard = yard(datastore, &s3).await;
    let client = yard.client();
    let program = yard
        .script("count.sh", b"#!/bin/sh\ncat \"$JOBYARD_INPUT\"/*/* | wc -w > \"$JOBYARD_OUTPUT/words\"\n");
    let folder = yard.dir().join("texts/deep");
    std::fs::create_dir_all(&folder).expect("writable");
    std::fs::write(folder.join("a"), "one two three\n").expect("writable");
    // More than goes up at once.
    let large: String = (0..1_500_000).map(|word| format!("{word} ")).collect();
    std::fs::write(folder.join("b"), &large).expect("writable");
    let submitted = yard
        .command(&["submit", "--input"])
        .arg(yard.dir().join("texts"))
        .arg(&program)
        .output()
        .expect("it runs");
    assert!(submitted.status.success(), "{}", String::from_utf8_lossy(&submitted.stderr));
    let id: JobId = String::from_utf8_lossy(&submitted.stdout).trim().parse().expect("an id");
    let job = ended(&client, id).await;
    assert_eq!(job.status, Status::Success, "{:?}", job.result);
    let output = job.result.and_then(|result| result.output).expect("an output");
    let output: ArtifactHash = output.strip_prefix("sha256:").expect("a tree").parse().expect("a hash");
    let pulled = yard.dir().join("pulled");
    client.artifacts().pull_folder(output, &pulled, std::sync::Arc::new(|_| ())).await.expect("pulled");
    let words = std::fs::read_to_string(pulled.join("words")).expect("readable");
    assert_eq!(words.trim(), "1500003");
    assert!(!yard.dir().join("artifacts").exists() && !yard.dir().join("data/artifacts").exists());
    let keys = s3.keys(BUCKET).expect("a bucket");
    assert!(keys.iter().all(|key| key.starts_with("some/prefix/sha256/")), "{keys:?}");
    assert_eq!(s3.unfinished_parts().expect("readable"), 0);
}

#[tokio::test]
async fn a_folder_is_counted_on_sqlite() {
    a_folder_is_counted(Datastore::Sqlite).await;
}

#[tokio::test]
async fn a_folder_is_counted_on_postgres() {
    a_folder_is_counted(Datastore::Postgres).await;
}

/// The bucket vanishes while a task writes. The task ends, jobs are taken and run, short logs can be read; when the
/// bucket is back, so is every byte.
async fn logs_come_back_whole(datastore: Datastore) {
    let mut s3 = S3Server::start_new(BUCKET).expect("an S3 server");
    let mut yard = yard(datastore, &s3).await;
    let client = yard.client();
    let mut notebook = Notebook::in_folder(yard.dir());
    let script = format!("seq 1 200000; {}; seq 200001 400000", notebook.wait());
    let loud = submit(&client, notebook.job(&script)).await;
    eventually("the first half is there", async || {
        (read_log(&impatient(&yard), loud).await.ok()? == lines(1, 200_000)).then_some(())
    })
    .await;

    s3.stop();
    notebook.open_gate();
    assert_eq!(
        ended(&client, loud).await.status,
        Status::Success,
        "its outcome does not wait for the bucket"
    );
    let quiet =
        submit(&client, JobSubmit { command: vec!["echo".into(), "short".into()], ..JobSubmit::default() });
    let quiet = quiet.await;
    assert_eq!(ended(&client, quiet).await.status, Status::Success);
    eventually("a short log", async || (read_log(&client, quiet).await.ok()? == b"short\n").then_some(()))
        .await;
    let away = read_log(&impatient(&yard), loud).await.expect_err("its bucket is away");
    assert!(away.to_string().contains("artifact store"), "{away}");
    // What a worker holds of a log outlives the worker.
    let role = yard.worker_role();
    yard.kill(role);
    yard.start(role).await;

    s3.start().expect("the port is still free");
    eventually("all of the log", async || {
        (read_log(&impatient(&yard), loud).await.ok()? == lines(1, 400_000)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn logs_come_back_whole_on_sqlite() {
    logs_come_back_whole(Datastore::Sqlite).await;
}

#[tokio::test]
async fn logs_come_back_whole_on_postgres() {
    logs_come_back_whole(Datastore::Postgres).await;
}

/// A bucket that answers nothing, and one that was never there, keep no server from starting and no job from running.
#[tokio::test]
async fn a_silent_bucket_holds_nothing_up() {
    let mut s3 = S3Server::start_new(BUCKET).expect("an S3 server");
    s3.freeze();
    let yard = yard(Datastore::Sqlite, &s3).await;
    let client = yard.client();
    let script = "seq 1 20000; echo end";
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    let id = submit(&client, JobSubmit { command, ..JobSubmit::default() }).await;
    let job = ended(&client, id).await;
    assert_eq!((job.status, job.attempt), (Status::Success, Some(1)), "no lease was lost: {:?}", job.result);
    s3.thaw();
    let whole = [lines(1, 20_000), b"end\n".to_vec()].concat();
    eventually("its log", async || (read_log(&impatient(&yard), id).await.ok()? == whole).then_some(()))
        .await;
}

/// Over TLS, with the bucket in the host's name and the key from the environment. Who shows another certificate than the
/// machine trusts is sent nothing.
#[tokio::test]
async fn a_bucket_is_reached_over_tls_by_its_own_host_name() {
    let s3 = S3Server::start_new_with_tls(BUCKET).expect("an S3 server");
    let certificate = |s3: &S3Server| s3.certificate().to_str().expect("UTF-8").to_owned();
    let mut yard = YardPlan::on(Datastore::Sqlite)
        .artifact_url("s3://yard-artifacts/some/prefix")
        .table(&format!("[s3]\nendpoint = \"{}\"\npath_style = false", s3.endpoint()))
        // Nobody but the bucket's own name is known.
        .hosts(&format!("127.0.0.1 {BUCKET}.localhost\n"))
        .variable("AWS_ACCESS_KEY_ID", ACCESS_KEY_ID)
        .variable("AWS_SECRET_ACCESS_KEY", SECRET_ACCESS_KEY)
        .variable("SSL_CERT_FILE", &certificate(&s3))
        .raise()
        .await;
    let client = yard.client();
    let script = yard.script("large.sh", b"#!/bin/sh\nseq 1 20000\necho kept > \"$JOBYARD_OUTPUT/file\"\n");
    let program = client.artifacts().push_file(&script).await.expect("pushed").hash;
    let job = JobSubmit { binary_url: Some(format!("sha256:{program}")), ..JobSubmit::default() };
    let id = submit(&client, job).await;
    let job = ended(&client, id).await;
    assert_eq!(job.status, Status::Success, "{:?}", job.result);
    assert!(job.result.is_some_and(|result| result.output.is_some()));
    eventually("its log", async || (read_log(&client, id).await.ok()? == lines(1, 20_000)).then_some(()))
        .await;
    let keys = s3.keys(BUCKET).expect("a bucket");
    assert!(keys.iter().any(|key| key.starts_with("some/prefix/segments/")), "{keys:?}");

    let other = S3Server::start_new_with_tls(BUCKET).expect("an S3 server");
    yard.terminate(Role::Up);
    yard.start_with(Role::Up, &[("SSL_CERT_FILE", &certificate(&other))]).await;
    let script = yard.script("other.sh", b"#!/bin/sh\n");
    let refused = impatient(&yard).artifacts().push_file(&script).await.expect_err("it is not trusted");
    assert_eq!(refused.code(), Some("artifact_store_unavailable"), "{refused}");
    assert_eq!(s3.keys(BUCKET).expect("a bucket"), keys);
}
