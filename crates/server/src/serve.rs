//! Serving a router on a socket.

use std::future::IntoFuture;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How long calls in hand get to finish after the shutdown began.
const FINISH_WITHIN: Duration = Duration::from_secs(10);

/// Serves until `shutdown` is cancelled; then takes no new connections and finishes the calls in hand, for at most
/// ten seconds.
///
/// # Errors
/// The socket fails.
pub async fn serve_http(
    listener: TcpListener,
    router: Router,
    shutdown: CancellationToken,
) -> io::Result<()> {
    // Small answers must not wait for the acknowledgement of the ones before.
    let listener = listener.tap_io(|connection| {
        if let Err(error) = connection.set_nodelay(true) {
            tracing::debug!(%error, "could not set TCP_NODELAY");
        }
    });
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    let begun = shutdown.clone();
    let serving =
        axum::serve(listener, service).with_graceful_shutdown(shutdown.cancelled_owned()).into_future();
    let overdue = async {
        begun.cancelled().await;
        tokio::time::sleep(FINISH_WITHIN).await;
    };
    tokio::select! {
        served = serving => served,
        () = overdue => {
            tracing::warn!("some calls did not finish in time; their connections are closed");
            Ok(())
        }
    }
}
