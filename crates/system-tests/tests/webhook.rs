//! The webhook of a real installation: its listener is away at first, and whoever tells is killed.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::mpsc::{Receiver, channel};

use jobyard_client::json::JobSubmit;
use jobyard_client::{Client, Status};
use jobyard_system_tests::{DEADLINE, Datastore, Role, YardPlan, ended, submit};
use serde_json::Value;

/// Answers the first call badly and the others well; gives what they said.
fn listen(listener: TcpListener) -> Receiver<Value> {
    let (sender, told) = channel();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = BufReader::new(stream.expect("a call"));
            let mut length = 0;
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).expect("a head");
                let line = line.trim_end().to_lowercase();
                if line.is_empty() {
                    break;
                }
                if let Some(value) = line.strip_prefix("content-length: ") {
                    length = value.parse().expect("a length");
                }
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).expect("a body");
            let status = if number == 0 { "503 Later" } else { "204 Heard" };
            let answer = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
            stream.get_mut().write_all(answer.as_bytes()).expect("answered");
            if sender.send(serde_json::from_slice(&body).expect("JSON")).is_err() {
                return;
            }
        }
    });
    told
}

async fn fails(client: &Client) -> String {
    let job = JobSubmit { command: vec!["false".into()], max_retries: Some(0), ..JobSubmit::default() };
    let id = submit(client, job).await;
    assert_eq!(ended(client, id).await.status, Status::FinalFailed);
    id.to_string()
}

async fn tells(datastore: Datastore, teller: Role) {
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("key");
    std::fs::write(&key, "0123456789abcdef\n").expect("written");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("its mode");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let table = format!("[webhook]\nurl = \"{url}\"\nkey_file = \"{}\"", key.display());
    let mut yard = YardPlan::on(datastore).table(&table).raise().await;
    let (client, told) = (yard.client(), listen(listener));
    let next = || told.recv_timeout(DEADLINE).expect("it is told");

    let first = fails(&client).await;
    let refused = next();
    assert_eq!((&refused["job_id"], &refused["job"]["outcome"]), (&first.clone().into(), &"failed".into()));
    assert_eq!(next(), refused, "again, since it was not heard");
    yard.kill(teller);
    yard.start(teller).await;
    let second = fails(&client).await;
    let mut ids = vec![next()["job_id"].clone()];
    // What was told before the kill may be told once more.
    while ids.last() != Some(&second.clone().into()) {
        ids.push(next()["job_id"].clone());
    }
    assert!(
        ids.len() <= 2 && ids.iter().all(|id| [&first, &second].iter().any(|known| id == *known)),
        "{ids:?}"
    );
}

#[tokio::test]
async fn failures_are_told_on_sqlite() {
    tells(Datastore::Sqlite, Role::Up).await;
}

#[tokio::test]
async fn failures_are_told_on_postgres() {
    tells(Datastore::Postgres, Role::Informer).await;
}
