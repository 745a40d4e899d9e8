//! Lists and dashboards beside everything else: what they take, nobody else waits for.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use jobyard_model::{JobFilter, Timestamp};
use jobyard_store::{
    Dashboard, JobQuery, PostgresConfig, PostgresStore, Report, Store, StoreError, ValueKey,
};
use tokio_postgres::NoTls;

use super::conformance::World;
use super::conformance::world::{exit, spec};
use super::{OnServer, Server, server};

/// Readers of labels that wait for a lock.
const HELD_UP: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'jobyard' AND wait_event_type = 'Lock'";

async fn open(server: &Arc<Server>, timeout: Duration) -> World {
    let config = PostgresConfig { dashboard_timeout: timeout, ..server.config() };
    let store = PostgresStore::open(config).await.unwrap();
    World {
        store,
        dialect: Box::new(OnServer(Arc::clone(server))),
        max_unended_per_owner: super::MAX_UNENDED,
    }
}

/// Holds up whoever reads labels, until dropped.
async fn lock_labels(server: &Server) -> (tokio_postgres::Client, tokio::task::JoinHandle<()>) {
    let (client, connection) = tokio_postgres::connect(&server.url, NoTls).await.unwrap();
    let connection = tokio::spawn(async move { connection.await.unwrap() });
    client.batch_execute("BEGIN; LOCK TABLE job_label IN ACCESS EXCLUSIVE MODE").await.unwrap();
    (client, connection)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_go_on_while_every_dashboard_is_held_up() {
    let server = server().await;
    let world = open(&server, Duration::from_secs(60)).await;
    let node = world.node().await;
    let (client, connection) = lock_labels(&server).await;
    let mut looks = Vec::new();
    for _ in 0..12 {
        let store = Arc::clone(&world.store);
        looks.push(tokio::spawn(async move { store.values(&ValueKey::LabelKey, "", 5).await }));
    }
    server.wait_until(HELD_UP, "4").await;
    let claimed = world.running(spec(), &node).await;
    world.report(&claimed, Report::Renewed).await;
    world.end(&claimed, exit(0)).await;
    world.store.nodes().await.unwrap();
    assert_eq!(server.sql(HELD_UP).await, ["4"], "they were held up all the time");
    client.batch_execute("ROLLBACK").await.unwrap();
    for look in looks {
        assert_eq!(look.await.unwrap().unwrap(), (Vec::new(), false));
    }
    drop(client);
    connection.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_that_takes_too_long_says_so_and_the_next_one_works() {
    let server = server().await;
    let world = open(&server, Duration::from_millis(300)).await;
    let (client, connection) = lock_labels(&server).await;
    // More than there are connections: some run into the limit, the others wait for their turn as long.
    let looks = (0..8).map(|_| world.store.values(&ValueKey::LabelKey, "", 5));
    for look in futures_util::future::join_all(looks).await {
        assert!(matches!(look, Err(StoreError::TooSlow { .. })), "{look:?}");
    }
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(world.store.values(&ValueKey::LabelKey, "", 5).await.unwrap(), (Vec::new(), false));
    drop(client);
    connection.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dashboards_read_where_the_settings_say_and_change_nothing() {
    let server = server().await;
    let world = open(&server, Duration::from_secs(3)).await;
    world.submit(spec()).await;
    // As a standby is: it takes no writes.
    server.sql("CREATE ROLE watcher LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO watcher").await;
    let url = server.url.replacen("user=postgres", "user=watcher", 1);
    assert_ne!(url, server.url, "{url}");
    let config = PostgresConfig {
        dashboard_url: Some(format!("{url} options='-c default_transaction_read_only=on'")),
        ..server.config()
    };
    let store = PostgresStore::open(config).await.unwrap();
    let query = JobQuery { limit: 5, ..JobQuery::default() };
    assert_eq!(store.job_rows(&query).await.unwrap().items.len(), 1);
    assert_eq!(store.count_jobs(&JobFilter::default()).await.unwrap().count, 1);
    server.sql("REVOKE SELECT ON job FROM watcher").await;
    assert!(store.job_rows(&query).await.is_err(), "another connection than the settings say");
    assert!(store.job(world.store.jobs(&query).await.unwrap().items[0].job.id).await.unwrap().is_some());
}

/// The cursor moves, and then something dies: nothing of it has happened.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_dies_between_cursor_and_counts_is_counted_later_and_once() {
    let server = server().await;
    let world = open(&server, Duration::from_secs(3)).await;
    world.submit_many(5, &spec()).await;
    server
        .sql(
            "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$;
            CREATE TRIGGER die BEFORE INSERT ON minute_count FOR EACH STATEMENT EXECUTE FUNCTION die()",
        )
        .await;
    assert!(world.store.roll_up(100, Timestamp(0)).await.is_err());
    assert_eq!(server.sql("SELECT count(*) FROM minute_count").await, ["0"]);
    server.sql("DROP TRIGGER die ON minute_count").await;
    world.store.roll_up(100, Timestamp(0)).await.unwrap();
    world.store.roll_up(100, Timestamp(0)).await.unwrap();
    assert_eq!(server.sql("SELECT sum(count) FROM minute_count WHERE what = 0").await, ["5"]);
}
