//! The server goes away, comes back, or goes away at the worst moment.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jobyard_model::Status;
use jobyard_store::{
    Actor, PostgresConfig, PostgresStore, Report, Store, StoreError, SubmitError, Verdict, WakeTopic,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use super::concurrency::invariants_hold;
use super::conformance::World;
use super::conformance::world::{ann, exit, item, new_job, spec};
use super::{OnServer, Server, server};

/// Passes bytes on to the server, until it is told to swallow the answer to the next COMMIT and hang up.
struct Proxy {
    folder: tempfile::TempDir,
    swallow: Arc<AtomicBool>,
}

impl Proxy {
    fn before(server: &Server) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
        let target = server.socket();
        let swallow = Arc::new(AtomicBool::new(false));
        tokio::spawn(accept(listener, target, Arc::clone(&swallow)));
        Self { folder, swallow }
    }

    fn url(&self) -> String {
        format!("host={} user=postgres dbname=postgres", self.folder.path().display())
    }

    fn swallow_the_next_commit(&self) {
        self.swallow.store(true, Ordering::SeqCst);
    }

    fn swallowed(&self) -> bool {
        !self.swallow.load(Ordering::SeqCst)
    }
}

async fn accept(listener: UnixListener, target: PathBuf, swallow: Arc<AtomicBool>) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(relay(client, UnixStream::connect(&target).await.unwrap(), Arc::clone(&swallow)));
    }
}

async fn relay(client: UnixStream, server: UnixStream, swallow: Arc<AtomicBool>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let upstream = tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from_server.read(&mut buffer).await {
        // CommandComplete of a COMMIT: the transaction is durable by now.
        let committed = buffer[..count].windows(7).any(|bytes| bytes == b"COMMIT\0");
        if committed && swallow.swap(false, Ordering::SeqCst) {
            break;
        }
        if to_client.write_all(&buffer[..count]).await.is_err() {
            break;
        }
    }
    upstream.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_lost_after_the_commit_is_unknown_and_may_be_asked_again() {
    let server = server().await;
    let proxy = Proxy::before(&server);
    let store = PostgresStore::open(PostgresConfig::new(proxy.url())).await.unwrap();
    let world = World {
        store: Arc::clone(&store) as Arc<dyn Store>,
        dialect: Box::new(OnServer(Arc::clone(&server))),
        max_unended_per_owner: super::MAX_UNENDED,
    };
    let node = world.node().await;

    let job = new_job(spec());
    // The owner and the shape are known from now on, so that the next commit is the job's.
    world.submit(spec()).await;
    proxy.swallow_the_next_commit();
    let lost = store.submit(vec![job.clone()], &ann()).await.unwrap_err();
    assert!(matches!(lost, SubmitError::Store(StoreError::Unknown { .. })), "{lost:?}");
    assert!(proxy.swallowed());
    let again = store.submit(vec![job.clone()], &ann()).await.unwrap();
    assert_eq!((again[0].id, again[0].created), (job.id, true));
    assert_eq!(server.sql("SELECT count(*) FROM job").await, ["2"]);

    let claimed = world.claim(&[job.id], &node).await.remove(0);
    world.report(&claimed, Report::Started).await;
    proxy.swallow_the_next_commit();
    let ended = vec![item(&claimed, Report::Ended(exit(0)))];
    let lost = store.report(ended.clone()).await.unwrap_err();
    assert!(matches!(lost, StoreError::Unknown { .. }), "{lost:?}");
    assert_eq!(store.report(ended).await.unwrap()[0].verdict, Verdict::Already);
    assert_eq!(world.status(job.id).await, Status::Success);
    assert_eq!(store.attempts(job.id).await.unwrap().len(), 1);

    // A claim is not repeated: its attempts come back when their claim lease runs out.
    let other = world.submit(spec()).await;
    proxy.swallow_the_next_commit();
    let place =
        jobyard_store::Placement { job_id: other, node_id: node.id(), session: node.registration.session };
    let lost = store.claim(vec![place]).await.unwrap_err();
    assert!(matches!(lost, StoreError::Unknown { .. }), "{lost:?}");
    assert!(store.claim(vec![place]).await.unwrap().is_empty());
}

/// As a worker or a client does it: again, until it is answered.
async fn insist<T, E: std::fmt::Debug, F: Future<Output = Result<T, E>>>(mut ask: impl FnMut() -> F) -> T {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(120);
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => assert!(tokio::time::Instant::now() < deadline, "no answer: {error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Submits jobs and carries each to its end, through whatever happens to the server.
async fn carry_through(store: Arc<PostgresStore>, world: Arc<World>, rounds: usize) {
    let node = world.node().await;
    let by = ann();
    for _ in 0..rounds {
        let jobs: Vec<_> = (0..10).map(|_| new_job(spec())).collect();
        let submitted = insist(|| store.submit(jobs.clone(), &by)).await;
        for job in submitted {
            let place = jobyard_store::Placement {
                job_id: job.id,
                node_id: node.id(),
                session: node.registration.session,
            };
            let claimed = insist(|| store.claim(vec![place])).await;
            // A claim whose fate is unknown comes back by silence; here nobody waits for that.
            let Some(claimed) = claimed.into_iter().next() else { continue };
            let items = vec![item(&claimed, Report::Started), item(&claimed, Report::Ended(exit(0)))];
            let verdicts = insist(|| store.report(items.clone())).await;
            let ended = verdicts[1].verdict;
            assert!(matches!(ended, Verdict::Accepted | Verdict::Already), "{verdicts:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_of_the_server_loses_nothing_that_was_acknowledged() {
    let server = server().await;
    let store = PostgresStore::open(server.config()).await.unwrap();
    let world = Arc::new(World {
        store: Arc::clone(&store) as Arc<dyn Store>,
        dialect: Box::new(OnServer(Arc::clone(&server))),
        max_unended_per_owner: super::MAX_UNENDED,
    });
    let workers: Vec<_> =
        (0..4).map(|_| tokio::spawn(carry_through(Arc::clone(&store), Arc::clone(&world), 12))).collect();
    for crash in 1..=3 {
        let ended = format!("SELECT count(*) >= {} FROM attempt", 40 * crash);
        server.wait_until(&ended, "t").await;
        let crashing = Arc::clone(&server);
        tokio::task::spawn_blocking(move || crashing.crash()).await.unwrap();
    }
    for worker in workers {
        worker.await.unwrap();
    }
    assert_eq!(server.sql("SELECT count(*) FROM job").await, ["480"]);
    // What is not over was claimed by a call whose answer was lost in a crash.
    let over = server.sql("SELECT count(*) FROM job_end WHERE status = 5").await[0].parse::<u32>().unwrap();
    let placed =
        server.sql("SELECT count(*) FROM attempt_live WHERE phase = 0").await[0].parse::<u32>().unwrap();
    assert_eq!(over + placed, 480);
    assert!(placed <= 12, "{placed} claims lost in three crashes of four callers");
    invariants_hold(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wake_ups_come_again_after_every_connection_was_ended() {
    let server = server().await;
    let hears = PostgresStore::open(server.config()).await.unwrap();
    let speaks = PostgresStore::open(server.config()).await.unwrap();
    let mut wakes = hears.wakes(WakeTopic::Placement);
    for _ in 0..20 {
        server
            .sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'jobyard'")
            .await;
        // Back again, it wakes for whatever it missed.
        changed(&mut wakes).await;
        speaks.submit(vec![new_job(spec())], &Actor::role("test")).await.unwrap();
        changed(&mut wakes).await;
    }
    // Both listen by now; what is heard is what the other one sent.
    let listening = "SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN jobyard_wake'";
    server.wait_until(listening, "2").await;
    wakes.borrow_and_update();
    speaks.submit(vec![new_job(spec())], &Actor::role("test")).await.unwrap();
    changed(&mut wakes).await;
    assert_eq!(server.sql("SELECT count(*) FROM job").await, ["21"]);
}

async fn changed(wakes: &mut tokio::sync::watch::Receiver<u64>) {
    tokio::time::timeout(Duration::from_secs(30), wakes.changed()).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_job_that_the_server_refuses_fails_no_other_call() {
    let server = server().await;
    let store = PostgresStore::open(server.config()).await.unwrap();
    // A name that no constraint of ours forbids; it stands for whatever a statement may choke on.
    server.sql("ALTER TABLE job ADD CONSTRAINT no_poison CHECK (name <> 'poison')").await;
    let mut calls = Vec::new();
    for number in 0..40 {
        let store = Arc::clone(&store);
        let name = if number % 10 == 3 { "poison" } else { "fine" };
        let job = new_job(jobyard_model::JobSpec { name: name.to_owned(), ..spec() });
        calls.push((name, tokio::spawn(async move { store.submit(vec![job], &ann()).await })));
    }
    for (name, call) in calls {
        let answer = call.await.unwrap();
        assert_eq!(answer.is_ok(), name == "fine", "{name}: {answer:?}");
    }
    assert_eq!(server.sql("SELECT count(*) FROM job").await, ["36"]);
}

/// The socket of a server, for the proxy.
pub(crate) fn socket_in(folder: &Path) -> PathBuf {
    folder.join(".s.PGSQL.5432")
}
