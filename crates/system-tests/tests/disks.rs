//! Full disks: the refusal says so, what has started ends with its own outcome, nothing hangs, and room mends it.

use futures_util::TryStreamExt;
use jobyard_client::json::JobSubmit;
use jobyard_client::{Client, JobId, LogQuery, Outcome, Status};
use jobyard_system_tests::{Datastore, Notebook, Yard, YardPlan, ended, eventually, submit, until_over};

/// The job is refused, says why, and runs once there is room.
async fn refused_until_there_is_room(yard: Yard, folder: &str, room: &str) {
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let id = submit(&client, notebook.job("true")).await;
    let refused = until_over(&client, id, 1).await;
    assert_eq!(refused.outcome, Some(Outcome::NotStarted));
    assert!(refused.message.starts_with("disk_full: "), "{}", refused.message);
    yard.resize_disk(folder, room);
    let job = ended(&client, id).await;
    assert_eq!(job.status, Status::Success, "{:?}", job.result);
    assert_eq!((job.retry_count, job.platform_failures), (0, 0), "nobody pays");
    assert_eq!(notebook.starts(id).len(), 1);
}

#[tokio::test]
async fn a_full_data_disk_is_a_refusal() {
    let yard = YardPlan::on(Datastore::Sqlite).data_on_disk("size=8m").raise().await;
    refused_until_there_is_room(yard, "data/worker", "size=200m").await;
}

#[tokio::test]
async fn a_full_state_disk_is_a_refusal() {
    let yard = YardPlan::on(Datastore::Sqlite).state_on_disk("size=64k,nr_inodes=4").raise().await;
    refused_until_there_is_room(yard, "state", "size=8m,nr_inodes=10000").await;
}

async fn log(client: &Client, id: JobId) -> Vec<u8> {
    let pieces = client.jobs().logs(id, &LogQuery::default()).await.expect("a log");
    pieces.map_ok(|piece| piece.to_vec()).try_concat().await.expect("all of it")
}

/// The data disk fills while a task writes: it is not disturbed, its log says where it was cut, and other jobs'
/// outcomes arrive.
#[tokio::test]
async fn a_disk_that_fills_cuts_the_log_and_says_so() {
    let yard = YardPlan::on(Datastore::Sqlite).data_on_disk("size=80m").raise().await;
    let client = yard.client();
    let mut notebook = Notebook::in_folder(yard.dir());
    let quiet = submit(&client, notebook.waiting_job()).await;
    let filler = yard.dir().join("data/worker/filler");
    let script = format!("echo first; {}; yes line | head -c 3000000; exit 7", notebook.wait());
    let id = submit(&client, JobSubmit { max_retries: Some(0), ..notebook.job(&script) }).await;
    eventually("its first line", async || (log(&client, id).await == b"first\n").then_some(())).await;
    fill(&filler);
    notebook.open_gate();
    let job = ended(&client, id).await;
    let result = job.result.expect("a result");
    assert_eq!((job.status, result.exit_code), (Status::FinalFailed, Some(7)), "its own exit code");
    let log = log(&client, id).await;
    let log = String::from_utf8(log).expect("text");
    let (kept, missing) = count(&log);
    assert!(missing > 0, "it was cut");
    assert_eq!(kept + missing, "first\n".len() + 3_000_000, "and says by how much, where it was");
    assert_eq!(ended(&client, quiet).await.status, Status::Success);
    std::fs::remove_file(filler).expect("it is there");
    let after = submit(&client, notebook.job("true")).await;
    assert_eq!(ended(&client, after).await.status, Status::Success);
}

/// Bytes of output in a log, and bytes that its notices say are missing.
fn count(log: &str) -> (usize, usize) {
    let mut parts = log.split("\n[jobyard: the disk was full; ");
    let kept = parts.next().expect("a beginning").len();
    parts.fold((kept, 0), |(kept, missing), part| {
        let (number, rest) = part.split_once(" bytes of output are missing here]\n").expect("a whole notice");
        (kept + rest.len(), missing + number.parse::<usize>().expect("a number"))
    })
}

/// Takes what room there is.
fn fill(path: &std::path::Path) {
    use std::io::Write as _;
    let mut file = std::fs::File::create(path).expect("a file");
    let block = [0_u8; 65_536];
    // In blocks of a page at the end, so that nothing is left.
    while file.write_all(&block).is_ok() {}
    while file.write_all(&block[..4_096]).is_ok() {}
}

/// The limit of a log that no disk asks for.
#[tokio::test]
async fn a_log_is_cut_at_its_limit_and_says_so() {
    let yard = YardPlan::on(Datastore::Sqlite).worker_setting("log_limit_bytes = 100000").raise().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let id = submit(&client, notebook.job("yes line | head -c 3000000")).await;
    assert_eq!(ended(&client, id).await.status, Status::Success);
    let log = log(&client, id).await;
    assert!(log.len() < 110_000, "{} bytes", log.len());
    let tail = String::from_utf8_lossy(&log[log.len().saturating_sub(300)..]).into_owned();
    assert!(tail.contains("[jobyard: the log limit of 100000 bytes is reached here"), "{tail:?}");
}
