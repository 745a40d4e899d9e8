//! From what an attempt wants to a plan, with everything made that the plan names. Cheap: a few system calls,
//! no fork.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use jobyard_handoff::{
    AttemptIdentity, Containment, Environment, ExecPlan, Fault, Groups, LogPlan, RestartPlan, Times, UserIds,
};

use crate::directories::{Scratch, remove_tree};
use crate::groups::{GroupError, Hierarchies, remove_groups};
use crate::kept::KeptGroups;
use crate::program::{DEFAULT_PATH, resolve};

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
    /// The job's variables but its secrets, which [`jobyard_handoff::AttemptDirectory::add_secrets`] adds. PATH may be among them; names beginning with `JOBYARD_` are ours
    /// and win.
    pub environment: &'a [(OsString, OsString)],
    /// The working directory; `None`: a private one, `work` in the scratch directory.
    pub directory: Option<&'a Path>,
    /// Staged inputs, for `JOBYARD_INPUT`; `None`: an empty directory is made.
    pub input: Option<&'a Path>,
    /// The attempt's private directory. Made when it isn't there; emptied by `cleanup`, after which it may be another
    /// attempt's. Every folder above it
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
    /// See [`ExecPlan::restart`].
    pub restart: Option<RestartPlan>,
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

impl From<Fault> for PrepareError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<GroupError> for PrepareError {
    fn from(error: GroupError) -> Self {
        Self::Io { doing: "set up the control group", path: error.path, source: error.source }
    }
}

/// What a node has for every attempt.
pub(crate) struct NodeParts<'a> {
    pub(crate) boot_id: &'a str,
    pub(crate) containment: Containment,
    pub(crate) parents: &'a Hierarchies,
    pub(crate) kept: &'a KeptGroups,
}

pub(crate) fn prepare(node: &NodeParts<'_>, request: &PrepareRequest<'_>) -> Result<Prepared, PrepareError> {
    let scratch = Scratch::below(request.scratch);
    let directory = request.directory.unwrap_or(&scratch.work);
    let environment = environment(request, &scratch);
    let path = variable(&environment, "PATH").unwrap_or(OsStr::new(DEFAULT_PATH));
    let (program, arguments) = resolve(request.program, request.arguments, path, directory)?;
    let groups = make_all(node, request, &scratch)?;
    let memory_is_limited = groups.memory().is_some();
    let plan = ExecPlan {
        boot_id: node.boot_id.to_owned(),
        identity: request.identity.clone(),
        program,
        arguments,
        directory: directory.to_path_buf(),
        scratch: Some(request.scratch.to_path_buf()),
        user: request.user,
        containment: node.containment,
        groups,
        memory_limit_bytes: memory_is_limited.then_some(request.resources.memory_bytes),
        times: request.times,
        exclusive: request.exclusive,
        restart: request.restart.clone(),
        log: request.log.clone(),
    };
    Ok(Prepared { plan, environment, output: scratch.output })
}

/// Directories and groups, or neither.
fn make_all(
    node: &NodeParts<'_>,
    request: &PrepareRequest<'_>,
    scratch: &Scratch,
) -> Result<Groups, PrepareError> {
    let groups = match node.containment {
        Containment::Cgroup => match node.kept.take(node.parents, request.name, &request.resources) {
            Some(groups) => groups,
            None => make_groups(node, request)?,
        },
        Containment::PidNamespace { .. } | Containment::Subreaper => Groups::default(),
    };
    scratch.make(request.scratch, request.user, request.input.is_none()).map_err(|source| {
        // What can't be taken back now, the next attempt of that name takes over.
        let _ = remove_groups(&groups);
        let _ = remove_tree(request.scratch);
        let doing = "make the attempt's directories in";
        PrepareError::Io { doing, path: request.scratch.to_path_buf(), source }
    })?;
    Ok(groups)
}

fn make_groups(node: &NodeParts<'_>, request: &PrepareRequest<'_>) -> Result<Groups, PrepareError> {
    let groups = node.parents.make_leaf(request.name, &request.resources)?;
    node.kept.note(request.name, &groups, &request.resources);
    Ok(groups)
}

/// Complete: the job's variables, a PATH, and ours, which win.
fn environment(request: &PrepareRequest<'_>, scratch: &Scratch) -> Environment {
    let input = request.input.unwrap_or(&scratch.input);
    let ours = [
        ("JOBYARD_JOB_ID", OsString::from(&request.identity.job_id)),
        ("JOBYARD_ATTEMPT", OsString::from(request.identity.attempt.to_string())),
        ("JOBYARD_INPUT", input.into()),
        ("JOBYARD_OUTPUT", scratch.output.clone().into()),
    ];
    let is_ours = |name: &OsStr| name.as_encoded_bytes().starts_with(b"JOBYARD_");
    let mut variables: Vec<(OsString, OsString)> = Vec::with_capacity(request.environment.len() + 5);
    variables.extend(request.environment.iter().filter(|(name, _)| !is_ours(name)).cloned());
    if !variables.iter().any(|(name, _)| name == "PATH") {
        variables.push(("PATH".into(), DEFAULT_PATH.into()));
    }
    variables.extend(ours.map(|(name, value)| (name.into(), value)));
    Environment { variables, secret: false }
}

fn variable<'a>(environment: &'a Environment, name: &str) -> Option<&'a OsStr> {
    environment.variables.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_os_str())
}
