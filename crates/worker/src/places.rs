//! Where things lie. Attempt directories on a tmpfs; logs and undelivered outcomes on disk; what task processes see
//! where their users can enter.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use jobyard_handoff::log_parts::log_of_part;
use jobyard_model::JobId;
use jobyard_runtime::remove_tree;
use uuid::Uuid;

use crate::error::{StartError, failed};
use crate::launch::AttemptRef;
use crate::settings::WorkerSettings;

/// `statfs` of a tmpfs and of a ramfs.
const MEMORY_FILE_SYSTEMS: [i64; 2] = [0x0102_1994, 0x8584_58f6];

/// In an attempt's private directory, for an executable that is no artifact.
pub(crate) const PROGRAM_FOLDER: &str = "program";

/// Every directory of a worker; all exist.
#[derive(Debug)]
pub(crate) struct Places {
    /// The worker's own, on disk.
    pub(crate) data: PathBuf,
    /// Attempt directories, named by slot.
    pub(crate) attempts: PathBuf,
    /// Log files, see [`Places::log`].
    pub(crate) logs: PathBuf,
    /// Undelivered outcomes, named by lease.
    pub(crate) spool: PathBuf,
    /// Private directories of attempts, named by slot; rubbish has other names.
    pub(crate) work: PathBuf,
    /// Executables and files of inputs, named by hash.
    pub(crate) artifacts: PathBuf,
    /// Directories of ours outside those that were named to us: removed when nothing is left on the node.
    pub(crate) borrowed: Vec<PathBuf>,
}

impl Places {
    pub(crate) fn open(settings: &WorkerSettings, node: &str) -> Result<Self, StartError> {
        let data = &settings.data_dir;
        let state = match &settings.state_dir {
            Some(state) => state.clone(),
            None => default_state_dir(data, node),
        };
        let task = match &settings.task_dir {
            Some(task) => task.clone(),
            None => default_task_dir(data, node),
        };
        let places = Self {
            data: data.clone(),
            attempts: state.join("a"),
            logs: data.join("logs"),
            spool: data.join("spool"),
            work: task.join("work"),
            artifacts: task.join("artifacts"),
            borrowed: [&state, &task].into_iter().filter(|path| !is_named(settings, path)).cloned().collect(),
        };
        own_directory(&state, 0o700)?;
        own_directory(&task, 0o711)?;
        for private in [&places.attempts, &places.logs, &places.spool] {
            own_directory(private, 0o700)?;
        }
        for entered in [&places.work, &places.artifacts] {
            own_directory(entered, 0o711)?;
        }
        Ok(places)
    }

    /// The directory of the attempt in this slot.
    pub(crate) fn attempt(&self, slot: u32) -> PathBuf {
        self.attempts.join(slot.to_string())
    }

    /// The private directory of the attempt in this slot.
    pub(crate) fn scratch(&self, slot: u32) -> PathBuf {
        self.work.join(slot.to_string())
    }

    /// Where the attempt in this slot finds its input, when it has one.
    pub(crate) fn input(&self, slot: u32) -> PathBuf {
        self.scratch(slot).join("input")
    }

    /// Where the attempt in this slot finds its executable, when that is an object at this place in S3.
    pub(crate) fn program(&self, slot: u32, url: &str) -> PathBuf {
        let name = url.rsplit('/').next().unwrap_or_default();
        self.scratch(slot).join(PROGRAM_FOLDER).join(name)
    }

    /// Removes the private directories that are kept for the next attempts.
    pub(crate) fn empty_work(&self) -> io::Result<()> {
        fs::read_dir(&self.work)?.try_for_each(|entry| remove_tree(&entry?.path()))
    }

    /// Gives something in `work` a name that no attempt's directory has, so that it can be removed at leisure.
    pub(crate) fn discard(&self, path: &Path) -> io::Result<PathBuf> {
        let rubbish = self.work.join(format!("rubbish-{}", Uuid::new_v4().simple()));
        fs::rename(path, &rubbish).map(|()| rubbish)
    }

    /// An attempt's log file. Its name says whose it is, so that it can be delivered when all else is gone.
    pub(crate) fn log(&self, attempt: &AttemptRef) -> PathBuf {
        let name = format!("{}.{}.{}.log", attempt.job_id, attempt.number, attempt.lease_id);
        self.logs.join(name)
    }
}

/// Where the attempt directories of a worker with these settings lie (below it is a folder a node, unless it is set),
/// and whether that is memory. Makes nothing.
#[must_use]
pub fn attempt_state(settings: &WorkerSettings) -> (PathBuf, bool) {
    let directory = match &settings.state_dir {
        Some(state) => state.clone(),
        // Without the slash that an empty name leaves behind it.
        None => default_state_dir(&settings.data_dir, "").components().collect(),
    };
    let there = directory.ancestors().find(|folder| folder.exists());
    let in_memory = there.is_some_and(is_in_memory);
    (directory, in_memory)
}

fn is_named(settings: &WorkerSettings, path: &Path) -> bool {
    let named = [Some(&settings.data_dir), settings.state_dir.as_ref(), settings.task_dir.as_ref()];
    named.into_iter().flatten().any(|directory| path.starts_with(directory))
}

/// Whose log file, or part of a log, this is; `None`: not one of ours.
pub(crate) fn attempt_of_log(name: &str) -> Option<AttemptRef> {
    let (log, _) = log_of_part(name);
    let mut parts = log.strip_suffix(".log")?.split('.');
    let job_id: JobId = parts.next()?.parse().ok()?;
    let number = parts.next()?.parse().ok()?;
    let lease_id = parts.next()?.parse().ok()?;
    parts.next().is_none().then_some(AttemptRef { job_id, number, lease_id })
}

/// Made if need be. One that is not ours is refused: whoever owns it could put something else in its place.
pub(crate) fn own_directory(path: &Path, mode: u32) -> Result<(), StartError> {
    DirBuilder::new().recursive(true).mode(mode).create(path).map_err(failed("make the directory", path))?;
    let found = fs::symlink_metadata(path).map_err(failed("look at the directory", path))?;
    let ours = rustix::process::geteuid().as_raw();
    if found.uid() != ours {
        return Err(StartError::NotOurs { path: path.to_owned(), owner: found.uid() });
    }
    // The umask may have taken permissions, an older release may have given too many.
    if mode & 0o077 != 0 && found.permissions().mode() & mode != mode {
        let permissions = fs::Permissions::from_mode(found.permissions().mode() & 0o777 | mode);
        fs::set_permissions(path, permissions).map_err(failed("open to task processes", path))?;
    }
    Ok(())
}

fn default_state_dir(data: &Path, node: &str) -> PathBuf {
    let uid = rustix::process::geteuid().as_raw();
    let mut candidates = Vec::new();
    if uid == 0 {
        candidates.push(("/run".into(), PathBuf::from("/run/jobyard")));
    } else if let Some(runtime) = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        candidates.push((runtime.clone(), runtime.join("jobyard")));
    }
    candidates.push((PathBuf::from("/dev/shm"), PathBuf::from(format!("/dev/shm/jobyard-{uid}"))));
    let fits = |(base, _): &(PathBuf, PathBuf)| is_in_memory(base);
    candidates
        .into_iter()
        .find(fits)
        .map_or_else(|| data.join("state"), |(_, directory)| directory.join(node))
}

fn is_in_memory(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|found| MEMORY_FILE_SYSTEMS.contains(&found.f_type))
}

/// Task processes of a root worker have users of their own, who must be able to enter.
fn default_task_dir(data: &Path, node: &str) -> PathBuf {
    let closed = rustix::process::geteuid().is_root() && !is_enterable(data);
    if closed { PathBuf::from(format!("/var/tmp/jobyard-{node}")) } else { data.to_owned() }
}

fn is_enterable(directory: &Path) -> bool {
    let Ok(directory) = fs::canonicalize(directory) else { return false };
    // The directory itself is ours to open.
    directory.ancestors().skip(1).all(|folder| match fs::metadata(folder) {
        Ok(found) => found.permissions().mode() & 0o001 != 0,
        Err(error) => error.kind() == ErrorKind::NotFound,
    })
}

#[cfg(test)]
mod tests {
    use jobyard_handoff::log_parts::{LogPosition, part};
    use jobyard_model::LeaseId;

    use super::*;

    #[test]
    fn a_log_s_name_says_whose_it_is() {
        let id = Uuid::from_u128(7);
        let attempt = AttemptRef { job_id: JobId(id), number: 12, lease_id: LeaseId(id) };
        let directory = tempfile::tempdir().unwrap();
        let settings = WorkerSettings {
            state_dir: Some(directory.path().join("state")),
            task_dir: Some(directory.path().join("task")),
            ..WorkerSettings::new(directory.path(), "sidecar")
        };
        let places = Places::open(&settings, "n").unwrap();
        let log = places.log(&attempt);
        let later = part(&log, LogPosition { file: 17, streams: [1, 0] });
        for file in [&log, &later] {
            assert_eq!(attempt_of_log(file.file_name().unwrap().to_str().unwrap()), Some(attempt));
        }
        for other in ["", "x.log", "node-id", &format!("{id}.1.log"), &format!("{id}.x.{id}.log")] {
            assert_eq!(attempt_of_log(other), None, "{other}");
        }
    }
}
