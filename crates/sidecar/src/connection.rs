//! One connection to the worker: frames in, frames out, never blocking. A worker that doesn't read loses
//! heartbeats and log notices, not the outcome.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use jobyard_handoff::{FrameBuffer, FromSidecar, ToSidecar};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// Unsent bytes above which notices that only repeat themselves are dropped.
const CONGESTED_BYTES: usize = 4 << 10;
const READ_BYTES: usize = 256;

pub(crate) struct Connection {
    socket: OwnedFd,
    incoming: FrameBuffer,
    outgoing: Vec<u8>,
    open: bool,
}

impl Connection {
    /// Takes over a stream socket.
    pub(crate) fn new(socket: OwnedFd) -> Self {
        // Should it not work, the flags of each call see to it.
        let _ = rustix::io::ioctl_fionbio(&socket, true);
        Self { socket, incoming: FrameBuffer::default(), outgoing: Vec::new(), open: true }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    pub(crate) fn wants_to_write(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Sends, or keeps what the socket doesn't take.
    pub(crate) fn send(&mut self, frame: &FromSidecar) {
        let notice = matches!(frame, FromSidecar::Heartbeat { .. } | FromSidecar::LogGrew { .. });
        if self.open && !(notice && self.outgoing.len() > CONGESTED_BYTES) {
            frame.encode(&mut self.outgoing);
        }
    }

    /// Writes what waits.
    pub(crate) fn flush(&mut self) {
        while self.open && !self.outgoing.is_empty() {
            match send(&self.socket, &self.outgoing, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    self.outgoing.drain(..sent);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.open = false,
            }
        }
    }

    /// Reads what is there.
    pub(crate) fn fill(&mut self) {
        let mut buffer = [0; READ_BYTES];
        while self.open {
            match recv(&self.socket, &mut buffer, RecvFlags::DONTWAIT) {
                Ok((_, 0)) => self.open = false,
                Ok((_, read)) => {
                    self.incoming.extend(&buffer[..read]);
                    if read < READ_BYTES {
                        return;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.open = false,
            }
        }
    }

    /// The next frame that was read. One that makes no sense closes the connection.
    pub(crate) fn next_frame(&mut self) -> Option<ToSidecar> {
        self.incoming.next_frame().unwrap_or_else(|_| {
            self.open = false;
            None
        })
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
