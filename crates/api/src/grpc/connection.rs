//! A connection that is made on purpose and kept, so that "could not connect" is never confused with "sent, and no
//! answer came".

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::sync::Mutex;
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

impl Service<http::Request<Body>> for Connection {
    type Response = http::Response<hyper::body::Incoming>;
    type Error = hyper::Error;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}
