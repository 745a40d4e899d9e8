//! Writing a tree into a folder of our own.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode as Permissions, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::path::check_path;

/// A folder that was just made and that only we write to.
#[derive(Debug)]
pub struct NewFolder {
    top: OwnedFd,
    path: PathBuf,
    /// Folders made so far.
    made: HashSet<String>,
}

impl NewFolder {
    /// Makes it; what has its name already is left alone.
    ///
    /// # Errors
    /// It is there, or can't be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        DirBuilder::new().mode(0o755).create(path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let top = rustix::fs::openat(CWD, path, flags, Permissions::empty())?;
        Ok(Self { top, path: path.to_owned(), made: HashSet::new() })
    }

    /// Makes a draft, or takes up the one that was left there, and holds it alone for as long as this lives.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when somebody else has it; it is somebody else's, no folder, or can't be made.
    pub fn draft(path: &Path) -> io::Result<Self> {
        loop {
            match DirBuilder::new().mode(0o755).create(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let top = match rustix::fs::openat(CWD, path, flags, Permissions::empty()) {
                // Whoever had it has just given it its name.
                Err(Errno::NOENT) => continue,
                opened => opened?,
            };
            if hold_alone(&top, path)? {
                return Ok(Self { top, path: path.to_owned(), made: HashSet::new() });
            }
        }
    }

    /// Opens a file that was left in a draft, to read and write it.
    ///
    /// # Errors
    /// It is not there, or is no plain file.
    pub fn open_file(&self, path: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let file = rustix::fs::openat2(&self.top, path, flags, Permissions::empty(), resolve)?;
        check_plain(&file)?;
        Ok(File::from(file))
    }

    /// Makes the folders above a file.
    ///
    /// # Errors
    /// One of them can't be made, or `path` is not fit for a tree.
    pub fn make_way(&mut self, path: &str) -> io::Result<()> {
        check_path(path).map_err(|fault| io::Error::new(io::ErrorKind::InvalidInput, fault))?;
        for (at, _) in path.match_indices('/') {
            let folder = &path[..at];
            if self.made.contains(folder) {
                continue;
            }
            match rustix::fs::mkdirat(&self.top, folder, Permissions::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => self.made.insert(folder.to_owned()),
                Err(error) => return Err(error.into()),
            };
        }
        Ok(())
    }

    /// Makes an empty file below folders that [`NewFolder::make_way`] made. Where names that differ only in case are
    /// one, the second is refused.
    ///
    /// # Errors
    /// There is something of that name, or it can't be made.
    pub fn create_file(&self, path: &str, permissions: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let permissions = Permissions::from_raw_mode(permissions);
        let made = rustix::fs::openat2(&self.top, path, flags, permissions, resolve);
        made.map(File::from).map_err(|error| self.of_name(path, error))
    }

    /// Gives a file of ours a second name in here.
    ///
    /// # Errors
    /// As [`NewFolder::create_file`]; the file system can't.
    pub fn link_file(&self, file: &Path, path: &str) -> io::Result<()> {
        let linked = rustix::fs::linkat(CWD, file, &self.top, path, AtFlags::empty());
        linked.map_err(|error| self.of_name(path, error))
    }

    /// Takes the permission to write from its folders, the deepest first.
    ///
    /// # Errors
    /// The system refuses.
    pub fn close_folders(&self) -> io::Result<()> {
        let closed = Permissions::from_raw_mode(0o555);
        for folder in &self.made {
            rustix::fs::chmodat(&self.top, folder.as_str(), closed, AtFlags::empty())?;
        }
        rustix::fs::fchmod(&self.top, closed)?;
        Ok(())
    }

    /// Gives the whole folder its name. An empty folder of that name is replaced; anything else is left alone.
    ///
    /// # Errors
    /// There is something of that name, or the rename fails.
    pub fn keep_as(&self, path: &Path) -> io::Result<()> {
        rustix::fs::syncfs(&self.top)?;
        fs::rename(&self.path, path)
    }

    fn of_name(&self, path: &str, error: Errno) -> io::Error {
        match error {
            Errno::EXIST => {
                let why = format!(
                    "{path:?} is there already: on this file system names that differ only in case are one"
                );
                io::Error::new(io::ErrorKind::AlreadyExists, why)
            }
            error => error.into(),
        }
    }
}

/// Makes a draft of one file, or takes up the one that was left there, and holds it alone until it is closed.
///
/// # Errors
/// As [`NewFolder::draft`].
pub fn draft_file(path: &Path) -> io::Result<File> {
    loop {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(CWD, path, flags, Permissions::from_raw_mode(0o666))?;
        check_plain(&file)?;
        if hold_alone(&file, path)? {
            return Ok(File::from(file));
        }
    }
}

fn check_plain(file: &OwnedFd) -> io::Result<()> {
    match FileType::from_raw_mode(rustix::fs::fstat(file)?.st_mode) {
        FileType::RegularFile => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file")),
    }
}

/// Locks a draft of ours. `false`: it has another name by now, so what is there must be looked at again.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] when somebody else holds it; it is another user's, who could change it under us.
fn hold_alone(draft: impl AsFd, path: &Path) -> io::Result<bool> {
    let held = rustix::fs::fstat(&draft)?;
    if held.st_uid != rustix::process::geteuid().as_raw() {
        let why = format!("{} is somebody else's", path.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    rustix::fs::flock(&draft, FlockOperation::NonBlockingLockExclusive)?;
    match rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(named) => Ok((named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_got_another_name_before_it_was_locked_is_no_draft() {
        let folder = tempfile::tempdir().unwrap();
        let [place, name] = ["draft", "name"].map(|name| folder.path().join(name));
        fs::create_dir(&place).unwrap();
        let opened = File::open(&place).unwrap();
        assert!(hold_alone(&opened, &place).unwrap());
        fs::rename(&place, &name).unwrap();
        assert!(!hold_alone(&opened, &place).unwrap());
        fs::create_dir(&place).unwrap();
        assert!(!hold_alone(&opened, &place).unwrap(), "another has its place");
    }
}
