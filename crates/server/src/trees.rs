//! Keeping a tree: its manifest read, its files known, its name given.
//!
//! Invariant: **a tree that is known is whole**: every file it names is an artifact of the size it says.

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use jobyard_model::ArtifactHash;
use jobyard_store::{Actor, NewTree, Store, StoreError, TreeRecord};
use jobyard_tree::{MAX_MANIFEST_BYTES, ManifestError, Tree};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::artifact_store::{ArtifactStore, PutError};
use crate::off_thread::off_thread;

/// Artifacts looked up at a time.
const BATCH: usize = 1_000;
/// Missing files that are named.
const MOST_NAMED: usize = 20;

/// Why a tree was not kept; nothing of it was.
#[derive(Debug, Error)]
pub(crate) enum KeepTreeError {
    #[error("the manifest has the hash {found}, not {named}")]
    Mismatch { named: ArtifactHash, found: ArtifactHash },
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error("{} of its artifacts are not in the artifact store", .0.count)]
    Lacking(Lacking),
    #[error("{path:?} has {said} bytes in the manifest, its artifact {found}")]
    WrongSize { path: String, said: u64, found: u64 },
    #[error("the manifest could not be kept")]
    Put(#[from] PutError),
    #[error("the datastore failed")]
    Store(#[from] StoreError),
}

/// What has to be uploaded before the tree.
#[derive(Debug, Default)]
pub(crate) struct Lacking {
    pub(crate) count: usize,
    /// Some of the files, by path.
    pub(crate) named: Vec<(String, ArtifactHash)>,
}

/// Keeps the tree of this manifest. When this returns, it is durable. One that is known is checked again and left as
/// it is.
pub(crate) async fn keep_tree(
    (store, artifacts): (&dyn Store, &dyn ArtifactStore),
    named: ArtifactHash,
    manifest: Bytes,
    by: &Actor,
) -> Result<TreeRecord, KeepTreeError> {
    let (tree, manifest) = read(named, manifest).await?;
    let wanted = wanted(&tree);
    let lacking = check(store, &tree, &wanted).await?;
    if lacking.count > 0 {
        return Err(KeepTreeError::Lacking(lacking));
    }
    let record = TreeRecord {
        files: u32::try_from(tree.files.len()).unwrap_or(u32::MAX),
        size_bytes: tree.size_bytes(),
    };
    let manifest_bytes = manifest.len() as u64;
    let body = stream::iter([Ok(manifest)]).boxed();
    artifacts.put(named, body, MAX_MANIFEST_BYTES as u64).await?;
    let TreeRecord { files, size_bytes } = record;
    let new = NewTree { hash: named, manifest_bytes, artifacts: wanted, files, size_bytes };
    match store.add_tree(new, by).await? {
        true => Ok(record),
        // Removed between two looks.
        false => Err(KeepTreeError::Lacking(Lacking { count: 1, named: Vec::new() })),
    }
}

/// A manifest of 250,000 files takes a moment to read.
async fn read(named: ArtifactHash, manifest: Bytes) -> Result<(Tree, Bytes), KeepTreeError> {
    let read = move || {
        let found = ArtifactHash(Sha256::digest(&manifest).into());
        if found != named {
            return Err(KeepTreeError::Mismatch { named, found });
        }
        Ok((Tree::decode(&manifest)?, manifest))
    };
    off_thread(read).await
}

/// Each artifact once.
fn wanted(tree: &Tree) -> Vec<ArtifactHash> {
    let mut wanted: Vec<_> = tree.files.values().map(|file| file.sha256).collect();
    wanted.sort_unstable();
    wanted.dedup();
    wanted
}

async fn check(store: &dyn Store, tree: &Tree, wanted: &[ArtifactHash]) -> Result<Lacking, KeepTreeError> {
    let mut sizes = Vec::with_capacity(wanted.len());
    for batch in wanted.chunks(BATCH) {
        sizes.extend(store.artifact_sizes(batch.to_vec()).await?);
    }
    let mut lacking =
        Lacking { count: sizes.iter().filter(|size| size.is_none()).count(), named: Vec::new() };
    for (path, file) in &tree.files {
        let size = wanted.binary_search(&file.sha256).ok().and_then(|place| sizes[place]);
        match size {
            Some(found) if found != file.size => {
                return Err(KeepTreeError::WrongSize { path: path.clone(), said: file.size, found });
            }
            Some(_) => {}
            None if lacking.named.len() < MOST_NAMED => {
                lacking.named.push((path.clone(), file.sha256));
            }
            None => {}
        }
    }
    Ok(lacking)
}
