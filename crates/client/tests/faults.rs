//! What the library does when calls are refused, answered late, or break off.

mod peer;

use futures_util::TryStreamExt;
use jobyard_client::json::{JobSubmit, TokenCreate};
use jobyard_client::{
    ArtifactHash, Change, Error, EventFilter, FollowOptions, JobId, LogStream, Role, Status,
};
use peer::{ID, Peer, Reply, attempts, job, problem};
use sha2::{Digest, Sha256};

const SUBMIT: &str = "POST /api/v1/jobs";

fn echo() -> JobSubmit {
    JobSubmit { command: vec!["echo".to_owned()], ..JobSubmit::default() }
}

fn id() -> JobId {
    ID.parse().expect("an id")
}

fn hash_of(bytes: &[u8]) -> ArtifactHash {
    ArtifactHash(Sha256::digest(bytes).into())
}

fn whole(status: u16, body: String) -> Reply {
    Reply::Whole(status, "", body)
}

#[tokio::test]
async fn a_submission_is_repeated_with_one_key_until_it_is_answered() {
    let peer = Peer::start(vec![
        (SUBMIT, Reply::Nothing),
        (SUBMIT, whole(503, problem(503, "unavailable"))),
        (SUBMIT, Reply::Torn("", vec!["{\"id\":"])),
        (SUBMIT, whole(429, problem(429, "busy"))),
        (SUBMIT, whole(200, job(ID, "waiting", None))),
    ])
    .await;
    let accepted = peer.client().jobs().submit(echo()).await.expect("accepted in the end");
    assert_eq!(accepted.id, id());
    let keys: Vec<String> = peer
        .seen(SUBMIT)
        .iter()
        .map(|seen| serde_json::from_slice::<JobSubmit>(&seen.body).expect("a job"))
        .map(|job| job.idempotency_key.expect("a key"))
        .collect();
    assert_eq!(keys.len(), 5);
    assert!(keys.iter().all(|key| key == &keys[0] && key.len() >= 32), "{keys:?}");
}

#[tokio::test]
async fn a_key_of_the_callers_own_is_kept_and_two_submissions_never_share_one() {
    let accepted = || (SUBMIT, whole(201, job(ID, "waiting", None)));
    let peer = Peer::start(vec![accepted(), accepted(), accepted()]).await;
    let jobs = peer.client().jobs();
    jobs.submit(JobSubmit { idempotency_key: Some("mine".to_owned()), ..echo() }).await.expect("accepted");
    jobs.submit(echo()).await.expect("accepted");
    jobs.submit(echo()).await.expect("accepted");
    let bodies: Vec<serde_json::Value> =
        peer.seen(SUBMIT).iter().map(|seen| serde_json::from_slice(&seen.body).expect("JSON")).collect();
    assert_eq!(bodies[0]["idempotency_key"], "mine");
    assert_ne!(bodies[1]["idempotency_key"], bodies[2]["idempotency_key"]);
}

#[tokio::test]
async fn a_call_that_would_be_done_twice_is_sent_once() {
    let line = "POST /api/v1/tokens";
    for first in [Reply::Nothing, whole(503, problem(503, "unavailable")), Reply::Torn("", vec!["{"])] {
        let peer = Peer::start(vec![(line, first), (line, whole(201, "{}".to_owned()))]).await;
        let wanted =
            TokenCreate { name: "n".to_owned(), role: Role::Viewer, owners: Vec::new(), expires_in: None };
        peer.client().tokens().create(&wanted).await.expect_err("not repeated");
        assert_eq!(peer.seen(line).len(), 1);
    }
}

#[tokio::test]
async fn a_server_that_asks_for_more_patience_than_we_have_is_believed() {
    let busy = Reply::Whole(429, "retry-after: 3600\r\n", problem(429, "busy"));
    let peer = Peer::start(vec![(SUBMIT, busy), (SUBMIT, whole(201, job(ID, "waiting", None)))]).await;
    let error = peer.client().jobs().submit(echo()).await.expect_err("an hour is too long");
    assert_eq!((error.code(), peer.left()), (Some("busy"), 1));
}

#[tokio::test]
async fn a_refusal_names_every_fault_and_is_not_repeated() {
    let document = serde_json::json!({
        "type": "about:blank", "title": "Bad Request", "status": 400, "code": "invalid_request",
        "detail": "2 faults", "errors": [
            {"pointer": "/resources/cpu", "detail": "negative", "code": "out_of_range"},
            {"pointer": "/nam", "detail": "unknown field", "code": "unknown_field"},
        ],
    });
    let peer = Peer::start(vec![(SUBMIT, whole(400, document.to_string()))]).await;
    let error = peer.client().jobs().submit(echo()).await.expect_err("refused");
    assert_eq!(error.to_string(), "2 faults\n  /resources/cpu: negative\n  /nam: unknown field");
    assert_eq!(peer.seen(SUBMIT).len(), 1);
}

#[tokio::test]
async fn an_answer_of_something_else_is_told_as_such() {
    for body in ["<html>not found</html>", "", "{}"] {
        let peer = Peer::start(vec![("GET", whole(200, body.to_owned()))]).await;
        let error = peer.client().jobs().get(id()).await.expect_err("no job");
        assert!(matches!(error, Error::Answer { .. }), "{body:?}: {error}");
    }
    let peer = Peer::start(vec![("GET", whole(404, "<html>not found</html>".to_owned()))]).await;
    let error = peer.client().jobs().get(id()).await.expect_err("no job").to_string();
    assert!(error.contains("404") && error.contains("<html>"), "{error}");
}

#[tokio::test]
async fn a_token_does_not_follow_a_redirect() {
    let elsewhere = Peer::start(vec![("GET", whole(200, job(ID, "success", None)))]).await;
    let headers: &'static str = format!("location: {}/\r\n", elsewhere.client().url()).leak();
    let peer = Peer::start(vec![("GET", Reply::Whole(307, headers, String::new()))]).await;
    peer.client().jobs().get(id()).await.expect_err("not followed");
    assert!(peer.seen("GET")[0].head.contains("authorization: bearer jy_secret"));
    assert_eq!(elsewhere.seen("").len(), 0);
}

fn change(cursor: &str) -> String {
    format!(
        "id: {cursor}\nevent: change\ndata: {{\"cursor\":\"{cursor}\",\"time\":\"2026-05-01T09:30:00Z\",\
         \"job_id\":\"{ID}\",\"attempt\":null,\"who\":\"w\",\"from\":\"ready\",\"to\":\"waiting\",\"why\":\"\"}}\n\n"
    )
}

#[tokio::test]
async fn events_go_on_from_the_last_one_seen_and_a_forgotten_place_is_told() {
    let line = "GET /api/v1/events";
    let (first, second, third) = (change("0-1").leak(), change("0-2").leak(), change("0-9").leak());
    let peer = Peer::start(vec![
        (
            line,
            Reply::Torn(
                "",
                vec!["id: 0-0\nevent: start\ndata: {\"cursor\":\"0-0\"}\n\n", first, &second[..20]],
            ),
        ),
        (line, Reply::Stream("", vec![": still here\n\n", second])),
        (line, whole(410, problem(410, "cursor_expired"))),
        (line, Reply::Stream("", vec![third])),
    ])
    .await;
    let filter = EventFilter { job_id: Some(id()), ..EventFilter::default() };
    let changes = peer.client().events().watch(filter, None);
    let told: Vec<String> = futures_util::StreamExt::take(changes, 4)
        .map_ok(|change| match change {
            Change::Event(event) => event.cursor,
            Change::Missed => "missed".to_owned(),
        })
        .try_collect()
        .await
        .expect("outlasted");
    assert_eq!(told, ["0-1", "0-2", "missed", "0-9"]);
    let places: Vec<Option<String>> = peer
        .seen(line)
        .iter()
        .map(|seen| seen.head.lines().find_map(|line| Some(line.strip_prefix("last-event-id: ")?.to_owned())))
        .collect();
    assert_eq!(places, [None, Some("0-1".to_owned()), Some("0-2".to_owned()), None]);
    assert!(peer.seen(line)[0].line.ends_with(&format!("?job={ID}")));
}

#[tokio::test]
async fn a_followed_log_has_neither_gaps_nor_doubles_however_often_it_breaks_off() {
    const LOGS: &str = "GET /api/v1/jobs/01890a5d-ac96-774b-bcce-b302099a8057/logs";
    const ATTEMPTS: &str = "GET /api/v1/jobs/01890a5d-ac96-774b-bcce-b302099a8057/attempts";
    let peer = Peer::start(vec![
        (LOGS, Reply::Torn("", vec!["hel", "lo "])),
        (LOGS, Reply::Nothing),
        (LOGS, whole(503, problem(503, "unavailable"))),
        // A server that goes down ends its answers well; the attempt goes on.
        (LOGS, Reply::Stream("", vec!["wor"])),
        (ATTEMPTS, whole(200, attempts(false))),
        (LOGS, Reply::Stream("", vec!["ld"])),
        (ATTEMPTS, whole(200, attempts(true))),
        // What came between the end of the answer and the end of the attempt.
        (LOGS, Reply::Stream("", vec!["!"])),
        (LOGS, Reply::Stream("", vec![])),
        (ATTEMPTS, whole(200, attempts(true))),
        (LOGS, Reply::Stream("", vec![])),
    ])
    .await;
    let options = FollowOptions { attempt: Some(1), stream: Some(LogStream::Stdout) };
    let pieces: Vec<_> = peer.client().jobs().follow(id(), options).try_collect().await.expect("outlasted");
    let mut end = 0;
    for piece in &pieces {
        assert_eq!(piece.from, end);
        end += piece.bytes.len() as u64;
    }
    let text: Vec<u8> = pieces.iter().flat_map(|piece| piece.bytes.clone()).collect();
    assert_eq!(String::from_utf8_lossy(&text), "hello world!");
    assert_eq!(peer.left(), 0);
}

#[tokio::test]
async fn waiting_works_without_events_too() {
    let line = "GET /api/v1/jobs";
    let peer = Peer::start(vec![
        ("GET /api/v1/events", whole(403, problem(403, "forbidden"))),
        (line, whole(200, job(ID, "running", Some(1)))),
        (line, whole(503, problem(503, "unavailable"))),
        (line, whole(200, job(ID, "success", Some(1)))),
    ])
    .await;
    let ended = peer.client().jobs().wait(id()).await.expect("waited");
    assert_eq!(ended.status, Status::Success);
}

#[tokio::test]
async fn a_pushed_file_is_sent_again_when_it_broke_off_and_not_at_all_when_it_is_there() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("program");
    let content = vec![7_u8; 300_000];
    std::fs::write(&path, &content).expect("written");
    let hash = hash_of(&content);
    let (head, put) =
        (format!("HEAD /api/v1/artifacts/{hash}").leak(), format!("PUT /api/v1/artifacts/{hash}").leak());
    let peer = Peer::start(vec![
        (head, whole(404, String::new())),
        (put, Reply::Nothing),
        (put, whole(201, "{}".to_owned())),
        (head, whole(200, String::new())),
    ])
    .await;
    let artifacts = peer.client().artifacts();
    let pushed = artifacts.push_file(&path).await.expect("pushed");
    assert_eq!((pushed.hash, pushed.size_bytes, pushed.sent), (hash, 300_000, true));
    assert!(peer.seen(put).iter().all(|seen| seen.body == content));
    assert!(!artifacts.push_file(&path).await.expect("there").sent);
    assert_eq!((peer.seen(put).len(), peer.left()), (2, 0));
}

#[tokio::test]
async fn small_files_are_sent_again_when_their_call_broke_off() {
    let home = tempfile::tempdir().expect("a temporary directory");
    for text in ["one", "two"] {
        std::fs::write(home.path().join(text), text).expect("written");
    }
    let (one, two) = (hash_of(b"one"), hash_of(b"two"));
    let batch = "POST /api/v1/artifacts/batch";
    let missing = format!("{{\"missing\":[\"{one}\",\"{two}\"]}}");
    let peer = Peer::start(vec![
        ("HEAD /api/v1/trees", whole(404, String::new())),
        ("POST /api/v1/artifacts/missing", whole(200, missing)),
        (batch, Reply::Nothing),
        (batch, whole(500, problem(500, "internal"))),
        (batch, whole(200, "{\"files\":2,\"size_bytes\":6}".to_owned())),
        ("PUT /api/v1/trees", whole(201, "{}".to_owned())),
    ])
    .await;
    let pushed = peer.client().artifacts().push_folder(home.path(), std::sync::Arc::new(|_| ())).await;
    assert_eq!(pushed.expect("pushed").sent_bytes, 6);
    let body = format!(
        "{{\"files\":[{{\"sha256\":\"{one}\",\"size\":3}},{{\"sha256\":\"{two}\",\"size\":3}}]}}\nonetwo"
    );
    let seen = peer.seen(batch);
    assert!(seen.iter().all(|seen| seen.body == body.as_bytes()), "{seen:?}");
    assert!(seen.iter().all(|seen| seen.head.contains("application/octet-stream")), "{seen:?}");
    assert_eq!((seen.len(), peer.left()), (3, 0));
}

#[tokio::test]
async fn what_is_pulled_is_kept_only_when_it_is_what_was_asked_for() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("program");
    std::fs::write(&path, "before").expect("written");
    let line = "GET /api/v1/artifacts";
    let peer = Peer::start(vec![
        (line, whole(200, "something else".to_owned())),
        (line, Reply::Torn("", vec!["wan"])),
        (line, whole(404, problem(404, "not_found"))),
        (line, Reply::Stream("", vec!["wan", "ted"])),
    ])
    .await;
    let artifacts = peer.client().artifacts();
    let hash = hash_of(b"wanted");
    let mut told = Vec::new();
    for _ in 0..3 {
        told.push(artifacts.pull_to_file(hash, &path).await.expect_err("not it"));
        assert_eq!(std::fs::read_to_string(&path).expect("there"), "before");
    }
    assert!(
        matches!(told.as_slice(), [Error::WrongHash { .. }, Error::Unreachable { .. }, Error::Problem(_)]),
        "{told:?}"
    );
    assert_eq!(artifacts.pull_to_file(hash, &path).await.expect("it"), 6);
    assert_eq!(std::fs::read_to_string(&path).expect("there"), "wanted");
    assert_eq!(std::fs::read_dir(directory.path()).expect("there").count(), 1, "no leftovers");
}

/// What a server says, and which ranges it is asked for.
type Story = (Vec<(&'static str, Reply)>, &'static [Option<&'static str>]);

#[tokio::test]
async fn a_pull_that_broke_off_goes_on_where_it_was() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("program");
    let line = "GET /api/v1/artifacts";
    let part = |headers, body: &str| (line, Reply::Whole(206, headers, body.to_owned()));
    let torn = |pieces| (line, Reply::Torn("", pieces));
    let stories: [Story; 5] = [
        (vec![torn(vec!["wan"]), part("content-range: bytes 3-5/6\r\n", "ted")], &[None, Some("bytes=3-")]),
        // It knows no ranges.
        (vec![torn(vec!["wan"]), (line, whole(200, "wanted".to_owned()))], &[None, Some("bytes=3-")]),
        // What came was no part of it.
        (
            vec![
                torn(vec!["bad"]),
                part("content-range: bytes 3-5/6\r\n", "ted"),
                (line, whole(200, "wanted".to_owned())),
            ],
            &[None, Some("bytes=3-"), None],
        ),
        // All of it came, and was not known to.
        (
            vec![torn(vec!["want", "ed"]), (line, whole(416, problem(416, "range_not_satisfiable")))],
            &[None, Some("bytes=6-")],
        ),
        // More than all of it.
        (
            vec![
                torn(vec!["wanted", "!"]),
                (line, whole(416, problem(416, "range_not_satisfiable"))),
                (line, whole(200, "wanted".to_owned())),
            ],
            &[None, Some("bytes=7-"), None],
        ),
    ];
    for (rules, ranges) in stories {
        let peer = Peer::start(rules).await;
        let artifacts = peer.client().artifacts();
        let broken = artifacts.pull_to_file(hash_of(b"wanted"), &path).await.expect_err("broke off");
        assert!(broken.is_unreachable(), "{broken}");
        assert!(!path.exists(), "half of it has no name");
        assert_eq!(artifacts.pull_to_file(hash_of(b"wanted"), &path).await.expect("it"), 6);
        assert_eq!(std::fs::read_to_string(&path).expect("there"), "wanted");
        let seen = peer.seen(line);
        let asked: Vec<_> =
            seen.iter().map(|seen| seen.head.lines().find_map(|line| line.strip_prefix("range: "))).collect();
        assert_eq!((asked.as_slice(), peer.left()), (ranges, 0));
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(std::fs::read_dir(directory.path()).expect("there").count(), 0, "no leftovers");
    }
}

#[tokio::test]
async fn a_part_from_elsewhere_is_not_taken() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("program");
    let line = "GET /api/v1/artifacts";
    let shifted = Reply::Whole(206, "content-range: bytes 2-4/6\r\n", "ted".to_owned());
    let peer = Peer::start(vec![(line, Reply::Torn("", vec!["wan"])), (line, shifted)]).await;
    let artifacts = peer.client().artifacts();
    artifacts.pull_to_file(hash_of(b"wanted"), &path).await.expect_err("broke off");
    let refused = artifacts.pull_to_file(hash_of(b"wanted"), &path).await.expect_err("another part");
    assert!(matches!(refused, Error::Answer { .. }), "{refused}");
    assert!(!path.exists());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_after_a_while() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a port");
    let policy = jobyard_client::RetryPolicy {
        unreachable_for: std::time::Duration::from_millis(50),
        ..jobyard_client::RetryPolicy::default()
    };
    let builder = jobyard_client::Client::builder().url(&format!("http://{closed}")).expect("a url");
    let client = builder.retry_policy(policy).build().expect("a client");
    let error = client.me().await.expect_err("nobody there");
    assert!(error.is_unreachable(), "{error}");
}
