//! Folders from the artifact store.
//!
//! Invariants: **a pulled folder is there whole or not at all, and nothing outside of it is written**; a pull that broke
//! off leaves a draft beside its place, and the next one keeps the files in it whose hash is right.

use std::collections::HashSet;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::BytesMut;
use futures_util::{StreamExt, TryStreamExt, stream};
use jobyard_model::ArtifactHash;
use jobyard_tree::{Folder, MAX_MANIFEST_BYTES, Mode, NewFolder, Tree, TreeFile};
use sha2::{Digest, Sha256};

use crate::outage::Outage;
use crate::pull::{Filling, draft_path, is_kept_after, unwritable_at};
use crate::transport::Call;
use crate::trees::{FolderStep, FolderWatch, blocking};
use crate::{Artifacts, Error};

const PULLING: &str = "pulling a folder";
/// Files pulled at a time.
const PULLED_AT_ONCE: usize = 8;

/// What a pull of a folder did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PulledFolder {
    /// How many files it has.
    pub files: u64,
    /// How many bytes they have together.
    pub size_bytes: u64,
}

/// A folder on its way.
struct Draft {
    new: NewFolder,
    /// Files that were in it before.
    found: HashSet<String>,
}

impl Artifacts {
    /// Fetches a tree into a folder that isn't there yet, or is empty. What came of a pull that broke off lies beside it, as
    /// `.<name>.<hash>.part`, and the next pull of the same tree to the same place goes on with it.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client, hash: jobyard_client::ArtifactHash) -> Result<(), jobyard_client::Error> {
    /// client.artifacts().pull_folder(hash, "texts".as_ref(), std::sync::Arc::new(|_| ())).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::File`] when there is something, it can't be written, or another pull of it is under way; [`Error::WrongHash`]; [`Error::Problem`] when
    /// there is no such tree; [`Error::Unreachable`].
    pub async fn pull_folder(
        &self,
        hash: ArtifactHash,
        to: &Path,
        watch: FolderWatch,
    ) -> Result<PulledFolder, Error> {
        let to = free_place(to).await?;
        let tree = self.fetch_tree(hash).await?;
        let pulled = PulledFolder { files: tree.files.len() as u64, size_bytes: tree.size_bytes() };
        watch(FolderStep::Listed { files: pulled.files, bytes: pulled.size_bytes });
        let draft = draft_path(&to, hash);
        let filled = self.fill(tree, (&draft, &to), &watch).await;
        if filled.as_ref().is_err_and(|error| !is_kept_after(error)) {
            // The error that brought us here says more than one about the leftover would.
            let _ = tokio::fs::remove_dir_all(&draft).await;
        }
        filled.map(|()| pulled)
    }

    async fn fetch_tree(&self, hash: ArtifactHash) -> Result<Tree, Error> {
        let mut response = self.client().open(&Call::get(PULLING, format!("/trees/{hash}"))).await?;
        let mut manifest = BytesMut::new();
        while let Some(piece) = self.next_piece(PULLING, &mut response).await? {
            if manifest.len() + piece.len() > MAX_MANIFEST_BYTES {
                return Err(self.client().answer(PULLING, "the manifest is too large".to_owned()));
            }
            manifest.extend_from_slice(&piece);
        }
        blocking(move || {
            let got = ArtifactHash(Sha256::digest(&manifest).into());
            if got != hash {
                return Err(Error::WrongHash { wanted: hash, got });
            }
            Ok(Tree::decode(&manifest)?)
        })
        .await
    }

    /// Fills the draft, then gives it its name.
    async fn fill(&self, tree: Tree, (draft, to): (&Path, &Path), watch: &FolderWatch) -> Result<(), Error> {
        let place = draft.to_owned();
        let (draft, tree) = blocking(move || Ok((Arc::new(open(&place, &tree)?), tree))).await?;
        let pulling = tree.files.into_iter().map(|(path, file)| self.pull_one(&draft, path, file, watch));
        stream::iter(pulling).buffer_unordered(PULLED_AT_ONCE).try_for_each(async |()| Ok(())).await?;
        let name = to.to_owned();
        blocking(move || draft.new.keep_as(&name).map_err(|source| unwritable_at(&name, source))).await
    }

    async fn pull_one(
        &self,
        draft: &Arc<Draft>,
        path: String,
        file: TreeFile,
        watch: &FolderWatch,
    ) -> Result<(), Error> {
        let unwritable = |source| unwritable_at(Path::new(&path), source);
        let (opening, named) = (Arc::clone(draft), path.clone());
        let mut filling = blocking(move || {
            let open = || Filling::of(opening.open_file(&named, file)?, file.size);
            open().map_err(|source| unwritable_at(Path::new(&named), source))
        })
        .await?;
        if filling.have() > 0 {
            watch(FolderStep::Kept { bytes: filling.have() });
        }
        if filling.is(file.sha256) {
            return Ok(());
        }
        let policy = self.client().inner().retry_policy;
        let mut outage = Outage::default();
        loop {
            let had = filling.have();
            match self.pull_rest(file.sha256, &mut filling, &unwritable, Some(watch)).await {
                Ok(()) => return Ok(()),
                Err(error) => {
                    if filling.have() > had {
                        outage.over();
                    }
                    outage.bear(&policy, error).await?;
                }
            }
        }
    }
}

impl Draft {
    /// Opens one of its files, or makes it.
    fn open_file(&self, path: &str, file: TreeFile) -> io::Result<std::fs::File> {
        let permissions = match file.mode {
            Mode::Plain => 0o644,
            Mode::Executable => 0o755,
        };
        match self.found.contains(path) {
            true => self.new.open_file(path),
            false => self.new.create_file(path, permissions),
        }
    }
}

/// Takes up the draft that is there, or makes one. What is in it belongs to the tree, or it is not ours to give a name.
fn open(place: &Path, tree: &Tree) -> Result<Draft, Error> {
    let mut new = NewFolder::draft(place).map_err(|source| unwritable_at(place, source))?;
    let found: HashSet<String> = Folder::open(place)?.files()?.into_iter().map(|file| file.path).collect();
    if let Some(stranger) = found.iter().find(|path| !tree.files.contains_key(*path)) {
        let why =
            format!("there is {stranger:?} in it, which is not of this folder: remove it and pull again");
        return Err(unwritable_at(place, io::Error::new(ErrorKind::AlreadyExists, why)));
    }
    for path in tree.files.keys() {
        new.make_way(path).map_err(|source| unwritable_at(&place.join(path), source))?;
    }
    Ok(Draft { new, found })
}

/// The place as a path with a name, where there is nothing but perhaps an empty folder.
async fn free_place(to: &Path) -> Result<PathBuf, Error> {
    let place = to.to_owned();
    blocking(move || {
        let unwritable = |source| Error::File { doing: "write", path: place.clone(), source };
        let named = match place.file_name() {
            Some(_) => place.clone(),
            None => std::fs::canonicalize(&place).map_err(unwritable)?,
        };
        let first = std::fs::read_dir(&named).and_then(|mut entries| entries.next().transpose());
        match first {
            Ok(None) => Ok(named),
            Ok(Some(_)) => {
                Err(unwritable(io::Error::new(ErrorKind::AlreadyExists, "there is something in it")))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(named),
            Err(error) => Err(unwritable(error)),
        }
    })
    .await
}
