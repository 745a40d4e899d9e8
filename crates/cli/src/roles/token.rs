//! A token straight into the datastore: the first one has to come from somewhere.

use jobyard_client::json::TokenCreate;
use jobyard_model::Clock;
use jobyard_store::Actor;

use super::clock::SystemClock;
use super::config::RoleArguments;
use super::{RoleError, datastore};

/// Makes the token and returns its secret.
pub(crate) async fn create(arguments: RoleArguments, token: TokenCreate) -> Result<String, RoleError> {
    let config = arguments.load()?;
    let store = datastore::open(&config).await?;
    let created = jobyard_server::create_token(store.as_ref(), &token, SystemClock.now(), &Actor::role("command line")).await;
    store.close().await;
    Ok(created?.secret)
}
