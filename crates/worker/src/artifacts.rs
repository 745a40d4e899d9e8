//! The node's cache of executables: fetched once by the right of a lease, checked while they come, read-only.
//!
//! Invariant: a file under its hash's name holds the bytes of that hash, and stays while an attempt holds it.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use jobyard_api::doors::{DoorError, ReportDoor};
use jobyard_api::grpc::convert;
use jobyard_api::proto;
use jobyard_model::{ArtifactHash, LeaseId};
use sha2::{Digest, Sha256};
use thiserror::Error;
use tokio::time::{Instant, sleep};

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Why an executable is not there.
#[derive(Debug, Error)]
pub(crate) enum FetchError {
    /// The artifact store doesn't have it, or the lease doesn't give the right to it.
    #[error("the executable can't be fetched: {0}")]
    Refused(String),
    /// The report door did not give it in time.
    #[error("the executable could not be fetched in time")]
    Door(#[source] DoorError),
    /// What came is something else, again and again.
    #[error("the executable that came has the hash {found}")]
    Mismatch { found: ArtifactHash },
    /// The node could not keep it.
    #[error("the executable could not be kept on the node")]
    Disk(#[source] io::Error),
}

pub(crate) struct ArtifactCache {
    directory: PathBuf,
    limit_bytes: u64,
    door: Arc<dyn ReportDoor>,
    holds: Mutex<HashMap<ArtifactHash, Held>>,
}

#[derive(Default)]
struct Held {
    count: u32,
    /// Whoever has it fetches; the others find the file.
    fetching: Arc<tokio::sync::Mutex<()>>,
}

/// Keeps an executable in the cache, there or on its way.
pub(crate) struct Hold {
    cache: Arc<ArtifactCache>,
    pub(crate) hash: ArtifactHash,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut holds = self.cache.holds();
        if let Some(held) = holds.get_mut(&self.hash) {
            held.count -= 1;
            if held.count == 0 {
                holds.remove(&self.hash);
            }
        }
    }
}

impl ArtifactCache {
    /// Left-overs of fetches that broke off are removed.
    pub(crate) fn open(
        directory: PathBuf,
        limit_bytes: u64,
        door: Arc<dyn ReportDoor>,
    ) -> io::Result<Arc<Self>> {
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.extension().is_some() {
                fs::remove_file(path)?;
            }
        }
        Ok(Arc::new(Self { directory, limit_bytes, door, holds: Mutex::default() }))
    }

    fn holds(&self) -> MutexGuard<'_, HashMap<ArtifactHash, Held>> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn hold(self: &Arc<Self>, hash: ArtifactHash) -> Hold {
        self.holds().entry(hash).or_default().count += 1;
        Hold { cache: Arc::clone(self), hash }
    }

    pub(crate) fn path(&self, hash: ArtifactHash) -> PathBuf {
        self.directory.join(hash.to_string())
    }

    /// Whether it is there. Notes that it is used.
    pub(crate) fn has(&self, hash: ArtifactHash) -> bool {
        let used = OpenOptions::new().read(true).open(self.path(hash));
        // A time that can't be set only makes it look older than it is.
        used.is_ok_and(|file| {
            let _ = rustix::fs::futimens(&file, &now_times());
            true
        })
    }

    /// Fetches it unless it is there. A door that doesn't answer is asked again until `patience` is over.
    pub(crate) async fn fetch(
        &self,
        hold: &Hold,
        lease_id: LeaseId,
        patience: Duration,
    ) -> Result<(), FetchError> {
        let fetching =
            self.holds().get(&hold.hash).map(|held| Arc::clone(&held.fetching)).unwrap_or_default();
        let _alone = fetching.lock().await;
        let give_up_at = Instant::now() + patience;
        let mut pause = FIRST_PAUSE;
        while !self.has(hold.hash) {
            match self.fetch_once(hold.hash, lease_id).await {
                Ok(()) => self.make_room().map_err(FetchError::Disk)?,
                Err(error @ (FetchError::Refused(_) | FetchError::Disk(_))) => return Err(error),
                Err(error) if Instant::now() + pause > give_up_at => return Err(error),
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, hash = %hold.hash, "fetching again");
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
        Ok(())
    }

    async fn fetch_once(&self, hash: ArtifactHash, lease_id: LeaseId) -> Result<(), FetchError> {
        let request = proto::FetchArtifactRequest {
            lease_id: convert::id_bytes(lease_id.0),
            sha256: bytes::Bytes::copy_from_slice(&hash.0),
        };
        let mut chunks = self.door.fetch_artifact(request).await.map_err(of_door)?;
        let mut draft = Draft::begin(self.path(hash)).map_err(FetchError::Disk)?;
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(of_door)?;
            draft = blocking(move || draft.with(&chunk)).await?;
        }
        blocking(move || draft.finish()).await?.map_or(Ok(()), |found| Err(FetchError::Mismatch { found }))
    }

    /// Removes what was used longest ago and is not held until the rest is within the limit.
    fn make_room(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            files.push((metadata.modified()?, metadata.len(), entry.path()));
        }
        files.sort();
        let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in files {
            if total <= self.limit_bytes {
                break;
            }
            if !self.is_held(&path) {
                absent_is_fine(fs::remove_file(path))?;
                total -= bytes;
            }
        }
        Ok(())
    }

    /// Drafts are held by those who write them.
    fn is_held(&self, path: &Path) -> bool {
        let hash = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
        hash.is_none_or(|hash| self.holds().contains_key(&hash))
    }
}

fn of_door(error: DoorError) -> FetchError {
    match error {
        DoorError::Refused { why, .. } => FetchError::Refused(why),
        error @ (DoorError::NotSent { .. } | DoorError::Unknown { .. }) => FetchError::Door(error),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, FetchError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(io::Error::other).flatten().map_err(FetchError::Disk)
}

fn now_times() -> rustix::fs::Timestamps {
    let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
    rustix::fs::Timestamps { last_access: now, last_modification: now }
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// A file that takes its name when it is whole and right.
struct Draft {
    path: PathBuf,
    draft: PathBuf,
    file: fs::File,
    hash: Sha256,
}

impl Draft {
    fn begin(path: PathBuf) -> io::Result<Self> {
        let draft = path.with_extension("part");
        absent_is_fine(fs::remove_file(&draft))?;
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        Ok(Self { path, draft, file, hash: Sha256::new() })
    }

    fn with(mut self, bytes: &[u8]) -> io::Result<Self> {
        self.hash.update(bytes);
        self.file.write_all(bytes)?;
        Ok(self)
    }

    /// `Some`: it is something else, and gone again.
    fn finish(self) -> io::Result<Option<ArtifactHash>> {
        let Self { path, draft, file, hash } = self;
        let found = ArtifactHash(hash.finalize().into());
        if path.file_name().is_none_or(|name| name.to_string_lossy() != found.to_string()) {
            fs::remove_file(draft)?;
            return Ok(Some(found));
        }
        file.set_permissions(fs::Permissions::from_mode(0o555))?;
        // Closed before it has its name: what is open for writing can't be executed.
        drop(file);
        fs::rename(draft, path)?;
        Ok(None)
    }
}
