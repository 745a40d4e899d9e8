//! Folders on their way to the artifact store.
//!
//! Invariant: **what the server has already is not sent again**, so that a push that broke off goes on where it was.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use jobyard_api::json::{ArtifactNames, MissingArtifacts};
use jobyard_model::ArtifactHash;
use jobyard_tree::{Folder, FoundFile, Tree, TreeFile};
use reqwest::{Method, StatusCode};
use tokio::fs::File;

use crate::outage::Outage;
use crate::retry::Repeat;
use crate::small_files::{SMALL_BYTES, WantedFile, in_batches};
use crate::transport::Call;
use crate::{Artifacts, Error};

pub(crate) const PUSHING: &str = "pushing a folder";
/// Files hashed at a time.
const HASHED_AT_ONCE: usize = 4;
/// Large files sent at a time, of those that one question was about.
const SENT_AT_ONCE: usize = 4;
/// Names in one question for what is missing.
const ASKED_AT_ONCE: usize = 1_000;
/// Such questions, with what is sent after them, at a time.
const ASKED_SIDE_BY_SIDE: usize = 2;
/// How often files that vanish from the server between question and answer are sent again.
const ROUNDS: u32 = 3;

/// How far a push or a pull of a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderStep {
    /// So much there is in all.
    Listed {
        /// How many files.
        files: u64,
        /// How many bytes they have together.
        bytes: u64,
    },
    /// One more file has its hash.
    Hashed {
        /// How many bytes it has.
        bytes: u64,
    },
    /// So much more has to be sent.
    ToSend {
        /// How many files.
        files: u64,
        /// How many bytes they have together.
        bytes: u64,
    },
    /// So many more bytes went over the wire.
    Moved {
        /// How many.
        bytes: u64,
    },
    /// So many bytes were there already, from a pull that broke off.
    Kept {
        /// How many.
        bytes: u64,
    },
    /// A try broke off: so many of those have to go again.
    Again {
        /// How many.
        bytes: u64,
    },
}

/// Told of each step; called from several tasks.
pub type FolderWatch = Arc<dyn Fn(FolderStep) + Send + Sync>;

/// What a push of a folder did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PushedFolder {
    /// The tree's name; `sha256:<hash>` as a job's `input_path`.
    pub hash: ArtifactHash,
    /// How many files it has.
    pub files: u64,
    /// How many bytes they have together.
    pub size_bytes: u64,
    /// How many files had to be sent.
    pub sent_files: u64,
    /// How many bytes had to be sent.
    pub sent_bytes: u64,
}

impl Artifacts {
    /// Sends a folder: its files, as far as the server doesn't have them, then its manifest. Links count as the files
    /// they lead to, empty folders are left out.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client) -> Result<(), jobyard_client::Error> {
    /// let pushed = client.artifacts().push_folder("texts".as_ref(), std::sync::Arc::new(|_| ())).await?;
    /// println!("sha256:{}", pushed.hash);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Folder`] when something in it can't be kept, or can't be read; [`Error::Problem`];
    /// [`Error::Unreachable`].
    pub async fn push_folder(&self, path: &Path, watch: FolderWatch) -> Result<PushedFolder, Error> {
        let opening = path.to_owned();
        let (folder, found) = blocking(move || {
            let folder = Folder::open(&opening)?;
            let found = folder.files()?;
            Ok((Arc::new(folder), found))
        })
        .await?;
        let bytes = found.iter().map(|file| file.size).sum();
        watch(FolderStep::Listed { files: found.len() as u64, bytes });
        let tree = hash_all(&folder, found, &watch).await?;
        let (tree, manifest, hash) = blocking(move || {
            let (manifest, hash) = tree.encode()?;
            Ok((tree, Bytes::from(manifest), hash))
        })
        .await?;
        let mut pushed = PushedFolder {
            hash,
            files: tree.files.len() as u64,
            size_bytes: tree.size_bytes(),
            sent_files: 0,
            sent_bytes: 0,
        };
        if self.has_tree(hash).await? {
            return Ok(pushed);
        }
        let mut rounds_left = ROUNDS;
        loop {
            rounds_left -= 1;
            self.push_missing(&folder, &tree, &watch, &mut pushed).await?;
            match self.put_tree(hash, manifest.clone()).await {
                Err(error) if error.code() == Some("tree_incomplete") && rounds_left > 0 => {}
                done => return done.map(|()| pushed),
            }
        }
    }

    /// Whether the server has a tree, with all its files.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client, hash: jobyard_client::ArtifactHash) -> Result<(), jobyard_client::Error> {
    /// if client.artifacts().has_tree(hash).await? {
    ///     println!("a folder");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Problem`]; [`Error::Unreachable`].
    pub async fn has_tree(&self, hash: ArtifactHash) -> Result<bool, Error> {
        let call = Call::head("looking for a tree", format!("/trees/{hash}"));
        match self.client().confirm(&call).await {
            Ok(_) => Ok(true),
            Err(Error::Problem(problem)) if problem.status == StatusCode::NOT_FOUND.as_u16() => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn push_missing(
        &self,
        folder: &Arc<Folder>,
        tree: &Tree,
        watch: &FolderWatch,
        pushed: &mut PushedFolder,
    ) -> Result<(), Error> {
        let by_hash: HashMap<ArtifactHash, (&str, u64)> =
            tree.files.iter().map(|(path, file)| (file.sha256, (path.as_str(), file.size))).collect();
        let mut names: Vec<ArtifactHash> = by_hash.keys().copied().collect();
        names.sort_unstable();
        let pushing = names.chunks(ASKED_AT_ONCE).map(<[_]>::to_vec);
        let pushing = pushing.map(|asked| self.push_asked(folder, &by_hash, asked, watch));
        let mut pushing = stream::iter(pushing).buffer_unordered(ASKED_SIDE_BY_SIDE);
        while let Some((files, bytes)) = pushing.try_next().await? {
            pushed.sent_files += files;
            pushed.sent_bytes += bytes;
        }
        Ok(())
    }

    /// Asks for some, and sends what is missing: how many files and bytes.
    async fn push_asked(
        &self,
        folder: &Arc<Folder>,
        by_hash: &HashMap<ArtifactHash, (&str, u64)>,
        asked: Vec<ArtifactHash>,
        watch: &FolderWatch,
    ) -> Result<(u64, u64), Error> {
        let wanted: Vec<WantedFile> = self
            .missing(&asked)
            .await?
            .into_iter()
            .filter_map(|hash| {
                by_hash.get(&hash).map(|(path, size)| WantedFile {
                    hash,
                    path: (*path).to_owned(),
                    size: *size,
                })
            })
            .collect();
        let (files, bytes) = (wanted.len() as u64, wanted.iter().map(|file| file.size).sum());
        watch(FolderStep::ToSend { files, bytes });
        let (small, large) = wanted.into_iter().partition(|file| file.size <= SMALL_BYTES);
        for batch in in_batches(small) {
            self.push_batch(folder, batch, watch).await?;
        }
        let large: Vec<WantedFile> = large;
        let sending = large.into_iter().map(|file| self.push_one(folder, file, watch));
        stream::iter(sending).buffer_unordered(SENT_AT_ONCE).try_for_each(async |()| Ok(())).await?;
        Ok((files, bytes))
    }

    async fn missing(&self, asked: &[ArtifactHash]) -> Result<Vec<ArtifactHash>, Error> {
        let names = ArtifactNames { sha256: asked.iter().map(ToString::to_string).collect() };
        let call = Call::post(PUSHING, "/artifacts/missing", Repeat::Safe).json(&names)?;
        let answer: MissingArtifacts = self.client().fetch(&call).await?;
        let read = |name: &String| name.parse().map_err(|_| self.client().answer(PUSHING, name.clone()));
        answer.missing.iter().map(read).collect()
    }

    async fn push_one(
        &self,
        folder: &Arc<Folder>,
        file: WantedFile,
        watch: &FolderWatch,
    ) -> Result<(), Error> {
        let WantedFile { hash, path, size } = file;
        let policy = self.client().inner().retry_policy;
        let mut outage = Outage::default();
        loop {
            // Opened anew for each try: what was sent is gone.
            let (folder, path) = (Arc::clone(folder), path.clone());
            let file = blocking(move || {
                let file = folder.open_file(&path)?;
                match file.metadata().map(|metadata| metadata.len()) {
                    Ok(now) if now == size => Ok(file),
                    other => {
                        let changed = || io::Error::other("it changed while it was pushed");
                        let source = other.err().unwrap_or_else(changed);
                        Err(Error::File { doing: "read", path: path.into(), source })
                    }
                }
            })
            .await?;
            let moved = self.counter(Some(watch));
            match self.put(hash, size, File::from_std(file), moved.clone()).await {
                Ok(()) => return Ok(()),
                Err(error) => {
                    watch(FolderStep::Again { bytes: moved.bytes() });
                    outage.bear(&policy, error).await?;
                }
            }
        }
    }

    async fn put_tree(&self, hash: ArtifactHash, manifest: Bytes) -> Result<(), Error> {
        let call = Call::new(PUSHING, Method::PUT, format!("/trees/{hash}"), Repeat::Safe).body(manifest);
        self.client().confirm(&call).await.map(|_| ())
    }
}

async fn hash_all(folder: &Arc<Folder>, found: Vec<FoundFile>, watch: &FolderWatch) -> Result<Tree, Error> {
    let hashing = found.into_iter().map(|file| {
        let folder = Arc::clone(folder);
        blocking(move || {
            let hashed = folder.hash_file(&file.path)?;
            Ok((file.path, TreeFile { sha256: hashed.sha256, size: hashed.size, mode: file.mode }))
        })
    });
    let mut hashed = stream::iter(hashing).buffer_unordered(HASHED_AT_ONCE);
    let mut tree = Tree::default();
    while let Some((path, file)) = hashed.try_next().await? {
        watch(FolderStep::Hashed { bytes: file.size });
        tree.files.insert(path, file);
    }
    Ok(tree)
}

pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // Only a panic in there, or the end of everything, comes this way.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
