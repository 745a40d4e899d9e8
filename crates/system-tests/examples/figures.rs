//! The figures that Jobyard reports about itself: a fresh installation, measured by `jobyard bench` or from outside.
//!
//! ```text
//! cargo xtask build
//! cargo run --release -p jobyard-system-tests --example figures -- latency sqlite
//! ```
//!
//! `throughput`, `latency`, `submit` and `backlog` take `sqlite`, `postgres` or `pairs` (two of each role), then flags of
//! `jobyard bench`, and say what memory each role came to need; `logs`
//! takes the datastore, then how much one attempt writes and how many write at once; `steady` takes it with jobs a second
//! and minutes, and says each tenth of that time what memory the roles need; `restart` kills `jobyard up` while jobs run and others
//! wait, and says when it serves again and when the next job starts; `idle` and `ready` are about `jobyard up`. Uses its own installation in a temporary folder. No test asserts what this prints.
#![expect(clippy::print_stdout, reason = "prints figures")]
#![expect(clippy::unwrap_used, reason = "a figure that can't be taken is no figure")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use jobyard_client::Status;
use jobyard_client::json::{Bytes, Cores, JobSubmit, ResourcesSubmit};
use jobyard_system_tests::{
    Datastore, Loudness, Role, Yard, YardPlan, many_loud_attempts, one_loud_attempt, submit, submit_all,
};

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [benchmark @ ("throughput" | "latency" | "submit" | "backlog"), datastore, flags @ ..] => {
            bench(&yard(datastore).await, benchmark, flags);
        }
        ["logs", datastore] => logs(datastore, 1_000_000_000, 1_000).await,
        ["logs", datastore, bytes, attempts] => {
            logs(datastore, bytes.parse().unwrap(), attempts.parse().unwrap()).await;
        }
        ["steady", datastore, rate, minutes] => {
            steady(&yard(datastore).await, rate.parse().unwrap(), minutes.parse().unwrap()).await;
        }
        ["restart"] => restart(1_000_000, 500).await,
        ["restart", waiting, running] => restart(waiting.parse().unwrap(), running.parse().unwrap()).await,
        ["idle"] => idle(&Yard::up().await),
        ["ready"] => ready(),
        _ => println!(
            "usage: figures throughput|latency|submit|backlog sqlite|postgres|pairs [FLAGS] · \
             figures logs sqlite|postgres [BYTES ATTEMPTS] · \
             figures steady sqlite|postgres|pairs RATE MINUTES · \
             figures restart [WAITING RUNNING] · figures idle · figures ready"
        ),
    }
}

fn bench(yard: &Yard, benchmark: &str, flags: &[&str]) {
    let arguments = [&["bench", benchmark], flags].concat();
    assert!(yard.command(&arguments).status().unwrap().success(), "{arguments:?}");
    print_memory(yard);
}

fn print_memory(yard: &Yard) {
    for role in yard.roles() {
        let status = std::fs::read_to_string(format!("/proc/{}/status", yard.id(*role))).unwrap();
        let line = |field| status.lines().find_map(|line| line.strip_prefix(field)).unwrap().trim();
        println!("{role:?}: {} resident, {} at most", line("VmRSS:"), line("VmHWM:"));
    }
}

/// So many `/bin/true` a second, all of which must come to a good end.
async fn steady(yard: &Yard, rate: usize, minutes: u64) {
    let client = yard.client();
    let started = Instant::now();
    let seconds = minutes * 60;
    let job = JobSubmit { command: vec!["/bin/true".to_owned()], ..JobSubmit::default() };
    for second in 0..seconds {
        tokio::time::sleep_until((started + Duration::from_secs(second)).into()).await;
        if second % (seconds / 10).max(1) == 0 {
            println!("after {second} s:");
            print_memory(yard);
        }
        submit_all(&client, vec![job.clone(); rate]).await;
    }
    // All are over, and none ended badly, once success is all there is.
    let failed = loop {
        let jobs = client.summary().await.unwrap().jobs;
        let count = |status| jobs.iter().find(|count| count.status == status).map_or(0, |count| count.count);
        if [Status::Waiting, Status::Running, Status::Retry].into_iter().all(|status| count(status) == 0) {
            break count(Status::FinalFailed);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    println!("{} jobs in all, {failed} of them failed", seconds as usize * rate);
    print_memory(yard);
}

/// `up` killed with so many jobs that wait and so many that run.
async fn restart(waiting: usize, running: usize) {
    let mut yard = plan("sqlite").lease_seconds(180).worker_setting("max_attempts = 2000").raise().await;
    let client = yard.client();
    let sized = |command: &[&str], milli: u64, priority| JobSubmit {
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        resources: Some(ResourcesSubmit {
            cpu: Some(Cores { milli }),
            memory: Some(Bytes(8 << 20)),
            ..ResourcesSubmit::default()
        }),
        priority: Some(priority),
        ..JobSubmit::default()
    };
    submit_all(&client, vec![sized(&["sleep", "3600"], 1, 90); running]).await;
    let count = async |status| {
        let jobs = client.summary().await.unwrap().jobs;
        jobs.iter().find(|count| count.status == status).map_or(0, |count| count.count as usize)
    };
    while count(Status::Running).await < running {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for _ in 0..waiting.div_ceil(10_000) {
        submit_all(&client, vec![sized(&["/bin/true"], 8_000, 50); 10_000.min(waiting)]).await;
    }
    let sidecars = yard.sidecars().len();
    yard.kill(Role::Up);
    let killed = Instant::now();
    yard.start(Role::Up).await;
    let serves = killed.elapsed();
    let urgent = submit(&client, sized(&["/bin/true"], 1, 95)).await;
    client.jobs().wait(urgent).await.unwrap();
    println!(
        "killed with {waiting} jobs waiting and {sidecars} sidecars: serves after {:.2} s, an urgent job is over after \
         {:.2} s; {} run",
        serves.as_secs_f64(),
        killed.elapsed().as_secs_f64(),
        count(Status::Running).await
    );
}

/// One attempt that writes so many bytes, then so many attempts at once that write two megabytes each.
async fn logs(datastore: &str, bytes: u64, attempts: usize) {
    let limit = format!("log_limit_bytes = {}", bytes * 2);
    // A thousand starts at once may take longer than the short leases of a yard.
    let loud = || plan(datastore).lease_seconds(180).claim_lease_seconds(60).worker_setting(&limit).raise();
    print_loudness(&format!("one attempt, {bytes} bytes"), &one_loud_attempt(&loud().await, bytes).await);
    let many = many_loud_attempts(&loud().await, attempts, 2_000_000).await;
    print_loudness(&format!("{attempts} attempts, 2,000,000 bytes each"), &many);
}

fn print_loudness(what: &str, loudness: &Loudness) {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let grown: Vec<String> =
        loudness.roles_grown_bytes.iter().map(|bytes| format!("{:.1}", mib(*bytes))).collect();
    println!(
        "{what}: readable after {:.1} s; roles grew by {} MiB at most; {} sidecars take {:.1} MiB; {:.1} MiB stored in {} files",
        loudness.took.as_secs_f64(),
        grown.join(", "),
        loudness.sidecars,
        mib(loudness.sidecars_bytes),
        mib(loudness.stored_bytes),
        loudness.stored_files
    );
}

/// With the state of attempts in memory, where a worker has it unless it is told otherwise (a yard tells it).
async fn yard(datastore: &str) -> Yard {
    plan(datastore).raise().await
}

fn plan(datastore: &str) -> YardPlan {
    let plan = match datastore {
        "sqlite" => YardPlan::on(Datastore::Sqlite),
        "postgres" => YardPlan::on(Datastore::Postgres),
        "pairs" => YardPlan::on(Datastore::Postgres).in_pairs(),
        other => panic!("no such datastore: {other}"),
    };
    plan.state_on_disk("size=256m")
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
