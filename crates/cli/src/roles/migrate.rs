//! Makes or upgrades the schema.

use jobyard_store::postgres::PostgresStore;

use super::config::RoleArguments;
use super::{RoleError, datastore};

pub(super) async fn run(arguments: RoleArguments) -> Result<(), RoleError> {
    let config = arguments.load()?;
    PostgresStore::migrate(&datastore::settings(&config)?).await?;
    Ok(())
}
