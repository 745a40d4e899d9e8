//! Files on their way from the server.
//!
//! Owns what is half there: it lies beside the wanted place, held by one pull at a time, and the next pull of the same
//! goes on with it. Invariant: **nothing gets the wanted name before all of its bytes came and their hash is right.**

use std::ffi::OsString;
use std::fs::File as StdFile;
use std::io::{self, ErrorKind, Read, Seek};
use std::path::{Path, PathBuf};

use jobyard_model::ArtifactHash;
use jobyard_tree::draft_file;
use reqwest::header::{CONTENT_RANGE, RANGE};
use reqwest::{Response, StatusCode};
use sha2::{Digest, Sha256};
use tokio::fs::File;
use tokio::io::{AsyncSeekExt, AsyncWriteExt};

use crate::outage::may_pass;
use crate::transport::Call;
use crate::trees::{FolderStep, FolderWatch, blocking};
use crate::{Artifacts, Error};

const PULLING: &str = "pulling an artifact";

/// A file that is being filled.
pub(crate) struct Filling {
    file: File,
    /// Of what the file holds.
    hasher: Sha256,
    have: u64,
    /// Some of it was there before.
    is_resumed: bool,
}

/// Where a file lies, for errors.
pub(crate) type Unwritable<'a> = &'a (dyn Fn(io::Error) -> Error + Sync);

impl Filling {
    /// Goes on with what a file holds. More than `most_bytes` can't be right. Blocks.
    pub(crate) fn of(mut file: StdFile, most_bytes: u64) -> io::Result<Self> {
        let mut hasher = Sha256::new();
        let mut have = file.metadata()?.len();
        if have > most_bytes {
            file.set_len(0)?;
            have = 0;
        }
        let mut buffer = vec![0; 256 << 10];
        file.rewind()?;
        let mut left = have;
        while left > 0 {
            let wanted = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let read = file.read(&mut buffer[..wanted])?;
            if read == 0 {
                return Err(io::Error::new(ErrorKind::UnexpectedEof, "it became shorter"));
            }
            hasher.update(&buffer[..read]);
            left -= read as u64;
        }
        Ok(Self { file: File::from_std(file), hasher, have, is_resumed: have > 0 })
    }

    /// How many bytes it holds.
    pub(crate) fn have(&self) -> u64 {
        self.have
    }

    fn hash(&self) -> ArtifactHash {
        ArtifactHash(self.hasher.clone().finalize().into())
    }

    /// Whether nothing is missing.
    pub(crate) fn is(&self, hash: ArtifactHash) -> bool {
        self.hash() == hash
    }

    /// All that was there is to come again.
    async fn start_anew(&mut self, watch: Option<&FolderWatch>) -> io::Result<()> {
        tell(watch, FolderStep::Again { bytes: self.have });
        self.file.set_len(0).await?;
        self.file.rewind().await?;
        (self.hasher, self.have, self.is_resumed) = (Sha256::new(), 0, false);
        Ok(())
    }

    async fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.file.write_all(piece).await?;
        self.hasher.update(piece);
        self.have += piece.len() as u64;
        Ok(())
    }
}

fn tell(watch: Option<&FolderWatch>, step: FolderStep) {
    if let Some(watch) = watch {
        watch(step);
    }
}

impl Artifacts {
    /// Fetches an artifact into a file. The file is there only when all bytes came and their hash is right; what it
    /// held before stays until then. What came of a pull that broke off lies beside it, as `.<name>.<hash>.part`, and the
    /// next pull goes on with it.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client, hash: jobyard_client::ArtifactHash) -> Result<(), jobyard_client::Error> {
    /// client.artifacts().pull_to_file(hash, "count.py".as_ref()).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::WrongHash`]; [`Error::File`] when the file can't be written, or another pull of it is under way;
    /// [`Error::Problem`] when there is no such artifact; [`Error::Unreachable`], also when it broke off.
    pub async fn pull_to_file(&self, hash: ArtifactHash, path: &Path) -> Result<u64, Error> {
        let draft = draft_path(path, hash);
        let unwritable = |source| unwritable_at(path, source);
        let opening = draft.clone();
        let opened = blocking(move || {
            let open = || Filling::of(draft_file(&opening)?, u64::MAX);
            open().map_err(|source| unwritable_at(&opening, source))
        });
        let mut filling = opened.await?;
        let pulled = async {
            self.pull_rest(hash, &mut filling, &unwritable, None).await?;
            filling.file.sync_all().await.map_err(unwritable)?;
            tokio::fs::rename(&draft, path).await.map_err(unwritable)?;
            Ok(filling.have)
        };
        let pulled = pulled.await;
        if pulled.as_ref().is_err_and(|error| !is_kept_after(error)) {
            // The error that brought us here says more than one about the leftover would.
            let _ = tokio::fs::remove_file(&draft).await;
        }
        pulled
    }

    /// One try at the bytes that a file lacks. What came stays in it when this fails.
    pub(crate) async fn pull_rest(
        &self,
        hash: ArtifactHash,
        filling: &mut Filling,
        unwritable: Unwritable<'_>,
        watch: Option<&FolderWatch>,
    ) -> Result<(), Error> {
        loop {
            let was_resumed = filling.is_resumed;
            if let Some(response) = self.open_rest(hash, filling, unwritable, watch).await? {
                self.take(response, filling, unwritable, watch).await?;
            }
            let got = filling.hash();
            match got == hash {
                true => return Ok(()),
                // It was the beginning of something else.
                false if was_resumed => filling.start_anew(watch).await.map_err(unwritable)?,
                false => return Err(Error::WrongHash { wanted: hash, got }),
            }
        }
    }

    /// Asks for what comes after what is there. `None`: nothing does.
    async fn open_rest(
        &self,
        hash: ArtifactHash,
        filling: &mut Filling,
        unwritable: Unwritable<'_>,
        watch: Option<&FolderWatch>,
    ) -> Result<Option<Response>, Error> {
        let mut call = Call::get(PULLING, format!("/artifacts/{hash}"));
        if filling.have == 0 {
            return self.client().open(&call).await.map(Some);
        }
        call = call.header(RANGE, format!("bytes={}-", filling.have));
        let response = match self.client().open(&call).await {
            Err(Error::Problem(problem)) if problem.status == StatusCode::RANGE_NOT_SATISFIABLE.as_u16() => {
                return Ok(None);
            }
            opened => opened?,
        };
        let begins_there = format!("bytes {}-", filling.have);
        let range = response.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
        if response.status() != StatusCode::PARTIAL_CONTENT {
            // It knows no ranges, and sends all of it.
            filling.start_anew(watch).await.map_err(unwritable)?;
        } else if !range.is_some_and(|range| range.starts_with(&begins_there)) {
            let why = format!("asked for {begins_there}, it sends {range:?}");
            return Err(self.client().answer(PULLING, why));
        }
        Ok(Some(response))
    }

    async fn take(
        &self,
        mut response: Response,
        filling: &mut Filling,
        unwritable: Unwritable<'_>,
        watch: Option<&FolderWatch>,
    ) -> Result<(), Error> {
        let taken = loop {
            match self.next_piece(PULLING, &mut response).await {
                Ok(Some(piece)) => {
                    filling.write(&piece).await.map_err(unwritable)?;
                    tell(watch, FolderStep::Moved { bytes: piece.len() as u64 });
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        filling.file.flush().await.map_err(unwritable)?;
        taken
    }
}

/// Whether the same pull, made again, goes on where this one was.
pub(crate) fn is_kept_after(error: &Error) -> bool {
    may_pass(error) || matches!(error, Error::File { .. })
}

/// An error of something that is to be written.
pub(crate) fn unwritable_at(path: &Path, source: io::Error) -> Error {
    let source = match source.kind() {
        ErrorKind::WouldBlock => io::Error::other("another pull of it is under way"),
        _ => source,
    };
    Error::File { doing: "write", path: path.to_owned(), source }
}

/// Beside the wanted place, so that the rename at the end stays within one file system, and named after what is pulled.
pub(crate) fn draft_path(path: &Path, hash: ArtifactHash) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{:.16}.part", hash.to_string()));
    path.with_file_name(name)
}
