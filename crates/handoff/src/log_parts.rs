//! A log in several files, for an attempt that has no end of its own: the first one is the log's path, each of the
//! others is named after it and the place it begins at. So what was read of the first parts can be removed while the
//! last one is written, and a reader that knows nothing finds its place by the names alone.
//!
//! Invariant: a part is whole when the next one exists, which begins where it ends.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::log::{HEADER_BYTES, Stream};

/// Where something lies in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct LogPosition {
    /// Offset in all parts, one after the other.
    pub file: u64,
    /// Offsets in stdout and in stderr.
    pub streams: [u64; 2],
}

impl LogPosition {
    /// Goes past a record with so many bytes of data.
    pub fn pass(&mut self, stream: Stream, bytes: usize) {
        self.file += (HEADER_BYTES + bytes) as u64;
        self.streams[stream.index()] += bytes as u64;
    }
}

/// The file with the part of a log that begins here.
#[must_use]
pub fn part(path: &Path, from: LogPosition) -> PathBuf {
    if from == LogPosition::default() {
        return path.to_owned();
    }
    let LogPosition { file, streams: [stdout, stderr] } = from;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{file}-{stdout}-{stderr}"));
    PathBuf::from(name)
}

/// The name of the log that a file of this name is a part of, and where the part begins.
#[must_use]
pub fn log_of_part(name: &str) -> (&str, LogPosition) {
    let position = |text: &str| {
        let mut numbers = text.splitn(3, '-').map(str::parse);
        let mut next = || numbers.next()?.ok();
        let (file, streams) = (next()?, [next()?, next()?]);
        Some(LogPosition { file, streams }).filter(|position| *position != LogPosition::default())
    };
    let cut = name.rsplit_once('.').and_then(|(log, from)| Some((log, position(from)?)));
    cut.unwrap_or((name, LogPosition::default()))
}

/// Where the parts that there are of a log begin, the oldest first. Looks through the whole folder.
pub fn parts(path: &Path) -> io::Result<Vec<LogPosition>> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let (log, from) = name.to_str().map_or(("", LogPosition::default()), log_of_part);
        if path.file_name() == Some(OsStr::new(log)) {
            found.push(from);
        }
    }
    found.sort_unstable();
    Ok(found)
}
