//! `doctor`: what this machine can isolate and limit, and whether everything that a worker needs is there.
//!
//! Owns the questions and their answers in words. Never decides what works: the runtime's own probes, the worker and the
//! store say so. Leaves the machine as it was.

mod isolation;
mod limits;
mod parts;
mod places;

use std::path::PathBuf;

use clap::Args;
use jobyard_worker::WorkerSettings;

use crate::arguments::OutputFlags;
use crate::data_dir::default_data_dir;
use crate::error::CommandError;
use crate::exit;
use crate::output::{self, Diagnosis};
use crate::roles::config::{Config, RoleArguments, needed};
use crate::roles::{RoleError, worker};

/// Flags of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "\
Ends 0 when a worker can run here, 1 when something that it needs is missing. Give it the user, the flags and the settings
file of the role that is to run: without a PostgreSQL it looks at what `jobyard up` would use. It makes control groups and
files of its own and removes them; nobody else's are touched.")]
pub(crate) struct DoctorArguments {
    /// Where `up` keeps everything [default: ~/.local/share/jobyard]
    #[arg(long, value_name = "DIR", env = "JOBYARD_DATA_DIR")]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    role: RoleArguments,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

/// What is looked at.
struct Patient {
    config: Config,
    worker: WorkerSettings,
    /// The embedded datastore; `None` on PostgreSQL.
    database: Option<PathBuf>,
}

impl Patient {
    fn of(arguments: &DoctorArguments) -> Result<Self, RoleError> {
        let config = arguments.role.load()?;
        let (data_dir, database) = if config.datastore.url.is_some() {
            (needed(config.worker.data_dir.clone(), "worker.data_dir", "--worker-data-dir")?, None)
        } else {
            let data_dir = arguments.data_dir.clone().or_else(default_data_dir);
            let data_dir = data_dir
                .ok_or_else(|| RoleError::Refused("no home directory: name one with --data-dir".into()))?;
            (data_dir.join("worker"), Some(data_dir.join("jobyard.db")))
        };
        let worker = worker::settings(&config, &data_dir, "")?;
        Ok(Self { config, worker, database })
    }
}

pub(crate) async fn run(arguments: &DoctorArguments) -> Result<u8, CommandError> {
    let patient = Patient::of(arguments)?;
    let mut checks = isolation::look()?;
    checks.extend(limits::look());
    checks.extend(places::look(&patient.worker));
    checks.extend(parts::look_at_sidecar(&patient.worker.sidecar_path));
    checks.push(parts::look_at_datastore(&patient).await?);
    let diagnosis = Diagnosis::of(checks);
    output::show(&diagnosis, arguments.output.output)?;
    Ok(if diagnosis.worker_can_run { 0 } else { exit::FAILED })
}
