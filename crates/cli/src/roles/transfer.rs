//! All of a datastore into a file, and into another datastore: straight, without a server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use jobyard_store::sqlite::{SqliteOptions, SqliteStore};
use jobyard_store::transfer::file::{self, FileError};
use jobyard_store::{Store, StoreError};
use tokio::sync::mpsc;

use super::clock::SystemClock;
use super::config::{Config, RoleArguments};
use super::up::make_private;
use super::{RoleError, datastore};
use crate::data_dir::default_data_dir;

/// Parts on their way between the datastore and the file.
const PARTS_AHEAD: usize = 8;

/// Which datastore, and which file.
#[derive(Debug, Clone, Args)]
pub(crate) struct DatastoreArguments {
    /// The data directory of a `jobyard up`, instead of PostgreSQL [default: ~/.local/share/jobyard, when no PostgreSQL is
    /// set]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    role: RoleArguments,
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Flags of `export`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ExportArguments {
    /// Take attempts along that have not ended: on the other side they end as `lost` when their leases run out
    #[arg(long)]
    running: bool,
    #[command(flatten)]
    datastore: DatastoreArguments,
}

impl DatastoreArguments {
    /// The data directory when it is the embedded datastore.
    fn embedded(&self, config: &Config) -> Result<Option<PathBuf>, RoleError> {
        if self.data_dir.is_some() || config.datastore.url.is_some() {
            return Ok(self.data_dir.clone());
        }
        let why = "no home directory: name a data directory with --data-dir, or PostgreSQL with --config";
        default_data_dir().map(Some).ok_or_else(|| RoleError::Refused(why.to_owned()))
    }
}

pub(super) async fn export(arguments: ExportArguments) -> Result<(), RoleError> {
    let ExportArguments { running, datastore } = arguments;
    let config = datastore.role.load()?;
    let store = match datastore.embedded(&config)? {
        Some(data_dir) => {
            let path = data_dir.join("jobyard.db");
            if !SqliteStore::check(&path)? {
                let why = format!("there is no datastore in {}", data_dir.display());
                return Err(RoleError::Refused(why));
            }
            open_embedded(&config, &path)?
        }
        None => datastore::open(&config).await?,
    };
    let (sender, mut receiver) = mpsc::channel(PARTS_AHEAD);
    let (path, from) = (datastore.file, store.kind().as_str());
    let writing = tokio::task::spawn_blocking(move || {
        file::write(&path, from, std::iter::from_fn(|| receiver.blocking_recv()))
    });
    let dumped = store.dump(running, sender).await;
    let written = joined(writing.await)?;
    store.close().await;
    // Whoever only saw the other side stop has nothing to say.
    match (dumped, written) {
        (Err(error), Err(FileError::Interrupted) | Ok(_)) => Err(error.into()),
        (_, Err(error)) => Err(error.into()),
        (Ok(()), Ok(rows)) => {
            tracing::info!(rows, "exported; jobs with secrets need the key file beside it");
            Ok(())
        }
    }
}

pub(super) async fn import(arguments: DatastoreArguments) -> Result<(), RoleError> {
    let config = arguments.role.load()?;
    let path = arguments.file.clone();
    // First, so that a bad file is told from a bad datastore, and nothing is even tried.
    joined(tokio::task::spawn_blocking(move || file::verify(&path)).await)??;
    let store = match arguments.embedded(&config)? {
        Some(data_dir) => {
            make_private(&data_dir)?;
            open_embedded(&config, &data_dir.join("jobyard.db"))?
        }
        None => datastore::open(&config).await?,
    };
    let (sender, receiver) = mpsc::channel(PARTS_AHEAD);
    let path = arguments.file;
    let reading =
        tokio::task::spawn_blocking(move || file::read(&path, |part| sender.blocking_send(part).is_ok()));
    let loaded = store.load(receiver).await;
    let read = joined(reading.await)?;
    store.close().await;
    match (loaded, read) {
        (Err(StoreError::CutOff { .. }), Err(error)) => Err(error.into()),
        (Err(error), _) => Err(error.into()),
        (Ok(()), Err(error)) => Err(error.into()),
        (Ok(()), Ok(rows)) => {
            tracing::info!(rows, "imported");
            Ok(())
        }
    }
}

fn open_embedded(config: &Config, path: &Path) -> Result<Arc<dyn Store>, RoleError> {
    let options =
        SqliteOptions { lease: config.leases.settings()?, ..SqliteOptions::new(Arc::new(SystemClock)) };
    Ok(SqliteStore::open(path, options)?)
}

fn joined<T>(done: Result<T, tokio::task::JoinError>) -> Result<T, RoleError> {
    done.map_err(|error| RoleError::Process { doing: "work on the file", source: error.into() })
}
