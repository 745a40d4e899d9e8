//! The conformance suite on PostgreSQL, and what only this dialect has.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jobyard_store::{DatastoreKind, PostgresConfig, PostgresStore, Store};
use jobyard_test_postgres::Cluster;
use tokio_postgres::{NoTls, SimpleQueryMessage};

#[path = "postgres/concurrency.rs"]
mod concurrency;
mod conformance;
#[path = "postgres/dashboard.rs"]
mod dashboard;
#[path = "postgres/figures.rs"]
mod figures;
#[path = "postgres/migrations.rs"]
mod migrations;
#[path = "postgres/outages.rs"]
mod outages;
#[path = "postgres/plans.rs"]
mod plans;
#[path = "postgres/walks.rs"]
mod walks;

use conformance::{Dialect, World};

conformance_suite!(crate::open);

const MAX_UNENDED: u64 = 12_000;

/// A cluster with one database, whose clock can be shifted.
struct Server {
    cluster: Mutex<Cluster>,
    url: String,
    socket: PathBuf,
    shift_ms: AtomicI64,
}

impl Server {
    fn new(cluster: Cluster) -> Self {
        let (url, socket) = (cluster.url("postgres"), outages::socket_in(cluster.folder()));
        Self { cluster: Mutex::new(cluster), url, socket, shift_ms: AtomicI64::new(0) }
    }

    fn config(&self) -> PostgresConfig {
        PostgresConfig { max_unended_per_owner: MAX_UNENDED, ..PostgresConfig::new(&self.url) }
    }

    fn socket(&self) -> PathBuf {
        self.socket.clone()
    }

    fn log(&self) -> String {
        self.cluster.lock().unwrap().log()
    }

    /// Dies at once, and comes back.
    fn crash(&self) {
        let mut cluster = self.cluster.lock().unwrap();
        cluster.stop_immediate().unwrap();
        cluster.start().unwrap();
    }

    /// As a person at a prompt.
    async fn sql(&self, sql: &str) -> Vec<String> {
        self.try_sql(sql).await.unwrap()
    }

    async fn try_sql(&self, sql: &str) -> Result<Vec<String>, tokio_postgres::Error> {
        let (client, connection) = tokio_postgres::connect(&self.url, NoTls).await?;
        let connection = tokio::spawn(connection);
        let answer = client.simple_query(sql).await?;
        drop(client);
        connection.await.unwrap()?;
        let first = |message: SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
            _ => None,
        };
        Ok(answer.into_iter().filter_map(first).collect())
    }

    /// Asks until the answer is as wanted.
    async fn wait_until(&self, sql: &str, wanted: &str) {
        self.wait_at_most(Duration::from_secs(60), sql, wanted).await;
    }

    async fn wait_at_most(&self, duration: Duration, sql: &str, wanted: &str) {
        let deadline = Instant::now() + duration;
        loop {
            let answer = self.try_sql(sql).await;
            if answer.as_ref().is_ok_and(|answer| answer[..] == [wanted]) {
                return;
            }
            assert!(Instant::now() < deadline, "{sql}: {answer:?} instead of {wanted}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

struct OnServer(Arc<Server>);

#[async_trait]
impl Dialect for OnServer {
    fn kind(&self) -> DatastoreKind {
        DatastoreKind::Postgres
    }

    /// Every statement of the store takes the time from this one function.
    async fn pass(&self, duration_ms: i64) {
        let shift_ms = self.0.shift_ms.fetch_add(duration_ms, Ordering::SeqCst) + duration_ms;
        let sql = format!(
            "CREATE OR REPLACE FUNCTION jobyard_now() RETURNS bigint LANGUAGE sql VOLATILE AS
            $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint + {shift_ms} $$"
        );
        self.0.sql(&sql).await;
    }

    async fn ask(&self, sql: &str) -> Vec<String> {
        self.0.sql(&sql.replace("now()", "to_timestamp(jobyard_now() / 1000.0)")).await
    }

    fn silent_for_180_seconds(&self) -> &'static str {
        "SELECT id FROM job_table WHERE status = 'running' AND last_heartbeat < now() - interval '180 seconds'"
    }

    async fn another(&self) -> Arc<dyn Store> {
        PostgresStore::open(self.0.config()).await.unwrap()
    }
}

async fn server() -> Arc<Server> {
    let cluster = Cluster::start_new().unwrap();
    let server = Arc::new(Server::new(cluster));
    PostgresStore::migrate(&server.config()).await.unwrap();
    server
}

async fn open() -> World {
    let server = server().await;
    let store = PostgresStore::open(server.config()).await.unwrap();
    World { store, dialect: Box::new(OnServer(server)), max_unended_per_owner: MAX_UNENDED }
}
