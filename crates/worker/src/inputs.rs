//! Staging an input: a tree's files, a single artifact, or objects of S3, read-only in a folder of the attempt. An
//! executable in S3 is staged the same way.
//!
//! Owns the folder until the attempt starts. Every byte comes through the cache, checked. Where the attempt has a user
//! of its own the files are second names of those in the cache; else they are copies, which the task may spoil.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use jobyard_api::proto::ObjectUse;
use jobyard_model::{ArtifactHash, LeaseId};
use jobyard_runtime::remove_tree;
use jobyard_tree::{MAX_MANIFEST_BYTES, Mode, NewFolder, Tree, check_path};
use tokio::time::{Instant, sleep};

use crate::artifacts::{ArtifactCache, FetchError, Item, RemoteObject, Source, blocking};

/// Files of one input on their way at a time.
const AT_ONCE: usize = 16;
/// How a single artifact is called in the folder.
const SINGLE: &str = "artifact";
/// Enough to tell whether something may be a manifest.
const BEGINNING_BYTES: usize = 64;

/// What is to be staged, for whom, where.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    pub(crate) what: Wanted,
    pub(crate) lease_id: LeaseId,
    pub(crate) folder: PathBuf,
    /// The task runs as another user than the worker, and so can't write to files of the cache.
    pub(crate) may_share: bool,
    /// For a report door that doesn't answer.
    pub(crate) patience: Duration,
}

/// What the input is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A tree, or a single artifact.
    Stored(ArtifactHash),
    /// What the job names in S3.
    Objects {
        /// The place.
        url: String,
        used_as: ObjectUse,
    },
}

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Stages it. When this fails or is dropped, the folder is left half filled for the attempt's clean-up.
pub(crate) async fn stage(cache: &Arc<ArtifactCache>, input: &Input) -> Result<(), FetchError> {
    match &input.what {
        Wanted::Stored(hash) => stage_stored(cache, input, *hash).await,
        Wanted::Objects { url, used_as } => stage_objects(cache, input, (url, *used_as)).await,
    }
}

async fn stage_stored(
    cache: &Arc<ArtifactCache>,
    input: &Input,
    hash: ArtifactHash,
) -> Result<(), FetchError> {
    let hold = cache.hold(Item::data(hash));
    let source = Source { lease_id: input.lease_id, object: None };
    cache.fetch(&hold, &source, input.patience).await?;
    let manifest = cache.path(hold.item);
    let tree = blocking(move || read_tree(&manifest)).await?;
    let files: Vec<Placed> = match tree {
        None => vec![Placed { path: SINGLE.to_owned(), item: hold.item, object: None }],
        Some(tree) => {
            let placed = |(path, file): (String, jobyard_tree::TreeFile)| {
                let is_program = file.mode == Mode::Executable;
                let item = if is_program { Item::program(file.sha256) } else { Item::data(file.sha256) };
                Placed { path, item, object: None }
            };
            tree.files.into_iter().map(placed).collect()
        }
    };
    fill(cache, input, files, input.patience).await
}

/// A place that is away, or whose objects change while they are read, is looked at again until patience is over.
async fn stage_objects(
    cache: &Arc<ArtifactCache>,
    input: &Input,
    (url, used_as): (&str, ObjectUse),
) -> Result<(), FetchError> {
    let give_up_at = Instant::now() + input.patience;
    let mut pause = FIRST_PAUSE;
    loop {
        let staged = async {
            let found = cache.find_objects(input.lease_id, used_as).await?;
            let files = as_files(url, found)?;
            fill(cache, input, files, Duration::ZERO).await
        };
        match staged.await {
            Err(error @ FetchError::Door(_)) if Instant::now() + pause <= give_up_at => {
                tracing::warn!(error = &error as &dyn std::error::Error, url, "fetching again");
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            done => return done,
        }
    }
}

/// Objects as files: their keys must be paths, and none a folder of another.
fn as_files(url: &str, mut found: Vec<RemoteObject>) -> Result<Vec<Placed>, FetchError> {
    if found.is_empty() {
        return Err(FetchError::Refused(format!("there is nothing below {url}")));
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found.dedup_by(|one, other| one.path == other.path);
    let folders: HashSet<String> = found
        .iter()
        .flat_map(|object| object.path.match_indices('/').map(|(at, _)| object.path[..at].to_owned()))
        .collect();
    let mut files = Vec::with_capacity(found.len());
    for object in found {
        let path = object.path.clone();
        check_path(&path).map_err(|fault| {
            FetchError::Refused(format!("{url} has {path:?}, which can't be a file: {fault}"))
        })?;
        if folders.contains(&path) {
            let why =
                format!("{url} has {path:?} as an object and objects below it: it can't be file and folder");
            return Err(FetchError::Refused(why));
        }
        files.push(Placed { path, item: object.item(url), object: Some(object) });
    }
    Ok(files)
}

/// A file of the folder, and where it comes from.
struct Placed {
    path: String,
    item: Item,
    object: Option<RemoteObject>,
}

/// Makes the folder and fills it.
async fn fill(
    cache: &Arc<ArtifactCache>,
    input: &Input,
    files: Vec<Placed>,
    patience: Duration,
) -> Result<(), FetchError> {
    let path = input.folder.clone();
    let (files, folder) = blocking(move || {
        // What the last attempt in this slot left for the next, or the last try, is not ours.
        remove_tree(&path)?;
        let mut made = NewFolder::create(&path)?;
        for file in &files {
            made.make_way(&file.path)?;
        }
        Ok((files, Arc::new(made)))
    })
    .await?;
    let placing = files.into_iter().map(|file| place(cache, (input, patience), &folder, file));
    stream::iter(placing).buffer_unordered(AT_ONCE).try_for_each(async |()| Ok(())).await?;
    blocking(move || folder.close_folders()).await
}

async fn place(
    cache: &Arc<ArtifactCache>,
    (input, patience): (&Input, Duration),
    folder: &Arc<NewFolder>,
    Placed { path, item, object }: Placed,
) -> Result<(), FetchError> {
    let hold = cache.hold(item);
    cache.fetch(&hold, &Source { lease_id: input.lease_id, object }, patience).await?;
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
