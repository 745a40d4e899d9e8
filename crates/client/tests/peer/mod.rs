//! The other end of a connection, told what to say: for faults that a real server doesn't show on demand.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jobyard_client::{Client, RetryPolicy, Token};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the peer does with a request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// A whole answer with this status, extra header lines and body.
    Whole(u16, &'static str, String),
    /// A chunked answer of these pieces, which ends well.
    Stream(&'static str, Vec<&'static str>),
    /// A chunked answer that breaks off after these pieces.
    Torn(&'static str, Vec<&'static str>),
    /// The connection is closed without a word.
    Nothing,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// Method and path with the query.
    pub(crate) line: String,
    /// The head, in lower case.
    pub(crate) head: String,
    /// The body.
    pub(crate) body: Vec<u8>,
}

#[derive(Default)]
struct Script {
    rules: Vec<(&'static str, Reply)>,
    seen: Vec<Seen>,
}

/// A listening peer.
pub(crate) struct Peer {
    url: String,
    script: Arc<Mutex<Script>>,
}

impl Peer {
    /// Each request takes the first rule left whose text its first line begins with; without one it is told that it
    /// was not expected.
    pub(crate) async fn start(rules: Vec<(&'static str, Reply)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let script = Arc::new(Mutex::new(Script { rules, ..Script::default() }));
        let shared = script.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, shared.clone()));
            }
        });
        Self { url, script }
    }

    /// A client that is not patient.
    pub(crate) fn client(&self) -> Client {
        let policy = RetryPolicy {
            first_delay: Duration::from_millis(1),
            longest_delay: Duration::from_millis(10),
            ..RetryPolicy::default()
        };
        let builder = Client::builder().url(&self.url).expect("a url").retry_policy(policy);
        builder.token(Token::new("jy_secret").expect("a token")).build().expect("a client")
    }

    /// The requests so far whose first line begins with this.
    pub(crate) fn seen(&self, line: &str) -> Vec<Seen> {
        let script = self.script.lock().expect("no panic");
        script.seen.iter().filter(|seen| seen.line.starts_with(line)).cloned().collect()
    }

    /// How many rules were not used.
    pub(crate) fn left(&self) -> usize {
        self.script.lock().expect("no panic").rules.len()
    }
}

async fn serve(mut stream: TcpStream, script: Arc<Mutex<Script>>) {
    while let Some(seen) = read_request(&mut stream).await {
        let reply = {
            let mut script = script.lock().expect("no panic");
            let found = script.rules.iter().position(|(line, _)| seen.line.starts_with(line));
            let reply = found.map(|index| script.rules.remove(index).1);
            script.seen.push(seen);
            reply
        };
        let unexpected = Reply::Whole(400, "", problem(400, "unexpected"));
        if !answer(&mut stream, &reply.unwrap_or(unexpected)).await {
            return;
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<Seen> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).expect("an ASCII head");
    let line = head.lines().next()?.trim_end_matches(" HTTP/1.1").to_owned();
    let head = head.to_lowercase();
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Seen { line, head, body })
}

/// Whether the connection goes on.
async fn answer(stream: &mut TcpStream, reply: &Reply) -> bool {
    let (head, pieces, ends) = match reply {
        Reply::Nothing => return false,
        Reply::Whole(status, headers, body) => {
            let text =
                format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n{body}", body.len());
            return stream.write_all(text.as_bytes()).await.is_ok();
        }
        Reply::Stream(headers, pieces) => (headers, pieces, true),
        Reply::Torn(headers, pieces) => (headers, pieces, false),
    };
    let mut text = format!("HTTP/1.1 200 X\r\n{head}transfer-encoding: chunked\r\n\r\n");
    for piece in pieces {
        text.push_str(&format!("{:x}\r\n{piece}\r\n", piece.len()));
    }
    if ends {
        text.push_str("0\r\n\r\n");
    }
    stream.write_all(text.as_bytes()).await.is_ok() && ends
}

/// A problem document.
pub(crate) fn problem(status: u16, code: &str) -> String {
    serde_json::json!({
        "type": "about:blank", "title": "X", "status": status, "code": code, "detail": format!("detail of {code}"),
    })
    .to_string()
}

/// A job document.
pub(crate) fn job(id: &str, status: &str, attempt: Option<u32>) -> String {
    serde_json::json!({
        "id": id, "owner_id": "o", "submitted_by": "p", "name": "n", "kind": "task", "status": status, "reason": "",
        "binary_url": null, "command": ["x"], "created_time": "2026-05-01T09:30:00.000Z", "started_time": null,
        "finished_time": null, "run_at": null, "start_within": null, "retry_count": 0, "max_retries": 3, "backoff": 1,
        "no_retry_exit_codes": [], "platform_failures": 0, "evictions": 0, "round": 1, "timeout": null,
        "stop_grace": 10, "resources": {"cpu": 0.1, "memory": 1, "cpu_limit": null}, "io_class": "mixed",
        "runtime": "process", "priority": 50, "preemptible": false, "exclusive": false, "pool": "default",
        "node_labels": {}, "labels": {}, "origin": null, "idempotency_key": null, "intent": "run", "result": null,
        "attempt": attempt,
    })
    .to_string()
}

/// The attempts of a job: one, live or ended.
pub(crate) fn attempts(finished: bool) -> String {
    let end = finished.then_some("2026-05-01T09:31:00.000Z");
    serde_json::json!({"items": [{
        "number": 1, "round": 1, "node_id": ID, "node_name": "n", "phase": (!finished).then_some("running"),
        "intent": "run", "outcome": finished.then_some("succeeded"), "ended_by": null, "exit_code": null,
        "signal": null, "message": "", "placed_time": "2026-05-01T09:30:00.000Z", "accepted_time": null,
        "started_time": null, "finished_time": end, "lease_until": null, "usage": null,
    }], "next_cursor": null})
    .to_string()
}

/// Some id.
pub(crate) const ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";
