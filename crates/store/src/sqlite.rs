//! The embedded dialect: one file, one process, one writer.
//!
//! Owns the database file and the lock file beside it. A thread writes, with group commit and `synchronous=FULL`; two
//! threads read. Opening migrates. Time is the clock that is handed in.
//!
//! Invariant: while a [`SqliteStore`] is open no other process has the database open through us, and an answer means
//! that its commit is on the disk.

mod artifact_use;
mod artifacts;
mod audit;
mod connection;
mod control;
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
mod writer;
mod writes;

use std::path::Path;
use std::sync::Arc;

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
    /// The store's only source of time.
    pub clock: Arc<dyn Clock>,
}

impl SqliteOptions {
    /// The defaults, with this clock.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { lease: LeaseSettings::default(), max_unended_per_owner: 2_000_000, clock }
    }
}

/// The embedded datastore. Dropping it finishes what is queued; [`crate::Store::close`] also says when that is done.
pub struct SqliteStore {
    writer: Arc<Writer>,
    readers: Arc<Readers>,
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
        let readers = Readers::start(path, Arc::clone(&options.clock), options.lease)?;
        let writer = Writer::start(connection, lock, settings)?;
        let (clock, leases) = (options.clock, options.lease);
        Ok(Arc::new(Self { writer: Arc::new(writer), readers: Arc::new(readers), clock, leases, wakers }))
    }

    /// Stops both without blocking the caller's thread: readers before the writer, whose checkpoint then empties the
    /// write-ahead log.
    async fn shut_down(&self) {
        let (writer, readers) = (Arc::clone(&self.writer), Arc::clone(&self.readers));
        let stop = move || {
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
