//! An artifact store in a directory of this machine, or of a file system that servers share.
//!
//! `sha256/ab/<hash>` artifacts, `segments/<name>` log segments, `incoming/<random>` what is still being written.
//! A file gets its name only when it is whole and synced; then the directory is synced too.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use jobyard_model::{ArtifactHash, Timestamp};
use sha2::{Digest, Sha256};
use tokio::fs::{self, File};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use tokio_util::io::ReaderStream;

use super::{ArtifactStore, ByteStream, LogDay, PutError};

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
        if let Some(path) = self.path.take()
            && let Err(error) = std::fs::remove_file(&path)
        {
            tracing::warn!(%error, path = %path.display(), "could not remove an unfinished upload");
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
        let plain = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        };
        if name.split('/').all(plain) {
            Ok(self.root.join("segments").join(name))
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "not the name of a log segment"))
        }
    }

    async fn incoming(&self) -> io::Result<Incoming> {
        let path = self.root.join("incoming").join(format!("{:032x}", rand::random::<u128>()));
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

async fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory).await?.sync_all().await
}

fn store_fault(error: io::Error) -> PutError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => PutError::Full(error),
        _ => PutError::Store(error),
    }
}

#[async_trait]
impl ArtifactStore for DirectoryStore {
    async fn put(&self, hash: ArtifactHash, mut body: ByteStream, most_bytes: u64) -> Result<u64, PutError> {
        let mut incoming = self.incoming().await.map_err(store_fault)?;
        let mut hasher = Sha256::new();
        let mut size_bytes = 0_u64;
        while let Some(piece) = body.next().await {
            let piece = piece.map_err(PutError::BrokeOff)?;
            size_bytes += piece.len() as u64;
            if size_bytes > most_bytes {
                return Err(PutError::TooLarge { most_bytes });
            }
            hasher.update(&piece);
            incoming.file.write_all(&piece).await.map_err(store_fault)?;
        }
        let found = ArtifactHash(hasher.finalize().into());
        if found != hash {
            return Err(PutError::Mismatch { named: hash, found });
        }
        incoming.keep_as(&self.path_of(hash)).await.map_err(store_fault)?;
        Ok(size_bytes)
    }

    async fn size(&self, hash: ArtifactHash) -> io::Result<Option<u64>> {
        match fs::metadata(self.path_of(hash)).await {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn read(&self, hash: ArtifactHash, range: Range<u64>) -> io::Result<Option<ByteStream>> {
        let mut file = match File::open(self.path_of(hash)).await {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        file.seek(io::SeekFrom::Start(range.start)).await?;
        let part = file.take(range.end.saturating_sub(range.start));
        Ok(Some(ReaderStream::with_capacity(part, READ_BYTES).boxed()))
    }

    async fn remove(&self, hash: ArtifactHash, written_before: Timestamp) -> io::Result<bool> {
        let path = self.path_of(hash);
        let aside = self.root.join("incoming").join(format!("{:032x}", rand::random::<u128>()));
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

    async fn put_segment(&self, name: &str, bytes: Bytes) -> io::Result<()> {
        let path = self.segment_path(name)?;
        let mut incoming = self.incoming().await?;
        incoming.file.write_all(&bytes).await?;
        incoming.keep_as(&path).await
    }

    async fn remove_segment(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.segment_path(name)?).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    async fn read_segment(&self, name: &str, offset: u64, length: u64) -> io::Result<Option<Bytes>> {
        let mut file = match File::open(self.segment_path(name)?).await {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        file.seek(io::SeekFrom::Start(offset)).await?;
        let mut part = file.take(length);
        let mut bytes = BytesMut::with_capacity(usize::try_from(length).unwrap_or(READ_BYTES).min(1 << 20));
        while part.read_buf(&mut bytes).await? > 0 {}
        Ok(Some(bytes.freeze()))
    }

    async fn segment_days(&self) -> io::Result<Vec<LogDay>> {
        let mut entries = match fs::read_dir(self.root.join("segments/logs")).await {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut days = Vec::new();
        while let Some(entry) = entries.next_entry().await? {
            let name = entry.file_name();
            days.extend(name.to_str().and_then(|name| name.parse().ok()).map(LogDay));
        }
        Ok(days)
    }

    async fn drop_segments(&self, day: LogDay) -> io::Result<()> {
        match fs::remove_dir_all(self.root.join(format!("segments/logs/{}", day.0))).await {
            // Another server was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt;
    use futures_util::stream;

    use super::*;

    async fn store() -> (tempfile::TempDir, DirectoryStore) {
        let directory = tempfile::tempdir().unwrap();
        let store = DirectoryStore::open(directory.path(), Timestamp(0)).unwrap();
        (directory, store)
    }

    fn hash_of(bytes: &[u8]) -> ArtifactHash {
        ArtifactHash(Sha256::digest(bytes).into())
    }

    fn pieces(pieces: &[&'static [u8]]) -> ByteStream {
        let pieces: Vec<io::Result<Bytes>> =
            pieces.iter().map(|piece| Ok(Bytes::from_static(piece))).collect();
        stream::iter(pieces).boxed()
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

    #[tokio::test]
    async fn what_was_put_is_read_back_whole_and_in_parts() {
        let (directory, store) = store().await;
        let hash = hash_of(b"hello world");
        assert_eq!(store.put(hash, pieces(&[b"hello ", b"world"]), 11).await.unwrap(), 11);
        assert_eq!(store.put(hash, pieces(&[b"hello world"]), 11).await.unwrap(), 11);
        assert_eq!(store.size(hash).await.unwrap(), Some(11));
        for (range, expected) in [(0..11, "hello world"), (6..11, "world"), (0..0, "")] {
            let read: Vec<Bytes> =
                store.read(hash, range).await.unwrap().unwrap().try_collect().await.unwrap();
            assert_eq!(read.concat(), expected.as_bytes());
        }
        assert_eq!(files(directory.path()).len(), 1);
    }

    #[tokio::test]
    async fn a_mismatch_a_break_off_and_too_many_bytes_leave_nothing() {
        let (directory, store) = store().await;
        let hash = hash_of(b"hello");
        let broken = stream::iter([Ok(Bytes::from_static(b"hel")), Err(io::Error::other("gone"))]).boxed();
        assert!(matches!(store.put(hash, pieces(&[b"hullo"]), 9).await, Err(PutError::Mismatch { .. })));
        assert!(matches!(store.put(hash, broken, 9).await, Err(PutError::BrokeOff(_))));
        assert!(matches!(
            store.put(hash, pieces(&[b"hello"]), 4).await,
            Err(PutError::TooLarge { most_bytes: 4 })
        ));
        assert_eq!(store.size(hash).await.unwrap(), None);
        assert_eq!(files(directory.path()), Vec::<PathBuf>::new());
    }

    #[tokio::test]
    async fn an_upload_that_is_dropped_half_way_leaves_nothing() {
        let (directory, store) = store().await;
        let (send, receive) = tokio::sync::mpsc::channel(1);
        let body = tokio_stream::wrappers::ReceiverStream::new(receive).boxed();
        let upload = tokio::spawn(async move { store.put(hash_of(b"hello"), body, 9).await });
        send.send(Ok(Bytes::from_static(b"hel"))).await.unwrap();
        // The second send is taken only after the first piece was written.
        send.send(Ok(Bytes::from_static(b"l"))).await.unwrap();
        assert_eq!(files(directory.path()).len(), 1);
        upload.abort();
        assert!(upload.await.unwrap_err().is_cancelled());
        assert_eq!(files(directory.path()), Vec::<PathBuf>::new());
    }

    #[tokio::test]
    async fn only_old_leftovers_are_removed_at_the_start() {
        let (directory, _) = store().await;
        std::fs::write(directory.path().join("incoming/left"), b"x").unwrap();
        DirectoryStore::open(directory.path(), Timestamp(0)).unwrap();
        assert_eq!(files(directory.path()).len(), 1);
        DirectoryStore::open(directory.path(), Timestamp(i64::MAX / 4)).unwrap();
        assert_eq!(files(directory.path()), Vec::<PathBuf>::new());
    }

    #[tokio::test]
    async fn segments_are_read_in_parts_and_their_names_stay_inside() {
        let (_directory, store) = store().await;
        store.put_segment("2026-05-01/ab-1", Bytes::from_static(b"0123456789")).await.unwrap();
        assert_eq!(store.read_segment("2026-05-01/ab-1", 3, 4).await.unwrap().unwrap(), "3456");
        assert_eq!(store.read_segment("2026-05-01/ab-1", 8, 100).await.unwrap().unwrap(), "89");
        assert_eq!(store.read_segment("2026-05-01/none", 0, 1).await.unwrap(), None);
        for name in ["../x", "/etc/passwd", "a//b", "", "a/../b", "A"] {
            assert!(store.put_segment(name, Bytes::new()).await.is_err(), "{name}");
            assert!(store.read_segment(name, 0, 1).await.is_err(), "{name}");
        }
    }
}
