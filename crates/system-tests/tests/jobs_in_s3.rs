//! Jobs whose executable, input and outputs lie in S3, on real processes and both datastores.

use jobyard_client::json::{Job, JobSubmit};
use jobyard_client::{Outcome, Status};
use jobyard_system_tests::{
    Datastore, Notebook, S3Server, Yard, YardPlan, ended, eventually, submit, until_over, until_phase,
};

const BUCKET: &str = "yard-data";

/// The owner `default` may read all and write below `out/`.
async fn yard(datastore: Datastore, s3: &S3Server) -> Yard {
    let allow = "[[s3.allow]]\nurl = \"s3://yard-data/\"\naccess = \"read\"\n\
                 [[s3.allow]]\nurl = \"s3://yard-data/out/\"\nowners = [\"default\"]\naccess = \"read_write\"\n";
    YardPlan::on(datastore).table(&format!("{}{allow}", s3.settings())).raise().await
}

fn server() -> S3Server {
    S3Server::start_new(BUCKET).expect("an S3 server")
}

fn sh(script: &str) -> JobSubmit {
    JobSubmit { command: ["sh", "-c", script].map(str::to_owned).to_vec(), ..JobSubmit::default() }
}

fn output_of(job: &Job) -> Option<&str> {
    job.result.as_ref()?.output.as_deref()
}

fn message_of(job: &Job) -> &str {
    job.result.as_ref().map_or("", |result| &result.message)
}

/// Counts the words of a folder; all three of its places are in S3.
async fn words_are_counted(datastore: Datastore) {
    let s3 = server();
    let yard = yard(datastore, &s3).await;
    let client = yard.client();
    let program = "#!/bin/sh\ncd \"$JOBYARD_INPUT\" && mkdir \"$JOBYARD_OUTPUT/deep\" && \
                   find . -type f -exec cat {} + | wc -w > \"$JOBYARD_OUTPUT/deep/words\" && cp -r . \"$JOBYARD_OUTPUT/copy\"\n";
    s3.write(BUCKET, "bin/count.sh", program.as_bytes()).expect("written");
    s3.write(BUCKET, "in/a b", b"one two\n").expect("written");
    let large: String = (0..1_500_000).map(|word| format!("{word} ")).collect();
    s3.write(BUCKET, "in/deep/large", large.as_bytes()).expect("written");
    let job = JobSubmit {
        binary_url: Some("s3://yard-data/bin/count.sh".to_owned()),
        input_path: Some("s3://yard-data/in/".to_owned()),
        output_path: Some("s3://yard-data/out/counts".to_owned()),
        ..JobSubmit::default()
    };
    let ids = [submit(&client, job.clone()).await, submit(&client, job).await];
    for id in ids {
        let job = ended(&client, id).await;
        assert_eq!(job.status, Status::Success, "{:?}", job.result);
        assert_eq!(output_of(&job), Some(format!("s3://yard-data/out/counts/{id}/1/").as_str()));
        let left = |name: &str| {
            std::fs::read(s3.path(BUCKET, &format!("out/counts/{id}/1/{name}"))).expect("it is there")
        };
        assert_eq!(String::from_utf8_lossy(&left("deep/words")).trim(), "1500002");
        assert!(left("copy/deep/large") == large.as_bytes());
        let manifest: serde_json::Value = serde_json::from_slice(&left("_manifest.json")).expect("JSON");
        assert_eq!(manifest["files"]["copy/a b"]["size"], 8, "{manifest}");
        assert_eq!(manifest["files"].as_object().map(serde_json::Map::len), Some(3), "{manifest}");
    }
    assert_eq!(s3.unfinished_parts().expect("readable"), 0);
}

#[tokio::test]
async fn words_are_counted_on_sqlite() {
    words_are_counted(Datastore::Sqlite).await;
}

#[tokio::test]
async fn words_are_counted_on_postgres() {
    words_are_counted(Datastore::Postgres).await;
}

#[tokio::test]
async fn what_is_not_allowed_is_refused_at_the_submit_and_what_is_not_there_fails_once() {
    let s3 = server();
    let yard = yard(Datastore::Sqlite, &s3).await;
    let client = yard.client();
    let refused = [
        JobSubmit { input_path: Some("s3://another/in/".to_owned()), ..sh("true") },
        JobSubmit { binary_url: Some("s3://another/x".to_owned()), ..sh("true") },
        JobSubmit { output_path: Some("s3://yard-data/elsewhere".to_owned()), ..sh("true") },
    ];
    for job in refused {
        let error = client.jobs().submit(job).await.expect_err("not allowed").to_string();
        assert!(error.contains("[[s3.allow]]"), "{error}");
    }
    let absent = [
        (JobSubmit { input_path: Some("s3://yard-data/none/".to_owned()), ..sh("true") }, "nothing below"),
        (JobSubmit { input_path: Some("s3://yard-data/none".to_owned()), ..sh("true") }, "does not exist"),
        (JobSubmit { binary_url: Some("s3://yard-data/none".to_owned()), ..sh("true") }, "does not exist"),
    ];
    for (job, why) in absent {
        let job = ended(&client, submit(&client, job).await).await;
        assert_eq!((job.status, job.attempt), (Status::FinalFailed, Some(1)), "{:?}", job.result);
        assert!(message_of(&job).contains(why), "{:?}", job.result);
    }
}

/// Bad luck of the platform's, which no user pays for.
#[tokio::test]
async fn a_bucket_that_is_away_at_the_start_is_the_platforms_failure() {
    let mut s3 = server();
    s3.write(BUCKET, "in", b"words").expect("written");
    let yard = yard(Datastore::Sqlite, &s3).await;
    let client = yard.client();
    s3.stop();
    let job = JobSubmit { input_path: Some("s3://yard-data/in".to_owned()), ..sh("cat $JOBYARD_INPUT/in") };
    let id = submit(&client, job).await;
    let first = until_over(&client, id, 1).await;
    assert_eq!(first.outcome, Some(Outcome::LaunchFailed), "{}", first.message);
    s3.start().expect("the port is still free");
    let job = ended(&client, id).await;
    assert_eq!((job.status, job.retry_count), (Status::Success, 0), "{:?}", job.result);
}

/// The bucket vanishes while outputs go up; the attempt waits for it, a restarted worker too, and succeeds.
async fn outputs_wait_for_their_bucket(datastore: Datastore) {
    let mut s3 = server();
    let mut yard = yard(datastore, &s3).await;
    let client = yard.client();
    let mut notebook = Notebook::in_folder(yard.dir());
    let script = format!("seq 1 2000000 > $JOBYARD_OUTPUT/numbers; {}", notebook.wait());
    let job = JobSubmit {
        output_path: Some("s3://yard-data/out".to_owned()),
        max_retries: Some(0),
        ..notebook.job(&script)
    };
    let id = submit(&client, job).await;
    eventually("it waits at the gate", async || (!notebook.starts(id).is_empty()).then_some(())).await;
    s3.stop();
    notebook.open_gate();
    until_phase(&client, id, "finishing").await;
    let role = yard.worker_role();
    yard.kill(role);
    yard.start(role).await;
    until_phase(&yard.client(), id, "finishing").await;
    assert!(s3.keys(BUCKET).expect("a bucket").is_empty());
    s3.start().expect("the port is still free");
    let job = ended(&yard.client(), id).await;
    assert_eq!((job.status, job.attempt), (Status::Success, Some(1)), "{:?}", job.result);
    assert_eq!(notebook.starts(id), [1]);
    assert_eq!(output_of(&job), Some(format!("s3://yard-data/out/{id}/1/").as_str()));
    let numbers =
        std::fs::read_to_string(s3.path(BUCKET, &format!("out/{id}/1/numbers"))).expect("it is there");
    assert_eq!(numbers.lines().count(), 2_000_000);
}

#[tokio::test]
async fn outputs_wait_for_their_bucket_on_sqlite() {
    outputs_wait_for_their_bucket(Datastore::Sqlite).await;
}

#[tokio::test]
async fn outputs_wait_for_their_bucket_on_postgres() {
    outputs_wait_for_their_bucket(Datastore::Postgres).await;
}
