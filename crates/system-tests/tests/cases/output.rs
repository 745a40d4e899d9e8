//! What task processes write, as it comes back (area 5).

use std::io::Write as _;
use std::process::{Command, Stdio};

use futures_util::TryStreamExt as _;
use jobyard_client::{LogQuery, LogStream, Status};
use jobyard_system_tests::{Peaks, Role, Yard};

use crate::support::{accept, ended, open_folder, says, shell, written};

fn sha256sum(bytes: &[u8]) -> String {
    let mut child =
        Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sha256sum");
    child.stdin.take().expect("its input").write_all(bytes).expect("it reads");
    String::from_utf8(child.wait_with_output().expect("it ends").stdout).expect("text")
}

/// B072, B099.
#[tokio::test]
async fn bytes_that_are_no_text_come_back_as_they_were() {
    let yard = Yard::up().await;
    let client = yard.client();
    let noise = "head -c 1048576 /dev/urandom > noise; sha256sum < noise >&2; cat noise";
    let noise = accept(&client, shell(noise)).await;
    let torn = r#"printf 'a\377\376b\n\303\n\000\342'; sleep 0.1; printf '\202\254'"#;
    let torn = accept(&client, shell(torn)).await;
    for id in [noise, torn] {
        assert_eq!(ended(&client, id).await.status, Status::Success);
    }
    let bytes = written(&client, noise, LogStream::Stdout).await;
    let wanted = written(&client, noise, LogStream::Stderr).await;
    assert_eq!((bytes.len(), sha256sum(&bytes).into_bytes()), (1_048_576, wanted));
    assert_eq!(written(&client, torn, LogStream::Stdout).await, b"a\xff\xfeb\n\xc3\n\0\xe2\x82\xac");
}

/// B073.
#[tokio::test]
async fn a_line_without_end_hides_nothing_behind_it() {
    let yard = Yard::up().await;
    let client = yard.client();
    let script = "head -c 16777216 /dev/zero | tr '\\0' x; echo; echo END";
    let id = accept(&client, shell(script)).await;
    let endless = accept(&client, shell("head -c 4194304 /dev/zero | tr '\\0' y")).await;
    assert_eq!(ended(&client, id).await.status, Status::Success);
    let bytes = written(&client, id, LogStream::Stdout).await;
    assert_eq!(bytes.len(), 16_777_216 + 5);
    assert!(bytes[..16_777_216].iter().all(|byte| *byte == b'x') && bytes.ends_with(b"x\nEND\n"));
    assert_eq!(ended(&client, endless).await.status, Status::Success);
    assert_eq!(written(&client, endless, LogStream::Stdout).await, vec![b'y'; 4_194_304]);
}

/// B076: a task is killed, then a worker; what was written until then is there, and why it ended is told. (A node that
/// is gone with its disk: `logs::what_a_lost_node_has_shipped_is_readable_through_either_server`.)
#[tokio::test]
async fn the_last_words_of_a_killed_task_are_there_and_a_killed_worker_loses_none() {
    let mut yard = Yard::up().await;
    let client = yard.client();
    let counts = |from: u32, to: u32| (from..=to).map(|line| format!("{line}\n")).collect::<String>();
    let script = "i=1; while [ $i -le 30 ]; do echo $i; i=$((i+1)); sleep 0.02; done; kill -9 $$";
    let killed = accept(&client, shell(script)).await;
    let folder = open_folder();
    let go = folder.path().join("go");
    let script = format!(
        "i=1; while [ ! -e {} ]; do echo $i; i=$((i+1)); sleep 0.02; done; echo written $((i-1)) >&2",
        go.display()
    );
    let goes_on = accept(&client, shell(&script)).await;
    says(&client, goes_on, "30\n").await;
    yard.kill(yard.worker_role());
    yard.start(yard.worker_role()).await;
    std::fs::write(&go, "").expect("writable");
    let job = ended(&client, killed).await;
    let result = job.result.expect("a result");
    assert_eq!((job.status, result.signal), (Status::FinalFailed, Some(9)), "{}", result.message);
    assert_eq!(written(&client, killed, LogStream::Stdout).await, counts(1, 30).as_bytes());
    let job = ended(&client, goes_on).await;
    assert_eq!((job.status, job.attempt), (Status::Success, Some(1)));
    let last = written(&client, goes_on, LogStream::Stderr).await;
    let last = String::from_utf8(last).expect("text");
    let last = last.trim().strip_prefix("written ").and_then(|last| last.parse().ok()).expect("a number");
    assert_eq!(written(&client, goes_on, LogStream::Stdout).await, counts(1, last).as_bytes());
}

/// B078, but for the browser: ten viewers of the end of two million lines, each of whom gets a small answer.
#[tokio::test]
async fn the_end_of_a_huge_log_is_a_small_answer() {
    let yard = Yard::up().await;
    let client = yard.client();
    let id = accept(&client, shell("seq 1000000 2999999")).await;
    assert_eq!(ended(&client, id).await.status, Status::Success);
    let before = Peaks::since_now(&[yard.id(Role::Up)]);
    let viewers = (0..10).map(|_| async {
        let query = LogQuery { tail: Some(1_000), ..LogQuery::default() };
        let pieces = client.jobs().logs(id, &query).await.expect("a log");
        pieces.try_collect::<Vec<_>>().await.expect("all of it").concat()
    });
    let wanted: String = (2_999_000..3_000_000).map(|line| format!("{line}\n")).collect();
    for answer in futures_util::future::join_all(viewers).await {
        assert!(answer == wanted.as_bytes(), "{} bytes", answer.len());
    }
    let grown = before.grown_bytes();
    assert!(grown[0] < 100 << 20, "{grown:?}");
}
