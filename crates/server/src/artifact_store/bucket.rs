//! An artifact store in a bucket of an S3-compatible store, below a prefix.
//!
//! `sha256/ab/<hash>/<random>` the bytes of an artifact, `segments/<name>` log segments. Nothing is ever overwritten:
//! S3 can't rename, and can't remove an object only if nobody has written it meanwhile. So each upload has a name of its
//! own, the newest counts, and a removal names the very uploads that it saw to be old: one that ends in this moment is
//! not among them. S3 dates what went up in parts by its beginning; `<random>.written` beside it was put when it was
//! whole, and dates its end.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use jobyard_model::{ArtifactHash, S3Url, Timestamp};
use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutPayload};
use tokio::time::{Instant, timeout};

use super::checked::{CheckedArtifact, CheckedBody};
use super::{ArtifactStore, ByteStream, LogDay, PutError, Stored, check_segment_name};
use crate::s3::{S3Error, S3Settings, S3SettingsError, S3Times, Upload, of_s3};

/// Ends the name of what dates an upload in parts.
const WRITTEN: &str = ".written";
/// Small artifacts of one call on their way at a time.
const SENT_AT_ONCE: usize = 16;
/// How often an artifact is looked up whose upload is tidied away between two calls.
const LOOKS: u32 = 3;

/// See the module.
pub struct BucketStore {
    bucket: Arc<AmazonS3>,
    /// For segments, which their workers send again.
    once: AmazonS3,
    /// Empty, or ends in `/`.
    prefix: String,
    times: S3Times,
    trouble: Mutex<Option<Trouble>>,
}

/// What the last call failed by.
struct Trouble {
    why: String,
    seen: Instant,
}

/// One upload of an artifact.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    /// When it was whole, unix ms.
    written: i64,
    key: Path,
    size_bytes: u64,
    has_written: bool,
}

impl BucketStore {
    /// A store at this place. Makes no request: a bucket that is away now may come.
    ///
    /// # Errors
    /// The settings make no sense.
    pub fn open(place: &S3Url, settings: &S3Settings) -> Result<Self, S3SettingsError> {
        Ok(Self {
            bucket: Arc::new(settings.bucket(place.bucket())?),
            once: settings.bucket_once(place.bucket())?,
            prefix: match place.key() {
                "" => String::new(),
                _ => place.as_prefix().key().to_owned(),
            },
            times: settings.times,
            trouble: Mutex::new(None),
        })
    }

    fn key(&self, name: &str) -> Result<Path, S3Error> {
        Path::parse(format!("{}{name}", self.prefix)).map_err(|error| S3Error::Refused(error.to_string()))
    }

    fn folder_of(&self, hash: ArtifactHash) -> Result<Path, S3Error> {
        let name = hash.to_string();
        self.key(&format!("sha256/{}/{name}", &name[..2]))
    }

    /// Remembers whether the store can be used, and says so once.
    fn noted<T>(&self, result: Result<T, S3Error>) -> Result<T, S3Error> {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        match &result {
            Err(error @ (S3Error::Away(_) | S3Error::Refused(_) | S3Error::Misconfigured(_))) => {
                let why = error.to_string();
                if trouble.is_none() {
                    tracing::warn!(why, "the artifact store can't be used");
                }
                *trouble = Some(Trouble { why, seen: Instant::now() });
            }
            Ok(_) | Err(S3Error::Missing | S3Error::Changed | S3Error::OutOfRange) => {
                if trouble.take().is_some() {
                    tracing::info!("the artifact store can be used again");
                }
            }
        }
        result
    }

    /// Whether it was away a moment ago.
    fn is_paused(&self) -> Option<S3Error> {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = trouble.as_ref().filter(|trouble| trouble.seen.elapsed() < self.times.pause)?;
        Some(S3Error::Away(fresh.why.clone()))
    }

    /// One short try, and none while the store is known to be away.
    async fn while_heartbeats_wait(
        &self,
        request: impl Future<Output = object_store::Result<()>>,
    ) -> Result<(), S3Error> {
        if let Some(away) = self.is_paused() {
            return Err(away);
        }
        let within = self.times.segment;
        let done = timeout(within, request).await.map_or_else(
            |_| Err(S3Error::Away(format!("no answer in {} s", within.as_secs_f64()))),
            |done| done.map_err(of_s3),
        );
        self.noted(done)
    }

    /// Every upload of an artifact, the newest last.
    async fn versions(&self, hash: ArtifactHash) -> Result<Vec<Version>, S3Error> {
        let folder = self.folder_of(hash)?;
        let found: Vec<_> = self.bucket.list(Some(&folder)).try_collect().await.map_err(of_s3)?;
        let (mut written, mut versions) = (HashMap::new(), Vec::new());
        for object in found {
            let at = object.last_modified.timestamp_millis();
            match object.location.as_ref().strip_suffix(WRITTEN) {
                Some(key) => {
                    written.insert(key.to_owned(), at);
                }
                None => versions.push(Version {
                    written: at,
                    key: object.location,
                    size_bytes: object.size,
                    has_written: false,
                }),
            }
        }
        for version in &mut versions {
            if let Some(at) = written.get(version.key.as_ref()) {
                version.written = version.written.max(*at);
                version.has_written = true;
            }
        }
        versions.sort_unstable();
        Ok(versions)
    }

    async fn newest(&self, hash: ArtifactHash) -> Result<Option<Version>, S3Error> {
        Ok(self.versions(hash).await?.pop())
    }

    async fn delete(&self, version: &Version) -> Result<(), S3Error> {
        self.bucket.delete(&version.key).await.map_err(of_s3)?;
        if version.has_written {
            self.bucket.delete(&written_key(&version.key)?).await.map_err(of_s3)?;
        }
        Ok(())
    }

    /// Removes all uploads of an artifact but the newest, which nobody else removes for this reason.
    async fn keep_newest(&self, hash: ArtifactHash) -> Result<(), S3Error> {
        let mut versions = self.versions(hash).await?;
        versions.pop();
        for version in versions {
            self.delete(&version).await?;
        }
        Ok(())
    }

    /// Sends the bytes; an upload that is dropped unfinished gives itself up.
    async fn send(&self, hash: ArtifactHash, body: ByteStream, most_bytes: u64) -> Result<u64, PutError> {
        let key = self.folder_of(hash).map_err(store_fault)?.join(format!("{:032x}", rand::random::<u128>()));
        let mut upload = Upload::new(Arc::clone(&self.bucket), key.clone());
        let mut body = CheckedBody::new(hash, body, most_bytes);
        while let Some(piece) = body.next().await? {
            self.noted(upload.write(piece).await).map_err(store_fault)?;
        }
        let written = if upload.is_in_parts() { Some(written_key(&key).map_err(store_fault)?) } else { None };
        if let Some(written) = &written {
            let put = self.bucket.put(written, PutPayload::new()).await.map_err(of_s3);
            self.noted(put).map_err(store_fault)?;
        }
        self.noted(upload.finish().await).map_err(store_fault)?;
        Ok(body.size_bytes())
    }

    async fn open_newest(
        &self,
        hash: ArtifactHash,
        range: Range<u64>,
    ) -> Result<Option<ByteStream>, S3Error> {
        for _ in 0..LOOKS {
            let Some(version) = self.newest(hash).await? else { return Ok(None) };
            if range.is_empty() {
                return Ok(Some(stream::empty().boxed()));
            }
            let options =
                GetOptions { range: Some(GetRange::Bounded(range.clone())), ..GetOptions::default() };
            match self.bucket.get_opts(&version.key, options).await.map_err(of_s3) {
                Ok(found) => {
                    let bytes = found.into_stream().map_err(|error| io::Error::other(of_s3(error)));
                    return Ok(Some(bytes.boxed()));
                }
                // A newer upload took its place.
                Err(S3Error::Missing) => {}
                Err(error) => return Err(error),
            }
        }
        Err(S3Error::Away("it is uploaded again and again".to_owned()))
    }
}

fn store_fault(error: S3Error) -> PutError {
    PutError::Store(error.into())
}

fn written_key(key: &Path) -> Result<Path, S3Error> {
    Path::parse(format!("{key}{WRITTEN}")).map_err(|error| S3Error::Refused(error.to_string()))
}

#[async_trait]
impl ArtifactStore for BucketStore {
    async fn put(&self, hash: ArtifactHash, body: ByteStream, most_bytes: u64) -> Result<u64, PutError> {
        let size_bytes = self.send(hash, body, most_bytes).await?;
        if let Err(error) = self.keep_newest(hash).await {
            tracing::warn!(%error, %hash, "an artifact stays twice in the artifact store for now");
        }
        Ok(size_bytes)
    }

    async fn put_all(&self, files: Vec<CheckedArtifact>) -> Stored<()> {
        let sending = files.into_iter().map(|file| async move {
            let (hash, bytes) = (file.hash(), file.bytes().clone());
            let size_bytes = bytes.len() as u64;
            match self.put(hash, stream::iter([Ok(bytes)]).boxed(), size_bytes).await {
                Ok(_) => Ok(()),
                Err(PutError::Store(error)) => Err(error),
                // Its name and its size are right.
                Err(error) => Err(io::Error::other(error).into()),
            }
        });
        stream::iter(sending).buffer_unordered(SENT_AT_ONCE).try_for_each(async |()| Ok(())).await
    }

    async fn size(&self, hash: ArtifactHash) -> Stored<Option<u64>> {
        let newest = self.noted(self.newest(hash).await)?;
        Ok(newest.map(|version| version.size_bytes))
    }

    async fn read(&self, hash: ArtifactHash, range: Range<u64>) -> Stored<Option<ByteStream>> {
        Ok(self.noted(self.open_newest(hash, range).await)?)
    }

    async fn remove(&self, hash: ArtifactHash, written_before: Timestamp) -> Stored<bool> {
        let versions = self.noted(self.versions(hash).await)?;
        let mut is_removed = !versions.is_empty();
        for version in versions {
            if version.written < written_before.0 {
                self.noted(self.delete(&version).await)?;
            } else {
                is_removed = false;
            }
        }
        Ok(is_removed)
    }

    async fn put_segment(&self, name: &str, bytes: Bytes) -> Stored<()> {
        check_segment_name(name)?;
        let key = self.key(&format!("segments/{name}"))?;
        let put = self.once.put(&key, PutPayload::from_bytes(bytes));
        Ok(self.while_heartbeats_wait(async { put.await.map(|_| ()) }).await?)
    }

    async fn remove_segment(&self, name: &str) -> Stored<()> {
        check_segment_name(name)?;
        let key = self.key(&format!("segments/{name}"))?;
        Ok(self.while_heartbeats_wait(self.once.delete(&key)).await?)
    }

    async fn read_segment(&self, name: &str, offset: u64, length: u64) -> Stored<Option<Bytes>> {
        check_segment_name(name)?;
        let key = self.key(&format!("segments/{name}"))?;
        let range = offset..offset.saturating_add(length);
        let found = if range.is_empty() {
            self.bucket.head(&key).await.map(|_| Bytes::new())
        } else {
            self.bucket.get_range(&key, range).await
        };
        match self.noted(found.map_err(of_s3)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(S3Error::Missing) => Ok(None),
            Err(S3Error::OutOfRange) => Ok(Some(Bytes::new())),
            Err(error) => Err(error.into()),
        }
    }

    async fn segment_days(&self) -> Stored<Vec<LogDay>> {
        let logs = self.key("segments/logs")?;
        let found = self.noted(self.bucket.list_with_delimiter(Some(&logs)).await.map_err(of_s3))?;
        let days = found.common_prefixes.iter();
        Ok(days.filter_map(|day| day.filename()?.parse().ok().map(LogDay)).collect())
    }

    async fn drop_segments(&self, day: LogDay) -> Stored<()> {
        let day = self.key(&format!("segments/logs/{}", day.0))?;
        let keys = self.bucket.list(Some(&day)).map_ok(|object| object.location).boxed();
        let dropped = self.bucket.delete_stream(keys).try_for_each(async |_| Ok(())).await;
        Ok(self.noted(dropped.map_err(of_s3))?)
    }

    fn trouble(&self) -> Option<String> {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.as_ref().map(|trouble| trouble.why.clone())
    }
}

#[cfg(test)]
mod tests;
