//! Serving HTTP on a socket.
//!
//! Owns the connections. Invariant: **no connection is open for ever without sending a request or without reading its
//! answer, and there are never more than the settings allow**; those above are answered that, not left waiting.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::error::ApiError;
use crate::front::{Front, only_alive};
use crate::settings::ConnectionSettings;
use crate::stalled::UnlessStalled;

/// How long calls in hand get to finish after the shutdown began.
const FINISH_WITHIN: Duration = Duration::from_secs(10);
/// How many connections above the limit are told so at once; any more are closed without a word.
const REFUSED_AT_ONCE: usize = 64;
/// Pause after the process could not take a connection, such as for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Serves until `shutdown` is cancelled; then takes no new connections and finishes the calls in hand, for at most
/// ten seconds.
pub async fn serve_http(
    listener: TcpListener,
    front: impl Into<Front>,
    settings: ConnectionSettings,
    shutdown: CancellationToken,
) {
    let mut places = Places::new(front.into(), settings, shutdown.clone());
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = shutdown.cancelled() => break,
            Some(_ended) = connections.join_next() => {}
            (stream, peer) = accept(&listener) => {
                if let Some(connection) = places.take(peer) {
                    connections.spawn(connection.serve(stream));
                }
            }
        }
    }
    drop(listener);
    let finish = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(FINISH_WITHIN, finish).await.is_err() {
        tracing::warn!("some calls did not finish in time; their connections are closed");
    }
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            // That one connection's own end.
            Err(error) if is_of_connection(&error) => {}
            Err(error) => {
                tracing::error!(%error, "could not take a connection; raise the limit of open files if that is it");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Who may still come in.
struct Places {
    front: Front,
    refusal: Front,
    free: Arc<Semaphore>,
    free_to_refuse: Arc<Semaphore>,
    settings: ConnectionSettings,
    shutdown: CancellationToken,
    /// Connections were refused, and that was said.
    full: bool,
}

impl Places {
    fn new(front: Front, settings: ConnectionSettings, shutdown: CancellationToken) -> Self {
        Self {
            front,
            refusal: only_alive(|| ApiError::Busy { calls: "connections" }).into(),
            free: Arc::new(Semaphore::new(settings.at_once)),
            free_to_refuse: Arc::new(Semaphore::new(REFUSED_AT_ONCE)),
            settings,
            shutdown,
            full: false,
        }
    }

    fn take(&mut self, peer: SocketAddr) -> Option<Connection> {
        if let Ok(place) = Arc::clone(&self.free).try_acquire_owned() {
            self.full = false;
            return Some(self.connection(peer, &self.front, true, place));
        }
        if !std::mem::replace(&mut self.full, true) {
            tracing::warn!("as many connections are open as are allowed; more are answered 429");
        }
        let place = Arc::clone(&self.free_to_refuse).try_acquire_owned().ok()?;
        Some(self.connection(peer, &self.refusal, false, place))
    }

    fn connection(
        &self,
        peer: SocketAddr,
        front: &Front,
        keep_alive: bool,
        place: OwnedSemaphorePermit,
    ) -> Connection {
        let mut protocol = http1::Builder::new();
        protocol
            .timer(TokioTimer::new())
            .header_read_timeout(self.settings.head_within)
            .keep_alive(keep_alive);
        let (front, shutdown) = (front.clone(), self.shutdown.clone());
        Connection {
            protocol,
            peer,
            front,
            shutdown,
            stall_within: self.settings.stall_within,
            _place: place,
        }
    }
}

/// One connection.
struct Connection {
    protocol: http1::Builder,
    peer: SocketAddr,
    front: Front,
    shutdown: CancellationToken,
    stall_within: Duration,
    _place: OwnedSemaphorePermit,
}

type Answer = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

impl Connection {
    async fn serve(self, stream: TcpStream) {
        // Small answers must not wait for the acknowledgement of the ones before.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "could not set TCP_NODELAY");
        }
        let Self { protocol, peer, front, shutdown, stall_within, _place } = self;
        let service = service_fn(move |request| answer(&front, request, peer));
        let mut served =
            protocol.serve_connection(TokioIo::new(UnlessStalled::new(stream, stall_within)), service);
        let ended = tokio::select! {
            ended = poll_fn(|context| served.poll_without_shutdown(context)) => ended,
            () = shutdown.cancelled() => {
                Pin::new(&mut served).graceful_shutdown();
                poll_fn(|context| served.poll_without_shutdown(context)).await
            }
        };
        let parts = served.into_parts();
        let mut stream = parts.io.into_inner().into_inner();
        match ended {
            Err(error) if error.is_timeout() && !parts.read_buf.is_empty() => refuse_head(&mut stream).await,
            Err(error) => tracing::debug!(%error, "a connection broke"),
            Ok(()) => {}
        }
        // It may be gone.
        let _ = stream.shutdown().await;
    }
}

fn answer(front: &Front, request: hyper::Request<Incoming>, peer: SocketAddr) -> Answer {
    let mut request: Request = request.map(Body::new);
    request.extensions_mut().insert(ConnectInfo(peer));
    Box::pin(front.router().clone().oneshot(request))
}

/// Says to somebody who began a head and did not end it why the connection is closed.
async fn refuse_head(stream: &mut TcpStream) {
    let problem = ApiError::HeadTooSlow.problem();
    // Strings and numbers always have a JSON form.
    let body = serde_json::to_string(&problem).unwrap_or_default();
    let answer = format!(
        "HTTP/1.1 {} {}\r\ncontent-type: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        problem.status,
        problem.title,
        jobyard_api::json::PROBLEM_CONTENT_TYPE,
        body.len()
    );
    // A fresh connection's buffer takes it at once; whoever is gone does not read it.
    let _ = stream.write_all(answer.as_bytes()).await;
}

impl From<Router> for Front {
    fn from(router: Router) -> Self {
        Self::open(router)
    }
}
