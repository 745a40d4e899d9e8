//! The node's cache of executables and of files of inputs: fetched once by the right of a lease, checked while they
//! come, read-only. An object in S3 is named by its place, tag and size, so a changed one is another file.
//!
//! Invariant: a file under its hash's name holds the bytes of that hash, one of an object all bytes of the object with
//! that tag; both stay while an attempt holds them.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use jobyard_api::doors::{DoorError, ReportDoor};
use jobyard_api::grpc::convert;
use jobyard_api::proto;
use jobyard_model::{ArtifactHash, LeaseId};
use jobyard_tree::MAX_FILES;
use sha2::{Digest, Sha256};
use thiserror::Error;
use tokio::time::{Instant, sleep};

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Making room leaves a tenth of the limit free, so that a full cache isn't searched for every file.
const KEPT_TENTHS: u64 = 9;

/// Why an artifact is not there.
#[derive(Debug, Error)]
pub(crate) enum FetchError {
    /// The artifact store doesn't have it, or the lease doesn't give the right to it.
    #[error("can't be fetched: {0}")]
    Refused(String),
    /// The report door did not give it in time.
    #[error("could not be fetched in time")]
    Door(#[source] DoorError),
    /// What came is something else, again and again.
    #[error("can't be fetched: what came has the hash {found}")]
    Mismatch { found: ArtifactHash },
    /// The node could not keep it.
    #[error("could not be kept on the node")]
    Disk(#[source] io::Error),
}

/// A file as it lies in the cache. One that is needed both ways lies there twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Item {
    /// Of an artifact's bytes; of an object's place, tag and size.
    pub(crate) hash: ArtifactHash,
    pub(crate) is_program: bool,
    is_object: bool,
}

/// By whose right an item is fetched, and what it is.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) lease_id: LeaseId,
    /// `None`: the artifact with the item's hash.
    pub(crate) object: Option<RemoteObject>,
}

/// An object in S3 as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemoteObject {
    pub(crate) used_as: proto::ObjectUse,
    /// Below the place that the job names.
    pub(crate) path: String,
    pub(crate) size_bytes: u64,
    pub(crate) etag: String,
}

impl RemoteObject {
    /// Its file, when the job names this place.
    pub(crate) fn item(&self, url: &str) -> Item {
        let mut hash = Sha256::new();
        for part in [url, &self.path, &self.etag, &self.size_bytes.to_string()] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Item {
            hash: ArtifactHash(hash.finalize().into()),
            is_program: self.used_as == proto::ObjectUse::Executable,
            is_object: true,
        }
    }
}

impl fmt::Display for Item {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_program { "" } else { DATA };
        let origin = if self.is_object { OBJECT } else { "" };
        write!(formatter, "{}{kind}{origin}", self.hash)
    }
}

/// What the names of files that are no programs end in.
const DATA: &str = "-data";
/// What the names of files end in that came from S3.
const OBJECT: &str = "-s3";

impl Item {
    pub(crate) fn program(hash: ArtifactHash) -> Self {
        Self { hash, is_program: true, is_object: false }
    }

    pub(crate) fn data(hash: ArtifactHash) -> Self {
        Self { hash, is_program: false, is_object: false }
    }

    fn of_name(name: &str) -> Option<Self> {
        let (name, is_object) = name.strip_suffix(OBJECT).map_or((name, false), |name| (name, true));
        let item = match name.strip_suffix(DATA) {
            Some(hash) => hash.parse().ok().map(Self::data),
            None => name.parse().ok().map(Self::program),
        };
        item.map(|item: Self| Self { is_object, ..item })
    }

    /// Of its file; nobody may write to it.
    pub(crate) fn permissions(self) -> u32 {
        if self.is_program { 0o555 } else { 0o444 }
    }
}

pub(crate) struct ArtifactCache {
    directory: PathBuf,
    limit_bytes: u64,
    door: Arc<dyn ReportDoor>,
    holds: Mutex<HashMap<Item, Held>>,
    /// What all files have together, as far as is known.
    used_bytes: AtomicU64,
}

#[derive(Default)]
struct Held {
    count: u32,
    /// Whoever has it fetches; the others find the file.
    fetching: Arc<tokio::sync::Mutex<()>>,
}

/// Keeps an artifact in the cache, there or on its way.
pub(crate) struct Hold {
    cache: Arc<ArtifactCache>,
    pub(crate) item: Item,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut holds = self.cache.holds();
        if let Some(held) = holds.get_mut(&self.item) {
            held.count -= 1;
            if held.count == 0 {
                holds.remove(&self.item);
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
        let mut used_bytes = 0;
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.path().extension().is_some() {
                fs::remove_file(entry.path())?;
            } else {
                used_bytes += entry.metadata()?.len();
            }
        }
        let used_bytes = AtomicU64::new(used_bytes);
        Ok(Arc::new(Self { directory, limit_bytes, door, holds: Mutex::default(), used_bytes }))
    }

    fn holds(&self) -> MutexGuard<'_, HashMap<Item, Held>> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn hold(self: &Arc<Self>, item: Item) -> Hold {
        self.holds().entry(item).or_default().count += 1;
        Hold { cache: Arc::clone(self), item }
    }

    pub(crate) fn path(&self, item: Item) -> PathBuf {
        self.directory.join(item.to_string())
    }

    /// Whether it is there. Notes that it is used.
    pub(crate) fn has(&self, item: Item) -> bool {
        let used = OpenOptions::new().read(true).open(self.path(item));
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
        source: &Source,
        patience: Duration,
    ) -> Result<(), FetchError> {
        let item = hold.item;
        let fetching = self.holds().get(&item).map(|held| Arc::clone(&held.fetching)).unwrap_or_default();
        let _alone = fetching.lock().await;
        let give_up_at = Instant::now() + patience;
        let mut pause = FIRST_PAUSE;
        while !self.has(item) {
            let fetched = match &source.object {
                None => self.fetch_artifact(item, source.lease_id).await,
                Some(object) => self.fetch_object(item, source.lease_id, object).await,
            };
            match fetched {
                Ok(bytes) => self.count(bytes).map_err(FetchError::Disk)?,
                Err(error @ (FetchError::Refused(_) | FetchError::Disk(_))) => return Err(error),
                Err(error) if Instant::now() + pause > give_up_at => return Err(error),
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, %item, "fetching again");
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
        Ok(())
    }

    /// How many bytes came.
    async fn fetch_artifact(&self, item: Item, lease_id: LeaseId) -> Result<u64, FetchError> {
        let request = proto::FetchArtifactRequest {
            lease_id: convert::id_bytes(lease_id.0),
            sha256: bytes::Bytes::copy_from_slice(&item.hash.0),
        };
        let mut chunks = self.door.fetch_artifact(request).await.map_err(of_door)?;
        let path = self.path(item);
        let mut draft = blocking(move || Draft::begin(path)).await?;
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(of_door)?;
            draft = blocking(move || draft.with(&chunk)).await?;
        }
        match blocking(move || draft.finish(item)).await? {
            Finished::Kept { bytes } => Ok(bytes),
            Finished::Other { found } => Err(FetchError::Mismatch { found }),
        }
    }

    /// How many bytes came. What a try that was cut off brought is kept for the next one: it is of the same object.
    async fn fetch_object(
        &self,
        item: Item,
        lease_id: LeaseId,
        object: &RemoteObject,
    ) -> Result<u64, FetchError> {
        let (path, size_bytes) = (self.path(item), object.size_bytes);
        let mut draft = blocking(move || Draft::resume(path, size_bytes)).await?;
        let begun_bytes = draft.bytes;
        if begun_bytes < size_bytes {
            let request = proto::FetchObjectRequest {
                lease_id: convert::id_bytes(lease_id.0),
                r#use: object.used_as.into(),
                path: object.path.clone(),
                etag: object.etag.clone(),
                offset: begun_bytes,
            };
            let mut chunks = self.door.fetch_object(request).await.map_err(of_door)?;
            while let Some(chunk) = chunks.next().await {
                let chunk = chunk.map_err(of_door)?;
                draft = blocking(move || draft.with(&chunk)).await?;
            }
        }
        if draft.bytes != size_bytes {
            let why = format!("{} has {} of its {size_bytes} bytes", object.path, draft.bytes);
            return Err(FetchError::Door(DoorError::Unknown { address: "report door".to_owned(), why }));
        }
        blocking(move || draft.keep(item)).await
    }

    /// What a job names in S3, as it is now.
    pub(crate) async fn find_objects(
        &self,
        lease_id: LeaseId,
        used_as: proto::ObjectUse,
    ) -> Result<Vec<RemoteObject>, FetchError> {
        let (mut found, mut after) = (Vec::new(), String::new());
        loop {
            let lease_id = convert::id_bytes(lease_id.0);
            let request = proto::FindObjectsRequest { lease_id, r#use: used_as.into(), after };
            let reply = self.door.find_objects(request).await.map_err(of_door)?;
            let object = |object: proto::FoundObject| RemoteObject {
                used_as,
                path: object.path,
                size_bytes: object.size,
                etag: object.etag,
            };
            found.extend(reply.objects.into_iter().map(object));
            if found.len() > MAX_FILES {
                return Err(FetchError::Refused(format!("it has more than {MAX_FILES} files")));
            }
            if reply.next.is_empty() {
                return Ok(found);
            }
            after = reply.next;
        }
    }

    fn count(&self, bytes: u64) -> io::Result<()> {
        let before = self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > self.limit_bytes { self.make_room() } else { Ok(()) }
    }

    /// Removes what was used longest ago and is not held until the rest is well within the limit.
    fn make_room(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            // Drafts come and go meanwhile.
            if let Ok(metadata) = entry.metadata() {
                files.push((metadata.modified()?, metadata.len(), entry.path()));
            }
        }
        files.sort();
        let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in files {
            if total <= self.limit_bytes / 10 * KEPT_TENTHS {
                break;
            }
            if !self.is_held(&path) {
                absent_is_fine(fs::remove_file(path))?;
                total -= bytes;
            }
        }
        self.used_bytes.store(total, Ordering::Relaxed);
        Ok(())
    }

    /// Drafts are held by those who write them.
    fn is_held(&self, path: &Path) -> bool {
        let item = path.file_name().and_then(|name| name.to_str()).and_then(Item::of_name);
        item.is_none_or(|item| self.holds().contains_key(&item))
    }
}

fn of_door(error: DoorError) -> FetchError {
    match error {
        DoorError::Refused { why, .. } => FetchError::Refused(why),
        error @ (DoorError::NotSent { .. } | DoorError::Unknown { .. }) => FetchError::Door(error),
    }
}

pub(crate) async fn blocking<T: Send + 'static>(
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
    bytes: u64,
}

enum Finished {
    Kept {
        bytes: u64,
    },
    /// It is something else, and gone again.
    Other {
        found: ArtifactHash,
    },
}

impl Draft {
    fn begin(path: PathBuf) -> io::Result<Self> {
        let draft = path.with_extension("part");
        absent_is_fine(fs::remove_file(&draft))?;
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        Ok(Self { path, draft, file, hash: Sha256::new(), bytes: 0 })
    }

    /// Goes on with what there is of an object, unless that is too much. Its hash is nobody's concern.
    fn resume(path: PathBuf, size_bytes: u64) -> io::Result<Self> {
        let draft = path.with_extension("part");
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&draft)?;
        let bytes = file.metadata()?.len();
        if bytes > size_bytes {
            file.set_len(0)?;
        }
        let bytes = if bytes > size_bytes { 0 } else { bytes };
        Ok(Self { path, draft, file, hash: Sha256::new(), bytes })
    }

    fn with(mut self, bytes: &[u8]) -> io::Result<Self> {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes)?;
        Ok(self)
    }

    fn finish(self, item: Item) -> io::Result<Finished> {
        let found = ArtifactHash(self.hash.clone().finalize().into());
        if found != item.hash {
            fs::remove_file(self.draft)?;
            return Ok(Finished::Other { found });
        }
        Ok(Finished::Kept { bytes: self.keep(item)? })
    }

    /// Gives it its name; how many bytes it has.
    fn keep(self, item: Item) -> io::Result<u64> {
        let Self { path, draft, file, bytes, .. } = self;
        file.set_permissions(fs::Permissions::from_mode(item.permissions()))?;
        // Closed before it has its name: what is open for writing can't be executed.
        drop(file);
        fs::rename(draft, path)?;
        Ok(bytes)
    }
}
