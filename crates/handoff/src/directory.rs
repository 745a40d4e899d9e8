//! The attempt directory: its files, who decides, who lives. See the crate's overview for the table.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::environment::{Environment, wipe};
use crate::exit_record::{EXIT_FILE_BYTES, ExitRecord};
use crate::plan::{ExecPlan, MAX_PLAN_BYTES};

const PLAN: &str = "plan";
const ENVIRONMENT: &str = "environment";
const LOCK: &str = "lock";
const DECIDED: &str = "decided";
const EXIT: &str = "exit";
const SOCKET: &str = "socket";
const LAUNCH: &str = "launch";

/// Whether the task process may ever have started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The sidecar said so, before it started anything.
    Started,
    /// Nothing was started and nothing will be.
    NotStarted,
}

impl Decision {
    fn word(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::NotStarted => "not_started",
        }
    }
}

/// What a worker finds, and what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Situation {
    /// The sidecar lives: [`AttemptDirectory::connect`] and carry on. (It may be about to end; an end of file
    /// or a refused connection means: look again.)
    Alive,
    /// Over, and the record is here: report it, then `cleanup` and [`AttemptDirectory::remove`].
    Ended(Box<ExitRecord>),
    /// No sidecar, and none can start the task any more: report `not_started`, `cleanup`, remove.
    NotStarted,
    /// The sidecar died after the task may have started, and left no record: `clear_tree`, report that it died,
    /// `cleanup`, remove.
    Died,
    /// Of another boot, so nothing of it lives: report it lost, `cleanup`, remove.
    OtherBoot,
}

/// An attempt directory by its path. Nothing is held open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptDirectory {
    path: PathBuf,
}

impl AttemptDirectory {
    /// Names a directory that exists.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Worker: makes the directory with all that is needed to start a sidecar and to end it on a full disk.
    /// On an error nothing is left behind.
    pub fn create(path: impl Into<PathBuf>, plan: &ExecPlan, environment: &Environment) -> io::Result<Self> {
        let directory = Self::at(path);
        DirBuilder::new().mode(0o700).create(&directory.path)?;
        directory.fill(plan, environment).inspect_err(|_| {
            // What can't be removed now is found, undecided and without a plan, by the next start.
            let _ = directory.remove();
        })?;
        Ok(directory)
    }

    fn fill(&self, plan: &ExecPlan, environment: &Environment) -> io::Result<()> {
        self.write_new(EXIT, &[0; EXIT_FILE_BYTES])?;
        self.write_new(LOCK, &[])?;
        self.write_new(ENVIRONMENT, &within_limit(environment.encode())?)?;
        self.write_new(PLAN, &within_limit(plan.encode())?)
    }

    fn write_new(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.path.join(name);
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
    }

    /// Worker: keeps what it was asked, for the worker after it. The sidecar never looks at it.
    pub fn keep_launch(&self, bytes: &[u8]) -> io::Result<()> {
        self.write_new(LAUNCH, bytes)
    }

    /// Worker: what [`AttemptDirectory::keep_launch`] kept; `NotFound` when the worker died before it did.
    pub fn launch(&self) -> io::Result<Vec<u8>> {
        self.read(LAUNCH, MAX_PLAN_BYTES)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The plan. `InvalidData` with a [`crate::DecodeError`] inside when it is not one.
    pub fn plan(&self) -> io::Result<ExecPlan> {
        ExecPlan::decode(&self.read(PLAN, MAX_PLAN_BYTES)?).map_err(invalid)
    }

    /// The environment; gone once the task may have started.
    pub fn environment(&self) -> io::Result<Environment> {
        let mut bytes = self.read(ENVIRONMENT, MAX_PLAN_BYTES)?;
        let environment = Environment::decode(&bytes).map_err(invalid);
        wipe(&mut bytes);
        environment
    }

    /// Worker, before it gives the directory to a sidecar: adds secrets to the environment. Should it break off, nothing
    /// was started, and the environment goes with the directory.
    pub fn add_secrets(&self, secrets: Vec<(OsString, OsString)>) -> io::Result<()> {
        let mut environment = self.environment()?;
        environment.variables.extend(secrets);
        environment.secret = true;
        let mut bytes = within_limit(environment.encode())?;
        let mut file = OpenOptions::new().write(true).truncate(true).open(self.path.join(ENVIRONMENT))?;
        let written = file.write_all(&bytes);
        wipe(&mut bytes);
        written
    }

    /// Removes the environment; repeatable.
    pub fn remove_environment(&self) -> io::Result<()> {
        absent_is_fine(fs::remove_file(self.path.join(ENVIRONMENT)))
    }

    /// Decides, unless it is decided already; the answer is what stands.
    pub fn decide(&self, decision: Decision) -> io::Result<Decision> {
        match symlink(decision.word(), self.path.join(DECIDED)) {
            Ok(()) => Ok(decision),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                self.decision()?.ok_or_else(|| ErrorKind::NotFound.into())
            }
            Err(error) => Err(error),
        }
    }

    /// What was decided.
    pub fn decision(&self) -> io::Result<Option<Decision>> {
        match fs::read_link(self.path.join(DECIDED)) {
            Ok(word) if word == Path::new(Decision::NotStarted.word()) => Ok(Some(Decision::NotStarted)),
            // A word we don't know: assume the worse.
            Ok(_) => Ok(Some(Decision::Started)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sidecar: takes the lock for as long as the file stays open; `None` when another holds it.
    pub fn try_lock(&self) -> io::Result<Option<File>> {
        let file = File::open(self.path.join(LOCK))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Whether a sidecar holds the lock. (Looking takes the lock for a moment; a sidecar that starts then
    /// tries again.)
    pub fn is_held(&self) -> io::Result<bool> {
        match self.try_lock() {
            Ok(lock) => Ok(lock.is_none()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The exit record; `None` while there is none.
    pub fn exit_record(&self) -> io::Result<Option<ExitRecord>> {
        ExitRecord::decode(&self.read(EXIT, EXIT_FILE_BYTES)?).map_err(invalid)
    }

    /// Sidecar: fills the exit file in place. It needs no new space.
    pub fn write_exit_record(&self, record: &ExitRecord) -> io::Result<()> {
        OpenOptions::new().write(true).open(self.path.join(EXIT))?.write_all(&record.encode())
    }

    /// Sidecar: listens on `socket`. The name given to the kernel is short, whatever the directory's is.
    pub fn listen(&self) -> io::Result<UnixListener> {
        let held = File::open(&self.path)?;
        let listener = UnixListener::bind(short_socket_path(&held))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    /// Worker: connects to the sidecar; blocking mode.
    pub fn connect(&self) -> io::Result<UnixStream> {
        UnixStream::connect(short_socket_path(&File::open(&self.path)?))
    }

    /// Worker: what to do with this directory. When no sidecar lives and nothing was decided, this decides
    /// `not_started`. `plan` is this directory's, `boot_id` that of [`read_boot_id`].
    pub fn situation(&self, plan: &ExecPlan, boot_id: &str) -> io::Result<Situation> {
        if plan.boot_id != boot_id {
            // The record of an attempt that ended before the reboot is still the truth.
            return Ok(self.exit_record().ok().flatten().map_or(Situation::OtherBoot, ended));
        }
        if self.is_held()? {
            return Ok(Situation::Alive);
        }
        // A record half written is no record: the sidecar died at it.
        if let Ok(Some(record)) = self.exit_record() {
            return Ok(ended(record));
        }
        match self.decide(Decision::NotStarted)? {
            Decision::NotStarted => Ok(Situation::NotStarted),
            // Between the two looks a sidecar may have come up.
            Decision::Started if self.is_held()? => Ok(Situation::Alive),
            Decision::Started => Ok(self.exit_record().ok().flatten().map_or(Situation::Died, ended)),
        }
    }

    /// Removes the directory and what is in it; repeatable.
    pub fn remove(&self) -> io::Result<()> {
        for name in [SOCKET, ENVIRONMENT, EXIT, DECIDED, LOCK, LAUNCH, PLAN] {
            absent_is_fine(fs::remove_file(self.path.join(name)))?;
        }
        absent_is_fine(fs::remove_dir(&self.path))
    }

    fn read(&self, name: &str, limit: usize) -> io::Result<Vec<u8>> {
        let file = File::open(self.path.join(name))?;
        let size = file.metadata()?.len();
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        if size > limit {
            return Err(invalid(crate::DecodeError::TooLarge));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        file.take(limit).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// This boot's id, as plans carry it.
pub fn read_boot_id() -> io::Result<String> {
    let mut id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    id.truncate(id.trim_end().len());
    Ok(id)
}

fn ended(record: ExitRecord) -> Situation {
    Situation::Ended(Box::new(record))
}

/// A socket's name holds 108 bytes at most; through the open directory any path will do.
fn short_socket_path(directory: &File) -> String {
    format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd())
}

fn within_limit(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    if bytes.len() > MAX_PLAN_BYTES { Err(ErrorKind::ArgumentListTooLong.into()) } else { Ok(bytes) }
}

fn invalid(error: crate::DecodeError) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
