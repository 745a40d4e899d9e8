//! The task's two pipes, on their way into its log. Bytes go from one to the other as records; nothing is interpreted, no
//! line is waited for, and memory is one buffer on the stack.
//!
//! Invariant: the task is never blocked by us for longer than one write to the disk, and never killed for what
//! it writes: what can't be kept is counted.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use jobyard_handoff::LogPlan;
use jobyard_handoff::log::Stream;

use crate::log::{Kind, Log};

const CHUNK_BYTES: usize = 16 << 10;
/// From one pipe before the loop looks at anything else.
const CHUNKS_PER_TURN: usize = 16;
/// A pipe holds 1 MiB at most unless its owner has CAP_SYS_RESOURCE; after the end we drain that much.
const DRAIN_CHUNKS: usize = (2 << 20) / CHUNK_BYTES;

/// Both pipes and the log.
pub(crate) struct Output {
    stdout: Pipe,
    stderr: Pipe,
    log: Log,
}

struct Pipe {
    stream: Stream,
    /// Gone at the end of file.
    fd: Option<OwnedFd>,
    bytes: u64,
}

impl Output {
    pub(crate) fn new(plan: LogPlan, kind: Kind) -> Self {
        let pipe = |stream| Pipe { stream, fd: None, bytes: 0 };
        Self { stdout: pipe(Stream::Stdout), stderr: pipe(Stream::Stderr), log: Log::new(plan, kind) }
    }

    pub(crate) fn attach(&mut self, stdout: OwnedFd, stderr: OwnedFd) {
        self.stdout.fd = Some(stdout);
        self.stderr.fd = Some(stderr);
    }

    /// What to poll.
    pub(crate) fn descriptors(&self) -> [Option<&OwnedFd>; 2] {
        [self.stdout.fd.as_ref(), self.stderr.fd.as_ref()]
    }

    /// Takes what is there, within the share of one turn.
    pub(crate) fn take(&mut self, now_ms: u64) {
        self.stderr.take(&mut self.log, now_ms, CHUNKS_PER_TURN);
        self.stdout.take(&mut self.log, now_ms, CHUNKS_PER_TURN);
    }

    /// Takes what the pipes still hold after the task's end, and lets them go, whoever else holds them.
    pub(crate) fn drain(&mut self, now_ms: u64) {
        self.stderr.take(&mut self.log, now_ms, DRAIN_CHUNKS);
        self.stdout.take(&mut self.log, now_ms, DRAIN_CHUNKS);
        self.stdout.fd = None;
        self.stderr.fd = None;
    }

    /// The last word in the log, when something is missing at its end.
    pub(crate) fn say_what_is_missing(&mut self, now_ms: u64) {
        self.log.say_what_is_missing(now_ms, Stream::Stdout);
    }

    /// Dropped because the disk was full, and the log has no word of it.
    pub(crate) fn missing_bytes(&self) -> u64 {
        self.log.missing_bytes()
    }

    pub(crate) fn stdout_bytes(&self) -> u64 {
        self.stdout.bytes
    }

    pub(crate) fn stderr_bytes(&self) -> u64 {
        self.stderr.bytes
    }

    /// The size of the log file, all its parts together, those included that are gone.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.log.file_bytes()
    }

    /// Output was dropped.
    pub(crate) fn is_truncated(&self) -> bool {
        self.log.is_truncated()
    }
}

impl Pipe {
    fn take(&mut self, log: &mut Log, now_ms: u64, chunks: usize) {
        for _ in 0..chunks {
            let Some(fd) = &self.fd else { return };
            // Uninitialised, so that pages the task's output never needs are never touched.
            let mut buffer = [MaybeUninit::uninit(); CHUNK_BYTES];
            match rustix::io::read(fd, &mut buffer) {
                Ok(([], _)) => self.fd = None,
                Ok((bytes, rest)) => {
                    self.bytes += bytes.len() as u64;
                    log.append(now_ms, self.stream, bytes);
                    if !rest.is_empty() {
                        return;
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return,
                Err(_) => self.fd = None,
            }
        }
    }
}
