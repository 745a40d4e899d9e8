//! The calls that belong to no noun: who we are, the overview, whether the server lives.

use jobyard_api::json::{Me, Summary};

use crate::transport::Call;
use crate::{Client, Error};

impl Client {
    /// Who the server takes us for.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client) -> Result<(), jobyard_client::Error> {
    /// println!("{:?}", client.me().await?.role);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Problem`] when the token is missing or wrong; [`Error::Unreachable`].
    pub async fn me(&self) -> Result<Me, Error> {
        self.fetch(&Call::get("asking who we are", "/me")).await
    }

    /// Bounded counts of jobs, and what the fleet offers.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client) -> Result<(), jobyard_client::Error> {
    /// println!("{} nodes", client.summary().await?.nodes);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Problem`]; [`Error::Unreachable`].
    pub async fn summary(&self) -> Result<Summary, Error> {
        self.fetch(&Call::get("reading the summary", "/summary")).await
    }

    /// Whether the server's process lives and answers. Asks no datastore, so that it is also the shortest way there and
    /// back.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client) -> Result<(), jobyard_client::Error> {
    /// client.alive().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Problem`]; [`Error::Unreachable`].
    pub async fn alive(&self) -> Result<(), Error> {
        self.confirm(&Call::get_outside("asking whether the server lives", "/healthz")).await.map(|_| ())
    }
}
