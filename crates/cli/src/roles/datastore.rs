//! Opening the datastore that the settings name.

use std::sync::Arc;

use jobyard_store::Store;
use jobyard_store::postgres::{PostgresConfig, PostgresStore};

use super::RoleError;
use super::config::{Config, needed};

/// PostgreSQL, as the roles use it.
pub(super) async fn open(config: &Config) -> Result<Arc<dyn Store>, RoleError> {
    Ok(PostgresStore::open(settings(config)?).await?)
}

/// How PostgreSQL is reached.
pub(super) fn settings(config: &Config) -> Result<PostgresConfig, RoleError> {
    let url = needed(config.datastore.url.clone(), "datastore.url", "--database-url")?;
    Ok(PostgresConfig {
        pool_size: config.datastore.pool_size,
        max_unended_per_owner: config.datastore.max_unended_jobs_per_owner,
        lease: config.leases.settings()?,
        ..PostgresConfig::new(url)
    })
}
