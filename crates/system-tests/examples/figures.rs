//! The figures that Jobyard reports about itself, each beside a raw baseline of the same run.
//!
//! ```text
//! cargo xtask build
//! cargo run --release -p jobyard-system-tests --example figures -- latency sqlite
//! ```
//!
//! `latency` and `throughput` take `sqlite` or `postgres`; `idle` and `ready` are about `jobyard up`. Uses its own
//! installation in a temporary folder. No test asserts what this prints.
#![expect(clippy::print_stdout, reason = "prints figures")]
#![expect(clippy::unwrap_used, reason = "a figure that can't be taken is no figure")]
#![expect(clippy::disallowed_methods, reason = "compares the wall clock of two processes of one machine")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::TryStreamExt;
use jobyard_client::json::JobSubmit;
use jobyard_client::{Client, JobFilter, LogQuery, Status};
use jobyard_system_tests::{Datastore, Role, Yard, YardPlan};

const LATENCY_JOBS: usize = 300;
const THROUGHPUT_JOBS: usize = 10_000;

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    println!("baseline: {:.0} posix_spawn of /bin/true a second on 2 threads", spawn_baseline());
    match words.as_slice() {
        ["latency", datastore] => latency(&yard(datastore).await).await,
        ["throughput", datastore] => throughput(&yard(datastore).await).await,
        ["idle"] => idle(&Yard::up().await),
        ["ready"] => ready(),
        _ => println!("usage: figures latency|throughput sqlite|postgres · figures idle · figures ready"),
    }
}

/// With the state of attempts in memory, where a worker has it unless it is told otherwise (a yard tells it).
async fn yard(datastore: &str) -> Yard {
    let datastore = match datastore {
        "sqlite" => Datastore::Sqlite,
        "postgres" => Datastore::Postgres,
        other => panic!("no such datastore: {other}"),
    };
    YardPlan::on(datastore).state_on_disk("size=256m").raise().await
}

fn spawn_baseline() -> f64 {
    let spawn_for_a_second = || {
        let (started, mut count) = (Instant::now(), 0_u32);
        while started.elapsed() < Duration::from_secs(1) {
            assert!(Command::new("/bin/true").stdin(Stdio::null()).status().unwrap().success());
            count += 1;
        }
        f64::from(count)
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(spawn_for_a_second);
        spawn_for_a_second() + other.join().unwrap()
    })
}

fn now_ms() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64() * 1000.0
}

/// From before the submit is sent to the first line of the task process, one job at a time on an idle installation.
async fn latency(yard: &Yard) {
    let client = yard.client();
    let (mut answers, mut claims, mut starts, mut ends) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..LATENCY_JOBS {
        let job = JobSubmit { command: vec!["/bin/date".into(), "+%s.%N".into()], ..JobSubmit::default() };
        let sent = now_ms();
        let id = client.jobs().submit(job).await.unwrap().id;
        answers.push(now_ms() - sent);
        let job = client.jobs().wait(id).await.unwrap();
        ends.push(now_ms() - sent);
        assert_eq!(job.status, Status::Success);
        let log: Vec<u8> = client
            .jobs()
            .logs(id, &LogQuery::default())
            .await
            .unwrap()
            .map_ok(|piece| piece.to_vec())
            .try_concat()
            .await
            .unwrap();
        let started: f64 = String::from_utf8(log).unwrap().trim().parse().unwrap();
        starts.push(started * 1000.0 - sent);
        let attempts = client.jobs().attempts(id).await.unwrap();
        claims.push(attempts[0].placed_time.0.0 as f64 - sent);
    }
    print_percentiles("submit to its answer", answers);
    print_percentiles("submit to the claim's begin", claims);
    print_percentiles("submit to first line of /bin/date", starts);
    print_percentiles("submit to result seen by a waiting client", ends);
}

fn print_percentiles(what: &str, mut values: Vec<f64>) {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share) as usize];
    println!(
        "{what}: p50 {:.2} ms, p90 {:.2} ms, p99 {:.2} ms, n = {}",
        at(0.5),
        at(0.9),
        at(0.99),
        values.len()
    );
}

/// From the batch submit of many `/bin/true` to the last one's end.
async fn throughput(yard: &Yard) {
    let client = yard.client();
    let job = || JobSubmit { command: vec!["/bin/true".into()], ..JobSubmit::default() };
    let started = Instant::now();
    client.jobs().submit_batch((0..THROUGHPUT_JOBS).map(|_| job()).collect()).await.unwrap();
    let submitted = started.elapsed();
    wait_until_all_ended(&client).await;
    let ended = started.elapsed();
    let rate = THROUGHPUT_JOBS as f64;
    println!("batch submit: {:.0} jobs/s", rate / submitted.as_secs_f64());
    println!(
        "/bin/true end to end: {:.0} jobs/s ({THROUGHPUT_JOBS} jobs in {:.2} s)",
        rate / ended.as_secs_f64(),
        ended.as_secs_f64()
    );
    let failed = JobFilter { statuses: vec![Status::FinalFailed, Status::Cancelled], ..JobFilter::default() };
    assert!(client.jobs().list(&failed).await.unwrap().items.is_empty(), "all succeeded");
}

async fn wait_until_all_ended(client: &Client) {
    let open = vec![Status::Ready, Status::Waiting, Status::Running, Status::Retry];
    let filter = JobFilter { statuses: open, limit: Some(1), ..JobFilter::default() };
    while !client.jobs().list(&filter).await.unwrap().items.is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What `jobyard up` takes when nothing happens.
fn idle(yard: &Yard) {
    let id = yard.id(Role::Up);
    let ticks = || -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let window = Duration::from_secs(30);
    let before = ticks();
    std::thread::sleep(window);
    let share = (ticks() - before) as f64 / window.as_secs_f64();
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let resident = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    println!("idle: {share:.2} % of a core over {} s, {resident}", window.as_secs());
}

/// From the start of `jobyard up` in an empty directory to its `ready` line.
fn ready() {
    use std::io::{BufRead, BufReader};
    let mut times = Vec::new();
    for _ in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        let started = Instant::now();
        let mut up = Command::new(jobyard_system_tests::bin("jobyard"))
            .args(["up", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(dir.path().join("data"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let line = BufReader::new(up.stdout.take().unwrap()).lines().next().unwrap().unwrap();
        assert!(line.starts_with("ready "), "{line}");
        times.push(started.elapsed().as_secs_f64() * 1000.0);
        assert!(Command::new("kill").args(["-TERM", &up.id().to_string()]).status().unwrap().success());
        up.wait().unwrap();
    }
    print_percentiles("start of `jobyard up` to `ready`", times);
}
