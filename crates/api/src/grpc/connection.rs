//! A connection that is made on purpose and kept, so that "could not connect" is never confused with "sent, and no
//! answer came".

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use thiserror::Error;
use tokio::sync::Mutex;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{Service, http};

use super::{CONNECT_DEADLINE, KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT, socket};
use crate::doors::DoorError;

/// The windows of a stream and a connection: a report with its logs goes out without waiting for the other side.
const WINDOW_BYTES: u32 = 4 << 20;

/// The way to one socket. Clones share the connection.
#[derive(Clone)]
pub(super) struct Address {
    path: PathBuf,
    kept: Arc<Mutex<Option<Connection>>>,
}

impl Address {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, kept: Arc::default() }
    }

    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The kept connection, or a new one when there is none or it is closed. An error means that nothing was sent.
    pub(super) async fn connection(&self) -> Result<Connection, DoorError> {
        let mut kept = self.kept.lock().await;
        if let Some(connection) = kept.as_ref().filter(|connection| !connection.0.is_closed()) {
            return Ok(connection.clone());
        }
        *kept = None;
        let made = tokio::time::timeout(CONNECT_DEADLINE, open(&self.path)).await;
        let made = made.unwrap_or_else(|_| Err("no answer to the connect in time".to_owned()));
        let connection = made.map_err(|why| DoorError::NotSent { address: self.name(), why })?;
        *kept = Some(connection.clone());
        Ok(connection)
    }

    /// Leaves the kept connection to the calls that are on it; the next call makes a new one.
    pub(super) async fn let_go(&self) {
        *self.kept.lock().await = None;
    }
}

async fn open(path: &Path) -> Result<Connection, String> {
    let stream = socket::connect(path).await.map_err(|error| error.to_string())?;
    if !socket::is_ours(&stream) {
        return Err("whoever listens there is neither this user nor root".to_owned());
    }
    let (sender, driver) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    tokio::spawn(async move {
        // Its error reaches the calls that are on it.
        let _ = driver.await;
    });
    Ok(Connection(sender))
}

/// An open HTTP/2 connection, in the shape that generated clients call.
#[derive(Clone)]
pub(super) struct Connection(SendRequest<Body>);

/// A call that has no answer.
#[derive(Debug, Error)]
pub(super) enum CallError {
    /// The connection closed before the request was on it.
    #[error("the connection closed before the call")]
    NotSent(#[source] hyper::Error),
    /// It may have been heard.
    #[error(transparent)]
    Unanswered(hyper::Error),
}

impl CallError {
    /// Whether this says that the call did not leave.
    pub(super) fn is_not_sent(status: &Status) -> bool {
        let cause = std::error::Error::source(status).and_then(|cause| cause.downcast_ref());
        matches!(cause, Some(Self::NotSent(_)))
    }
}

impl Service<http::Request<Body>> for Connection {
    type Response = http::Response<hyper::body::Incoming>;
    type Error = CallError;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    /// Always: the call itself waits for its turn, so that its error can say that nothing was sent.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let mut sender = self.0.clone();
        Box::pin(async move {
            sender.ready().await.map_err(CallError::NotSent)?;
            sender.try_send_request(request).await.map_err(|mut refused| match refused.take_message() {
                Some(_) => CallError::NotSent(refused.into_error()),
                None => CallError::Unanswered(refused.into_error()),
            })
        })
    }
}
