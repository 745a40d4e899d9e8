//! The roles, wired up: which parts a process is made of, and how it ends.
//!
//! Owns settings, signals and the order of starting and stopping. Every role ends with exit 0 on SIGTERM or SIGINT,
//! after it has finished or handed over what it had in hand.

mod artifacts;
mod clock;
pub(crate) mod config;
pub(crate) mod datastore;
mod informer;
mod metrics;
mod migrate;
mod server;
mod shutdown;
pub(crate) mod token;
mod transfer;
mod up;
pub(crate) mod worker;

use std::future::Future;
use std::io::IsTerminal as _;
use std::path::PathBuf;

use clap::Subcommand;
use jobyard_store::StoreError;
use thiserror::Error;

use config::{ConfigError, RoleArguments};

/// What a machine runs.
#[derive(Debug, Subcommand)]
pub(crate) enum RoleCommand {
    /// Run everything on this machine: embedded datastore, local artifact store, one worker
    Up(up::UpArguments),
    /// Run the HTTP and report doors
    Server(RoleArguments),
    /// Run what places jobs, pushes them, and gives up on silent attempts
    Informer(RoleArguments),
    /// Run this machine's worker
    Worker(RoleArguments),
    /// Make or upgrade the schema; safe to start several at once
    Migrate(RoleArguments),
    /// Write all that a datastore holds into a file, to move it into another one
    #[command(after_help = "\
Stop what works on the datastore first: what happens after the export is not in the file. Artifacts and longer logs lie
in the artifact directory, and the keys of jobs' secrets in a file of their own: both go along.

  jobyard export --data-dir /var/lib/jobyard/up moved.jsonl
  jobyard migrate --config jobyard.toml && jobyard import --config jobyard.toml moved.jsonl")]
    Export(transfer::ExportArguments),
    /// Take what `jobyard export` wrote into a datastore that nobody has used yet, all of it or nothing
    Import(transfer::DatastoreArguments),
}

/// Why a role could not be started, or ended badly.
#[derive(Debug, Error)]
pub(crate) enum RoleError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("the datastore can't be used")]
    Store(#[from] StoreError),
    #[error("could not {doing} {path}")]
    Path {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("could not listen on {address}; choose another with {flag}")]
    Listen {
        address: String,
        flag: &'static str,
        #[source]
        source: std::io::Error,
    },
    #[error("could not {doing}")]
    Process {
        doing: &'static str,
        #[source]
        source: std::io::Error,
    },
    #[error("the worker could not be started")]
    WorkerStart(#[from] jobyard_worker::StartError),
    #[error("the worker can't go on")]
    Worker(#[from] jobyard_worker::WorkerError),
    #[error("could not open a door")]
    Door(#[from] jobyard_api::grpc::BindError),
    #[error("the file can't be used")]
    File(#[from] jobyard_store::transfer::file::FileError),
    #[error("{0}")]
    Refused(String),
}

/// Runs a role to its end.
pub(crate) fn run(command: RoleCommand) -> Result<(), RoleError> {
    match command {
        RoleCommand::Up(arguments) => block_on("warn", up::run(arguments)),
        RoleCommand::Server(arguments) => block_on("info", server::run(arguments)),
        RoleCommand::Informer(arguments) => block_on("info", informer::run(arguments)),
        RoleCommand::Worker(arguments) => block_on("info", worker::run(arguments)),
        RoleCommand::Migrate(arguments) => block_on("info", migrate::run(arguments)),
        RoleCommand::Export(arguments) => block_on("info", transfer::export(arguments)),
        RoleCommand::Import(arguments) => block_on("info", transfer::import(arguments)),
    }
}

/// Runs a future on a runtime of its own, with logging to standard error at this level unless `JOBYARD_LOG` says
/// otherwise.
pub(crate) fn block_on<T>(
    level: &str,
    role: impl Future<Output = Result<T, RoleError>>,
) -> Result<T, RoleError> {
    let filter = tracing_subscriber::EnvFilter::try_from_env("JOBYARD_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(level));
    // A second call in one process (there is none) would keep the first's logging.
    let coloured =
        std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty());
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(coloured);
    let _kept = log.with_writer(std::io::stderr).try_init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| RoleError::Process { doing: "start the async runtime", source })?;
    runtime.block_on(role)
}
