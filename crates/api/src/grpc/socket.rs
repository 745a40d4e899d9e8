//! Sockets of doors: in a directory that only their user may enter, with names of any length.

use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;
use tokio::net::{UnixListener, UnixStream};

/// Why a door can't be opened.
#[derive(Debug, Error)]
pub enum BindError {
    /// The path can't be the name of a socket in a directory.
    #[error("{0} is not the path of a socket: give a file name in a directory")]
    BadPath(PathBuf),
    /// Others could enter the directory, or it is theirs.
    #[error("{directory} must belong to the user that opens the door, with mode 0700: {found}")]
    OpenDirectory {
        /// Which.
        directory: PathBuf,
        /// What is wrong.
        found: String,
    },
    /// Somebody listens there.
    #[error("another process listens on {0}; stop it or choose another path")]
    InUse(PathBuf),
    /// The system refused.
    #[error("could not {doing} {path}")]
    Io {
        /// What we were doing.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A process that is killed while it starts another leaves a child that holds its sockets until it runs its program.
/// So a socket in use is looked at this often, for a second in all, before its name counts as taken.
const LOOKS: u32 = 50;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Listens on `path`. Makes its directory with mode 0700 when there is none, and takes over a socket that nobody
/// listens on any more.
pub async fn bind_door(path: &Path) -> Result<UnixListener, BindError> {
    let (directory, _) = split(path).ok_or_else(|| BindError::BadPath(path.to_owned()))?;
    private_directory(directory)?;
    free_name(path).await?;
    let short = ShortPath::of(path).map_err(failed("open", directory))?;
    UnixListener::bind(short.path()).map_err(failed("listen on", path))
}

async fn free_name(path: &Path) -> Result<(), BindError> {
    for _ in 0..LOOKS {
        match connect(path).await {
            Ok(_) => tokio::time::sleep(BETWEEN_LOOKS).await,
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                return std::fs::remove_file(path).map_err(failed("remove the left-over socket", path));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed("look at", path)(error)),
        }
    }
    Err(BindError::InUse(path.to_owned()))
}

/// Connects to the socket at `path`.
pub(super) async fn connect(path: &Path) -> io::Result<UnixStream> {
    let short = ShortPath::of(path)?;
    UnixStream::connect(short.path()).await
}

/// Whether whoever connected is this process's user, or root.
pub(super) fn is_ours(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| peer.uid() == 0 || peer.uid() == rustix::process::geteuid().as_raw())
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BindError {
    move |source| BindError::Io { doing, path: path.to_owned(), source }
}

fn split(path: &Path) -> Option<(&Path, &std::ffi::OsStr)> {
    let name = path.file_name()?;
    let directory = path.parent()?;
    Some((if directory.as_os_str().is_empty() { Path::new(".") } else { directory }, name))
}

fn private_directory(directory: &Path) -> Result<(), BindError> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(failed("make the directory", directory))?;
    let metadata = std::fs::metadata(directory).map_err(failed("look at the directory", directory))?;
    let mode = metadata.permissions().mode() & 0o777;
    let found = if metadata.uid() != rustix::process::geteuid().as_raw() {
        format!("it belongs to user {}", metadata.uid())
    } else if mode & 0o077 != 0 {
        format!("its mode is {mode:04o}")
    } else {
        return Ok(());
    };
    Err(BindError::OpenDirectory { directory: directory.to_owned(), found })
}

/// The kernel takes 107 bytes of a socket's name. A longer one is reached through its open directory.
struct ShortPath {
    path: PathBuf,
    _directory: Option<std::fs::File>,
}

impl ShortPath {
    const LONGEST: usize = 107;

    fn of(path: &Path) -> io::Result<Self> {
        if path.as_os_str().len() <= Self::LONGEST {
            return Ok(Self { path: path.to_owned(), _directory: None });
        }
        let (directory, name) = split(path).ok_or(ErrorKind::InvalidInput)?;
        let directory = std::fs::File::open(directory)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name);
        Ok(Self { path, _directory: Some(directory) })
    }

    fn path(&self) -> &Path {
        &self.path
    }
}
