//! A connection whose other side has to go on reading.
//!
//! Invariant: **nobody holds an answer for ever by not reading it**: when nothing of it could be written for the allowed
//! time, writing fails and the connection ends.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// See the module.
pub(crate) struct UnlessStalled {
    stream: TcpStream,
    within: Duration,
    /// Runs while a write waits.
    limit: Option<Pin<Box<Sleep>>>,
}

impl UnlessStalled {
    /// Writing may wait for so long.
    pub(crate) fn new(stream: TcpStream, within: Duration) -> Self {
        Self { stream, within, limit: None }
    }

    /// The stream itself.
    pub(crate) fn into_inner(self) -> TcpStream {
        self.stream
    }

    /// Passes on what a write came to; one that waits too long fails.
    fn judge<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.limit = None;
            return written;
        }
        let within = self.within;
        let limit = self.limit.get_or_insert_with(|| Box::pin(sleep(within)));
        match limit.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                // What was not read is not kept for them by the kernel either.
                let let_go = self.stream.set_zero_linger();
                Poll::Ready(Err(let_go.err().unwrap_or_else(|| io::ErrorKind::TimedOut.into())))
            }
        }
    }
}

impl AsyncRead for UnlessStalled {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for UnlessStalled {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.judge(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
