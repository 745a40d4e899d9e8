//! Sending what an attempt left in its output folder: the files that the artifact store lacks, or where the job says in
//! S3 all of them, then the manifest.
//!
//! Owns nothing; the folder is nobody's any more, since all of the attempt's processes are gone. Repeatable: what went up
//! before is not sent again. Only files of the attempt's own user are read.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use jobyard_api::doors::{DoorError, ReportDoor};
use jobyard_api::grpc::convert;
use jobyard_api::proto;
use jobyard_model::{ArtifactHash, LeaseId};
use jobyard_tree::{Folder, FolderError, FoundFile, ManifestError, Tree, TreeFile};
use thiserror::Error;
use tokio::io::AsyncReadExt;
use tokio::time::sleep;
use tokio_util::io::ReaderStream;

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Files hashed, or sent, at a time.
const AT_ONCE: usize = 4;
/// Artifacts in one question for what is missing.
const ASKED_AT_ONCE: usize = 1_000;
const READ_BYTES: usize = 256 << 10;
/// What the manifest is called in S3. It goes up last.
const MANIFEST: &str = "_manifest.json";

/// Why outputs are not kept.
#[derive(Debug, Error)]
pub(crate) enum UploadError {
    /// The user's to mend.
    #[error("its outputs can't be kept: {0}")]
    Refused(String),
    /// The door does not answer, or the folder could not be read.
    #[error("its outputs could not be sent")]
    Door(#[source] DoorError),
    #[error("its outputs could not be read")]
    Disk(#[source] io::Error),
}

/// What is to be sent, by whose right.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) lease_id: LeaseId,
    pub(crate) folder: PathBuf,
    /// Whose files are taken; `None`: whosever.
    pub(crate) owner: Option<u32>,
    /// More bytes together are refused.
    pub(crate) most_bytes: u64,
    /// They go where the job says in S3.
    pub(crate) in_s3: bool,
}

/// Whether there is anything to send. Blocks.
pub(crate) fn is_empty(output: &Output) -> bool {
    match Folder::open(&output.folder).and_then(|folder| folder.is_empty()) {
        Ok(is_empty) => is_empty,
        Err(FolderError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => true,
        // What is wrong with it is found out when it is sent.
        Err(_) => false,
    }
}

/// Sends it; a door that doesn't answer is asked again, for ever. `None`: there were only empty folders.
pub(crate) async fn upload(
    door: Arc<dyn ReportDoor>,
    output: Output,
) -> Result<Option<ArtifactHash>, UploadError> {
    let opening = output.clone();
    let (folder, found) = blocking(move || {
        let folder = Folder::open(&opening.folder)?.owned_by(opening.owner);
        let found = folder.files()?;
        check_size(&found, opening.most_bytes)?;
        Ok((Arc::new(folder), found))
    })
    .await?;
    if found.is_empty() {
        return Ok(None);
    }
    let hashing = found.into_iter().map(|file| {
        let folder = Arc::clone(&folder);
        blocking(move || {
            let hashed = folder.hash_file(&file.path)?;
            Ok((file.path, TreeFile { sha256: hashed.sha256, size: hashed.size, mode: file.mode }))
        })
    });
    let files = stream::iter(hashing).buffer_unordered(AT_ONCE).try_collect().await?;
    let tree = Tree { files };
    let (manifest, hash) = tree.encode().map_err(|error| of_manifest(&error))?;
    let manifest = manifest.into();
    let (lease_id, sent) = (output.lease_id, Mutex::default());
    let sending = Sending { door, lease_id, folder, tree, manifest, hash, sent };
    let mut pause = FIRST_PAUSE;
    loop {
        let done = if output.in_s3 { sending.put_all().await } else { sending.send_all().await };
        match done {
            Ok(()) => return Ok(Some(hash)),
            Err(UploadError::Door(error)) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "sending outputs again");
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(error) => return Err(error),
        }
    }
}

fn check_size(found: &[FoundFile], most_bytes: u64) -> Result<(), UploadError> {
    let bytes = found.iter().fold(0_u64, |sum, file| sum.saturating_add(file.size));
    if bytes <= most_bytes {
        return Ok(());
    }
    let why = format!(
        "they have {bytes} bytes, and of an attempt at most {most_bytes} are kept (`worker.output_limit_bytes`)"
    );
    Err(UploadError::Refused(why))
}

struct Sending {
    door: Arc<dyn ReportDoor>,
    lease_id: LeaseId,
    folder: Arc<Folder>,
    tree: Tree,
    manifest: Bytes,
    hash: ArtifactHash,
    /// Files that arrived in S3, where nobody is asked for what is missing.
    sent: Mutex<HashSet<String>>,
}

impl Sending {
    async fn send_all(&self) -> Result<(), UploadError> {
        let by_hash: HashMap<ArtifactHash, &str> =
            self.tree.files.iter().map(|(path, file)| (file.sha256, path.as_str())).collect();
        let mut hashes: Vec<ArtifactHash> = by_hash.keys().copied().collect();
        hashes.sort_unstable();
        for asked in hashes.chunks(ASKED_AT_ONCE) {
            let missing = self.missing(asked).await?;
            let sending =
                missing.into_iter().filter_map(|hash| Some(self.send_file(hash, by_hash.get(&hash)?)));
            stream::iter(sending).buffer_unordered(AT_ONCE).try_for_each(async |()| Ok(())).await?;
        }
        let manifest = stream::iter([Ok(self.manifest.clone())]).boxed();
        self.store(self.hash, Kind::Manifest, manifest).await
    }

    async fn missing(&self, asked: &[ArtifactHash]) -> Result<Vec<ArtifactHash>, UploadError> {
        let request = proto::MissingArtifactsRequest {
            lease_id: convert::id_bytes(self.lease_id.0),
            sha256: asked.iter().map(|hash| Bytes::copy_from_slice(&hash.0)).collect(),
        };
        let reply = self.door.missing_artifacts(request).await.map_err(of_door)?;
        Ok(reply.missing.iter().filter_map(|hash| convert::artifact_hash(hash).ok()).collect())
    }

    /// All files that have not arrived, then the manifest.
    async fn put_all(&self) -> Result<(), UploadError> {
        if self.tree.files.contains_key(MANIFEST) {
            let why =
                format!("`{MANIFEST}` is the name of the manifest itself: call the file something else");
            return Err(UploadError::Refused(why));
        }
        let missing: Vec<(String, ArtifactHash)> = {
            let sent = self.sent();
            let missing = self.tree.files.iter().filter(|(path, _)| !sent.contains(*path));
            missing.map(|(path, file)| (path.clone(), file.sha256)).collect()
        };
        let sending = missing.into_iter().map(|(path, hash)| self.put_file(path, hash));
        stream::iter(sending).buffer_unordered(AT_ONCE).try_for_each(async |()| Ok(())).await?;
        let manifest = stream::iter([Ok(self.manifest.clone())]).boxed();
        self.put(MANIFEST, self.hash, manifest).await
    }

    async fn put_file(&self, path: String, hash: ArtifactHash) -> Result<(), UploadError> {
        let data = self.open(&path).await?;
        self.put(&path, hash, data).await?;
        self.sent().insert(path);
        Ok(())
    }

    fn sent(&self) -> MutexGuard<'_, HashSet<String>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn put(
        &self,
        path: &str,
        hash: ArtifactHash,
        data: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<(), UploadError> {
        let request = proto::StoreOutputRequest {
            lease_id: convert::id_bytes(self.lease_id.0),
            path: path.to_owned(),
            sha256: Bytes::copy_from_slice(&hash.0),
            manifest: path == MANIFEST,
            data: Bytes::new(),
        };
        self.door.store_output(request, data).await.map_err(of_door)
    }

    async fn send_file(&self, hash: ArtifactHash, path: &str) -> Result<(), UploadError> {
        let data = self.open(path).await?;
        self.store(hash, Kind::File, data).await
    }

    async fn open(&self, path: &str) -> Result<BoxStream<'static, io::Result<Bytes>>, UploadError> {
        let (folder, opening) = (Arc::clone(&self.folder), path.to_owned());
        let file = blocking(move || Ok(folder.open_file(&opening)?)).await?;
        let size = self.tree.files.get(path).map_or(0, |file| file.size);
        Ok(ReaderStream::with_capacity(tokio::fs::File::from_std(file).take(size), READ_BYTES).boxed())
    }

    async fn store(
        &self,
        hash: ArtifactHash,
        kind: Kind,
        data: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<(), UploadError> {
        let request = proto::StoreArtifactRequest {
            lease_id: convert::id_bytes(self.lease_id.0),
            sha256: Bytes::copy_from_slice(&hash.0),
            tree: kind == Kind::Manifest,
            data: Bytes::new(),
        };
        self.door.store_artifact(request, data).await.map_err(of_door)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Manifest,
}

fn of_door(error: DoorError) -> UploadError {
    match error {
        DoorError::Refused { why, .. } => UploadError::Refused(why),
        error @ (DoorError::NotSent { .. } | DoorError::Unknown { .. }) => UploadError::Door(error),
    }
}

fn of_manifest(error: &ManifestError) -> UploadError {
    UploadError::Refused(error.to_string())
}

impl From<FolderError> for UploadError {
    fn from(error: FolderError) -> Self {
        match error {
            FolderError::Refused { .. } => Self::Refused(error.to_string()),
            FolderError::Io { source, .. } => Self::Disk(source),
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, UploadError> + Send + 'static,
) -> Result<T, UploadError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| UploadError::Disk(io::Error::other(error)))?
}
