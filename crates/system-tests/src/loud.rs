//! Attempts that write much: one that writes as fast as it can, and many at once. What they write is numbered, so that
//! any part of it can be told to be right.

use std::io::Write as _;
use std::ops::Range;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, TryStreamExt as _};
use jobyard_client::json::{Bytes, Cores, JobSubmit, ResourcesSubmit};
use jobyard_client::{Client, FollowOptions, JobId, LogQuery, LogStream, Status};

use crate::jobs::{ended, submit, submit_all};
use crate::memory::{Peaks, share_bytes};
use crate::notebook::Notebook;
use crate::wait::eventually;
use crate::yard::Yard;

/// Bytes of each line of [`Lines`].
const LINE_BYTES: u64 = 16;
const FIRST_LINE: u64 = 100_000_000_000_000;
/// One attempt of many.
const SMALL_LINES: u64 = 20;

/// What was seen of memory and time while logs were written.
#[derive(Debug, Clone, Default)]
pub struct Loudness {
    /// By how many bytes each role's process has grown at most, by design.
    pub roles_grown_bytes: Vec<u64>,
    /// What the sidecars take together when all has been written, in bytes.
    pub sidecars_bytes: u64,
    /// How many sidecars that are.
    pub sidecars: usize,
    /// Until everything could be read.
    pub took: Duration,
    /// In the artifact directory, in bytes.
    pub stored_bytes: u64,
    /// In files below the artifact directory.
    pub stored_files: usize,
}

/// Numbered lines.
struct Lines {
    count: u64,
}

impl Lines {
    fn bytes(&self) -> u64 {
        self.count * LINE_BYTES
    }

    /// The shell command that writes them.
    fn command(&self) -> String {
        format!("seq {FIRST_LINE} {}", FIRST_LINE + self.count - 1)
    }

    fn part(range: Range<u64>) -> Vec<u8> {
        let first = range.start / LINE_BYTES;
        let lines = first..range.end.div_ceil(LINE_BYTES);
        let text: String = lines.map(|line| format!("{}\n", FIRST_LINE + line)).collect();
        let skip = usize::try_from(range.start - first * LINE_BYTES).expect("small");
        let length = usize::try_from(range.end - range.start).expect("small");
        text.as_bytes()[skip..skip + length].to_vec()
    }

    fn hash(&self) -> String {
        let mut seq = Command::new("sh");
        seq.arg("-c").arg(format!("{} | sha256sum", self.command()));
        String::from_utf8(seq.output().expect("it runs").stdout).expect("text")
    }
}

/// `sha256sum` in a process of its own, which a test build would take minutes for.
struct Hasher(Child);

impl Hasher {
    fn new() -> Self {
        let mut command = Command::new("sha256sum");
        Self(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sha256sum"))
    }

    fn take(&mut self, bytes: &[u8]) {
        self.0.stdin.as_mut().expect("its input").write_all(bytes).expect("it reads");
    }

    fn finish(mut self) -> String {
        drop(self.0.stdin.take());
        String::from_utf8(self.0.wait_with_output().expect("it ends").stdout).expect("text")
    }
}

/// One attempt writes `bytes` as fast as it can, while somebody follows its log and reads nothing. Afterwards all of
/// it is read and compared: by the slow follower, at once, in parts, by its last lines, and since an instant.
///
/// # Panics
/// Something is not as it was written.
pub async fn one_loud_attempt(yard: &Yard, bytes: u64) -> Loudness {
    let client = yard.client();
    let mut gates = [gate(yard, "before"), gate(yard, "after")];
    let lines = Lines { count: bytes / LINE_BYTES };
    let script = format!(
        "echo begun >&2; {}; {}; echo written >&2; {}",
        gates[0].wait(),
        lines.command(),
        gates[1].wait()
    );
    let id = submit(&client, shell(&script)).await;
    until_said(&client, id, "begun\n").await;
    let peaks = Peaks::since_now(&role_ids(yard));
    let mut follower =
        client.jobs().follow(id, FollowOptions { stream: Some(LogStream::Stdout), ..Default::default() });
    let started = Instant::now();
    gates[0].open_gate();
    let first = follower.next().await.expect("a piece").expect("whole");
    until_length(&client, id, lines.bytes()).await;
    let took = started.elapsed();
    let sidecars = yard.sidecars();
    let sidecars_bytes = sidecars.iter().map(|id| share_bytes(*id)).sum();
    parts_are_right(&client, id, lines.bytes()).await;
    gates[1].open_gate();
    assert_eq!(ended(&client, id).await.status, Status::Success);
    let wanted = lines.hash();
    assert_eq!(hash_of_log(&client, id).await, wanted, "the log read at once");
    let mut hasher = Hasher::new();
    hasher.take(&first.bytes);
    while let Some(piece) = follower.next().await {
        hasher.take(&piece.expect("whole").bytes);
    }
    assert_eq!(hasher.finish(), wanted, "the log as the slow follower saw it");
    let roles_grown_bytes = peaks.grown_bytes();
    let (stored_bytes, stored_files) = stored(yard);
    Loudness { roles_grown_bytes, sidecars_bytes, sidecars: sidecars.len(), took, stored_bytes, stored_files }
}

/// `attempts` attempts at once, each of which writes lines with pauses, then `bytes` as fast as it can.
///
/// # Panics
/// Something is not as it was written.
pub async fn many_loud_attempts(yard: &Yard, attempts: usize, bytes: u64) -> Loudness {
    let client = yard.client();
    let mut gates = [gate(yard, "before"), gate(yard, "after")];
    let lines = Lines { count: bytes / LINE_BYTES };
    let script = format!(
        "echo begun >&2; {}; i=0; while [ $i -lt {SMALL_LINES} ]; do echo $JOBYARD_JOB_ID $i >&2; i=$((i+1)); \
         sleep 0.5; done; {}; {}",
        gates[0].wait(),
        lines.command(),
        gates[1].wait()
    );
    let resources = ResourcesSubmit {
        cpu: Some(Cores { milli: 8_000 / attempts as u64 }),
        memory: Some(Bytes(8 << 20)),
        ..ResourcesSubmit::default()
    };
    let job = JobSubmit { resources: Some(resources), ..shell(&script) };
    let ids = submit_all(&client, vec![job; attempts]).await;
    for id in &ids {
        until_said(&client, *id, "begun\n").await;
    }
    let peaks = Peaks::since_now(&role_ids(yard));
    let started = Instant::now();
    gates[0].open_gate();
    for id in &ids {
        until_length(&client, *id, lines.bytes()).await;
    }
    let took = started.elapsed();
    let sidecars = yard.sidecars();
    let sidecars_bytes = sidecars.iter().map(|id| share_bytes(*id)).sum();
    gates[1].open_gate();
    let wanted = lines.hash();
    for id in &ids {
        assert_eq!(ended(&client, *id).await.status, Status::Success);
        assert_eq!(hash_of_log(&client, *id).await, wanted, "job {id}");
        let small: String = (0..SMALL_LINES).map(|line| format!("{id} {line}\n")).collect();
        let read =
            read(&client, *id, LogQuery { stream: Some(LogStream::Stderr), ..Default::default() }).await;
        assert_eq!(String::from_utf8_lossy(&read), format!("begun\n{small}"));
    }
    let roles_grown_bytes = peaks.grown_bytes();
    let (stored_bytes, stored_files) = stored(yard);
    Loudness { roles_grown_bytes, sidecars_bytes, sidecars: sidecars.len(), took, stored_bytes, stored_files }
}

fn shell(script: &str) -> JobSubmit {
    JobSubmit { command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(), ..JobSubmit::default() }
}

fn gate(yard: &Yard, name: &str) -> Notebook {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = yard.dir().join(name);
    std::fs::create_dir(&folder).expect("writable");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o711)).expect("its mode");
    Notebook::in_folder(&folder)
}

fn role_ids(yard: &Yard) -> Vec<u32> {
    yard.roles().iter().map(|role| yard.id(*role)).collect()
}

async fn read(client: &Client, id: JobId, query: LogQuery) -> Vec<u8> {
    let pieces = client.jobs().logs(id, &query).await.expect("a log");
    pieces.map_ok(|piece| piece.to_vec()).try_concat().await.expect("all of it")
}

async fn until_said(client: &Client, id: JobId, words: &str) {
    let query = LogQuery { stream: Some(LogStream::Stderr), ..LogQuery::default() };
    eventually(words, async || {
        let pieces = client.jobs().logs(id, &query).await.ok()?;
        let bytes = pieces.map_ok(|piece| piece.to_vec()).try_concat().await.ok()?;
        (bytes == words.as_bytes()).then_some(())
    })
    .await;
}

/// Until standard output can be read to its last byte.
async fn until_length(client: &Client, id: JobId, bytes: u64) {
    let stream = Some(LogStream::Stdout);
    let last = LogQuery { stream, from: Some(bytes - 1), to: Some(bytes), ..LogQuery::default() };
    let mut reached = 0;
    // As long as it goes on.
    loop {
        let now = eventually("the log grows", async || {
            let next = LogQuery { stream, from: Some(reached), to: Some(reached + 1), ..LogQuery::default() };
            let is_longer = !read(client, id, next).await.is_empty();
            let is_all = !read(client, id, last).await.is_empty();
            is_all.then_some(bytes).or(is_longer.then_some(reached + 1))
        })
        .await;
        if now == bytes {
            return;
        }
        reached = (reached + bytes / 64).min(bytes - 1);
    }
}

async fn parts_are_right(client: &Client, id: JobId, bytes: u64) {
    let stream = Some(LogStream::Stdout);
    for part in 0..8 {
        let from = bytes / 8 * part + 13 * part;
        let to = (from + 300_007).min(bytes);
        let query = LogQuery { stream, from: Some(from), to: Some(to), ..LogQuery::default() };
        assert_eq!(read(client, id, query).await, Lines::part(from..to), "from {from} to {to}");
    }
    let tail = LogQuery { stream, tail: Some(1_000), ..LogQuery::default() };
    assert_eq!(read(client, id, tail).await, Lines::part(bytes - 1_000 * LINE_BYTES..bytes));
}

async fn hash_of_log(client: &Client, id: JobId) -> String {
    let mut hasher = Hasher::new();
    let query = LogQuery { stream: Some(LogStream::Stdout), ..LogQuery::default() };
    let mut pieces = client.jobs().logs(id, &query).await.expect("a log");
    while let Some(piece) = pieces.try_next().await.expect("the next piece") {
        hasher.take(&piece);
    }
    hasher.finish()
}

/// Bytes and files of the artifact directory.
fn stored(yard: &Yard) -> (u64, usize) {
    let output = Command::new("find")
        .args([yard.dir().join("artifacts"), yard.dir().join("data/artifacts")])
        .args(["-type", "f", "-printf", "%s\n"])
        .output()
        .expect("find");
    let sizes = String::from_utf8(output.stdout).expect("numbers");
    let sizes: Vec<u64> = sizes.lines().map(|size| size.parse().expect("a number")).collect();
    (sizes.iter().sum(), sizes.len())
}
