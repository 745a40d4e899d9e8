//! Who may.

use jobyard_api::json::{Login, Token, TokenCreate, TokenCreated};
use jobyard_model::ids::TokenId;
use reqwest::Method;

use crate::jobs::Items;
use crate::retry::Repeat;
use crate::transport::Call;
use crate::{Client, Error};

/// Who may; from [`Client::tokens`].
#[derive(Debug, Clone)]
pub struct Tokens {
    client: Client,
}

impl Tokens {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Every token without its secret, newest first.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client) -> Result<(), jobyard_client::Error> {
    /// for token in client.tokens().list().await? {
    ///     println!("{} {:?}", token.name, token.role);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Problem`] when our own token may not; [`Error::Unreachable`].
    pub async fn list(&self) -> Result<Vec<Token>, Error> {
        Ok(self.client.fetch::<Items<Token>>(&Call::get("listing the tokens", "/tokens")).await?.items)
    }

    /// Makes a token. Its secret is in this answer and never again, so the call is not repeated by itself: when the
    /// answer is lost, look for the token and revoke it.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client) -> Result<(), jobyard_client::Error> {
    /// use jobyard_client::Role;
    /// use jobyard_client::json::TokenCreate;
    ///
    /// let wanted = TokenCreate { name: "nightly".into(), role: Role::Submitter, owners: vec!["search".into()], expires_in: None };
    /// println!("{}", client.tokens().create(&wanted).await?.secret);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Problem`] naming what is wrong; [`Error::Unreachable`].
    pub async fn create(&self, token: &TokenCreate) -> Result<TokenCreated, Error> {
        self.client.fetch(&Call::post("making a token", "/tokens", Repeat::Unsafe).json(token)?).await
    }

    /// Makes a code that begins one session of our own token in a browser, within 15 minutes: the dashboard takes it as
    /// `/login#<code>`.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client) -> Result<(), jobyard_client::Error> {
    /// println!("{}/login#{}", client.url(), client.tokens().login().await?.login);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Problem`]; [`Error::Unreachable`].
    pub async fn login(&self) -> Result<Login, Error> {
        self.client.fetch(&Call::post("making a login code", "/sessions/links", Repeat::Safe)).await
    }

    /// Revokes a token; it stops working at once.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client, id: jobyard_client::TokenId) -> Result<(), jobyard_client::Error> {
    /// client.tokens().revoke(id).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Problem`] when there is no such token; [`Error::Unreachable`].
    pub async fn revoke(&self, id: TokenId) -> Result<(), Error> {
        let call = Call::new("revoking a token", Method::DELETE, format!("/tokens/{id}"), Repeat::Safe);
        self.client.confirm(&call).await.map(|_| ())
    }
}
