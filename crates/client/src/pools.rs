//! Named sets of nodes and the jobs sent to them.

use jobyard_api::json::Pool;
use reqwest::Method;

use crate::jobs::Items;
use crate::retry::Repeat;
use crate::transport::{Call, path_part};
use crate::{Client, Error};

/// Named sets of nodes; from [`Client::pools`].
#[derive(Debug, Clone)]
pub struct Pools {
    client: Client,
}

impl Pools {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Every pool, by name.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client) -> Result<(), jobyard_client::Error> {
    /// for pool in client.pools().list().await? {
    ///     println!("{}", pool.name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Problem`]; [`Error::Unreachable`].
    pub async fn list(&self) -> Result<Vec<Pool>, Error> {
        Ok(self.client.fetch::<Items<Pool>>(&Call::get("listing the pools", "/pools")).await?.items)
    }

    /// Makes a pool; one that exists is left as it is.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client) -> Result<(), jobyard_client::Error> {
    /// client.pools().put("gpu").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Problem`] when the name can't be one or the token may not; [`Error::Unreachable`].
    pub async fn put(&self, name: &str) -> Result<(), Error> {
        let path = format!("/pools/{}", path_part(name));
        self.client.confirm(&Call::new("making a pool", Method::PUT, path, Repeat::Safe)).await.map(|_| ())
    }
}
