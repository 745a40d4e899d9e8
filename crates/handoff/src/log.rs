//! The log file: records of `[u32 length][u8 stream][u8 check][u16 0][u64 unix ms][bytes]`, little endian, one
//! after the other. Bytes stay bytes; a record is what one read from a pipe gave, not a line.
//!
//! Invariant: a reader that sees a torn last record stops before it and finds it whole later, or never.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes before the data of each record.
pub const HEADER_BYTES: usize = 16;
/// The most data one record holds.
pub const MAX_DATA_BYTES: usize = 64 << 10;

/// Which pipe the bytes came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// 0 for stdout, 1 for stderr.
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Self::Stdout => 0,
            Self::Stderr => 1,
        }
    }

    fn code(self) -> u8 {
        match self {
            Self::Stdout => 1,
            Self::Stderr => 2,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Stdout),
            2 => Some(Self::Stderr),
            _ => None,
        }
    }
}

/// A piece of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// When the sidecar read it, unix ms.
    pub at_ms: u64,
    /// Where from.
    pub stream: Stream,
    /// What.
    pub bytes: &'a [u8],
    /// Where in the file the next record begins: the place to go on from.
    pub end_offset: u64,
}

/// The file holds something that is no record at this offset (a disk that lost power may leave zeros).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damaged {
    /// Where; what is before it is good.
    pub offset: u64,
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no log record at offset {}", self.offset)
    }
}

impl std::error::Error for Damaged {}

/// The header that goes before `length` bytes of data (at most [`MAX_DATA_BYTES`]).
#[must_use]
pub fn header(at_ms: u64, stream: Stream, length: usize) -> [u8; HEADER_BYTES] {
    debug_assert!(length <= MAX_DATA_BYTES);
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&u32::try_from(length).unwrap_or(0).to_le_bytes());
    header[4] = stream.code();
    header[8..].copy_from_slice(&at_ms.to_le_bytes());
    header[5] = check(&header);
    header
}

/// All bytes of the header but the check itself, so that neither zeros nor text pass for a header.
fn check(header: &[u8; HEADER_BYTES]) -> u8 {
    let sum = header.iter().enumerate().filter(|(at, _)| *at != 5);
    sum.fold(0xA5, |sum: u8, (_, byte)| sum.rotate_left(1) ^ byte)
}

/// The whole records in `bytes`, which were read from `offset` of the file. Ends before a torn one; ends after
/// an error.
pub fn records(bytes: &[u8], offset: u64) -> Records<'_> {
    Records { rest: bytes, offset }
}

/// See [`records`].
#[derive(Debug, Clone)]
pub struct Records<'a> {
    rest: &'a [u8],
    offset: u64,
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        let (header, rest) = self.rest.split_first_chunk::<HEADER_BYTES>()?;
        let Some((length, stream)) = read_header(header) else {
            self.rest = &[];
            return Some(Err(Damaged { offset: self.offset }));
        };
        let (bytes, rest) = rest.split_at_checked(length)?;
        let (_, at_ms) = header.split_last_chunk::<8>()?;
        self.rest = rest;
        self.offset += (HEADER_BYTES + length) as u64;
        Some(Ok(Record { at_ms: u64::from_le_bytes(*at_ms), stream, bytes, end_offset: self.offset }))
    }
}

fn read_header(header: &[u8; HEADER_BYTES]) -> Option<(usize, Stream)> {
    let (length, _) = header.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let stream = Stream::from_code(header[4])?;
    (length <= MAX_DATA_BYTES && header[5] == check(header)).then_some((length, stream))
}

/// Tails a log file from an offset with a buffer that holds two records at most.
#[derive(Debug)]
pub struct LogReader {
    file: File,
    offset: u64,
    buffer: Vec<u8>,
}

impl LogReader {
    /// Opens the file; `offset` is 0 or the `end_offset` of a record.
    pub fn open(path: &Path, offset: u64) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, offset, buffer: Vec::new() })
    }

    /// Where the next batch begins.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The records that follow, as many as fit the buffer; an empty iterator at the end of what is there so
    /// far. Call again to go on. Damage is `InvalidData` with [`Damaged`] inside, after the good records before it.
    pub fn next_batch(&mut self) -> io::Result<Vec<Record<'_>>> {
        self.buffer.resize(2 * (HEADER_BYTES + MAX_DATA_BYTES), 0);
        let mut filled = 0;
        while filled < self.buffer.len() {
            match self.file.read_at(&mut self.buffer[filled..], self.offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let mut batch = Vec::new();
        for record in records(&self.buffer[..filled], self.offset) {
            match record {
                Ok(record) => batch.push(record),
                Err(damaged) if batch.is_empty() => {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, damaged));
                }
                Err(_) => break,
            }
        }
        self.offset = batch.last().map_or(self.offset, |record| record.end_offset);
        Ok(batch)
    }
}
