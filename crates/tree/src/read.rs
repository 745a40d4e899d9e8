//! Reading a folder: which files it has, and their bytes.
//!
//! A link counts as the file it leads to, as long as that lies in the folder too; links that lead out, to a folder, or
//! nowhere are refused, and so are devices, pipes and sockets.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use jobyard_model::ArtifactHash;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode as Permissions, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::manifest::{MAX_FILES, Mode};
use crate::path::check_path;

/// Folders in folders; far beyond what anybody keeps.
const MAX_DEPTH: usize = 128;
/// Folders looked into: a task could make millions of empty ones.
const MAX_FOLDERS: usize = 250_000;
const READ_BYTES: usize = 256 << 10;

/// Why a folder is no tree.
#[derive(Debug, Error)]
pub enum FolderError {
    /// Something in it can't be kept. Nothing is done by halves: mend it and try again.
    #[error("{path}: {why}")]
    Refused {
        /// Where, shown with escapes where it is no plain text.
        path: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The system refused.
    #[error("could not {doing} {}", path.display())]
    Io {
        /// What we were doing.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// A file of a folder, as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// Below the folder; fit for a tree.
    pub path: String,
    /// How many bytes it had.
    pub size: u64,
    /// Whether it is a program.
    pub mode: Mode,
}

/// What was read of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hashed {
    /// The name of its bytes.
    pub sha256: ArtifactHash,
    /// How many there were.
    pub size: u64,
}

/// A folder that is held open, so that nobody can put another in its place.
#[derive(Debug)]
pub struct Folder {
    top: OwnedFd,
    path: PathBuf,
    owner: Option<u32>,
}

impl Folder {
    /// Opens a folder.
    ///
    /// # Errors
    /// It is not there, or is none.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = rustix::fs::openat(CWD, path, flags, Permissions::empty());
        let top = top.map_err(|error| io_error("open the folder", path, error))?;
        Ok(Self { top, path: path.to_owned(), owner: None })
    }

    /// Only takes files of this user: another's could have been linked here by somebody who may not read them.
    #[must_use]
    pub fn owned_by(self, uid: Option<u32>) -> Self {
        Self { owner: uid, ..self }
    }

    /// Whether there is nothing in it at all.
    ///
    /// # Errors
    /// It can't be read.
    pub fn is_empty(&self) -> Result<bool, FolderError> {
        Ok(self.names("")?.is_empty())
    }

    /// Every file, by path. Two names that differ only in case are two files, as they are here.
    ///
    /// # Errors
    /// [`FolderError::Refused`] for the first thing that can't be kept.
    pub fn files(&self) -> Result<Vec<FoundFile>, FolderError> {
        let mut found = Vec::new();
        let mut folders = vec![String::new()];
        let mut looked_into = 0;
        while let Some(folder) = folders.pop() {
            looked_into += 1;
            if looked_into > MAX_FOLDERS || folder.split('/').count() > MAX_DEPTH {
                let why = format!("too many folders: at most {MAX_FOLDERS}, {MAX_DEPTH} deep");
                return Err(FolderError::Refused { path: folder, why });
            }
            for name in self.names(&folder)? {
                let path = join(&folder, &name)?;
                match self.look(&path)? {
                    Some(file) => found.push(file),
                    None => folders.push(path),
                }
                if found.len() > MAX_FILES {
                    let why = format!("has more than {MAX_FILES} files; pack some of them into an archive");
                    return Err(FolderError::Refused { path: self.path.display().to_string(), why });
                }
            }
        }
        found.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(found)
    }

    /// Opens one of its files for reading.
    ///
    /// # Errors
    /// It has become something else, or can't be read.
    pub fn open_file(&self, path: &str) -> Result<File, FolderError> {
        // A pipe that came in its place must not hold us up.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = self.resolve(path, flags).map_err(|error| self.of_link(path, error))?;
        self.plain_file(path, &self.stat(path, &file)?)?;
        Ok(File::from(file))
    }

    /// Reads one of its files to the end and gives the name of its bytes.
    ///
    /// # Errors
    /// As [`Folder::open_file`].
    pub fn hash_file(&self, path: &str) -> Result<Hashed, FolderError> {
        let file = self.open_file(path)?;
        hash_reader(file).map_err(|source| FolderError::Io {
            doing: "read",
            path: self.path.join(path),
            source,
        })
    }

    /// `None`: a folder.
    fn look(&self, path: &str) -> Result<Option<FoundFile>, FolderError> {
        let found = rustix::fs::statat(&self.top, path, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| io_error("look at", self.path.join(path), error))?;
        let found = match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => return Ok(None),
            FileType::Symlink => {
                let target = self.resolve(path, OFlags::PATH | OFlags::CLOEXEC);
                self.stat(path, &target.map_err(|error| self.of_link(path, error))?)?
            }
            _ => found,
        };
        self.plain_file(path, &found)?;
        let size = u64::try_from(found.st_size).unwrap_or(0);
        Ok(Some(FoundFile { path: path.to_owned(), size, mode: Mode::of_permissions(found.st_mode) }))
    }

    fn plain_file(&self, path: &str, found: &Stat) -> Result<(), FolderError> {
        let refuse = |why: &str| Err(FolderError::Refused { path: path.to_owned(), why: why.to_owned() });
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile if self.owner.is_some_and(|owner| owner != found.st_uid) => {
                refuse("the file belongs to somebody else: copy it instead of linking it")
            }
            FileType::RegularFile => Ok(()),
            FileType::Directory => refuse("is a link to a folder: copy the folder, or leave the link out"),
            _ => refuse("is a device, pipe or socket: only files can be kept, leave it out"),
        }
    }

    /// Never leaves the folder, whatever links there are.
    fn resolve(&self, path: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(&self.top, path, flags, Permissions::empty(), resolve)
    }

    fn stat(&self, path: &str, file: &OwnedFd) -> Result<Stat, FolderError> {
        rustix::fs::fstat(file).map_err(|error| io_error("look at", self.path.join(path), error))
    }

    fn of_link(&self, path: &str, error: Errno) -> FolderError {
        let why = match error {
            Errno::XDEV => "is a link that leads out of the folder: copy what it leads to, or leave it out",
            Errno::LOOP => "is a link in a circle: leave it out",
            Errno::NOENT => "is a link to nothing: leave it out",
            _ => return io_error("open", self.path.join(path), error),
        };
        FolderError::Refused { path: path.to_owned(), why: why.to_owned() }
    }

    fn names(&self, folder: &str) -> Result<Vec<Box<CStr>>, FolderError> {
        let read = || {
            let place = if folder.is_empty() { "." } else { folder };
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            let opened = rustix::fs::openat2(&self.top, place, flags, Permissions::empty(), resolve)?;
            let mut names = Vec::new();
            for entry in Dir::read_from(opened.as_fd())? {
                let entry = entry?;
                if ![c".", c".."].contains(&entry.file_name()) {
                    names.push(entry.file_name().into());
                }
            }
            Ok(names)
        };
        read().map_err(|error: Errno| io_error("look into", self.path.join(folder), error))
    }
}

/// Reads to the end and gives the name of the bytes.
///
/// # Errors
/// Reading failed.
pub fn hash_reader(mut from: impl Read) -> io::Result<Hashed> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; READ_BYTES];
    let mut size = 0;
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(Hashed { sha256: ArtifactHash(hasher.finalize().into()), size }),
            Ok(read) => {
                hasher.update(&buffer[..read]);
                size += read as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn join(folder: &str, name: &CStr) -> Result<String, FolderError> {
    let refuse = |why: String| {
        let shown = Path::new(folder).join(OsStr::from_bytes(name.to_bytes()));
        Err(FolderError::Refused { path: format!("{shown:?}"), why })
    };
    let Ok(name) = name.to_str() else {
        return refuse("the name is no UTF-8 text: rename it".to_owned());
    };
    let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
    match check_path(&path) {
        Ok(()) => Ok(path),
        Err(fault) => refuse(format!("{fault}: rename it")),
    }
}

fn io_error(doing: &'static str, path: impl Into<PathBuf>, error: Errno) -> FolderError {
    FolderError::Io { doing, path: path.into(), source: error.into() }
}
