//! Removes the bytes of artifacts that the datastore does not know any more.
//!
//! Invariant: **bytes that were written after their artifact was given up are never removed**: they belong to a new
//! upload. Any number of servers may sweep the same artifact store.

use std::sync::Arc;
use std::time::Duration;

use jobyard_model::Timestamp;
use jobyard_store::{LeftoverArtifact, Store, StoreError};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::artifact_store::{ArtifactStore, ArtifactStoreError};

const PERIOD: Duration = Duration::from_secs(60);
const BATCH: u32 = 500;
/// How far the clocks of the datastore and of the artifact store may be apart. An artifact is given up minutes after
/// anybody wrote it.
const CLOCKS_APART_MS: i64 = 5 * 60 * 1000;

/// Why something was not removed.
#[derive(Debug, Error)]
pub(crate) enum SweepError {
    #[error("the datastore failed")]
    Store(#[from] StoreError),
    #[error("the artifact store failed")]
    Artifacts(#[from] ArtifactStoreError),
}

/// Sweeps once a minute until `shutdown`.
pub async fn sweep_artifacts(
    store: Arc<dyn Store>,
    artifacts: Arc<dyn ArtifactStore>,
    shutdown: CancellationToken,
) {
    loop {
        match sweep_once(&*store, &*artifacts).await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "artifacts that nothing refers to are removed"),
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "left-over artifacts stay for now");
            }
        }
        tokio::select! {
            () = tokio::time::sleep(PERIOD) => {}
            () = shutdown.cancelled() => return,
        }
    }
}

/// How many were removed.
async fn sweep_once(store: &dyn Store, artifacts: &dyn ArtifactStore) -> Result<u64, SweepError> {
    let mut removed = 0;
    for LeftoverArtifact { hash, since } in store.leftover_artifacts(BATCH).await? {
        let written_before = Timestamp(since.0.saturating_sub(CLOCKS_APART_MS));
        if store.artifact(hash).await?.is_none() && artifacts.remove(hash, written_before).await? {
            removed += 1;
        }
        store.forget_leftover(hash).await?;
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use futures_util::{StreamExt, stream};
    use jobyard_model::{ArtifactHash, Clock};
    use jobyard_store::sqlite::{SqliteOptions, SqliteStore};
    use jobyard_store::{Actor, ArtifactCutoffs};
    use sha2::{Digest, Sha256};

    use super::*;
    use crate::DirectoryStore;

    /// Far behind every file that is written now.
    struct LongAgo;

    impl Clock for LongAgo {
        fn now(&self) -> Timestamp {
            Timestamp(1_000_000_000_000)
        }
    }

    /// Far ahead.
    struct LongAfter;

    impl Clock for LongAfter {
        fn now(&self) -> Timestamp {
            Timestamp(9_000_000_000_000)
        }
    }

    async fn put(artifacts: &DirectoryStore, bytes: &'static [u8]) -> ArtifactHash {
        let hash = ArtifactHash(Sha256::digest(bytes).into());
        let body = stream::iter([Ok(bytes::Bytes::from_static(bytes))]).boxed();
        artifacts.put(hash, body, 100).await.unwrap();
        hash
    }

    /// One artifact that was given up at the clock's time.
    async fn given_up(
        directory: &Path,
        clock: Arc<dyn Clock>,
    ) -> (Arc<SqliteStore>, DirectoryStore, ArtifactHash) {
        let store = SqliteStore::open(&directory.join("db"), SqliteOptions::new(clock.clone())).unwrap();
        let artifacts = DirectoryStore::open(directory.join("artifacts"), Timestamp(0)).unwrap();
        let hash = put(&artifacts, b"old").await;
        store.add_artifact(hash, 3, &Actor::role("test")).await.unwrap();
        let after = clock.now().plus_ms(1);
        let cutoffs = ArtifactCutoffs { unused: after, doomed: after };
        assert_eq!(store.retire_artifacts(cutoffs, 10).await.unwrap().doomed, 1);
        assert_eq!(store.retire_artifacts(cutoffs, 10).await.unwrap().removed, 1);
        (store, artifacts, hash)
    }

    #[tokio::test]
    async fn bytes_of_a_given_up_artifact_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let (store, artifacts, hash) = given_up(directory.path(), Arc::new(LongAfter)).await;
        let other = put(&artifacts, b"other").await;
        assert_eq!(sweep_once(&*store, &artifacts).await.unwrap(), 1);
        assert_eq!(artifacts.size(hash).await.unwrap(), None);
        assert_eq!(artifacts.size(other).await.unwrap(), Some(5));
        assert_eq!(sweep_once(&*store, &artifacts).await.unwrap(), 0);
        assert!(store.leftover_artifacts(10).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn bytes_that_came_again_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        // Written after it was given up, and not known yet: an upload whose bytes are there and whose commit is not.
        let (store, artifacts, hash) = given_up(directory.path(), Arc::new(LongAgo)).await;
        assert_eq!(sweep_once(&*store, &artifacts).await.unwrap(), 0);
        assert_eq!(artifacts.size(hash).await.unwrap(), Some(3));

        // Known again, whenever it was written.
        let directory = tempfile::tempdir().unwrap();
        let (store, artifacts, hash) = given_up(directory.path(), Arc::new(LongAfter)).await;
        store.add_artifact(hash, 3, &Actor::role("test")).await.unwrap();
        assert_eq!(sweep_once(&*store, &artifacts).await.unwrap(), 0);
        assert_eq!(artifacts.size(hash).await.unwrap(), Some(3));
    }
}
