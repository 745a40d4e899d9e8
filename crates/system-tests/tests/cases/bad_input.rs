//! Bad input at the HTTP door of a real `jobyard up`, byte for byte as a hostile or clumsy client sends it: a clear
//! error, nothing changed, and the next good job runs. The rest of the list stands in the server's own tests.

use std::process::Command;

use futures_util::TryStreamExt;
use jobyard_client::{Client, JobFilter, Status};
use jobyard_system_tests::{Yard, bin};

use crate::support::{accept, ended, program, raw, status_of};

fn post(path: &str, token: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST /api/v1{path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

async fn nothing_changed(client: &Client) {
    let all: Vec<_> = client.jobs().list_all(JobFilter::default()).try_collect().await.expect("all");
    assert!(all.is_empty(), "{all:?}");
}

async fn a_good_job_runs(client: &Client) {
    let id = accept(client, program(&["true"])).await;
    assert_eq!(ended(client, id).await.status, Status::Success);
}

/// What is put into a good job, where the fault is, and its kind.
const FIELDS: &[(&str, &str, &str)] = &[
    (r#""labels":{"a":"b\nc"}"#, "/labels/a", "forbidden_character"),
    (r#""labels":{"a\nb":"c"}"#, "/labels/a\\nb", "forbidden_character"),
    (r#""node_labels":{"a":"\u0000"}"#, "/node_labels/a", "forbidden_character"),
    (r#""env":{"":"x"}"#, "/env/", "invalid"),
    (r#""env":{"JOBYARD_JOB_ID":"x"}"#, "/env/JOBYARD_JOB_ID", "not_allowed"),
    (r#""env":{"A":"1","A":"2"}"#, "/env/A", "duplicate_field"),
    (r#""env":{"A":1}"#, "/env/A", "wrong_type"),
    (r#""env":[]"#, "/env", "wrong_type"),
    (r#""resources":{"memory":1e99}"#, "/resources/memory", "out_of_range"),
    (r#""resources":{"memory":-1}"#, "/resources/memory", "out_of_range"),
    (r#""resources":{"memory":0}"#, "/resources/memory", "out_of_range"),
    (r#""resources":{"cpu":-0.5}"#, "/resources/cpu", "out_of_range"),
    (r#""resources":{"cpu":0}"#, "/resources/cpu", "out_of_range"),
    (r#""resources":{"cpu":1,"cpu":2}"#, "/resources/cpu", "duplicate_field"),
    (r#""resources":{"gpu":1}"#, "/resources/gpu", "not_available_yet"),
    (r#""max_retries":-1"#, "/max_retries", "out_of_range"),
    (r#""max_retries":1.5"#, "/max_retries", "out_of_range"),
    (r#""max_retries":9223372036854775808"#, "/max_retries", "out_of_range"),
    (r#""backoff":1e308"#, "/backoff", "out_of_range"),
    (r#""timeout":"1e9d""#, "/timeout", "invalid"),
    (r#""run_at":"2026-02-30T00:00:00Z""#, "/run_at", "invalid"),
    (r#""run_at":"2026-05-01T09:30:00""#, "/run_at", "invalid"),
    (r#""run_at":"+99999-01-01T00:00:00Z""#, "/run_at", "invalid"),
    (r#""no_retry_exit_codes":[0]"#, "/no_retry_exit_codes/0", "out_of_range"),
    (r#""priority":101"#, "/priority", "out_of_range"),
    (r#""name":"""#, "/name", "invalid"),
    (r#""command":[""]"#, "/command", "duplicate_field"),
    (r#""exclusive":"yes""#, "/exclusive", "wrong_type"),
    (r#""binary_url":"sha256:xyz""#, "/binary_url", "invalid"),
    (r#""binary_url":"http://x/y""#, "/binary_url", "invalid"),
];

#[tokio::test]
async fn each_fault_is_named_by_its_place_and_kind() {
    let yard = Yard::up().await;
    let client = yard.client();
    let token = yard.secret();
    let mut wrong = Vec::new();
    for (field, pointer, code) in FIELDS {
        let body = format!(r#"{{"command":["true"],{field}}}"#);
        let answer = raw(&client, &post("/jobs", &token, body.as_bytes())).await;
        let text = String::from_utf8_lossy(&answer).into_owned();
        let told = [
            "content-type: application/problem+json".to_owned(),
            format!(r#""pointer":"{pointer}""#),
            format!(r#""code":"{code}""#),
        ];
        if status_of(&answer) != 400 || !told.iter().all(|words| text.contains(words)) {
            wrong.push(format!("{field}: wanted {code} at {pointer}\n{text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    nothing_changed(&client).await;
    a_good_job_runs(&client).await;
}

#[tokio::test]
async fn what_is_no_document_is_refused() {
    let yard = Yard::up().await;
    let client = yard.client();
    let token = yard.secret();
    let nested = format!(r#"{{"command":["true"],"env":{}"#, r#"{"a":"#.repeat(20_000));
    let bodies: [&[u8]; 14] = [
        b"",
        b"null",
        b"[]",
        b"\"x\"",
        b"7",
        b"{\"command\":[\"true\"]} {}",
        b"{\"command\":[\"true\"],}",
        b"{\"command\":[\"\xff\xfe\"]}",
        b"{\"command\":[\"\\ud800\"]}",
        b"{\"command\":[\"true\"],\"timeout\":NaN}",
        b"{\"command\":[\"true\"],\"timeout\":1e400}",
        b"\xef\xbb\xbf{\"command\":[]}",
        b"{\"command\":[\"tr",
        nested.as_bytes(),
    ];
    for path in ["/jobs", "/jobs/batch"] {
        for body in bodies {
            let answer = raw(&client, &post(path, &token, body)).await;
            let start = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
            assert_eq!(status_of(&answer), 400, "{path} {start}: {}", String::from_utf8_lossy(&answer));
        }
    }
    nothing_changed(&client).await;
    a_good_job_runs(&client).await;
}

/// Requests that are wrong below the level of documents, and what may be answered; 0 is a connection that is closed.
fn broken_requests(token: &str) -> Vec<(Vec<u8>, &'static [u16])> {
    let head = |more: &str| {
        format!("POST /api/v1/jobs HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {token}\r\n{more}\r\n")
            .into_bytes()
    };
    let job = r#"{"command":["true"]}"#;
    vec![
        (post("/jobs", token, &vec![b' '; 5 << 20]), &[413]),
        (post("/jobs/batch", token, &vec![b' '; 65 << 20]), &[413]),
        (head("content-length: 99999999999999999999\r\n"), &[400, 413]),
        ([head("content-length: 20\r\ncontent-length: 21\r\n"), job.into()].concat(), &[400]),
        ([head("content-length: -1\r\n"), job.into()].concat(), &[400]),
        ([head("transfer-encoding: chunked\r\n"), b"ZZ\r\nxx\r\n0\r\n\r\n".to_vec()].concat(), &[400, 0]),
        (head(&format!("x-large: {}\r\n", "x".repeat(1 << 20))), &[431, 400]),
        (b"\0\0\0\0\r\n\r\n".to_vec(), &[400, 0]),
        (b"GET /api/v1/jobs\r\n\r\n".to_vec(), &[400, 0]),
        (format!("PUT /api/v1/artifacts/{} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
                  content-length: 3\r\n\r\nabc", "0".repeat(64)).into_bytes(), &[400]),
    ]
}

#[tokio::test]
async fn requests_that_are_broken_or_too_large_change_nothing() {
    let yard = Yard::up().await;
    let client = yard.client();
    for (request, allowed) in broken_requests(&yard.secret()) {
        let answer = raw(&client, &request).await;
        let start = String::from_utf8_lossy(&request[..request.len().min(250)]).into_owned();
        assert!(allowed.contains(&status_of(&answer)), "{start}\n{}", String::from_utf8_lossy(&answer));
    }
    nothing_changed(&client).await;
    a_good_job_runs(&client).await;
}

/// B123, and a page elsewhere that posts to the scheduler on its reader's machine.
#[tokio::test]
async fn nothing_is_open_without_a_token_that_may() {
    let yard = Yard::up().await;
    let client = yard.client();
    let job = r#"{"command":["true"]}"#;
    let with = |headers: &str| {
        format!("POST /api/v1/jobs HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}content-length: 20\r\n\r\n{job}")
            .into_bytes()
    };
    let viewer =
        yard.command(&["token", "create", "--name", "reader", "--role", "viewer"]).output().expect("runs");
    let viewer = String::from_utf8(viewer.stdout).expect("a token");
    let cases = [
        (String::new(), 401),
        ("authorization: Bearer \r\n".to_owned(), 401),
        ("authorization: Bearer default_token\r\n".to_owned(), 401),
        ("authorization: Basic YWRtaW46YWRtaW4=\r\n".to_owned(), 401),
        (format!("authorization: {}\r\n", yard.secret()), 401),
        (format!("cookie: token={}\r\norigin: https://evil.example\r\n", yard.secret()), 401),
        ("origin: https://evil.example\r\ncontent-type: text/plain\r\n".to_owned(), 401),
        (format!("authorization: Bearer {}\r\n", viewer.trim()), 403),
    ];
    for (headers, wanted) in cases {
        let answer = raw(&client, &with(&headers)).await;
        let text = String::from_utf8_lossy(&answer).into_owned();
        assert_eq!(status_of(&answer), wanted, "{headers}: {text}");
        assert!(!text.to_lowercase().contains("access-control-allow"), "{text}");
    }
    nothing_changed(&client).await;
    use std::os::unix::fs::PermissionsExt as _;
    let token = std::fs::metadata(yard.dir().join("data/admin.token")).expect("a token");
    assert_eq!(token.permissions().mode() & 0o777, 0o600);
}

/// B123: nothing of an installation is reachable by others unless somebody said so.
#[test]
fn listening_for_others_has_to_be_asked_for() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data");
    let output = Command::new(bin("jobyard"))
        .args(["up", "--listen", "0.0.0.0:0", "--data-dir"])
        .arg(&data)
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--open-to-others"), "{said}");
    assert!(!data.exists(), "nothing was made");
}
