//! How a [`Client`] is made.

use std::sync::Arc;
use std::time::Duration;

use crate::client::Inner;
use crate::{Client, Connection, ConnectionError, Error, RetryPolicy, Token};

/// Collects what a [`Client`] needs.
///
/// ```no_run
/// use std::time::Duration;
/// use jobyard_client::{Client, Token};
///
/// let client = Client::builder()
///     .url("http://127.0.0.1:7700")?
///     .token(Token::new("jy_…")?)
///     .call_timeout(Duration::from_secs(10))
///     .build()?;
/// # Ok::<(), jobyard_client::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct ClientBuilder {
    connection: Option<Connection>,
    token: Option<Token>,
    retry_policy: RetryPolicy,
    timeouts: Timeouts,
}

/// How long the client waits for what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// Until a connection stands.
    pub(crate) connect: Duration,
    /// For a whole call, its answer included; for a stream until its head.
    pub(crate) call: Duration,
    /// Between two pieces of a stream; then it is opened anew.
    pub(crate) idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(5), call: Duration::from_secs(30), idle: Duration::from_secs(60) }
    }
}

impl ClientBuilder {
    /// The server's address; [`DEFAULT_URL`](crate::DEFAULT_URL) unless set.
    ///
    /// # Errors
    /// When it is not an `http` address.
    pub fn url(self, url: &str) -> Result<Self, ConnectionError> {
        Ok(self.connection(Connection::new(url)?))
    }

    /// The server and its token, as found somewhere.
    pub fn connection(self, connection: Connection) -> Self {
        Self { connection: Some(connection), ..self }
    }

    /// The token to come with; goes before the connection's.
    pub fn token(self, token: Token) -> Self {
        Self { token: Some(token), ..self }
    }

    /// How patient the client is.
    pub fn retry_policy(self, retry_policy: RetryPolicy) -> Self {
        Self { retry_policy, ..self }
    }

    /// How long a connection may take; 5 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.timeouts.connect = timeout;
        self
    }

    /// How long one call may take, its answer included; 30 s. Up- and downloads and streams are bound by
    /// [`idle_timeout`](Self::idle_timeout) instead.
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.timeouts.call = timeout;
        self
    }

    /// How long a stream may be silent before it is opened anew; 60 s.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.timeouts.idle = timeout;
        self
    }

    /// The client. Sends nothing yet.
    ///
    /// # Errors
    /// When the HTTP client can't be set up.
    pub fn build(self) -> Result<Client, Error> {
        let connection = match self.connection {
            Some(connection) => connection,
            None => Connection::new(crate::DEFAULT_URL)?,
        };
        let token = self.token.or_else(|| connection.token().cloned());
        let http = reqwest::Client::builder()
            .user_agent(concat!("jobyard-client/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(self.timeouts.connect)
            .tcp_nodelay(true)
            // Before the server closes it, which it does after 10 s: a call must not meet its end.
            .pool_idle_timeout(Duration::from_secs(5))
            // A token goes to the server it was made for and nowhere else.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()
            .map_err(|error| Error::Setup(Box::new(error)))?;
        Ok(Client::from_inner(Arc::new(Inner {
            http,
            url: connection.url().to_owned(),
            token,
            retry_policy: self.retry_policy,
            timeouts: self.timeouts,
        })))
    }
}
