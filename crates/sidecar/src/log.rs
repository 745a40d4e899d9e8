//! The log file. That of a task holds a limited part of what is said; that of a service goes on in another file after a
//! while, and what lies on the disk is limited: whoever delivers it removes the files that are done with.
//!
//! Invariant: what can't be kept is counted, and said where it is missing.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use jobyard_handoff::LogPlan;
use jobyard_handoff::log::{HEADER_BYTES, Stream, header};
use jobyard_handoff::log_parts::{LogPosition, part};

/// A part has this share of the limit, and is not larger than [`MOST_PART_BYTES`].
const PARTS: u64 = 8;
const MOST_PART_BYTES: u64 = 16 << 20;

/// What the limit is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// All that is ever said.
    Whole,
    /// What lies there at a time.
    InParts,
}

/// Why output was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    Nothing,
    /// The disk would not take it.
    DiskFull(u64),
    /// Too much lies there that was not delivered.
    Undelivered(u64),
}

/// The file, made with the first byte.
pub(crate) struct Log {
    plan: LogPlan,
    kind: Kind,
    file: Option<File>,
    /// The end.
    end: LogPosition,
    /// Where the parts begin that were not seen to be gone; the last one is being written.
    parts: VecDeque<LogPosition>,
    kept_bytes: u64,
    truncated: bool,
    limit_reached: bool,
    /// Since the last record.
    missing: Missing,
}

impl Log {
    pub(crate) fn new(plan: LogPlan, kind: Kind) -> Self {
        Self {
            plan,
            kind,
            file: None,
            end: LogPosition::default(),
            parts: VecDeque::from([LogPosition::default()]),
            kept_bytes: 0,
            truncated: false,
            limit_reached: false,
            missing: Missing::Nothing,
        }
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        self.end.file
    }

    pub(crate) fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// Dropped, and the log has no word of it.
    pub(crate) fn missing_bytes(&self) -> u64 {
        self.missing.bytes()
    }

    pub(crate) fn append(&mut self, now_ms: u64, stream: Stream, bytes: &[u8]) {
        if self.kind == Kind::Whole {
            self.append_within_limit(now_ms, stream, bytes);
        } else if self.has_room(self.notice().len() + bytes.len()) {
            self.keep(now_ms, stream, bytes);
        } else {
            self.truncated = true;
            self.missing = Missing::Undelivered(self.missing.bytes() + bytes.len() as u64);
        }
    }

    fn append_within_limit(&mut self, now_ms: u64, stream: Stream, bytes: &[u8]) {
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

    /// Whether the parts that are there leave room for so many bytes, after another look when they don't.
    fn has_room(&mut self, bytes: usize) -> bool {
        while self.lies_there() + (HEADER_BYTES + bytes) as u64 > self.plan.limit_bytes {
            let oldest = self.parts.front().filter(|_| self.parts.len() > 1);
            let is_gone = oldest.is_some_and(|oldest| !part(&self.plan.path, *oldest).exists());
            if !is_gone {
                return false;
            }
            self.parts.pop_front();
        }
        true
    }

    fn lies_there(&self) -> u64 {
        self.end.file - self.parts.front().map_or(0, |oldest| oldest.file)
    }

    fn keep(&mut self, now_ms: u64, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let notice = self.notice();
        match self.write(now_ms, stream, [notice.as_bytes(), bytes]) {
            Ok(()) => {
                self.kept_bytes += bytes.len() as u64;
                self.missing = Missing::Nothing;
            }
            Err(_) => {
                self.missing = Missing::DiskFull(self.missing.bytes() + bytes.len() as u64);
                self.truncated = true;
            }
        }
    }

    /// Says where the rest is missing. A disk that takes no more output may still take this: it is short, and the last
    /// page of a file is seldom full.
    pub(crate) fn say_what_is_missing(&mut self, now_ms: u64, stream: Stream) {
        let notice = self.notice();
        if !notice.is_empty() && self.write(now_ms, stream, [notice.as_bytes(), b""]).is_ok() {
            self.missing = Missing::Nothing;
        }
    }

    fn notice(&self) -> String {
        match self.missing {
            Missing::Nothing => String::new(),
            Missing::DiskFull(missing) => {
                format!("\n[jobyard: the disk was full; {missing} bytes of output are missing here]\n")
            }
            Missing::Undelivered(missing) => {
                let limit = self.plan.limit_bytes;
                format!(
                    "\n[jobyard: {limit} bytes of log waited to be sent; {missing} bytes of output are missing here]\n"
                )
            }
        }
    }

    /// One whole record, or none of it.
    fn write(&mut self, now_ms: u64, stream: Stream, [first, then]: [&[u8]; 2]) -> io::Result<()> {
        self.begin_part()?;
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(create(&self.plan.path)?),
        };
        let at = self.end.file - self.parts.back().map_or(0, |newest| newest.file);
        let bytes = first.len() + then.len();
        let header = header(now_ms, stream, bytes);
        let whole = HEADER_BYTES + bytes;
        let parts = [IoSlice::new(&header), IoSlice::new(first), IoSlice::new(then)];
        let written = rustix::io::retry_on_intr(|| rustix::io::pwritev(file.as_fd(), &parts, at));
        match written {
            Ok(written) if written == whole => {
                self.end.pass(stream, bytes);
                Ok(())
            }
            Ok(_) => {
                // Readers stop before half a record; still, give the space back.
                let _ = file.set_len(at);
                Err(io::ErrorKind::StorageFull.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Goes on in a new file when the last one has its share.
    fn begin_part(&mut self) -> io::Result<()> {
        let begun = self.parts.back().map_or(0, |newest| newest.file);
        let share = (self.plan.limit_bytes / PARTS).min(MOST_PART_BYTES);
        if self.kind == Kind::InParts && self.end.file > begun && self.end.file - begun >= share {
            self.file = Some(create(&part(&self.plan.path, self.end))?);
            self.parts.push_back(self.end);
        }
        Ok(())
    }
}

impl Missing {
    fn bytes(self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::DiskFull(bytes) | Self::Undelivered(bytes) => bytes,
        }
    }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}
