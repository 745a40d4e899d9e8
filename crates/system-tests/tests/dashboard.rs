//! The dashboard's door, as a browser goes through it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use jobyard_system_tests::{Role, Yard};

/// Sends a request over a connection of its own, and gives head and body of the answer.
fn ask(address: &str, request: &str, cookie: &str, body: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let length = body.len();
    let head = format!("{request} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncookie: {cookie}");
    stream.write_all(format!("{head}\r\ncontent-length: {length}\r\n\r\n{body}").as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.to_owned(), body.to_owned())
}

/// Signs in with the code behind a link's `#`; the answer's head.
fn sign_in(link: &str) -> String {
    let (page, code) = link.split_once("/login#").expect("a link");
    let address = page.strip_prefix("http://").expect("an address");
    ask(address, "POST /api/v1/sessions", "", &format!("{{\"login\":\"{code}\"}}")).0
}

/// The bytes of the SQLite datastore below a folder.
fn datastore(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            bytes.extend(datastore(&path));
        } else if name.starts_with("jobyard.db") {
            bytes.extend(fs::read(&path).expect("readable"));
        }
    }
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn the_link_that_up_prints_signs_one_browser_in() {
    let yard = Yard::up().await;
    let said = yard.said(Role::Up);
    let link = said.lines().find_map(|line| line.strip_prefix("login ")).expect("a link");
    let (_, code) = link.split_once('#').expect("a code");
    let head = sign_in(link);
    assert!(head.starts_with("HTTP/1.1 201 "), "{head}");
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
    let cookie = cookie.split(';').next().expect("a first part");
    let address = link.strip_prefix("http://").and_then(|rest| rest.split('/').next()).expect("an address");
    let (_, me) = ask(address, "GET /api/v1/me", cookie, "");
    assert!(me.contains("\"admin\""), "{me}");
    assert!(sign_in(link).starts_with("HTTP/1.1 401 "), "once");

    let other = yard.command(&["dashboard"]).output().expect("it starts");
    let other = String::from_utf8(other.stdout).expect("a link");
    assert!(sign_in(other.trim()).starts_with("HTTP/1.1 201 "), "{other}");

    // Nothing keeps what a browser could come back with.
    let kept = datastore(yard.dir());
    for secret in [code, cookie.split_once('=').expect("a value").1] {
        assert!(kept.len() > 10_000 && !kept.windows(secret.len()).any(|bytes| bytes == secret.as_bytes()));
    }
    assert_eq!(yard.said(Role::Up).matches(code).count(), 1, "said once, and in no log");
}
