//! The handle that everything starts from.

use std::path::Path;
use std::sync::Arc;

use crate::builder::Timeouts;
use crate::{
    Artifacts, Audit, ClientBuilder, Connection, Error, Events, Jobs, Nodes, Pools, RetryPolicy, Token,
    Tokens,
};

/// A server, as seen by one token. Cheap to clone; clones share their connections.
///
/// ```no_run
/// # async fn example() -> Result<(), jobyard_client::Error> {
/// use jobyard_client::Client;
///
/// let client = Client::from_env()?;
/// println!("I am {}", client.me().await?.name);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) http: reqwest::Client,
    pub(crate) url: String,
    pub(crate) token: Option<Token>,
    pub(crate) retry_policy: RetryPolicy,
    pub(crate) timeouts: Timeouts,
}

impl Client {
    /// A client made to measure.
    ///
    /// ```no_run
    /// let client = jobyard_client::Client::builder().url("http://127.0.0.1:7700")?.build()?;
    /// # Ok::<(), jobyard_client::Error>(())
    /// ```
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// A client for the server and token in `JOBYARD_URL` and `JOBYARD_TOKEN`; what is not set is
    /// [`DEFAULT_URL`](crate::DEFAULT_URL) and no token.
    ///
    /// ```no_run
    /// let client = jobyard_client::Client::from_env()?;
    /// # Ok::<(), jobyard_client::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a variable is set to something that can't be an address or a token.
    pub fn from_env() -> Result<Self, Error> {
        match Connection::from_env()? {
            Some(connection) => Self::builder().connection(connection).build(),
            None => Self::builder().build(),
        }
    }

    /// A client for the context saved in `path`; without such a file for [`DEFAULT_URL`](crate::DEFAULT_URL).
    ///
    /// ```no_run
    /// let client = jobyard_client::Client::from_context("jobyard.toml".as_ref())?;
    /// # Ok::<(), jobyard_client::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the file can't be read or says something else.
    pub fn from_context(path: &Path) -> Result<Self, Error> {
        match Connection::from_context(path)? {
            Some(connection) => Self::builder().connection(connection).build(),
            None => Self::builder().build(),
        }
    }

    pub(crate) fn from_inner(inner: Arc<Inner>) -> Self {
        Self { inner }
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// The server's address.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.inner.url
    }

    /// Submitting, reading and steering jobs.
    #[must_use]
    pub fn jobs(&self) -> Jobs {
        Jobs::new(self.clone())
    }

    /// Following what changes.
    #[must_use]
    pub fn events(&self) -> Events {
        Events::new(self.clone())
    }

    /// Executables by their hash.
    #[must_use]
    pub fn artifacts(&self) -> Artifacts {
        Artifacts::new(self.clone())
    }

    /// The fleet.
    #[must_use]
    pub fn nodes(&self) -> Nodes {
        Nodes::new(self.clone())
    }

    /// Named sets of nodes.
    #[must_use]
    pub fn pools(&self) -> Pools {
        Pools::new(self.clone())
    }

    /// Who may.
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        Tokens::new(self.clone())
    }

    /// Who did what.
    #[must_use]
    pub fn audit(&self) -> Audit {
        Audit::new(self.clone())
    }
}
