//! What task processes write, as it comes back (B072, B073).

use std::io::Write as _;
use std::process::{Command, Stdio};

use jobyard_client::{LogStream, Status};
use jobyard_system_tests::Yard;

use crate::support::{accept, ended, shell, written};

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
