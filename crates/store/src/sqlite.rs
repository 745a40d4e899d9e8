//! The embedded dialect: one file, one process, one writer.
//!
//! Owns the database file and the lock file beside it. A thread writes, with group commit and `synchronous=FULL`; two
//! threads read, and two more look over many rows. Opening migrates. Time is the clock that is handed in.
//!
//! Invariant: while a [`SqliteStore`] is open no other process has the database open through us, and an answer means
//! that its commit is on the disk.

mod artifact_use;
mod artifacts;
mod audit;
mod bulk;
mod connection;
mod control;
mod dashboard;
mod due;
mod events;
mod fault;
mod followers;
mod groups;
mod jobs;
mod listing;
mod load;
mod logs;
mod migrate;
mod minutes;
mod node_attempts;
mod nodes;
mod placement;
#[cfg(test)]
mod plans;
mod pools;
mod readers;
mod reports;
mod retention;
mod scope;
mod secrets;
mod sessions;
mod store;
mod submit;
mod summary;
mod tokens;
mod transfer;
mod views;
mod writer;
mod writes;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jobyard_model::{Clock, LeaseSettings};

use crate::StoreError;
use crate::wake::Wakers;
use readers::Readers;
use writer::{Settings, Writer};

/// What the embedded store works with.
#[derive(Clone)]
pub struct SqliteOptions {
    /// How long leases last.
    pub lease: LeaseSettings,
    /// How many un-ended jobs an owner may have; 2,000,000 unless set otherwise.
    pub max_unended_per_owner: u64,
    /// The most that a look over many rows may take; 3 s unless set otherwise.
    pub dashboard_timeout: Duration,
    /// The store's only source of time.
    pub clock: Arc<dyn Clock>,
}

impl SqliteOptions {
    /// The defaults, with this clock.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            lease: LeaseSettings::default(),
            max_unended_per_owner: 2_000_000,
            dashboard_timeout: Duration::from_secs(3),
            clock,
        }
    }
}

/// The embedded datastore. Dropping it finishes what is queued; [`crate::Store::close`] also says when that is done.
pub struct SqliteStore {
    writer: Arc<Writer>,
    readers: Arc<Readers>,
    /// For lists and dashboards.
    looks: Arc<Readers>,
    clock: Arc<dyn Clock>,
    leases: LeaseSettings,
    wakers: Arc<Wakers>,
}

impl SqliteStore {
    /// Whether this binary can work with the database at `path`, an older schema included, since opening migrates. Looks
    /// beside whoever has it open and changes nothing. `false`: there is none yet.
    ///
    /// # Errors
    /// [`StoreError::BinaryTooOld`] when its schema refuses this binary; [`StoreError::Unavailable`] when the file can't
    /// be read or is not ours.
    pub fn check(path: &Path) -> Result<bool, StoreError> {
        if !path.exists() {
            return Ok(false);
        }
        migrate::check(&connection::open_read_only(path)?).map(|()| true)
    }

    /// Opens the database at `path`, making it (and its schema) when there is none. Blocks for as long as the
    /// migration takes.
    ///
    /// # Errors
    /// [`StoreError::Locked`] when another process has it open; [`StoreError::BinaryTooOld`] when its schema refuses
    /// this binary; [`StoreError::Unavailable`] when the file can't be opened or is not ours.
    pub fn open(path: &Path, options: SqliteOptions) -> Result<Arc<Self>, StoreError> {
        Self::open_limited(path, options, None)
    }

    /// As [`Self::open`], with a limit on the file: when it would grow beyond `max_pages` of 4 KiB, calls get
    /// [`StoreError::Full`], as on a full disk.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_limited(
        path: &Path,
        options: SqliteOptions,
        max_pages: Option<i64>,
    ) -> Result<Arc<Self>, StoreError> {
        let lock = connection::lock(path)?;
        let mut connection = connection::open_writer(path, max_pages)?;
        migrate::migrate(&mut connection, options.clock.now())?;
        let wakers = Arc::new(Wakers::new());
        let settings = Settings {
            clock: Arc::clone(&options.clock),
            leases: options.lease,
            max_unended_per_owner: options.max_unended_per_owner,
            wakers: Arc::clone(&wakers),
        };
        // Readers first: dropping them while the writer still holds the lock leaves nobody behind.
        let times = || (Arc::clone(&options.clock), options.lease);
        let readers = Readers::start(path, times(), None)?;
        let looks = Readers::start(path, times(), Some(options.dashboard_timeout))?;
        let writer = Writer::start(connection, lock, settings)?;
        let (clock, leases) = (options.clock, options.lease);
        Ok(Arc::new(Self {
            writer: Arc::new(writer),
            readers: Arc::new(readers),
            looks: Arc::new(looks),
            clock,
            leases,
            wakers,
        }))
    }

    /// Stops both without blocking the caller's thread: readers before the writer, whose checkpoint then empties the
    /// write-ahead log.
    async fn shut_down(&self) {
        let (writer, readers) = (Arc::clone(&self.writer), Arc::clone(&self.readers));
        let looks = Arc::clone(&self.looks);
        let stop = move || {
            looks.stop();
            readers.stop();
            writer.stop();
        };
        if tokio::task::spawn_blocking(stop).await.is_err() {
            tracing::error!("closing the store was cut off");
        }
    }
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SqliteStore").field("leases", &self.leases).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use jobyard_model::{SessionId, Timestamp};
    use uuid::Uuid;

    use super::*;
    use crate::{Dashboard, EventCursor, JobQuery, Store};

    struct Still;

    impl Clock for Still {
        fn now(&self) -> Timestamp {
            Timestamp(1)
        }
    }

    fn open(dashboard_timeout: Duration) -> (tempfile::TempDir, Arc<SqliteStore>) {
        let directory = tempfile::tempdir().unwrap();
        let options = SqliteOptions { dashboard_timeout, ..SqliteOptions::new(Arc::new(Still)) };
        let store = SqliteStore::open(&directory.path().join("jobyard.db"), options).unwrap();
        (directory, store)
    }

    /// Looks that take until they are let go, as many as there are threads for them.
    fn hold(store: &Arc<SqliteStore>) -> (Vec<tokio::task::JoinHandle<()>>, Vec<Sender<()>>, Receiver<()>) {
        let (begin, begun) = channel();
        let (mut looks, mut releases) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            let (release, released) = channel::<()>();
            let (store, begin) = (Arc::clone(store), begin.clone());
            let look = move |_: &scope::Scope<'_>| {
                begin.send(()).unwrap();
                released.recv().unwrap();
                Ok(())
            };
            looks.push(tokio::spawn(async move { store.looks.read("looking", look).await.unwrap() }));
            releases.push(release);
        }
        (looks, releases, begun)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn everything_else_goes_on_while_every_dashboard_is_held_up() {
        let (_directory, store) = open(Duration::from_secs(60));
        let (looks, releases, begun) = hold(&store);
        for _ in 0..2 {
            begun.recv().unwrap();
        }
        let moved = store.hold_follower("f", SessionId(Uuid::nil()), 1_000, EventCursor::default()).await;
        assert_eq!(moved.unwrap(), Some(EventCursor::default()));
        assert!(store.claim(Vec::new()).await.unwrap().is_empty());
        assert_eq!(store.nodes().await.unwrap(), []);
        for release in releases {
            release.send(()).unwrap();
        }
        for look in looks {
            look.await.unwrap();
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_look_that_takes_too_long_says_so_and_the_next_one_works() {
        let (_directory, store) = open(Duration::from_millis(100));
        let endless = |scope: &scope::Scope<'_>| {
            let sql =
                "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";
            Ok(scope.statement(sql)?.query_row([], |row| row.get::<_, i64>(0))?)
        };
        for _ in 0..3 {
            let refused = store.looks.read("looking", endless).await;
            assert!(matches!(refused, Err(StoreError::TooSlow { .. })), "{refused:?}");
        }
        let page = store.jobs(&JobQuery { limit: 1, ..JobQuery::default() }).await.unwrap();
        assert_eq!(page.items, []);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn whoever_waited_too_long_for_a_turn_is_told_so() {
        let (_directory, store) = open(Duration::from_millis(100));
        let (looks, releases, begun) = hold(&store);
        for _ in 0..2 {
            begun.recv().unwrap();
        }
        let waiting = store.looks.read("looking", |_| Ok(()));
        let late = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            for release in releases {
                release.send(()).unwrap();
            }
        };
        let (refused, ()) = tokio::join!(waiting, late);
        assert!(matches!(refused, Err(StoreError::TooSlow { .. })), "{refused:?}");
        for look in looks {
            look.await.unwrap();
        }
    }
}
