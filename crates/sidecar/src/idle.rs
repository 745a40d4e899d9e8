//! Without an attempt: waiting for the first one, or for the next.

use std::os::fd::AsFd;
use std::path::PathBuf;

use jobyard_handoff::{FromSidecar, ToSidecar};
use rustix::event::{PollFd, PollFlags, poll};

use crate::connection::Connection;
use crate::exec::SignalQueue;

/// What a sidecar has from its first attempt to its last.
pub(crate) struct Link {
    pub(crate) signals: SignalQueue,
    pub(crate) connection: Connection,
}

/// A sidecar between attempts. It holds no lock and has no child.
pub(crate) struct Idle(Link);

impl Idle {
    /// Before the first attempt. `None`: this process can't watch anything.
    pub(crate) fn new(connection: Connection) -> Option<Self> {
        Some(Self(Link { signals: SignalQueue::install().ok()?, connection }))
    }

    /// After an attempt, whose lock is free by now.
    pub(crate) fn again(mut link: Link) -> Self {
        link.connection.send(&FromSidecar::Idle);
        Self(link)
    }

    /// The directory of the next attempt. `None`: the worker is gone or wants no more of us, or the machine goes down.
    pub(crate) fn wait(self) -> Option<(PathBuf, Link)> {
        let Self(mut link) = self;
        // Our working directory tells whose we are, and an attempt's is removed after it.
        let _ = rustix::process::chdir("/");
        loop {
            link.connection.flush();
            link.connection.fill();
            // All but `Begin` is left over from the attempt before.
            while let Some(frame) = link.connection.next_frame() {
                if let ToSidecar::Begin { directory } = frame {
                    return Some((directory, link));
                }
            }
            if !link.connection.is_open() || link.signals.take() {
                return None;
            }
            link.wait();
        }
    }
}

impl Link {
    fn wait(&self) {
        let write = if self.connection.wants_to_write() { PollFlags::OUT } else { PollFlags::empty() };
        let mut fds = [
            PollFd::from_borrowed_fd(self.connection.as_fd(), PollFlags::IN | write),
            PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
        ];
        // Interrupted or not, the caller looks at both.
        let _ = poll(&mut fds, None);
    }
}
