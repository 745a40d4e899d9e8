//! The task's two pipes and its log file. Bytes go from one to the other as records; nothing is interpreted, no
//! line is waited for, and memory is one buffer on the stack.
//!
//! Invariant: the task is never blocked by us for longer than one write to the disk, and never killed for what
//! it writes: what can't be kept is counted.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use jobyard_handoff::LogPlan;
use jobyard_handoff::log::{HEADER_BYTES, Stream, header};

const CHUNK_BYTES: usize = 16 << 10;
/// From one pipe before the loop looks at anything else.
const CHUNKS_PER_TURN: usize = 16;
/// A pipe holds 1 MiB at most unless its owner has CAP_SYS_RESOURCE; after the end we drain that much.
const DRAIN_CHUNKS: usize = (2 << 20) / CHUNK_BYTES;

/// Both pipes and the file.
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
    pub(crate) fn new(plan: LogPlan) -> Self {
        let pipe = |stream| Pipe { stream, fd: None, bytes: 0 };
        Self { stdout: pipe(Stream::Stdout), stderr: pipe(Stream::Stderr), log: Log::new(plan) }
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
        self.log.say_what_is_missing(now_ms, Stream::Stdout);
    }

    /// Dropped because the disk was full, and the log has no word of it.
    pub(crate) fn missing_bytes(&self) -> u64 {
        self.log.missing_bytes
    }

    pub(crate) fn stdout_bytes(&self) -> u64 {
        self.stdout.bytes
    }

    pub(crate) fn stderr_bytes(&self) -> u64 {
        self.stderr.bytes
    }

    /// The size of the log file.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.log.file_bytes
    }

    /// Output was dropped.
    pub(crate) fn is_truncated(&self) -> bool {
        self.log.truncated
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

/// The file, made with the first byte.
struct Log {
    plan: LogPlan,
    file: Option<File>,
    file_bytes: u64,
    kept_bytes: u64,
    truncated: bool,
    limit_reached: bool,
    /// Dropped since the last record because the disk would not take it.
    missing_bytes: u64,
}

impl Log {
    fn new(plan: LogPlan) -> Self {
        Self {
            plan,
            file: None,
            file_bytes: 0,
            kept_bytes: 0,
            truncated: false,
            limit_reached: false,
            missing_bytes: 0,
        }
    }

    fn append(&mut self, now_ms: u64, stream: Stream, bytes: &[u8]) {
        if self.limit_reached {
            return;
        }
        let room = self.plan.limit_bytes.saturating_sub(self.kept_bytes);
        let kept = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        self.keep(now_ms, stream, &bytes[..kept]);
        if kept < bytes.len() {
            self.limit_reached = true;
            self.truncated = true;
            let limit = self.plan.limit_bytes;
            let line = format!(
                "\n[jobyard: the log limit of {limit} bytes is reached here; what follows is counted, not kept]\n"
            );
            let _ = self.write(now_ms, stream, [line.as_bytes(), b""]);
        }
    }

    fn keep(&mut self, now_ms: u64, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let notice = self.notice();
        match self.write(now_ms, stream, [notice.as_bytes(), bytes]) {
            Ok(()) => {
                self.kept_bytes += bytes.len() as u64;
                self.missing_bytes = 0;
            }
            Err(_) => {
                self.missing_bytes += bytes.len() as u64;
                self.truncated = true;
            }
        }
    }

    /// Says where the rest is missing. A disk that takes no more output may still take this: it is short, and the last
    /// page of a file is seldom full.
    fn say_what_is_missing(&mut self, now_ms: u64, stream: Stream) {
        let notice = self.notice();
        if !notice.is_empty() && self.write(now_ms, stream, [notice.as_bytes(), b""]).is_ok() {
            self.missing_bytes = 0;
        }
    }

    fn notice(&self) -> String {
        match self.missing_bytes {
            0 => String::new(),
            missing => {
                format!("\n[jobyard: the disk was full; {missing} bytes of output are missing here]\n")
            }
        }
    }

    /// One whole record, or none of it.
    fn write(&mut self, now_ms: u64, stream: Stream, [first, then]: [&[u8]; 2]) -> io::Result<()> {
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(create(&self.plan)?),
        };
        let bytes = first.len() + then.len();
        let header = header(now_ms, stream, bytes);
        let whole = HEADER_BYTES + bytes;
        let parts = [IoSlice::new(&header), IoSlice::new(first), IoSlice::new(then)];
        let written =
            rustix::io::retry_on_intr(|| rustix::io::pwritev(file.as_fd(), &parts, self.file_bytes));
        match written {
            Ok(written) if written == whole => {
                self.file_bytes += whole as u64;
                Ok(())
            }
            Ok(_) => {
                // Readers stop before half a record; still, give the space back.
                let _ = file.set_len(self.file_bytes);
                Err(io::ErrorKind::StorageFull.into())
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn create(plan: &LogPlan) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&plan.path)
}
