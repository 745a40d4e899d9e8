//! The conformance suite on SQLite, and what only the embedded dialect has.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use jobyard_model::{Clock, Timestamp};
use jobyard_store::{DatastoreKind, SqliteOptions, SqliteStore, Store, StoreError};
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

mod conformance;

use conformance::{Dialect, World};

conformance_suite!(crate::open);

/// A clock that only moves when it is told to.
struct HandClock(AtomicI64);

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

/// A Tuesday in 2026, far from zero.
const START: i64 = 1_790_000_000_000;
const MAX_UNENDED: u64 = 12_000;

struct Embedded {
    directory: TempDir,
    clock: Arc<HandClock>,
    store: Arc<SqliteStore>,
}

#[async_trait]
impl Dialect for Embedded {
    fn kind(&self) -> DatastoreKind {
        DatastoreKind::Sqlite
    }

    async fn pass(&self, duration_ms: i64) {
        self.clock.0.fetch_add(duration_ms, Ordering::SeqCst);
    }

    async fn ask(&self, sql: &str) -> Vec<String> {
        // SQLite's own `now` is the machine's; the hand clock's takes its place.
        let now = format!("'{}', 'unixepoch'", self.clock.now().0 / 1000);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let connection = Connection::open_with_flags(database(self.directory.path()), flags).unwrap();
        let mut statement = connection.prepare(&sql.replace("'now'", &now)).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    fn silent_for_180_seconds(&self) -> &'static str {
        "SELECT id FROM job_table WHERE status = 'running' AND last_heartbeat < datetime('now', '-180 seconds')"
    }

    async fn another(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store) as Arc<dyn Store>
    }
}

fn database(directory: &Path) -> PathBuf {
    directory.join("jobyard.db")
}

fn options(clock: &Arc<HandClock>) -> SqliteOptions {
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    SqliteOptions { max_unended_per_owner: MAX_UNENDED, ..SqliteOptions::new(clock) }
}

async fn open() -> World {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(HandClock(AtomicI64::new(START)));
    let store = SqliteStore::open(&database(directory.path()), options(&clock)).unwrap();
    let dialect = Embedded { directory, clock, store: Arc::clone(&store) };
    World { store, dialect: Box::new(dialect), max_unended_per_owner: MAX_UNENDED }
}

fn open_at(path: &Path, clock: &Arc<HandClock>) -> Result<Arc<SqliteStore>, StoreError> {
    SqliteStore::open(path, options(clock))
}

mod embedded {
    use std::sync::Arc;
    use std::sync::atomic::AtomicI64;

    use jobyard_model::Status;
    use jobyard_store::{Dashboard, JobQuery, SqliteStore, Store, StoreError};
    use rusqlite::Connection;

    use super::conformance::world::{ann, new_job, spec};
    use super::{HandClock, START, database, open_at};

    fn clock() -> Arc<HandClock> {
        Arc::new(HandClock(AtomicI64::new(START)))
    }

    #[tokio::test]
    async fn a_second_store_on_the_same_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = database(directory.path());
        let first = open_at(&path, &clock()).unwrap();
        let refused = open_at(&path, &clock()).unwrap_err();
        assert!(matches!(refused, StoreError::Locked { .. }), "{refused}");
        assert!(refused.to_string().contains("another process uses the datastore"), "{refused}");
        first.close().await;
        open_at(&path, &clock()).unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_was_acknowledged_is_there_after_a_drop_without_close() {
        let directory = tempfile::tempdir().unwrap();
        let path = database(directory.path());
        let store = open_at(&path, &clock()).unwrap();
        let mut calls = Vec::new();
        for _ in 0..50 {
            let store = Arc::clone(&store);
            calls.push(tokio::spawn(
                async move { store.submit(vec![new_job(spec())], &ann()).await.unwrap() },
            ));
        }
        let mut acknowledged = Vec::new();
        for call in calls {
            acknowledged.push(call.await.unwrap()[0].id);
        }
        drop(store);
        let store = open_at(&path, &clock()).unwrap();
        for job_id in acknowledged {
            assert_eq!(store.job(job_id).await.unwrap().unwrap().job.status(), Status::Waiting);
        }
        let check = Connection::open(&path).unwrap();
        let sound: String = check.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(sound, "ok");
    }

    #[tokio::test]
    async fn closing_empties_the_write_ahead_log() {
        let directory = tempfile::tempdir().unwrap();
        let path = database(directory.path());
        let store = open_at(&path, &clock()).unwrap();
        store.submit((0..100).map(|_| new_job(spec())).collect(), &ann()).await.unwrap();
        store.close().await;
        let log = std::fs::metadata(path.with_extension("db-wal"));
        assert!(log.is_err() || log.unwrap().len() == 0);
    }

    #[tokio::test]
    async fn a_file_that_is_no_database_is_refused_and_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = database(directory.path());
        let text = "not a database, but somebody's notes\n".repeat(100);
        std::fs::write(&path, &text).unwrap();
        let refused = open_at(&path, &clock()).unwrap_err();
        assert!(matches!(refused, StoreError::Unavailable { .. }), "{refused:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }

    #[tokio::test]
    async fn a_look_at_the_schema_disturbs_nobody_and_makes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = database(directory.path());
        assert!(!SqliteStore::check(&path).unwrap());
        assert!(!path.exists());
        let store = open_at(&path, &clock()).unwrap();
        let job_id = store.submit(vec![new_job(spec())], &ann()).await.unwrap()[0].id;
        assert!(SqliteStore::check(&path).unwrap(), "beside the store that has it open");
        assert!(store.job(job_id).await.unwrap().is_some());
        store.close().await;
        assert!(SqliteStore::check(&path).unwrap());
        let newer = Connection::open(&path).unwrap();
        newer.execute("UPDATE schema_version SET version = 90, oldest_binary = 90", []).unwrap();
        let refused = SqliteStore::check(&path).unwrap_err();
        assert!(matches!(refused, StoreError::BinaryTooOld { oldest: 90, .. }), "{refused}");
    }

    #[tokio::test]
    async fn a_full_disk_acknowledges_nothing_and_spares_what_was() {
        let directory = tempfile::tempdir().unwrap();
        let path = database(directory.path());
        let store = open_at(&path, &clock()).unwrap();
        let kept = store.submit(vec![new_job(spec())], &ann()).await.unwrap()[0].id;
        store.close().await;
        // As small as the file is now: the next page that it needs is one too many.
        let limited = Connection::open(&path).unwrap();
        let pages: i64 = limited.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
        drop(limited);
        let store = SqliteStore::open_limited(&path, super::options(&clock()), Some(pages)).unwrap();
        let batch = (0..2_000).map(|_| new_job(spec())).collect();
        let refused = store.submit(batch, &ann()).await.unwrap_err();
        assert!(refused.to_string().contains("full"), "{refused}");
        let page = store.jobs(&JobQuery { limit: 10, ..JobQuery::default() }).await.unwrap();
        assert_eq!(page.items.iter().map(|record| record.job.id).collect::<Vec<_>>(), [kept]);
    }
}
