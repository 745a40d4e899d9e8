//! The same rows written by bare statements: no reading, no planning, no guards; and a snapshot that is held.

use std::time::Instant;

use futures_util::future::try_join_all;
use jobyard_test_postgres::Cluster;
use rusqlite::Connection;
use tokio_postgres::{Client, NoTls, Statement};
use uuid::Uuid;

use crate::place::{Kept, Place};

/// Jobs a transaction.
const BATCH: usize = 256;

#[expect(clippy::large_enum_variant, reason = "there is one of them")]
pub(crate) enum Raw {
    Sqlite(Connection),
    Postgres { claims: Client, ends: Client },
}

/// Somebody who reads for long.
pub(crate) struct HeldSnapshot(Raw);

const IDS: &str = "SELECT id FROM job_live WHERE status = 2 ORDER BY wait_since_ms, id LIMIT";

const SQLITE_CLAIM: [&str; 3] = [
    "UPDATE job_live SET status = 3, wait_since_ms = NULL, attempt = 1, lease_id = ?1 WHERE id = ?1",
    "INSERT INTO attempt_live (job_id, number, lease_id, node_id, session, phase, placed_ms, lease_until_ms, heard_ms, \
     cpu_milli, memory_bytes) VALUES (?1, 1, ?1, ?1, ?1, 0, 1, 2, 1, 100, 134217728)",
    "INSERT INTO event (at_ms, job_id, attempt, who, from_, to_, why) \
     VALUES (1, ?1, 1, 'informer', 'waiting', 'placed', '')",
];
const SQLITE_END: [&str; 7] = [
    "DELETE FROM job_live WHERE id = ?1",
    "DELETE FROM attempt_live WHERE job_id = ?1",
    "INSERT INTO attempt (job_id, number, round, phase, outcome, retryable, lease_id, node_id, session, node_name, \
     placed_ms, lease_until_ms, ended_ms, fingerprint, \"end\") \
     VALUES (?1, 1, 1, 2, 0, 0, ?1, ?1, ?1, 'node', 1, 2, 1, 1, '{\"Exited\":{\"ended_by\":\"itself\",\"exit\":{\"code\":0}}}')",
    "INSERT INTO job_end (job_id, round, status, intent, current, attempt, retry_count, platform_failures, \
     unpaid_in_row, evictions, finished_ms) VALUES (?1, 1, 5, 0, 1, 1, 0, 0, 0, 0, 1)",
    "INSERT INTO event (at_ms, job_id, attempt, who, from_, to_, why) \
     VALUES (1, ?1, 1, 'worker', 'placed', 'starting', '')",
    "INSERT INTO event (at_ms, job_id, attempt, who, from_, to_, why) \
     VALUES (1, ?1, 1, 'worker', 'starting', 'running', '')",
    "INSERT INTO event (at_ms, job_id, attempt, who, from_, to_, why) \
     VALUES (1, ?1, 1, 'worker', 'running', 'success', '')",
];

const POSTGRES_CLAIM: [&str; 3] = [
    "UPDATE job_live SET status = 3, wait_since_ms = NULL, attempt = 1, lease_id = id WHERE id = ANY($1)",
    "INSERT INTO attempt_live (job_id, number, lease_id, node_id, session, phase, placed_ms, lease_until_ms, heard_ms, \
     cpu_milli, memory_bytes) SELECT id, 1, id, id, id, 0, 1, 2, 1, 100, 134217728 FROM unnest($1::uuid[]) id",
    "INSERT INTO event (at_ms, job_id, attempt, who, from_, to_, why) \
     SELECT 1, id, 1, 'informer', 'waiting', 'placed', '' FROM unnest($1::uuid[]) id",
];
const POSTGRES_END: [&str; 5] = [
    "DELETE FROM job_live WHERE id = ANY($1)",
    "DELETE FROM attempt_live WHERE job_id = ANY($1)",
    "INSERT INTO attempt (job_id, number, round, phase, outcome, retryable, lease_id, node_id, session, node_name, \
     placed_ms, lease_until_ms, ended_ms, fingerprint, \"end\") SELECT id, 1, 1, 2, 0, false, id, id, id, 'node', 1, 2, \
     1, 1, '{\"Exited\":{\"ended_by\":\"itself\",\"exit\":{\"code\":0}}}' FROM unnest($1::uuid[]) id",
    "INSERT INTO job_end (job_id, round, status, intent, current, attempt, retry_count, platform_failures, \
     unpaid_in_row, evictions, finished_ms) SELECT id, 1, 5, 0, true, 1, 0, 0, 0, 0, 1 FROM unnest($1::uuid[]) id",
    "INSERT INTO event (at_ms, job_id, attempt, who, from_, to_, why) \
     SELECT 1, id, 1, 'worker', 'placed', 'running', '' FROM unnest($1::uuid[]) id, generate_series(1, 3)",
];

impl Raw {
    pub(crate) async fn new(place: &Place) -> Self {
        match &place.kept {
            Kept::Sqlite(directory) => {
                let connection = Connection::open(directory.path().join("jobyard.db")).unwrap();
                connection.pragma_update(None, "synchronous", "FULL").unwrap();
                connection.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
                Self::Sqlite(connection)
            }
            Kept::Postgres(cluster) => {
                Self::Postgres { claims: connect(cluster).await, ends: connect(cluster).await }
            }
        }
    }

    /// Jobs a second through claim and end.
    pub(crate) async fn rate(&mut self, count: usize) -> f64 {
        let seconds = match self {
            Self::Sqlite(connection) => sqlite(connection, count),
            Self::Postgres { claims, ends } => postgres(claims, ends, count).await,
        };
        count as f64 / seconds
    }

    /// Opens a transaction that reads and does not end.
    pub(crate) async fn hold_snapshot(self) -> HeldSnapshot {
        match &self {
            Self::Sqlite(connection) => {
                connection.execute_batch("BEGIN").unwrap();
                connection.query_row("SELECT count(*) FROM job", [], |row| row.get::<_, i64>(0)).unwrap();
            }
            Self::Postgres { claims, .. } => {
                claims.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
                claims.query_one("SELECT count(*) FROM job", &[]).await.unwrap();
            }
        }
        HeldSnapshot(self)
    }
}

impl HeldSnapshot {
    pub(crate) async fn let_go(self) {
        match self.0 {
            Raw::Sqlite(connection) => connection.execute_batch("COMMIT").unwrap(),
            Raw::Postgres { claims, .. } => claims.batch_execute("COMMIT").await.unwrap(),
        }
    }
}

fn sqlite(connection: &Connection, count: usize) -> f64 {
    let mut statement = connection.prepare(&format!("{IDS} {count}")).unwrap();
    let ids = statement.query_map([], |row| row.get::<_, [u8; 16]>(0)).unwrap();
    let ids: Vec<[u8; 16]> = ids.map(Result::unwrap).collect();
    assert_eq!(ids.len(), count);
    let started = Instant::now();
    for batch in ids.chunks(BATCH) {
        for statements in [&SQLITE_CLAIM[..], &SQLITE_END[..]] {
            connection.execute_batch("BEGIN IMMEDIATE").unwrap();
            for sql in statements {
                let mut statement = connection.prepare_cached(sql).unwrap();
                batch.iter().for_each(|id| assert_eq!(statement.execute([id]).unwrap(), 1));
            }
            connection.execute_batch("COMMIT").unwrap();
        }
    }
    started.elapsed().as_secs_f64()
}

/// One connection claims while the other ends what was claimed before.
async fn postgres(claims: &mut Client, ends: &mut Client, count: usize) -> f64 {
    let rows = claims.query(&format!("{IDS} {count}"), &[]).await.unwrap();
    let ids: Vec<Uuid> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(ids.len(), count);
    let (claiming, ending) = (prepare(claims, &POSTGRES_CLAIM).await, prepare(ends, &POSTGRES_END).await);
    let started = Instant::now();
    let (sender, mut claimed) = tokio::sync::mpsc::channel(4);
    let claim = async {
        for batch in ids.chunks(BATCH) {
            transaction(claims, &claiming, batch).await;
            sender.send(batch).await.unwrap();
        }
        drop(sender);
    };
    let end = async {
        while let Some(batch) = claimed.recv().await {
            transaction(ends, &ending, batch).await;
        }
    };
    tokio::join!(claim, end);
    started.elapsed().as_secs_f64()
}

async fn prepare(client: &Client, statements: &[&str]) -> Vec<Statement> {
    try_join_all(statements.iter().map(|sql| client.prepare(sql))).await.unwrap()
}

/// Sends all statements before it waits for the first answer.
async fn transaction(client: &mut Client, statements: &[Statement], ids: &[Uuid]) {
    let transaction = client.transaction().await.unwrap();
    try_join_all(statements.iter().map(|statement| transaction.execute_raw(statement, [ids]))).await.unwrap();
    transaction.commit().await.unwrap();
}

async fn connect(cluster: &Cluster) -> Client {
    let (client, connection) = tokio_postgres::connect(&cluster.url("postgres"), NoTls).await.unwrap();
    // Whoever uses the client sees what went wrong; the connection may end with its cluster.
    tokio::spawn(async move { drop(connection.await) });
    client
}
