//! Dropping old logs, by whole days: segments, and the index of jobs that have not ended. That of an ended job, with its
//! small pieces, goes with the job.

use std::sync::Arc;
use std::time::Duration;

use jobyard_model::Clock;
use jobyard_store::{Store, StoreError};
use tokio_util::sync::CancellationToken;

use crate::artifact_store::{ArtifactStore, LogDay};
use crate::sweep::SweepError;

const LOOK_EACH: Duration = Duration::from_secs(60 * 60);

/// Which days' logs are kept.
#[derive(Clone)]
pub struct LogRetention {
    clock: Arc<dyn Clock>,
    keep_days: u32,
}

impl LogRetention {
    /// Keeps today and the `keep_days` days before it, by UTC.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, keep_days: u32) -> Self {
        Self { clock, keep_days }
    }

    /// The day whose segments are written now.
    pub(crate) fn today(&self) -> LogDay {
        LogDay::of(self.clock.now())
    }

    /// Whether logs of this day are no longer kept.
    pub(crate) fn is_over(&self, day: LogDay) -> bool {
        day.0 < self.today().0 - i64::from(self.keep_days)
    }
}

/// Drops what is no longer kept, now and each hour, until `shutdown`. Several servers may do so at once.
pub async fn drop_old_logs(
    store: Arc<dyn Store>,
    artifacts: Arc<dyn ArtifactStore>,
    retention: LogRetention,
    shutdown: CancellationToken,
) {
    loop {
        if let Err(error) = drop_once(&*store, &*artifacts, &retention).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "old logs could not be dropped; tried again in an hour"
            );
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_EACH) => {}
            () = shutdown.cancelled() => return,
        }
    }
}

async fn drop_once(
    store: &dyn Store,
    artifacts: &dyn ArtifactStore,
    retention: &LogRetention,
) -> Result<(), SweepError> {
    for day in artifacts.segment_days().await?.into_iter().filter(|day| retention.is_over(*day)) {
        artifacts.drop_segments(day).await?;
        tracing::info!(day = day.0, "dropped the logs of a day (counted from 1970)");
    }
    let rows = drop_rows(store, retention.keep_days).await?;
    if rows > 0 {
        tracing::info!(rows, "dropped old log rows of jobs that have not ended");
    }
    Ok(())
}

/// Goes on from job to job once nothing more of them is to be dropped.
async fn drop_rows(store: &dyn Store, keep_days: u32) -> Result<u64, StoreError> {
    let (mut rows, mut after) = (0, None);
    loop {
        let dropped = store.drop_logs(keep_days, after).await?;
        rows += dropped.rows;
        match dropped.last {
            None => return Ok(rows),
            last if dropped.rows == 0 => after = last,
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use bytes::Bytes;
    use jobyard_model::Timestamp;
    use jobyard_store::sqlite::{SqliteOptions, SqliteStore};

    use super::*;
    use crate::artifact_store::DirectoryStore;

    const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

    struct Settable(AtomicI64);

    impl Clock for Settable {
        fn now(&self) -> Timestamp {
            Timestamp(self.0.load(Ordering::Relaxed))
        }
    }

    #[tokio::test]
    async fn whole_days_are_dropped_once_they_are_old_enough() {
        let directory = tempfile::tempdir().unwrap();
        let store = DirectoryStore::open(directory.path(), Timestamp(0)).unwrap();
        let clock = Arc::new(Settable(AtomicI64::new(0)));
        let retention = LogRetention::new(clock.clone(), 2);
        let datastore = directory.path().join("jobyard.db");
        let datastore = SqliteStore::open(&datastore, SqliteOptions::new(clock.clone())).unwrap();
        for day in 100..=103 {
            clock.0.store(day * DAY_MS + 1, Ordering::Relaxed);
            store.put_segment(&retention.today().segment(), Bytes::from_static(b"log")).await.unwrap();
        }
        std::fs::create_dir(directory.path().join("segments/logs/not-a-day")).unwrap();
        drop_once(&*datastore, &store, &retention).await.unwrap();
        let mut left = store.segment_days().await.unwrap();
        left.sort_unstable();
        assert_eq!(left, [LogDay(101), LogDay(102), LogDay(103)]);
        clock.0.store(105 * DAY_MS - 1, Ordering::Relaxed);
        drop_once(&*datastore, &store, &retention).await.unwrap();
        assert_eq!(store.segment_days().await.unwrap().len(), 2);
        assert!(directory.path().join("segments/logs/not-a-day").is_dir());
    }
}
