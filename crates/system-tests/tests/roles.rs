//! Each role's start and end as processes: SIGTERM, migrations at once, a datastore that is away.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use jobyard_client::Status;
use jobyard_system_tests::{
    DEADLINE, Notebook, Role, Signal, Yard, ended, eventually, submit, submit_all, until_phase,
};

/// The status line's code and the body of an answer, read by hand: no client's retries are between.
fn get(yard: &Yard, path: &str) -> Option<(u16, String)> {
    let url = yard.client().url().to_owned();
    get_from(url.strip_prefix("http://")?, path, &yard.secret())
}

fn get_from(address: &str, path: &str, token: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(DEADLINE)).ok()?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    )
    .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let code = answer.split(' ').nth(1)?.parse().ok()?;
    let body = answer.split_once("\r\n\r\n")?.1.to_owned();
    Some((code, body))
}

/// With work in hand, each ends with exit 0 at SIGTERM, and what it had in hand goes on after its restart.
#[tokio::test]
async fn every_role_ends_well_at_sigterm_with_work_in_hand() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    let mut notebook = Notebook::in_folder(yard.dir());
    let mut ids = submit_all(&client, vec![notebook.waiting_job(); 5]).await;
    for id in &ids {
        until_phase(&client, *id, "running").await;
    }
    for role in yard.roles().to_vec() {
        ids.extend(submit_all(&client, vec![notebook.job("true"); 5]).await);
        // Exit 0 within the grace is asserted there.
        yard.terminate(role);
        yard.start(role).await;
    }
    notebook.open_gate();
    for id in ids {
        let job = ended(&client, id).await;
        assert_eq!((job.status, job.retry_count, job.platform_failures), (Status::Success, 0, 0));
        assert_eq!(notebook.ends(id).len(), 1);
    }
}

/// In whatever order, with nobody left to hand over to.
#[tokio::test]
async fn every_role_ends_well_when_the_others_are_gone() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let id = submit(&client, notebook.waiting_job()).await;
    until_phase(&client, id, "running").await;
    yard.terminate(Role::Server);
    yard.terminate(Role::Worker);
    yard.stop_datastore();
    yard.terminate(Role::Informer);
    yard.start_datastore();
    yard.start(Role::Server).await;
    yard.stop_datastore();
    yard.terminate(Role::Server);
}

/// A request that is being answered is answered; new ones are not taken.
#[tokio::test]
async fn a_server_that_ends_lets_go_of_those_who_follow() {
    let mut yard = Yard::up().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let id = submit(&client, notebook.waiting_job()).await;
    until_phase(&client, id, "running").await;
    let mut follower = yard.command(&["logs", "-f", &id.to_string()]).spawn().expect("it runs");
    let mut waiter = yard.command(&["wait", &id.to_string()]).spawn().expect("it runs");
    yard.terminate(Role::Up);
    for child in [&mut follower, &mut waiter] {
        child.kill().expect("it is there");
        child.wait().expect("it ends");
    }
}

/// Five at once, on a datastore that has its schema already and on an empty one.
#[tokio::test]
async fn five_migrations_at_once_all_succeed() {
    let yard = Yard::on_postgres().await;
    let _created = yard.sql("CREATE DATABASE empty");
    let url = yard.database_url();
    let empty = url.replace("dbname=postgres", "dbname=empty");
    assert_ne!(url, empty);
    for url in [url, empty] {
        let start = |_| {
            let mut command = Command::new(jobyard_system_tests::bin("jobyard"));
            command.args(["migrate", "--database-url", &url]).spawn().expect("it runs")
        };
        let running: Vec<_> = (0..5).map(start).collect();
        for mut migration in running {
            assert!(migration.wait().expect("it ends").success());
        }
    }
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let id = submit(&client, notebook.job("true")).await;
    assert_eq!(ended(&client, id).await.status, Status::Success);
}

/// Alive is not ready: without its datastore the server says so, still answers, and comes back by itself.
#[tokio::test]
async fn a_server_without_its_datastore_is_alive_and_not_ready() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    assert_eq!(get(&yard, "/readyz").map(|(code, _)| code), Some(200));
    yard.stop_datastore();
    let (code, body) = get(&yard, "/readyz").expect("an answer");
    assert_eq!(code, 503, "{body}");
    assert!(body.contains("datastore"), "{body}");
    assert_eq!(get(&yard, "/healthz").map(|(code, _)| code), Some(200));
    let (code, _) = get(&yard, "/metrics").expect("an answer");
    assert_eq!(code, 503, "who asks can't be found out");
    let (code, body) = get(&yard, "/api/v1/jobs").expect("an answer");
    assert_eq!(code, 503, "{body}");
    yard.start_datastore();
    for path in ["/readyz", "/metrics", "/api/v1/jobs"] {
        eventually(path, async || (get(&yard, path)?.0 == 200).then_some(())).await;
    }
    let id = submit(&client, notebook.job("true")).await;
    assert_eq!(ended(&client, id).await.status, Status::Success);
    assert_eq!(get(&yard, "/metrics").map(|(code, _)| code), Some(200));
}

/// Roles come up in any order: those that need the datastore say that they wait for it, and end well if they must.
#[tokio::test]
async fn roles_that_start_before_their_datastore_wait_for_it() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    for role in [Role::Server, Role::Informer] {
        yard.terminate(role);
    }
    yard.stop_datastore();
    yard.launch_with(Role::Server, &[]);
    yard.launch_with(Role::Informer, &[]);
    eventually("alive", async || (get(&yard, "/healthz")?.0 == 200).then_some(())).await;
    for path in ["/readyz", "/metrics", "/api/v1/jobs"] {
        let (code, body) = get(&yard, path).expect("an answer");
        assert!(code == 503 && body.contains("not_ready") && body.contains("datastore"), "{code} {body}");
    }
    for role in [Role::Server, Role::Informer] {
        eventually("it says why", async || {
            yard.said(role).contains("waiting for the datastore, next try in").then_some(())
        })
        .await;
        yard.terminate(role);
    }
    yard.launch_with(Role::Server, &[]);
    yard.launch_with(Role::Informer, &[]);
    eventually("alive", async || (get(&yard, "/healthz")?.0 == 200).then_some(())).await;
    yard.start_datastore();
    eventually("ready", async || (get(&yard, "/readyz")?.0 == 200).then_some(())).await;
    let id = submit(&client, notebook.job("true")).await;
    assert_eq!(ended(&client, id).await.status, Status::Success);
}

/// An installation may be started before `jobyard migrate` has run.
#[tokio::test]
async fn roles_wait_for_the_schema() {
    let mut yard = Yard::on_postgres().await;
    let _created = yard.sql("CREATE DATABASE empty");
    let url = yard.database_url().replace("dbname=postgres", "dbname=empty");
    yard.launch_with(Role::OtherInformer, &[("JOBYARD_DATABASE_URL", &url)]);
    eventually("it says what to do", async || {
        yard.said(Role::OtherInformer).contains("run `jobyard migrate`").then_some(())
    })
    .await;
    assert!(!yard.said(Role::OtherInformer).contains("informer runs"));
    let mut migrate = Command::new(jobyard_system_tests::bin("jobyard"));
    assert!(migrate.args(["migrate", "--database-url", &url]).status().expect("it runs").success());
    eventually("it runs", async || yard.said(Role::OtherInformer).contains("informer runs").then_some(()))
        .await;
    yard.terminate(Role::OtherInformer);
}

/// A mistake in the settings is not waited for.
#[tokio::test]
async fn roles_end_at_once_where_no_waiting_helps() {
    let yard = Yard::on_postgres().await;
    let url = yard.database_url();
    let refused = |url: &str, why: &str| {
        for role in [Role::Server, Role::Informer] {
            let mut command = yard.role_command(role);
            command.args(["--listen", "127.0.0.1:0", "--database-url", url]);
            let done = command.output().expect("it runs");
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert_eq!(done.status.code(), Some(1), "{said}");
            assert!(said.contains(why), "{said}");
        }
    };
    refused(&url.replace("dbname=postgres", "dbname=nowhere"), "database \"nowhere\" does not exist");
    refused(&url.replace("user=postgres", "user=nobody"), "role \"nobody\" does not exist");
    refused("postgres://[", "check datastore.url");
    let _raised = yard.sql("UPDATE schema_version SET version = 90, oldest_binary = 90");
    refused(&url, "upgrade jobyard");
}

/// The roles that have no API show how they fare where the settings say so, and nowhere else.
#[tokio::test]
async fn informer_and_worker_show_their_metrics() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let free = || {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.local_addr().expect("its address").to_string()
    };
    let (of_informer, of_worker) = (free(), free());
    yard.terminate(Role::Informer);
    yard.start_with(Role::Informer, &[("JOBYARD_METRICS_LISTEN", &of_informer)]).await;
    yard.terminate(Role::Worker);
    yard.start_with(Role::Worker, &[("JOBYARD_METRICS_LISTEN", &of_worker)]).await;
    let id = submit(&client, notebook.waiting_job()).await;
    until_phase(&client, id, "running").await;
    let line = |address: &str, start: &str| {
        let (code, text) = get_from(address, "/metrics", "")?;
        assert_eq!(code, 200, "{text}");
        let line = text.lines().find_map(|line| line.strip_prefix(start))?;
        line.trim().parse::<f64>().ok()
    };
    let shown = async |address: &str, start: &str| {
        eventually(start, async || line(address, start).filter(|value| *value >= 1.0)).await
    };
    shown(&of_informer, "jobyard_loop_runs_total{loop=\"release_due\"}").await;
    shown(&of_informer, "jobyard_loop_changed_total{loop=\"place\"}").await;
    shown(&of_worker, "jobyard_worker_attempts").await;
    for start in ["jobyard_loop_errors_total{loop=\"place\"}", "jobyard_reaping_paused_seconds"] {
        assert_eq!(line(&of_informer, start), Some(0.0), "{start}");
    }
    assert!(line(&of_informer, "jobyard_loop_last_ok_seconds{loop=\"place\"}").is_some());
    for address in [&of_informer, &of_worker] {
        assert_eq!(get_from(address, "/healthz", "").map(|(code, _)| code), Some(200));
        assert_eq!(get_from(address, "/api/v1/jobs", "").map(|(code, _)| code), Some(404));
    }
    // The loops' errors are counted.
    yard.stop_datastore();
    shown(&of_informer, "jobyard_loop_errors_total{loop=\"place\"}").await;
    assert_eq!(get_from(&of_informer, "/healthz", "").map(|(code, _)| code), Some(200));
    yard.start_datastore();
}

/// `up` shows its loops beside what its server does.
#[tokio::test]
async fn up_shows_its_loops() {
    let yard = Yard::up().await;
    eventually("the loops", async || {
        let (_, text) = get(&yard, "/metrics")?;
        let shown = |start| text.contains(start);
        (shown("jobyard_loop_runs_total{loop=\"place\"}") && shown("jobyard_http_calls_total{")).then_some(())
    })
    .await;
}

/// A role that is frozen does not end at SIGTERM; woken, it does.
#[tokio::test]
async fn a_frozen_role_ends_well_when_it_wakes() {
    let mut yard = Yard::on_postgres().await;
    for role in yard.roles().to_vec() {
        yard.freeze(role);
        yard.signal(role, Signal::TERM);
        yard.wake(role);
        assert_eq!(yard.wait(role), Some(0), "{role:?} said:\n{}", yard.said(role));
    }
}
