//! A token straight into the datastore: the first one has to come from somewhere.

use std::path::Path;

use jobyard_client::json::{TokenCreate, TokenCreated};
use jobyard_model::Clock;
use jobyard_store::Actor;

use super::clock::SystemClock;
use super::config::Config;
use super::{RoleError, datastore};

/// Makes the token; the datastore is the one of the settings file.
pub(crate) async fn create(config: &Path, token: &TokenCreate) -> Result<TokenCreated, RoleError> {
    let config = Config::read(config)?;
    let store = datastore::open(&config).await?;
    let created =
        jobyard_server::create_token(store.as_ref(), token, SystemClock.now(), &Actor::role("command line"))
            .await;
    store.close().await;
    Ok(created?)
}
