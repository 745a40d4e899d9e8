//! The private directories of an attempt, and emptying or removing them whatever the task made of them.
//!
//! The folders of an attempt are used again by the next one in their place: a file system like ext4 looks past every
//! recently deleted inode to make one, so that making and removing four directories an attempt gets slower with each.

use std::ffi::{CStr, CString};
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jobyard_handoff::{ExecPlan, UserIds};
use rustix::fs::{AtFlags, CWD, Dir, IFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::clear::kill_group_members;
use crate::groups::remove_groups;

/// Below this depth a folder is moved up before it is emptied, so that neither descriptors nor stack run out.
const MAX_DEPTH: usize = 48;
/// The folders of an attempt.
const FOLDERS: [&CStr; 3] = [c"work", c"input", c"output"];
/// A directory's own size grows with what was in it and never shrinks on some file systems.
const LARGEST_NEW_BYTES: u64 = 4 << 10;
/// How long a group may stay busy after its last process died.
const GROUP_PATIENCE: Duration = Duration::from_secs(2);

/// The three folders in a scratch directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scratch {
    pub(crate) work: PathBuf,
    pub(crate) input: PathBuf,
    pub(crate) output: PathBuf,
}

impl Scratch {
    pub(crate) fn below(scratch: &Path) -> Self {
        Self { work: scratch.join("work"), input: scratch.join("input"), output: scratch.join("output") }
    }

    /// Makes them for that user, or finds them as [`empty_scratch`] left them. The scratch directory itself stays ours, so that the task can't put something else
    /// in place of the folders.
    pub(crate) fn make(&self, scratch: &Path, user: Option<UserIds>, with_input: bool) -> io::Result<()> {
        make_directory(scratch, if user.is_some() { 0o711 } else { 0o700 }, None)?;
        make_directory(&self.work, 0o700, user)?;
        make_directory(&self.output, 0o700, user)?;
        if with_input {
            make_directory(&self.input, 0o700, user)?;
        }
        Ok(())
    }
}

fn make_directory(path: &Path, mode: u32, owner: Option<UserIds>) -> io::Result<()> {
    if let Ok(found) = fs::symlink_metadata(path)
        && found.is_dir()
        && found.mode() & 0o7777 == mode
        && owner.is_none_or(|user| (found.uid(), found.gid()) == (user.uid, user.gid))
    {
        return Ok(());
    }
    match DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        other => other?,
    }
    match owner {
        Some(user) => std::os::unix::fs::lchown(path, Some(user.uid), Some(user.gid)),
        None => Ok(()),
    }
}

/// Takes away what `prepare` made: processes that are left in its groups, the groups, all that is in the scratch
/// directory but its own folders, empty and as they were made. Repeatable; call it when the outcome is acknowledged and the sidecar gone (after `clear_tree`, when it was
/// killed). The log file and the attempt directory are the caller's.
pub fn cleanup(plan: &ExecPlan) -> io::Result<()> {
    remove_busy_groups(plan)?;
    empty_folders(plan)
}

/// Only the scratch directory.
pub(crate) fn empty_folders(plan: &ExecPlan) -> io::Result<()> {
    match &plan.scratch {
        Some(scratch) => empty_scratch(scratch, plan.user),
        None => Ok(()),
    }
}

fn remove_busy_groups(plan: &ExecPlan) -> io::Result<()> {
    let mut deadline = None;
    loop {
        let Err(error) = remove_groups(&plan.groups) else { return Ok(()) };
        let deadline = *deadline.get_or_insert_with(|| Instant::now() + GROUP_PATIENCE);
        if error.kind() != ErrorKind::ResourceBusy || Instant::now() > deadline {
            return Err(error);
        }
        kill_group_members(plan);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Removes a directory and all in it, without following links, whatever permissions it was given and however deep
/// it is. Absent is fine.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let Some(top) = open_top(path)? else { return Ok(()) };
    let mut moved = 0;
    // Each pass empties what it can reach; folders moved up by one pass are emptied by the next.
    while empty(top.as_fd(), &Emptying { top: top.as_fd(), depth: 0 }, &mut moved)? {}
    match fs::remove_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// `None`: it is absent.
fn open_top(path: &Path) -> io::Result<Option<OwnedFd>> {
    match open_directory(CWD, path) {
        Ok(top) => Ok(Some(top)),
        Err(Errno::NOENT) => Ok(None),
        // Without root, a folder we may not even look into.
        Err(Errno::ACCESS) => {
            allow(CWD, path)?;
            Ok(Some(open_directory(CWD, path)?))
        }
        Err(error) => Err(error.into()),
    }
}

/// Removes everything in a scratch directory but those of its folders that are as they were made.
fn empty_scratch(path: &Path, user: Option<UserIds>) -> io::Result<()> {
    let Some(top) = open_top(path)? else { return Ok(()) };
    let place = Emptying { top: top.as_fd(), depth: 0 };
    let mut moved = 0;
    loop {
        let moved_before = moved;
        let mut is_done = true;
        for name in names(top.as_fd())? {
            if !is_kept(&name, &place, &mut moved, user)? {
                is_done = false;
                remove_entry(top.as_fd(), &name, &place, &mut moved)?;
            }
        }
        if is_done && moved == moved_before {
            return Ok(());
        }
    }
}

/// Empties one of the folders that the next attempt needs again. False: it isn't one, or the next attempt could tell
/// that there was another before it.
fn is_kept(name: &CString, place: &Emptying<'_>, moved: &mut u64, user: Option<UserIds>) -> io::Result<bool> {
    if !FOLDERS.contains(&name.as_c_str()) {
        return Ok(false);
    }
    let Ok(folder) = open_directory(place.top, name.as_c_str()) else { return Ok(false) };
    let below = Emptying { top: place.top, depth: 1 };
    while empty(folder.as_fd(), &below, moved)? {}
    is_as_made(folder.as_fd(), place.top, user)
}

/// An empty folder has the owner, the permissions, the flags and the size of a new one, and no attributes.
fn is_as_made(folder: BorrowedFd<'_>, parent: BorrowedFd<'_>, user: Option<UserIds>) -> io::Result<bool> {
    let found = rustix::fs::fstat(folder)?;
    let is_owned = user.is_none_or(|user| (found.st_uid, found.st_gid) == (user.uid, user.gid));
    let is_small = u64::try_from(found.st_size).is_ok_and(|size| size <= LARGEST_NEW_BYTES);
    Ok(is_owned
        && is_small
        && found.st_mode & 0o7777 == 0o700
        && flags(folder) == flags(parent)
        && is_plain(folder))
}

/// Where the file system has some.
fn flags(folder: BorrowedFd<'_>) -> Option<IFlags> {
    rustix::fs::ioctl_getflags(folder).ok()
}

/// Without attributes (access lists above all) but those the machine itself gives, which begin with `security.`.
fn is_plain(folder: BorrowedFd<'_>) -> bool {
    let mut names = [0_u8; 256];
    match rustix::fs::flistxattr(folder, &mut names) {
        Ok(length) => names[..length]
            .split(|byte| *byte == 0)
            .all(|name| name.is_empty() || name.starts_with(b"security.")),
        Err(error) => error == Errno::NOTSUP,
    }
}

/// Where the emptying is.
struct Emptying<'a> {
    top: BorrowedFd<'a>,
    depth: usize,
}

/// True when something was removed or moved, so that another look is due.
fn empty(directory: BorrowedFd<'_>, place: &Emptying<'_>, moved: &mut u64) -> io::Result<bool> {
    let names = names(directory)?;
    for name in &names {
        remove_entry(directory, name, place, moved)?;
    }
    Ok(!names.is_empty())
}

fn names(directory: BorrowedFd<'_>) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        if ![c".", c".."].contains(&entry.file_name()) {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

fn remove_entry(
    directory: BorrowedFd<'_>,
    name: &CString,
    place: &Emptying<'_>,
    moved: &mut u64,
) -> io::Result<()> {
    match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => remove_folder(directory, name, place, moved),
        Err(Errno::ACCESS) => {
            // We own the folder and took away our own permission to change it.
            rustix::fs::fchmod(directory, Mode::RWXU)?;
            match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => Ok(()),
                Err(_) => remove_folder(directory, name, place, moved),
            }
        }
        Err(error) => Err(error.into()),
    }
}

fn remove_folder(
    parent: BorrowedFd<'_>,
    name: &CString,
    place: &Emptying<'_>,
    moved: &mut u64,
) -> io::Result<()> {
    if rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR).is_ok() {
        return Ok(());
    }
    let folder = match open_directory(parent, name.as_c_str()) {
        Err(Errno::ACCESS) => {
            allow(parent, name.as_c_str())?;
            open_directory(parent, name.as_c_str())?
        }
        other => other?,
    };
    if place.depth >= MAX_DEPTH {
        // Its own permissions matter when a folder gets another parent.
        rustix::fs::fchmod(&folder, Mode::RWXU)?;
        *moved += 1;
        rustix::fs::renameat(parent, name.as_c_str(), place.top, format!("jobyard-deep-{moved}"))?;
        return Ok(());
    }
    let below = Emptying { top: place.top, depth: place.depth + 1 };
    while empty(folder.as_fd(), &below, moved)? {}
    match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn open_directory(parent: impl AsFd, path: impl rustix::path::Arg) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, path, flags, Mode::empty())
}

/// Gives ourselves back the permission to look. Nothing of the attempt runs any more that could put a link in
/// its place.
fn allow(parent: impl AsFd, path: impl rustix::path::Arg + Copy) -> rustix::io::Result<()> {
    let found = rustix::fs::statat(&parent, path, AtFlags::SYMLINK_NOFOLLOW)?;
    if rustix::fs::FileType::from_raw_mode(found.st_mode).is_dir() {
        rustix::fs::chmodat(parent, path, Mode::RWXU, AtFlags::empty())?;
    }
    Ok(())
}
