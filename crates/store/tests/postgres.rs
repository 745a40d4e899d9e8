//! The conformance suite on PostgreSQL, and what only this dialect has.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use jobyard_store::{PostgresConfig, PostgresStore, Store};
use jobyard_test_postgres::Cluster;
use tokio_postgres::{NoTls, SimpleQueryMessage};

mod conformance;

use conformance::{Dialect, World};

conformance_suite!(crate::open);

const MAX_UNENDED: u64 = 12_000;

/// A cluster with one database, whose clock can be shifted.
struct Server {
    cluster: Cluster,
    shift_ms: AtomicI64,
}

impl Server {
    fn config(&self) -> PostgresConfig {
        PostgresConfig {
            max_unended_per_owner: MAX_UNENDED,
            ..PostgresConfig::new(self.cluster.url("postgres"))
        }
    }

    /// As a person at a prompt.
    async fn sql(&self, sql: &str) -> Vec<String> {
        let (client, connection) =
            tokio_postgres::connect(&self.cluster.url("postgres"), NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        let answer = client.simple_query(sql).await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
        let first = |message: SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
            _ => None,
        };
        answer.into_iter().filter_map(first).collect()
    }
}

struct OnServer(Arc<Server>);

#[async_trait]
impl Dialect for OnServer {
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
    let server = Arc::new(Server { cluster, shift_ms: AtomicI64::new(0) });
    PostgresStore::migrate(&server.config()).await.unwrap();
    server
}

async fn open() -> World {
    let server = server().await;
    let store = PostgresStore::open(server.config()).await.unwrap();
    World { store, dialect: Box::new(OnServer(server)), max_unended_per_owner: MAX_UNENDED }
}
