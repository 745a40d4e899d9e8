//! How our processes are told to end: SIGTERM or SIGINT, and what a second one means.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The signals that end a role, caught from now on.
pub(crate) struct EndSignals {
    terminate: Signal,
    interrupt: Signal,
}

/// Which signal came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndSignal {
    /// From a service manager: nobody sits there to press again.
    Terminate,
    /// Ctrl-C.
    Interrupt,
}

impl EndSignals {
    /// # Errors
    /// When the process can't catch signals.
    pub(crate) fn catch() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) -> EndSignal {
        tokio::select! {
            _ = self.terminate.recv() => EndSignal::Terminate,
            _ = self.interrupt.recv() => EndSignal::Interrupt,
        }
    }

    /// Cancels the token at the first signal.
    pub(crate) fn cancel_on_first(mut self, shutdown: CancellationToken) {
        tokio::spawn(async move {
            let signal = self.next().await;
            tracing::info!(?signal, "ending");
            shutdown.cancel();
        });
    }
}
