//! The worker's end of a connection to a sidecar.

use std::io;
use std::os::unix::net::UnixStream as BlockingStream;

use jobyard_handoff::{FrameBuffer, FromSidecar, ToSidecar};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

const READ_BYTES: usize = 1 << 10;

pub(crate) struct Connection {
    stream: UnixStream,
    frames: FrameBuffer,
}

impl Connection {
    pub(crate) fn over(stream: BlockingStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream: UnixStream::from_std(stream)?, frames: FrameBuffer::default() })
    }

    /// The next frame; `None` at the end, or when what came makes no sense. Nothing is lost when the future is
    /// dropped.
    pub(crate) async fn next(&mut self) -> Option<FromSidecar> {
        loop {
            match self.frames.next_frame() {
                Ok(Some(frame)) => return Some(frame),
                Ok(None) => {}
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, "a sidecar's connection makes no sense");
                    return None;
                }
            }
            let mut bytes = [0; READ_BYTES];
            match self.stream.read(&mut bytes).await {
                Ok(0) | Err(_) => return None,
                Ok(read) => self.frames.extend(&bytes[..read]),
            }
        }
    }

    /// Gives the socket back, still in nonblocking mode; every frame was read.
    pub(crate) fn into_inner(self) -> io::Result<BlockingStream> {
        self.stream.into_std()
    }

    /// Sends a frame. That the other side is gone is noticed by reading.
    pub(crate) async fn say(&mut self, frame: &ToSidecar) {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        let _ = self.stream.write_all(&bytes).await;
    }
}
