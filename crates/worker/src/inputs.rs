//! Staging an input: a tree's files, or a single artifact, read-only in a folder of the attempt.
//!
//! Owns the folder until the attempt starts. Every byte comes through the cache, checked. Where the attempt has a user
//! of its own the files are second names of those in the cache; else they are copies, which the task may spoil.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use jobyard_model::{ArtifactHash, LeaseId};
use jobyard_runtime::remove_tree;
use jobyard_tree::{MAX_MANIFEST_BYTES, Mode, NewFolder, Tree};

use crate::artifacts::{ArtifactCache, FetchError, Item, blocking};

/// Files of one input on their way at a time.
const AT_ONCE: usize = 16;
/// How a single artifact is called in the folder.
const SINGLE: &str = "artifact";
/// Enough to tell whether something may be a manifest.
const BEGINNING_BYTES: usize = 64;

/// What is to be staged, for whom, where.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    pub(crate) hash: ArtifactHash,
    pub(crate) lease_id: LeaseId,
    pub(crate) folder: PathBuf,
    /// The task runs as another user than the worker, and so can't write to files of the cache.
    pub(crate) may_share: bool,
    /// For a report door that doesn't answer.
    pub(crate) patience: Duration,
}

/// Stages it. When this fails or is dropped, the folder is left half filled for the attempt's clean-up.
pub(crate) async fn stage(cache: &Arc<ArtifactCache>, input: &Input) -> Result<(), FetchError> {
    let hold = cache.hold(Item::data(input.hash));
    cache.fetch(&hold, input.lease_id, input.patience).await?;
    let (manifest, folder) = (cache.path(hold.item), input.folder.clone());
    let (tree, folder) = blocking(move || {
        let tree = read_tree(&manifest)?;
        // What the last attempt in this slot left for the next is not ours.
        remove_tree(&folder)?;
        let mut made = NewFolder::create(&folder)?;
        for path in tree.iter().flat_map(|tree| tree.files.keys()) {
            made.make_way(path)?;
        }
        Ok((tree, Arc::new(made)))
    })
    .await?;
    let files: Vec<(String, Item)> = match tree {
        None => vec![(SINGLE.to_owned(), hold.item)],
        Some(tree) => {
            let item = |(path, file): (String, jobyard_tree::TreeFile)| {
                (path, Item { hash: file.sha256, is_program: file.mode == Mode::Executable })
            };
            tree.files.into_iter().map(item).collect()
        }
    };
    let placing = files.into_iter().map(|(path, item)| place(cache, input, &folder, (path, item)));
    stream::iter(placing).buffer_unordered(AT_ONCE).try_for_each(async |()| Ok(())).await?;
    blocking(move || folder.close_folders()).await
}

async fn place(
    cache: &Arc<ArtifactCache>,
    input: &Input,
    folder: &Arc<NewFolder>,
    (path, item): (String, Item),
) -> Result<(), FetchError> {
    let hold = cache.hold(item);
    cache.fetch(&hold, input.lease_id, input.patience).await?;
    let (cached, folder, may_share) = (cache.path(item), Arc::clone(folder), input.may_share);
    blocking(move || {
        if may_share {
            match folder.link_file(&cached, &path) {
                // Too many names, or a file system that has only one for each file.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::TooManyLinks | ErrorKind::CrossesDevices | ErrorKind::PermissionDenied
                    ) => {}
                other => return other,
            }
        }
        let mut copy = folder.create_file(&path, 0o600)?;
        io::copy(&mut File::open(cached)?, &mut copy)?;
        copy.set_permissions(fs::Permissions::from_mode(item.permissions()))
    })
    .await
}

/// `None`: it is no manifest, and so a single artifact.
fn read_tree(path: &Path) -> io::Result<Option<Tree>> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    file.by_ref().take(BEGINNING_BYTES as u64).read_to_end(&mut bytes)?;
    if !Tree::may_begin(&bytes) {
        return Ok(None);
    }
    file.take(MAX_MANIFEST_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(Tree::decode(&bytes).ok())
}
