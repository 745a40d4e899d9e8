//! Opening the datastore that the settings name.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use jobyard_store::postgres::{PostgresConfig, PostgresStore};
use jobyard_store::{Store, StoreError};
use tokio_util::sync::CancellationToken;

use super::RoleError;
use super::config::{Config, needed};

/// PostgreSQL, as the roles use it.
pub(super) async fn open(config: &Config) -> Result<Arc<dyn Store>, RoleError> {
    Ok(PostgresStore::open(settings(config)?).await?)
}

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// As [`open`], but waits until PostgreSQL is there and `jobyard migrate` has made its schema; `None` when `shutdown`
/// comes first. What no waiting mends is an error at once.
pub(super) async fn wait_for(
    config: &Config,
    shutdown: &CancellationToken,
) -> Result<Option<Arc<dyn Store>>, RoleError> {
    let mut pause = FIRST_PAUSE;
    loop {
        let opened = tokio::select! {
            opened = open(config) => opened,
            () = shutdown.cancelled() => return Ok(None),
        };
        match opened {
            Err(RoleError::Store(error)) if may_come(&error) => {
                tracing::warn!(
                    error = &error as &dyn Error,
                    "waiting for the datastore, next try in {} ms",
                    pause.as_millis()
                );
            }
            opened => return opened.map(Some),
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shutdown.cancelled() => return Ok(None),
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn may_come(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable { .. } | StoreError::SchemaTooOld { .. })
}

/// How PostgreSQL is reached.
pub(crate) fn settings(config: &Config) -> Result<PostgresConfig, RoleError> {
    let url = needed(config.datastore.url.clone(), "datastore.url", "--database-url")?;
    Ok(PostgresConfig {
        pool_size: config.datastore.pool_size,
        max_unended_per_owner: config.datastore.max_unended_jobs_per_owner,
        dashboard_url: config.datastore.dashboard_url.clone(),
        dashboard_pool_size: config.datastore.dashboard_pool_size,
        dashboard_timeout: config.datastore.dashboard_timeout()?,
        lease: config.leases.settings()?,
        ..PostgresConfig::new(url)
    })
}
