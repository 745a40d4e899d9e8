//! Submitting: sizes, names, programs that can't run, and answers that get lost (area 9).

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use futures_util::TryStreamExt;
use futures_util::stream::{self, StreamExt};
use jobyard_client::json::JobSubmit;
use jobyard_client::{Client, JobFilter, JobId, LogStream, Status, Token};
use jobyard_system_tests::Yard;

use crate::lossy_proxy::LossyProxy;
use crate::support::{accept, ended, open_folder, program, written};

fn with_env(entries: impl Iterator<Item = (String, String)>) -> JobSubmit {
    JobSubmit { env: entries.collect(), ..program(&["/bin/sh", "-c", "env | wc -c"]) }
}

/// B111: what is accepted arrives whole, however large; what a process can't be given is refused by its place.
#[tokio::test]
async fn the_longest_arguments_arrive_and_longer_ones_are_refused() {
    let yard = Yard::up().await;
    let client = yard.client();
    let most = "x".repeat(131_071);
    let count = program(&["/bin/sh", "-c", "printf %s \"$1\" | wc -c", "sh", &most]);
    let longest = accept(&client, count).await;
    let entry = |name: &str, bytes: usize| (name.to_owned(), "y".repeat(bytes - name.len() - 1));
    let value = accept(&client, with_env([entry("V", 131_071)].into_iter())).await;
    let many = accept(&client, with_env((0..8).map(|n| entry(&format!("V{n}"), 125_000)))).await;
    for (id, bytes) in [(longest, 131_071), (value, 131_071), (many, 1_000_000)] {
        assert_eq!(ended(&client, id).await.status, Status::Success);
        let counted = String::from_utf8(written(&client, id, LogStream::Stdout).await).expect("text");
        assert!(counted.trim().parse::<usize>().expect("a number") >= bytes, "{counted} of {bytes}");
    }

    let cases = [
        (program(&["true", &"x".repeat(131_072)]), "/command/1"),
        (program(&["true", &"x".repeat(1 << 20)]), "/command/1"),
        (with_env([entry("V", 131_072)].into_iter()), "/env/V"),
        (with_env((0..2_000).map(|n| entry(&format!("V{n}"), 1_024))), "/env"),
    ];
    for (job, pointer) in cases {
        let refused = client.jobs().submit(job).await.expect_err(pointer);
        assert_eq!(refused.code(), Some("invalid_request"), "{refused}");
        assert!(refused.to_string().contains(&format!("{pointer}: ")), "{pointer}: {refused}");
    }
    let refused =
        client.jobs().submit(program(&["true", &"x".repeat(16 << 20)])).await.expect_err("too large");
    assert_eq!(refused.code(), Some("body_too_large"), "{refused}");
    let all: Vec<_> = client.jobs().list_all(JobFilter::default()).try_collect().await.expect("all");
    assert_eq!(all.len(), 3);
}

/// B113: names are shown, never used as file names.
#[tokio::test]
async fn any_name_can_be_given_found_and_its_log_opened() {
    let yard = Yard::up().await;
    let client = yard.client();
    let long = "漢".repeat(200);
    let names = [
        "a/b",
        "../../etc/passwd",
        "(x)",
        "a:b",
        &long,
        "\u{1f680} 🏴‍☠️",
        "-rf",
        "trailing ",
        " leading",
        "con",
        "%2F",
        "a?b#c&d=e+f",
        "<script>alert(1)</script>",
        "'; DROP TABLE job; --",
        "\u{202e}txt.exe",
        ".",
        "..",
        "\\",
        "\"",
    ];
    let mut ids = Vec::new();
    for name in names {
        let job = JobSubmit { name: Some(name.to_owned()), ..program(&["echo", name]) };
        ids.push((accept(&client, job).await, name));
    }
    for (id, name) in ids {
        let job = ended(&client, id).await;
        assert_eq!((job.status, job.name.as_str()), (Status::Success, name));
        assert_eq!(written(&client, id, LogStream::Stdout).await, format!("{name}\n").into_bytes());
        let filter = JobFilter { name: Some(name.to_owned()), ..JobFilter::default() };
        let found = client.jobs().list(&filter).await.expect("a list").items;
        assert_eq!(found.iter().map(|job| job.id).collect::<Vec<_>>(), [id], "{name}");
    }
    let too_long = JobSubmit { name: Some("漢".repeat(201)), ..program(&["true"]) };
    let refused = client.jobs().submit(too_long).await.expect_err("too long");
    assert!(refused.to_string().contains("has 201 characters, the most is 200"), "{refused}");
}

/// A program for a processor that this machine hasn't got.
fn foreign_elf() -> Vec<u8> {
    let mut elf = vec![0; 120];
    elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    elf[16] = 2;
    // s390 or x86_64, whichever is foreign.
    elf[18] = if cfg!(target_arch = "s390x") { 62 } else { 22 };
    elf[20] = 1;
    elf[54] = 56;
    elf
}

async fn uploaded(yard: &Yard, client: &Client, bytes: &[u8]) -> JobSubmit {
    let path = yard.script("uploaded", bytes);
    let pushed = client.artifacts().push_file(&path).await.expect("it goes up");
    JobSubmit { binary_url: Some(format!("sha256:{}", pushed.hash)), ..JobSubmit::default() }
}

/// B115: each is told for what it is, at once, and not tried again.
#[tokio::test]
async fn what_can_not_run_is_told_apart_and_not_tried_again() {
    let yard = Yard::up().await;
    let client = yard.client();
    let folder = open_folder();
    let plain = folder.path().join("plain");
    fs::write(&plain, "#!/bin/sh\n").expect("writable");
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).expect("its mode");
    let jobs = [
        (program(&["/no/such"]), "/no/such"),
        (program(&["no-such-program"]), "no-such-program"),
        (program(&["/etc"]), "directory"),
        (program(&[&plain.display().to_string()]), "execut"),
        (uploaded(&yard, &client, b"#!/no/such/interpreter\n").await, "/no/such/interpreter"),
        (uploaded(&yard, &client, b"#!/bin/sh\r\necho\r\n").await, "carriage return"),
        (uploaded(&yard, &client, &foreign_elf()).await, "architecture"),
        (uploaded(&yard, &client, b"echo no first line\n").await, "#!"),
    ];
    let mut ids = Vec::new();
    for (job, says) in jobs {
        ids.push((accept(&client, job).await, says));
    }
    let mut messages = BTreeSet::new();
    for (id, says) in ids {
        let job = ended(&client, id).await;
        let message = job.result.expect("a result").message;
        assert_eq!((job.status, job.reason.as_str()), (Status::FinalFailed, "not_retryable"), "{message}");
        assert_eq!((job.attempt, job.retry_count), (Some(1), 0), "{message}");
        assert!(message.contains(says), "{says}: {message}");
        assert!(messages.insert(message.clone()), "said twice: {message}");
    }
    for command in [&[][..], &[""]] {
        let refused = client.jobs().submit(program(command)).await.expect_err("nothing to run");
        assert!(refused.to_string().contains("/command"), "{refused}");
    }
}

const SUBMITS: usize = 1_000;

/// B117: three of ten answers get lost on the way back, and every call is repeated until it is answered.
#[tokio::test]
async fn lost_answers_make_no_second_job_no_second_round_and_no_error() {
    let yard = Yard::up().await;
    let direct = yard.client();
    // Nobody serves this pool, so nothing but the calls changes a job.
    direct.pools().put("parked").await.expect("a pool");
    let proxy = LossyProxy::before(direct.url()).await;
    let token = Token::new(&yard.secret()).expect("a token");
    let client = Client::builder().url(&proxy.url()).expect("a url").token(token).build().expect("a client");
    let jobs = client.jobs();
    let job = JobSubmit { pool: Some("parked".to_owned()), ..program(&["true"]) };
    let ids: BTreeSet<JobId> =
        stream::iter(0..SUBMITS).map(|_| accept(&client, job.clone())).buffer_unordered(16).collect().await;
    let lost = proxy.lost();
    assert!(lost > SUBMITS / 4, "only {lost} answers were lost");
    let listed: Vec<_> = direct.jobs().list_all(JobFilter::default()).try_collect().await.expect("all");
    let listed: Vec<JobId> = listed.iter().map(|job| job.id).collect();
    assert_eq!((ids.len(), listed.len()), (SUBMITS, SUBMITS));
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), ids);

    let some: Vec<JobId> = ids.into_iter().take(100).collect();
    let cancelled = stream::iter(&some).map(|id| jobs.cancel(*id)).buffer_unordered(16);
    let cancelled: Vec<_> = cancelled.try_collect().await.expect("answered in the end");
    assert!(cancelled.iter().all(|job| job.status == Status::Cancelled));
    let retried = stream::iter(&some).map(|id| jobs.retry(*id)).buffer_unordered(16);
    let retried: Vec<_> = retried.try_collect().await.expect("answered in the end");
    assert!(retried.iter().all(|job| job.round == 2));
    assert!(proxy.lost() > lost + 40, "cancels and retries lost answers too");
    for id in some {
        let job = direct.jobs().get(id).await.expect("there");
        assert_eq!((job.status, job.round), (Status::Waiting, 2));
    }
}
