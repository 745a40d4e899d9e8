//! An artifact store in a directory of this machine, or of a file system that servers share.
//!
//! `sha256/ab/<hash>` artifacts, `segments/<name>` log segments, `incoming/<random>` what is still being written.
//! A file gets its name only when it is whole and synced; then the directory is synced too. Small files of one call share
//! their syncs.

use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use jobyard_model::{ArtifactHash, Timestamp};
use tokio::fs::{self, File};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use tokio_util::io::ReaderStream;

use super::checked::{CheckedArtifact, CheckedBody};
use super::{ArtifactStore, ByteStream, LogDay, PutError, Stored, check_segment_name};
use crate::off_thread::off_thread;

/// Unfinished files older than this were left by a process that died.
const LEFTOVER_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// How much is read from a file at a time.
const READ_BYTES: usize = 64 * 1024;

/// See the module.
#[derive(Debug, Clone)]
pub struct DirectoryStore {
    root: PathBuf,
}

/// A file that is being written; removed when it is dropped without having got its name.
struct Incoming {
    path: Option<PathBuf>,
    file: File,
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(path) = self.path.take() {
            remove_unfinished(&path);
        }
    }
}

impl DirectoryStore {
    /// Opens the store, making its directories, and removes what processes that died left unfinished.
    ///
    /// # Errors
    /// The directories can't be made or read.
    pub fn open(root: impl Into<PathBuf>, now: Timestamp) -> io::Result<Self> {
        let store = Self { root: root.into() };
        for part in ["sha256", "segments", "incoming"] {
            std::fs::create_dir_all(store.root.join(part))?;
        }
        store.remove_leftovers(now)?;
        Ok(store)
    }

    fn remove_leftovers(&self, now: Timestamp) -> io::Result<()> {
        let now = UNIX_EPOCH + Duration::from_millis(u64::try_from(now.0).unwrap_or(0));
        for entry in std::fs::read_dir(self.root.join("incoming"))? {
            let entry = entry?;
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            let old = modified.is_ok_and(|at| now.duration_since(at).is_ok_and(|age| age > LEFTOVER_AFTER));
            // Another server may have finished or removed it in between.
            if old && let Err(error) = std::fs::remove_file(entry.path()) {
                tracing::debug!(%error, path = %entry.path().display(), "an old upload is already gone");
            }
        }
        Ok(())
    }

    fn path_of(&self, hash: ArtifactHash) -> PathBuf {
        let name = hash.to_string();
        self.root.join("sha256").join(&name[..2]).join(name)
    }

    fn segment_path(&self, name: &str) -> io::Result<PathBuf> {
        check_segment_name(name)?;
        Ok(self.root.join("segments").join(name))
    }

    fn incoming_path(&self) -> PathBuf {
        self.root.join("incoming").join(format!("{:032x}", rand::random::<u128>()))
    }

    async fn incoming(&self) -> io::Result<Incoming> {
        let path = self.incoming_path();
        let file = File::create_new(&path).await?;
        Ok(Incoming { path: Some(path), file })
    }
}

impl Incoming {
    /// Makes the file durable and gives it its name.
    async fn keep_as(mut self, path: &Path) -> io::Result<()> {
        self.file.flush().await?;
        self.file.sync_all().await?;
        let directory = path.parent().map(Path::to_owned).unwrap_or_default();
        fs::create_dir_all(&directory).await?;
        if let Some(incoming) = &self.path {
            fs::rename(incoming, path).await?;
        }
        self.path = None;
        sync_directory(&directory).await?;
        // The directory itself may be new.
        match directory.parent() {
            Some(parent) => sync_directory(parent).await,
            None => Ok(()),
        }
    }
}

/// Many files that are being written; those that got no name are removed when it is dropped.
#[derive(Default)]
struct Batch {
    /// Where each lies, and which name it is to have.
    incoming: Vec<(PathBuf, PathBuf)>,
}

impl Batch {
    /// Makes all of them durable by one sync of the file system before they get their names, and another after it. A
    /// sync of each file would be a write of the journal each.
    fn keep(mut self, store: &DirectoryStore, files: &[CheckedArtifact]) -> io::Result<()> {
        for file in files {
            let incoming = store.incoming_path();
            let mut written = std::fs::File::create_new(&incoming)?;
            self.incoming.push((incoming, store.path_of(file.hash())));
            written.write_all(file.bytes())?;
        }
        let folder = std::fs::File::open(store.root.join("incoming"))?;
        rustix::fs::syncfs(&folder)?;
        while let Some((incoming, path)) = self.incoming.last() {
            std::fs::create_dir_all(path.parent().unwrap_or(&store.root))?;
            std::fs::rename(incoming, path)?;
            self.incoming.pop();
        }
        Ok(rustix::fs::syncfs(&folder)?)
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        for (path, _) in self.incoming.drain(..) {
            remove_unfinished(&path);
        }
    }
}

fn remove_unfinished(path: &Path) {
    if let Err(error) = std::fs::remove_file(path) {
        tracing::warn!(%error, path = %path.display(), "could not remove an unfinished upload");
    }
}

async fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory).await?.sync_all().await
}

fn store_fault(error: io::Error) -> PutError {
    PutError::Store(error.into())
}

#[async_trait]
impl ArtifactStore for DirectoryStore {
    async fn put(&self, hash: ArtifactHash, body: ByteStream, most_bytes: u64) -> Result<u64, PutError> {
        let mut incoming = self.incoming().await.map_err(store_fault)?;
        let mut body = CheckedBody::new(hash, body, most_bytes);
        while let Some(piece) = body.next().await? {
            incoming.file.write_all(&piece).await.map_err(store_fault)?;
        }
        incoming.keep_as(&self.path_of(hash)).await.map_err(store_fault)?;
        Ok(body.size_bytes())
    }

    async fn put_all(&self, files: Vec<CheckedArtifact>) -> Stored<()> {
        let store = self.clone();
        Ok(off_thread(move || Batch::default().keep(&store, &files)).await?)
    }

    async fn size(&self, hash: ArtifactHash) -> Stored<Option<u64>> {
        match fs::metadata(self.path_of(hash)).await {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn read(&self, hash: ArtifactHash, range: Range<u64>) -> Stored<Option<ByteStream>> {
        let mut file = match File::open(self.path_of(hash)).await {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        file.seek(io::SeekFrom::Start(range.start)).await?;
        let part = file.take(range.end.saturating_sub(range.start));
        Ok(Some(ReaderStream::with_capacity(part, READ_BYTES).boxed()))
    }

    async fn remove(&self, hash: ArtifactHash, written_before: Timestamp) -> Stored<bool> {
        let path = self.path_of(hash);
        let aside = self.incoming_path();
        // Out of the way first: an upload that ends in this moment gives the name to its own bytes.
        match fs::rename(&path, &aside).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            other => other?,
        }
        let before = UNIX_EPOCH + Duration::from_millis(u64::try_from(written_before.0).unwrap_or(0));
        if fs::metadata(&aside).await?.modified()? < before {
            fs::remove_file(&aside).await?;
            return Ok(true);
        }
        // The same bytes, whichever of the two is kept.
        fs::rename(&aside, &path).await?;
        Ok(false)
    }

    async fn put_segment(&self, name: &str, bytes: Bytes) -> Stored<()> {
        let path = self.segment_path(name)?;
        let mut incoming = self.incoming().await?;
        incoming.file.write_all(&bytes).await?;
        Ok(incoming.keep_as(&path).await?)
    }

    async fn remove_segment(&self, name: &str) -> Stored<()> {
        match fs::remove_file(self.segment_path(name)?).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => Ok(done?),
        }
    }

    async fn read_segment(&self, name: &str, offset: u64, length: u64) -> Stored<Option<Bytes>> {
        let mut file = match File::open(self.segment_path(name)?).await {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        file.seek(io::SeekFrom::Start(offset)).await?;
        let mut part = file.take(length);
        let mut bytes = BytesMut::with_capacity(usize::try_from(length).unwrap_or(READ_BYTES).min(1 << 20));
        while part.read_buf(&mut bytes).await? > 0 {}
        Ok(Some(bytes.freeze()))
    }

    async fn segment_days(&self) -> Stored<Vec<LogDay>> {
        let mut entries = match fs::read_dir(self.root.join("segments/logs")).await {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let mut days = Vec::new();
        while let Some(entry) = entries.next_entry().await? {
            let name = entry.file_name();
            days.extend(name.to_str().and_then(|name| name.parse().ok()).map(LogDay));
        }
        Ok(days)
    }

    async fn drop_segments(&self, day: LogDay) -> Stored<()> {
        match fs::remove_dir_all(self.root.join(format!("segments/logs/{}", day.0))).await {
            // Another server was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => Ok(done?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact_store::conformance::{self, World};

    struct Directory {
        folder: tempfile::TempDir,
        store: DirectoryStore,
    }

    impl Directory {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let store = DirectoryStore::open(folder.path(), Timestamp(0)).unwrap();
            Self { folder, store }
        }
    }

    impl World for Directory {
        fn store(&self) -> &dyn ArtifactStore {
            &self.store
        }

        fn names(&self) -> Vec<String> {
            let name = |path: PathBuf| path.strip_prefix(self.folder.path()).unwrap().display().to_string();
            files(self.folder.path()).into_iter().map(name).collect()
        }

        fn unfinished(&self) -> usize {
            files(&self.folder.path().join("incoming")).len()
        }
    }

    /// Every file under the store's directory.
    fn files(directory: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
        }
        found
    }

    conformance::cases!(Directory::new());

    #[tokio::test]
    async fn only_old_leftovers_are_removed_at_the_start() {
        let Directory { folder, .. } = Directory::new();
        std::fs::write(folder.path().join("incoming/left"), b"x").unwrap();
        DirectoryStore::open(folder.path(), Timestamp(0)).unwrap();
        assert_eq!(files(folder.path()).len(), 1);
        DirectoryStore::open(folder.path(), Timestamp(i64::MAX / 4)).unwrap();
        assert_eq!(files(folder.path()), Vec::<PathBuf>::new());
    }
}
