//! What a sidecar costs: time to start, attempts a second beside a raw baseline of the same run, and memory of many
//! at once. Not a test: run it on a quiet machine, as root for the control groups.
//!
//! ```sh
//! RUSTFLAGS="-C target-feature=+crt-static -C relocation-model=static" \
//!   cargo build -p jobyard-sidecar --profile sidecar --target x86_64-unknown-linux-gnu
//! cargo run --release -p jobyard-sidecar --example measure -- \
//!   target/x86_64-unknown-linux-gnu/sidecar/jobyard-sidecar
//! ```
//!
//! With `latency`, `rate`, `bare` (without groups) or `memory` as a second argument only that part.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program to look at numbers with")]

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use jobyard_handoff::{
    AttemptDirectory, AttemptIdentity, Containment, ExecPlan, FrameBuffer, FromSidecar, LogPlan, StopReason,
    Times, ToSidecar, UserIds,
};
use jobyard_runtime::{NodeRuntime, PrepareRequest, Program, Resources, Sidecar, SidecarPool};

const ROUNDS: u32 = 1_000;
const LATENCY_ROUNDS: u32 = 100;
const MANY: u32 = 500;

struct Bench {
    runtime: NodeRuntime,
    sidecars: Arc<SidecarPool>,
    root: PathBuf,
}

struct Started<'a> {
    bench: &'a Bench,
    plan: ExecPlan,
    directory: AttemptDirectory,
    sidecar: Sidecar,
    frames: FrameBuffer,
}

fn main() {
    let sidecar = PathBuf::from(std::env::args_os().nth(1).expect("the path of a sidecar"));
    let wanted = std::env::args().nth(2);
    let is_wanted = |part: &str| wanted.as_ref().is_none_or(|wanted| wanted == part);
    let root = PathBuf::from(format!("/dev/shm/jobyard-measure-{}", std::process::id()));
    fs::create_dir(&root).unwrap();
    let runtime = NodeRuntime::set_up(&format!("measure-{}", std::process::id())).unwrap();
    println!("{:?}", runtime.abilities());
    let bare = runtime.clone().with_containment(Containment::Subreaper);
    raw_spawns();
    let sidecars = Arc::new(SidecarPool::new(&sidecar));
    let with = Bench { runtime, sidecars: Arc::clone(&sidecars), root: root.clone() };
    let without = Bench { runtime: bare, sidecars, root: root.clone() };
    if is_wanted("latency") {
        with.parts();
        with.latency("with groups");
        without.latency("without groups");
    }
    if is_wanted("rate") {
        with.one_after_the_other("with groups");
        with.two_at_a_time();
    }
    if is_wanted("bare") {
        without.one_after_the_other("without groups");
        without.two_at_a_time();
    }
    if is_wanted("memory") {
        with.memory();
    }
    with.runtime.tear_down().unwrap();
    fs::remove_dir_all(root).unwrap();
}

fn raw_spawns() {
    let spawn = || Command::new("/bin/true").stdin(Stdio::null()).spawn().unwrap().wait().unwrap();
    let begin = Instant::now();
    (0..ROUNDS).for_each(|_| assert!(spawn().success()));
    println!("raw posix_spawn of /bin/true: {:.3} ms each", each_ms(begin, ROUNDS));
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..ROUNDS).for_each(|_| assert!(spawn().success())));
        }
    });
    println!("raw posix_spawn of /bin/true, two at a time: {:.0}/s", 1_000.0 / each_ms(begin, 2 * ROUNDS));
}

fn each_ms(begin: Instant, rounds: u32) -> f64 {
    begin.elapsed().as_secs_f64() * 1_000.0 / f64::from(rounds)
}

impl Bench {
    /// Slots are used again, as a worker does.
    fn prepare(&self, slot: u32, words: &[&str]) -> jobyard_runtime::Prepared {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let scratch = self.root.join(format!("s{slot}"));
        let name = format!("a{slot}");
        let uid = 800_000 + slot;
        self.runtime
            .prepare(&PrepareRequest {
                identity: AttemptIdentity { job_id: "measured".into(), attempt: slot, lease_id: "l".into() },
                name: &name,
                program: Program::FromArguments,
                arguments: &words,
                environment: &[],
                directory: None,
                input: None,
                scratch: &scratch,
                user: Some(UserIds { uid, gid: uid, private: true }),
                resources: Resources::default(),
                times: Times::default(),
                exclusive: false,
                restart: None,
                log: LogPlan { path: self.root.join(format!("l{slot}")), limit_bytes: 1 << 20 },
            })
            .unwrap()
    }

    fn start(&self, slot: u32, words: &[&str]) -> Started<'_> {
        let prepared = self.prepare(slot, words);
        let path = self.root.join(format!("d{slot}"));
        let directory = AttemptDirectory::create(path, &prepared.plan, &prepared.environment).unwrap();
        let sidecar = self.sidecars.begin(&directory).unwrap();
        let frames = FrameBuffer::default();
        Started { bench: self, plan: prepared.plan, directory, sidecar, frames }
    }

    fn parts(&self) {
        let (mut prepare, mut create, mut take_away) = (0.0, 0.0, 0.0);
        for _ in 0..ROUNDS {
            let begin = Instant::now();
            let prepared = self.prepare(0, &["/bin/true"]);
            prepare += each_ms(begin, ROUNDS);
            let begin = Instant::now();
            let path = self.root.join("d");
            let directory = AttemptDirectory::create(path, &prepared.plan, &prepared.environment).unwrap();
            create += each_ms(begin, ROUNDS);
            let begin = Instant::now();
            self.runtime.retire(&prepared.plan).unwrap();
            directory.remove().unwrap();
            take_away += each_ms(begin, ROUNDS);
        }
        println!(
            "prepare {prepare:.3} ms, attempt directory {create:.3} ms, cleanup and remove {take_away:.3} ms"
        );
    }

    fn one_after_the_other(&self, how: &str) {
        let begin = Instant::now();
        for _ in 0..ROUNDS {
            self.start(0, &["/bin/true"]).finish();
        }
        println!("/bin/true through a sidecar, {how}: {:.3} ms each, all included", each_ms(begin, ROUNDS));
    }

    /// From the call of `prepare` to the news that the program runs, with pauses in which the kernel forgets.
    fn latency(&self, how: &str) {
        let mut all: Vec<f64> = (0..LATENCY_ROUNDS)
            .map(|_| {
                std::thread::sleep(std::time::Duration::from_millis(50));
                let begin = Instant::now();
                let mut started = self.start(0, &["/bin/true"]);
                started.until(|frame| matches!(frame, FromSidecar::Started { .. }));
                let took = each_ms(begin, 1);
                started.finish();
                took
            })
            .collect();
        all.sort_by(f64::total_cmp);
        let at = |part: usize| all[(all.len() - 1) * part / 100];
        println!(
            "prepare → started, {how}: p50 {:.2} ms, p90 {:.2} ms, p99 {:.2} ms",
            at(50),
            at(90),
            at(99)
        );
    }

    fn two_at_a_time(&self) {
        let begin = Instant::now();
        std::thread::scope(|scope| {
            for half in 0..2 {
                scope.spawn(move || {
                    for _ in 0..ROUNDS {
                        self.start(half, &["/bin/true"]).finish();
                    }
                });
            }
        });
        println!("  two at a time: {:.0}/s", 1_000.0 / each_ms(begin, 2 * ROUNDS));
    }

    /// The sidecars are children of a process in a memory group of its own, so that the group's count is
    /// theirs, kernel memory included; the tasks are in their own groups.
    fn memory(&self) {
        // What is warm already is not in the group.
        self.sidecars.close();
        let all: Vec<Started<'_>> = {
            let group = MemoryGroup::enter();
            let before = group.used_bytes();
            let mut all: Vec<Started<'_>> =
                (0..MANY).map(|number| self.start(number, &["/bin/sleep", "1000"])).collect();
            all.iter_mut().for_each(Started::wait_for_start);
            let used = group.used_bytes().saturating_sub(before);
            println!("{MANY} sidecars: {} KiB each in their memory group", used / u64::from(MANY) / 1_024);
            group.print_kernel();
            let pids: Vec<u32> = all.iter().map(|started| started.sidecar.process.id()).collect();
            print_sum("Pss", &pids, "smaps_rollup", "Pss:");
            print_sum("private dirty", &pids, "smaps_rollup", "Private_Dirty:");
            print_sum("page tables", &pids, "status", "VmPTE:");
            let cpu_ns: u64 = pids.iter().map(|pid| run_time_ns(*pid)).sum();
            let faults: u64 = pids.iter().map(|pid| page_faults(*pid)).sum();
            println!(
                "CPU to start: {:.3} ms, {} page faults",
                cpu_ns as f64 / f64::from(MANY) / 1e6,
                faults / u64::from(MANY)
            );
            all
        };
        for started in all {
            started.stop();
        }
    }
}

impl Started<'_> {
    fn wait_for_start(&mut self) {
        self.until(|frame| matches!(frame, FromSidecar::Heartbeat { .. }));
    }

    fn until(&mut self, is_it: impl Fn(&FromSidecar) -> bool) {
        let mut bytes = [0; 4_096];
        loop {
            while let Some(frame) = self.frames.next_frame().unwrap() {
                if is_it(&frame) {
                    return;
                }
            }
            let read = self.sidecar.connection.read(&mut bytes).unwrap();
            assert!(read > 0, "the sidecar went away");
            self.frames.extend(&bytes[..read]);
        }
    }

    fn say(&mut self, frame: &ToSidecar) {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        self.sidecar.connection.write_all(&bytes).unwrap();
    }

    fn stop(mut self) {
        self.say(&ToSidecar::Stop { reason: StopReason::Stop, grace_ms: 0 });
        self.finish();
    }

    fn finish(mut self) {
        self.until(|frame| matches!(frame, FromSidecar::Ended(_)));
        self.say(&ToSidecar::AckOutcome);
        self.until(|frame| matches!(frame, FromSidecar::Idle));
        if let Some(mut let_go) = self.bench.sidecars.give_back(self.sidecar) {
            assert!(let_go.wait().unwrap().success());
        }
        self.bench.runtime.retire(&self.plan).unwrap();
        self.directory.remove().unwrap();
    }
}

/// A version 1 memory group around this process and its children.
struct MemoryGroup {
    home: PathBuf,
    own: PathBuf,
}

impl MemoryGroup {
    fn enter() -> Self {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap();
        let line = groups.lines().find(|line| line.contains(":memory:")).expect("a version 1 memory group");
        let home =
            Path::new("/sys/fs/cgroup/memory").join(line.rsplit(':').next().unwrap().trim_start_matches('/'));
        let own = home.join(format!("measure-{}", std::process::id()));
        fs::create_dir(&own).unwrap();
        fs::write(own.join("cgroup.procs"), std::process::id().to_string()).unwrap();
        Self { home, own }
    }

    fn used_bytes(&self) -> u64 {
        fs::read_to_string(self.own.join("memory.usage_in_bytes")).unwrap().trim().parse().unwrap()
    }

    fn print_kernel(&self) {
        let kernel = fs::read_to_string(self.own.join("memory.kmem.usage_in_bytes")).unwrap();
        println!(
            "  of which kernel memory {} KiB",
            kernel.trim().parse::<u64>().unwrap() / 1_024 / u64::from(MANY)
        );
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        fs::write(self.home.join("cgroup.procs"), std::process::id().to_string()).unwrap();
    }
}

fn print_sum(name: &str, pids: &[u32], file: &str, field: &str) {
    let kib: u64 = pids.iter().map(|pid| read_kib(*pid, file, field)).sum();
    println!("  {name}: {} KiB each", kib / pids.len() as u64);
}

fn read_kib(pid: u32, file: &str, field: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn page_faults(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    text.split(' ').nth(9).unwrap().parse().unwrap()
}

fn run_time_ns(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}
