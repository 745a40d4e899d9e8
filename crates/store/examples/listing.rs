//! Figures of lists, counts and completions with many jobs stored, on both datastores.
//!
//! `cargo run --release -p jobyard-store --example listing -- [JOBS]` fills new datastores in the temporary folder (`TMPDIR`)
//! and prints how long each look takes: the first one, and of 40 more the median and the 95th of a hundred. With `submit` behind
//! it measures instead what the index of names and the labels cost a submission, in turns with and without them.

#![expect(clippy::unwrap_used, reason = "what can't be measured ends the program")]
#![expect(clippy::disallowed_methods, reason = "it stands where a door does")]
#![expect(clippy::print_stdout, reason = "the figures are what it is for")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jobyard_model::bulk::acted_on;
use jobyard_model::node::NodeRegistration;
use jobyard_model::{
    Any, AttemptEnd, BulkAction, Clock, EndedBy, Exit, ExitFacts, IoClass, JobFilter, JobId, JobKind,
    JobSpec, LabelCondition, Lane, NodeId, Outcome, Outputs, Priority, Resources, Runtime, SessionId, Status,
    TextMatch, Timestamp, Usage,
};
use jobyard_store::{
    Actor, BulkStatus, JobQuery, MinuteQuery, NewBulk, NewJob, Placement, PostgresConfig, PostgresStore,
    Report, ReportItem, SqliteOptions, SqliteStore, Store, ValueKey,
};
use jobyard_test_postgres::Cluster;
use uuid::Uuid;

/// Far from zero, and going on by itself.
struct Wall(Instant);

impl Clock for Wall {
    fn now(&self) -> Timestamp {
        Timestamp(1_790_000_000_000 + i64::try_from(self.0.elapsed().as_millis()).unwrap())
    }
}

const BATCH: usize = 5_000;
const LOOKS: usize = 40;

fn spec(number: usize) -> JobSpec {
    let env = if number % 10 < 9 { "prod" } else { "test" };
    let labels = [("team".to_owned(), format!("team-{}", number % 37)), ("env".to_owned(), env.to_owned())];
    JobSpec {
        owner: format!("owner-{}", number % 101),
        name: format!("job-{}", number % 503),
        kind: JobKind::Task,
        binary: None,
        command: vec!["/usr/bin/env".to_owned(), "python3".to_owned(), format!("step_{}.py", number % 1_009)],
        env: BTreeMap::from([("SOME_SETTING".to_owned(), "a value of the usual length".to_owned())]),
        run_at: None,
        start_within_ms: None,
        max_retries: 0,
        backoff_ms: 1_000,
        no_retry_exit_codes: Vec::new(),
        timeout_ms: None,
        stop_grace_ms: 10_000,
        resources: Resources::DEFAULT,
        cpu_limit_milli: None,
        io_class: IoClass::Mixed,
        runtime: Runtime::Process,
        priority: Priority::TASK_DEFAULT,
        preemptible: false,
        exclusive: false,
        pool: "default".to_owned(),
        node_labels: BTreeMap::new(),
        labels: BTreeMap::from(labels),
        origin: None,
        input_path: None,
        has_secret_env: false,
        output_path: None,
    }
}

fn node() -> NodeRegistration {
    NodeRegistration {
        node_id: NodeId(Uuid::from_u128(1)),
        session: SessionId(Uuid::from_u128(2)),
        boot_id: "boot".to_owned(),
        name: "node-1".to_owned(),
        pool: "default".to_owned(),
        capacity: Resources { cpu_milli: 1 << 40, memory_bytes: 1 << 60 },
        max_attempts: 1_000_000,
        labels: BTreeMap::new(),
        runtimes: vec![Runtime::Process],
        containment: "subreaper".to_owned(),
        door: "/run/door".to_owned(),
        version: "0".to_owned(),
    }
}

fn end(number: usize) -> AttemptEnd {
    let exit = match number % 50 {
        0 => Exit::Code(1),
        1 => Exit::Signal(9),
        _ => Exit::Code(0),
    };
    AttemptEnd::Exited(ExitFacts {
        ended_by: EndedBy::Itself,
        exit,
        message: String::new(),
        started_at: None,
        ended_at: Timestamp(1),
        usage: Usage::default(),
        outputs: Outputs::None,
    })
}

/// Nine in ten are over, the others wait.
async fn fill(store: &Arc<dyn Store>, jobs: usize) {
    let by = Actor { name: "ann".to_owned(), address: String::new() };
    let node = node();
    store.register_node(&node).await.unwrap();
    for start in (0..jobs).step_by(BATCH) {
        let new = |number| NewJob {
            id: JobId(Uuid::now_v7()),
            spec: spec(number),
            submitted_by: "ann".to_owned(),
            idempotency: None,
            secrets: None,
        };
        let batch = (start..jobs.min(start + BATCH)).map(new).collect();
        let submitted = store.submit(batch, &by).await.unwrap();
        if start >= jobs / 10 * 9 {
            continue;
        }
        let place = |job_id| Placement { job_id, node_id: node.node_id, session: node.session };
        let claimed = store.claim(submitted.iter().map(|job| place(job.id)).collect()).await.unwrap();
        let ended = claimed.iter().enumerate().map(|(number, claimed)| ReportItem {
            job_id: claimed.job_id,
            attempt: claimed.attempt,
            lease_id: claimed.lease_id,
            report: Report::Ended(end(start + number)),
        });
        store.report(ended.collect()).await.unwrap();
    }
}

fn one(text: &str) -> Any<String> {
    Any::of([text.to_owned()])
}

fn is(text: &str) -> Any<TextMatch> {
    Any::of([TextMatch::Is(text.to_owned())])
}

fn team(value: &str) -> Vec<LabelCondition> {
    vec![LabelCondition { key: "team".to_owned(), value: is(value) }]
}

fn filters() -> Vec<(&'static str, JobFilter)> {
    let none = JobFilter::default;
    let failed = || JobFilter::of_statuses([Status::FinalFailed]);
    let begins = Any::of([TextMatch::Begins("job-50".to_owned())]);
    let text = |text: &str| JobFilter { text: Some(text.to_owned()), ..none() };
    vec![
        ("", none()),
        ("status=running,retry", JobFilter::of_statuses([Status::Running, Status::Retry])),
        ("status=waiting", JobFilter::of_statuses([Status::Waiting])),
        ("status=final_failed", failed()),
        ("owner=owner-7", JobFilter { owners: one("owner-7"), ..none() }),
        ("name=job-7", JobFilter { names: is("job-7"), ..none() }),
        ("name=job-50*", JobFilter { names: begins, ..none() }),
        ("label=team:team-7", JobFilter { labels: team("team-7"), ..none() }),
        ("label=team:none", JobFilter { labels: team("none"), ..none() }),
        ("label, owner, status", JobFilter { labels: team("team-7"), owners: one("owner-8"), ..failed() }),
        ("exit=1", JobFilter { exit_codes: Any::of([1]), ..none() }),
        ("signal=9&owner=owner-7", JobFilter { signals: Any::of([9]), owners: one("owner-7"), ..none() }),
        ("outcome=timed_out", JobFilter { outcomes: Any::of([Outcome::TimedOut]), ..none() }),
        ("lane=4 (none)", JobFilter { lanes: Any::of(Lane::new(4)), ..none() }),
        ("node=node-1", JobFilter { nodes: one("node-1"), ..none() }),
        ("node=other (none)", JobFilter { nodes: one("other"), ..none() }),
        ("q=step_77.py", text("step_77.py")),
        ("q=nothing", text("nothing like it")),
    ]
}

/// First, median and 95th of a hundred.
async fn measure(look: impl AsyncFn()) -> [Duration; 3] {
    let mut taken = Vec::new();
    for _ in 0..=LOOKS {
        let begun = Instant::now();
        look().await;
        taken.push(begun.elapsed());
    }
    let first = taken.remove(0);
    taken.sort_unstable();
    [first, taken[LOOKS / 2], taken[LOOKS * 95 / 100]]
}

fn print(what: &str, taken: [Duration; 3]) {
    let [first, median, most] = taken.map(|taken| taken.as_secs_f64() * 1_000.0);
    println!("  {what:<34} first {first:>7.1} ms   p50 {median:>7.1} ms   p95 {most:>7.1} ms");
}

async fn look(store: &Arc<dyn Store>) {
    for (name, filter) in filters() {
        let query = JobQuery { filter, cursor: None, limit: 100 };
        let taken = measure(async || drop(store.job_rows(&query).await.unwrap())).await;
        print(&format!("rows {name}"), taken);
    }
    for (name, filter) in filters() {
        let taken = measure(async || drop(store.count_jobs(&filter).await.unwrap())).await;
        print(&format!("count {name}"), taken);
    }
    let of_team = ValueKey::Label("team".to_owned());
    for (name, key) in [("names", ValueKey::Name), ("keys", ValueKey::LabelKey), ("of a label", of_team)] {
        let taken = measure(async || drop(store.values(&key, "", 20).await.unwrap())).await;
        print(&format!("values {name}"), taken);
    }
    print("summary", measure(async || drop(store.summary().await.unwrap())).await);
    print("failing", measure(async || drop(store.failing(Timestamp(0)).await.unwrap())).await);
    let now = store.now().await.unwrap();
    let hour = MinuteQuery { from: Timestamp(now.0 - 3_600_000), to: now, step_minutes: 1 };
    print("minutes of an hour", measure(async || drop(store.minutes(&hour).await.unwrap())).await);
}

/// As an informer carries it out, without its pauses.
async fn cancel_many(store: &Arc<dyn Store>, jobs: usize) {
    let filter = "status=waiting".to_owned();
    let action = BulkAction::Cancel;
    let new = NewBulk { id: Uuid::now_v7(), filter, action, owners: None, idempotency_key: None };
    let by = Actor { name: "ann".to_owned(), address: String::new() };
    let (mut bulk, _) = store.start_bulk(&new, &by).await.unwrap();
    let acted_on = acted_on(&JobFilter::default(), action, None, bulk.created_at);
    let begun = Instant::now();
    while bulk.status == BulkStatus::Running && bulk.changed < jobs as u64 {
        bulk = store.step_bulk(&bulk, acted_on.as_ref(), 200).await.unwrap();
    }
    let rate = bulk.changed as f64 / begun.elapsed().as_secs_f64();
    println!("  {} jobs cancelled by one action, {rate:.0}/s", bulk.changed);
}

async fn run(store: Arc<dyn Store>, jobs: usize) {
    let begun = Instant::now();
    fill(&store, jobs).await;
    println!("{}: {jobs} jobs stored in {:.0} s", store.kind().as_str(), begun.elapsed().as_secs_f64());
    let (begun, mut events) = (Instant::now(), 0);
    loop {
        let rolled_up = store.roll_up(5_000, Timestamp(0)).await.unwrap();
        events += rolled_up.events;
        if !rolled_up.more {
            break;
        }
    }
    let rate = events as f64 / begun.elapsed().as_secs_f64();
    println!("  {events} events counted into minutes, {rate:.0}/s");
    look(&store).await;
    cancel_many(&store, jobs / 20).await;
    store.close().await;
}

const WITHOUT: &str = "DROP INDEX job_name";

/// Jobs a second, submitted a thousand at a time by four at once.
async fn submit(store: &Arc<dyn Store>, jobs: usize, labelled: bool) -> f64 {
    let begun = Instant::now();
    let each = jobs / 4;
    let submitting = (0..4).map(|worker| {
        let store = Arc::clone(store);
        tokio::spawn(async move {
            let by = Actor { name: "ann".to_owned(), address: String::new() };
            for start in (0..each).step_by(1_000) {
                let new = |number: usize| {
                    let mut spec = spec(worker * each + number);
                    if !labelled {
                        spec.labels.clear();
                    }
                    let id = JobId(Uuid::now_v7());
                    NewJob { id, spec, submitted_by: "ann".to_owned(), idempotency: None, secrets: None }
                };
                store.submit((start..start + 1_000).map(new).collect(), &by).await.unwrap();
            }
        })
    });
    for submitting in submitting.collect::<Vec<_>>() {
        submitting.await.unwrap();
    }
    jobs as f64 / begun.elapsed().as_secs_f64()
}

async fn sqlite(indexed: bool) -> (Arc<dyn Store>, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobyard.db");
    let open = || SqliteStore::open(&path, SqliteOptions::new(Arc::new(Wall(Instant::now())))).unwrap();
    if !indexed {
        open().close().await;
        rusqlite::Connection::open(&path).unwrap().execute(WITHOUT, []).unwrap();
    }
    (open(), directory)
}

async fn postgres(indexed: bool) -> (Arc<dyn Store>, Cluster) {
    let cluster = Cluster::start_new().unwrap();
    let url = cluster.url("postgres");
    let config = PostgresConfig::new(url.clone());
    PostgresStore::migrate(&config).await.unwrap();
    if !indexed {
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        client.batch_execute(WITHOUT).await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
    }
    (PostgresStore::open(config).await.unwrap(), cluster)
}

async fn costs(jobs: usize) {
    for round in 1..=3 {
        for (what, indexed, labelled) in
            [("without", false, false), ("index of names", true, false), ("and two labels", true, true)]
        {
            let (store, _directory) = sqlite(indexed).await;
            let embedded = submit(&store, jobs, labelled).await;
            store.close().await;
            let (store, _cluster) = postgres(indexed).await;
            let server = submit(&store, jobs, labelled).await;
            store.close().await;
            println!("round {round}  {what:<16} sqlite {embedded:>8.0}/s   postgres {server:>8.0}/s");
        }
    }
}

#[tokio::main]
async fn main() {
    let jobs = std::env::args().nth(1).map_or(1_000_000, |jobs| jobs.parse().unwrap());
    if std::env::args().nth(2).is_some_and(|what| what == "submit") {
        return costs(jobs).await;
    }
    let dashboard_timeout = Duration::from_secs(30);
    let directory = tempfile::tempdir().unwrap();
    let options = SqliteOptions::new(Arc::new(Wall(Instant::now())));
    let options = SqliteOptions { dashboard_timeout, ..options };
    run(SqliteStore::open(&directory.path().join("jobyard.db"), options).unwrap(), jobs).await;
    drop(directory);
    let cluster = Cluster::start_new().unwrap();
    let config = PostgresConfig { dashboard_timeout, ..PostgresConfig::new(cluster.url("postgres")) };
    PostgresStore::migrate(&config).await.unwrap();
    run(PostgresStore::open(config).await.unwrap(), jobs).await;
}
