//! From what an attempt wants to a plan, with everything made that the plan names. Cheap: a few system calls,
//! no fork.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use jobyard_handoff::{AttemptIdentity, Environment, ExecPlan, Fault, LogPlan, Times, UserIds};

/// What to execute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program<'a> {
    /// An artifact at this absolute path; `arguments` are its arguments, without argv\[0\].
    Artifact(&'a Path),
    /// What the node has: `arguments[0]` is an absolute path, a path relative to the working directory (it has
    /// a slash), or a bare name looked up in PATH.
    FromArguments,
}

/// What the attempt may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resources {
    /// Hard limit where the node has a memory controller.
    pub memory_bytes: u64,
    /// Weight, in thousandths of a core.
    pub cpu_milli: u64,
    /// Cap in thousandths of a core; `None`: no cap.
    pub cpu_limit_milli: Option<u64>,
    /// Processes and threads; 4,096 unless the job says otherwise.
    pub pids_limit: u32,
}

impl Default for Resources {
    fn default() -> Self {
        Self { memory_bytes: 128 << 20, cpu_milli: 100, cpu_limit_milli: None, pids_limit: 4_096 }
    }
}

/// What `prepare` needs to know.
#[derive(Debug, Clone)]
pub struct PrepareRequest<'a> {
    /// Given back by the sidecar; also `JOBYARD_JOB_ID` and `JOBYARD_ATTEMPT`.
    pub identity: AttemptIdentity,
    /// Names the attempt's groups: short, unique among the live attempts of the node, of letters, digits, `-`.
    pub name: &'a str,
    /// What to execute.
    pub program: Program<'a>,
    /// See [`Program`].
    pub arguments: &'a [OsString],
    /// The job's variables, secrets included. PATH may be among them; names beginning with `JOBYARD_` are ours
    /// and win.
    pub environment: &'a [(OsString, OsString)],
    /// Staged inputs, for `JOBYARD_INPUT`; `None`: an empty directory is made.
    pub input: Option<&'a Path>,
    /// The attempt's private directory. Made when it isn't there; removed by `cleanup`. Every folder above it
    /// must be enterable by the attempt's user (mode 0711 will do).
    pub scratch: &'a Path,
    /// Whom to run as; `None`: as the worker.
    pub user: Option<UserIds>,
    /// What it may use.
    pub resources: Resources,
    /// Every duration.
    pub times: Times,
    /// See [`ExecPlan::exclusive`].
    pub exclusive: bool,
    /// Where output goes.
    pub log: LogPlan,
}

/// What `prepare` made.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// For the attempt directory.
    pub plan: ExecPlan,
    /// For the attempt directory; complete.
    pub environment: Environment,
    /// The attempt's output directory, `JOBYARD_OUTPUT`, inside the scratch directory.
    pub output: PathBuf,
}

/// Why an attempt can't be prepared. Nothing is left behind.
#[derive(Debug)]
pub enum PrepareError {
    /// The job can't work as it is written (or [`Fault::code`] says it is the platform): report it as the
    /// attempt's launch fault.
    Fault(Fault),
    /// This machine could not do it.
    Io {
        /// What we were doing.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl fmt::Display for PrepareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(fault) => f.write_str(&fault.message),
            Self::Io { doing, path, .. } => write!(f, "could not {doing} {}", path.display()),
        }
    }
}

impl std::error::Error for PrepareError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Fault(_) => None,
            Self::Io { source, .. } => Some(source),
        }
    }
}
