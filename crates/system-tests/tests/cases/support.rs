//! What the stories have in common.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::TryStreamExt;
use jobyard_client::json::{Cores, Job, JobSubmit, ResourcesSubmit, Seconds};
use jobyard_client::{Client, JobId, LogQuery, LogStream};
use jobyard_system_tests::{DEADLINE, Signal, eventually};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A job that runs a shell script and is not retried.
pub(crate) fn shell(script: &str) -> JobSubmit {
    JobSubmit { max_retries: Some(0), ..program(&["/bin/sh", "-c", script]) }
}

/// A job that runs a program of the node.
pub(crate) fn program(words: &[&str]) -> JobSubmit {
    JobSubmit { command: words.iter().map(|word| (*word).to_owned()).collect(), ..JobSubmit::default() }
}

/// All that the yard's node offers: only one of these runs at a time.
pub(crate) fn whole_node(job: JobSubmit) -> JobSubmit {
    let resources = ResourcesSubmit { cpu: Some(Cores { milli: 8_000 }), ..ResourcesSubmit::default() };
    JobSubmit { resources: Some(resources), ..job }
}

pub(crate) fn seconds(ms: u64) -> Option<Seconds> {
    Some(Seconds { ms })
}

pub(crate) async fn accept(client: &Client, job: JobSubmit) -> JobId {
    client.jobs().submit(job).await.expect("accepted").id
}

/// The job when it is over.
pub(crate) async fn ended(client: &Client, id: JobId) -> Job {
    client.jobs().wait_for(id, DEADLINE).await.expect("an end")
}

/// Waits until the job's task process writes this.
pub(crate) async fn says(client: &Client, id: JobId, words: &str) {
    let jobs = client.jobs();
    eventually(words, async || {
        let query = LogQuery { stream: Some(LogStream::Stdout), ..LogQuery::default() };
        let pieces: Vec<_> = jobs.logs(id, &query).await.ok()?.try_collect().await.ok()?;
        String::from_utf8_lossy(&pieces.concat()).contains(words).then_some(())
    })
    .await;
}

/// What the newest attempt wrote.
pub(crate) async fn written(client: &Client, id: JobId, stream: LogStream) -> Vec<u8> {
    let query = LogQuery { stream: Some(stream), ..LogQuery::default() };
    let log = client.jobs().logs(id, &query).await.expect("a log");
    log.try_collect::<Vec<_>>().await.expect("the whole log").concat()
}

/// An argument of `sleep` that no other process of this machine has.
pub(crate) fn odd_seconds() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}.{}", 5_000 + NEXT.fetch_add(1, Ordering::Relaxed), std::process::id())
}

/// A file that task processes of whatever user may append to; they have different ones.
pub(crate) fn open_file(folder: &TempDir, name: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let path = folder.path().join(name);
    std::fs::write(&path, "").expect("writable");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).expect("its mode");
    path
}

/// A folder that task processes of whatever user may write to.
pub(crate) fn open_folder() -> TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TempDir::with_prefix("cases-").expect("a temporary folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).expect("its mode");
    folder
}

/// Signals a process that may be gone already.
pub(crate) fn signal(id: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw) {
        let _gone = rustix::process::kill_process(pid, signal);
    }
}

/// Sends bytes to the yard's HTTP door as they are, and gives back all that comes until the server hangs up.
pub(crate) async fn raw(client: &Client, request: &[u8]) -> Vec<u8> {
    let address = client.url().trim_start_matches("http://");
    let mut connection = TcpStream::connect(address).await.expect("it listens");
    // A server that refuses early may close before it has read everything.
    let _refused_early = connection.write_all(request).await;
    let mut answer = Vec::new();
    let _reset = tokio::time::timeout(DEADLINE, connection.read_to_end(&mut answer)).await.expect("an end");
    answer
}

/// A status line's number; 0 when the server hung up without one.
pub(crate) fn status_of(answer: &[u8]) -> u16 {
    let line = String::from_utf8_lossy(answer.get(..12).unwrap_or_default()).into_owned();
    line.split(' ').nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}
