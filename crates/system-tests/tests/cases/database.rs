//! The datastore as a queue, with one of each role on a real PostgreSQL (area 7).

use futures_util::TryStreamExt;
use futures_util::stream::{self, StreamExt};
use jobyard_client::json::{Cores, JobSubmit, ResourcesSubmit, Time};
use jobyard_client::{Client, JobFilter, JobId, LogStream, Outcome, Status, Timestamp};
use jobyard_system_tests::{Role, Yard, eventually};

use crate::support::{accept, ended, open_file, open_folder, program, raw, shell, status_of, written};

const OURS: &str = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'jobyard'";

/// B091: after each of several times that all connections are cut, jobs run and both roles listen again.
#[tokio::test]
async fn listeners_come_back_after_their_connections_were_cut() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    for round in 0..5 {
        if round == 4 {
            yard.restart_datastore();
        } else {
            yard.sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'jobyard'",
            );
        }
        let id = accept(&client, program(&["true"])).await;
        assert_eq!(ended(&client, id).await.status, Status::Success, "round {round}");
        let listening = "SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN jobyard_wake'";
        eventually("both listen", async || (yard.sql(listening) == "2").then_some(())).await;
    }
    for role in yard.roles().to_vec() {
        assert!(std::path::Path::new("/proc").join(yard.id(role).to_string()).exists(), "{role:?} ended");
    }
}

/// B093: what is sent to wake others has nothing to do with what was submitted.
#[tokio::test]
async fn large_jobs_and_large_batches_wake_the_informer_too() {
    let yard = Yard::on_postgres().await;
    let client = yard.client();
    let mut sent = Vec::new();
    for bytes in [7_900, 8_100, 65_536, 131_000] {
        let text = "x".repeat(bytes);
        let words = ["/bin/sh", "-c", "printf %s \"$1\" | wc -c", "sh", text.as_str()];
        sent.push((accept(&client, program(&words)).await, bytes));
    }
    let million = "x".repeat(1 << 20);
    let refused = client.jobs().submit(program(&["true", &million])).await.expect_err("too long");
    assert!(refused.to_string().contains("/command/1"), "{refused}");

    client.pools().put("parked").await.expect("a pool");
    let parked = JobSubmit { pool: Some("parked".to_owned()), ..program(&["true"]) };
    let batch = client.jobs().submit_batch(vec![parked; 5_000]).await.expect("accepted");
    assert_eq!(batch.items.len(), 5_000);
    for (id, bytes) in sent {
        assert_eq!(ended(&client, id).await.status, Status::Success);
        assert_eq!(written(&client, id, LogStream::Stdout).await, format!("{bytes}\n").into_bytes());
    }
}

const BACKLOG: u64 = 100_000;

/// Copies of a job that is not over, far more than could be submitted in a test.
fn multiply(yard: &Yard, id: JobId) {
    // Ids that grow, as real ones do.
    let mut statements = format!(
        "CREATE TEMP TABLE copies AS SELECT (left('{id}', 23) || '-' || lpad(to_hex(n), 12, '0'))::uuid AS copy
           FROM generate_series(1, {BACKLOG}) AS n;"
    );
    for table in ["job", "job_live"] {
        let columns = yard.sql(&format!(
            "SELECT string_agg(CASE column_name WHEN 'id' THEN 'copy' ELSE column_name END, ', '
               ORDER BY ordinal_position) FROM information_schema.columns WHERE table_name = '{table}'"
        ));
        statements +=
            &format!("INSERT INTO {table} SELECT {columns} FROM {table}, copies WHERE id = '{id}';");
    }
    yard.sql(&statements);
}

/// How often the hot table was read whole, and how many entries of its indexes were read. Roles hand in what they
/// counted when they end.
async fn read_so_far(yard: &mut Yard) -> (u64, u64) {
    yard.terminate(Role::Informer);
    yard.terminate(Role::Server);
    eventually("their sessions end", async || (yard.sql(OURS) == "0").then_some(())).await;
    read_so_far_at_rest(yard)
}

async fn fifty_jobs_run(yard: &mut Yard, client: &Client) {
    yard.start(Role::Server).await;
    yard.start(Role::Informer).await;
    let soon =
        client.jobs().list(&JobFilter { limit: Some(1), ..JobFilter::default() }).await.expect("a list");
    let soon = Time(soon.items[0].created_time.0.plus_ms(1));
    let job = JobSubmit { run_at: Some(soon), ..program(&["true"]) };
    // A server counts an owner's jobs before it accepts the first one, and not again for long.
    assert_eq!(ended(client, accept(client, program(&["true"])).await).await.status, Status::Success);
    let ids: Vec<JobId> = stream::iter(0..50)
        .map(|number| accept(client, if number % 2 == 0 { program(&["true"]) } else { job.clone() }))
        .buffered(8)
        .collect()
        .await;
    for id in ids {
        assert_eq!(ended(client, id).await.status, Status::Success);
    }
}

/// B094: 100,000 that wait for a node that is not there, and 100,000 for their time. What it costs to run fifty jobs
/// beside them is told, and bounded by what is read.
#[tokio::test]
async fn a_large_backlog_is_not_read_to_run_what_fits() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    let resources = ResourcesSubmit { cpu: Some(Cores { milli: 64_000 }), ..ResourcesSubmit::default() };
    let too_large = accept(&client, JobSubmit { resources: Some(resources), ..program(&["true"]) }).await;
    let over = accept(&client, program(&["true"])).await;
    let tomorrow = ended(&client, over).await.created_time.0.plus_ms(86_400_000);
    let later = accept(&client, JobSubmit { run_at: Some(Time(tomorrow)), ..program(&["true"]) }).await;
    yard.sql("VACUUM job_live");
    let before = read_so_far(&mut yard).await;
    fifty_jobs_run(&mut yard, &client).await;
    let alone = read_so_far(&mut yard).await;
    multiply(&yard, too_large);
    multiply(&yard, later);
    yard.sql("VACUUM job_live");
    let filled = read_so_far_at_rest(&yard);
    fifty_jobs_run(&mut yard, &client).await;
    let after = read_so_far(&mut yard).await;
    let (alone, beside) = (alone.1 - before.1, after.1 - filled.1);
    eprintln!("index entries read to run 50 jobs: {alone} alone, {beside} beside 200,000 that wait");
    assert!(after.0 - filled.0 <= 1, "the hot table was read whole {} times", after.0 - filled.0);
    assert!(beside < BACKLOG / 5, "{alone} entries read alone, {beside} beside the backlog");
}

fn read_so_far_at_rest(yard: &Yard) -> (u64, u64) {
    let numbers = yard.sql(
        "SELECT (SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'job_live') || ' ' ||
           (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'job_live')",
    );
    let (scans, entries) = numbers.split_once(' ').expect("two numbers");
    (scans.parse().expect("a number"), entries.parse().expect("a number"))
}

async fn answer_of(client: &Client, path: &str) -> u16 {
    status_of(&raw(client, format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await)
}

/// B096: each process holds to its pools, a worker has no connection at all, and nobody is ready without a datastore.
#[tokio::test]
async fn connections_are_bounded_and_a_server_without_its_datastore_says_so() {
    let mut yard = Yard::on_postgres().await;
    yard.sql("ALTER SYSTEM SET max_connections = 35");
    yard.restart_datastore();
    let client = yard.client();
    let crowd: Vec<JobId> = stream::iter(0..100)
        .map(|_| accept(&client, program(&["true"])))
        .buffer_unordered(32)
        .collect()
        .await;
    let mut most = 0;
    for (number, id) in crowd.into_iter().enumerate() {
        if number % 10 == 0 {
            most = most.max(yard.sql(OURS).parse::<u32>().expect("a number"));
        }
        assert_eq!(ended(&client, id).await.status, Status::Success);
    }
    // Server and informer: 8 for changes, 4 for reads, 2 for wake-ups each.
    assert!((4..=28).contains(&most), "{most} connections");

    yard.stop_datastore();
    eventually("not ready", async || (answer_of(&client, "/readyz").await == 503).then_some(())).await;
    assert_eq!(answer_of(&client, "/healthz").await, 200);
    yard.start_datastore();
    eventually("ready again", async || (answer_of(&client, "/readyz").await == 200).then_some(())).await;
    let id = accept(&client, program(&["true"])).await;
    assert_eq!(ended(&client, id).await.status, Status::Success);
}

/// B099. What comes in with a NUL is refused by the field's name; what a task writes is kept, and its job is over.
#[tokio::test]
async fn a_nul_is_refused_in_what_is_submitted_and_kept_in_what_is_written() {
    let yard = Yard::on_postgres().await;
    let client = yard.client();
    let one = |key: &str, value: &str| [(key.to_owned(), value.to_owned())].into();
    let cases = [
        (JobSubmit { name: Some("a\0".to_owned()), ..program(&["true"]) }, "/name"),
        (program(&["echo", "a\0b"]), "/command/1"),
        (JobSubmit { env: one("A", "b\0"), ..program(&["true"]) }, "/env/A"),
        (JobSubmit { labels: one("a", "b\0"), ..program(&["true"]) }, "/labels/a"),
        (JobSubmit { node_labels: one("a", "b\0"), ..program(&["true"]) }, "/node_labels/a"),
        (JobSubmit { idempotency_key: Some("a\0".to_owned()), ..program(&["true"]) }, "/idempotency_key"),
        (JobSubmit { owner_id: Some("default\0".to_owned()), ..program(&["true"]) }, "/owner_id"),
        (JobSubmit { pool: Some("default\0".to_owned()), ..program(&["true"]) }, "/pool"),
        (JobSubmit { binary_url: Some("file:///bin/\0".to_owned()), ..program(&[]) }, "/binary_url"),
    ];
    for (job, pointer) in cases {
        let refused = client.jobs().submit(job).await.expect_err(pointer);
        assert!(refused.to_string().contains(&format!("{pointer}: ")), "{pointer}: {refused}");
    }
    assert_eq!(yard.sql("SELECT count(*) FROM job"), "0");

    let id = accept(&client, shell("printf 'a\\0b\\n' >&2; exit 1")).await;
    let job = ended(&client, id).await;
    let result = job.result.expect("a result");
    assert_eq!(
        (job.status, result.outcome, result.exit_code),
        (Status::FinalFailed, Outcome::Failed, Some(1))
    );
    assert_eq!(written(&client, id, LogStream::Stderr).await, b"a\0b\n");
}

/// B102: jobs that are due after more than a lease, while the worker is killed twice.
#[tokio::test]
async fn a_delay_longer_than_a_lease_starts_each_job_once() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    let folder = open_folder();
    let starts = open_file(&folder, "starts");
    let script = format!("echo $JOBYARD_JOB_ID >> {}", starts.display());
    let past = JobSubmit { run_at: Some(Time(Timestamp(1))), ..shell(&script) };
    let past = ended(&client, accept(&client, past).await).await;
    assert_eq!(past.status, Status::Success);
    let due = Time(past.created_time.0.plus_ms(9_000));
    let job = JobSubmit { run_at: Some(due), ..shell(&script) };
    let ids: Vec<JobId> = client
        .jobs()
        .submit_batch(vec![job; 20])
        .await
        .expect("accepted")
        .items
        .iter()
        .map(|item| item.id)
        .collect();
    let far = Time(past.created_time.0.plus_ms(400 * 86_400_000));
    let far = accept(&client, JobSubmit { run_at: Some(far), ..shell(&script) }).await;
    for _ in 0..2 {
        yard.kill(Role::Worker);
        yard.start(Role::Worker).await;
    }
    for id in &ids {
        let job = ended(&client, *id).await;
        assert_eq!((job.status, job.attempt), (Status::Success, Some(1)));
        assert!(job.started_time >= Some(due), "{:?} before {due:?}", job.started_time);
    }
    let text = std::fs::read_to_string(&starts).expect("starts");
    let mut started: Vec<&str> = text.lines().collect();
    started.sort_unstable();
    let mut wanted: Vec<String> = ids.iter().chain([&past.id]).map(ToString::to_string).collect();
    wanted.sort_unstable();
    assert_eq!(started, wanted);
    let far = client.jobs().get(far).await.expect("there");
    assert_eq!((far.status, far.reason.as_str()), (Status::Ready, "run_at"));
    let listed: Vec<_> = client.jobs().list_all(JobFilter::default()).try_collect().await.expect("all");
    assert_eq!(listed.len(), 22);
}
