//! Looking for a text in a log, a bounded part of it a call.
//!
//! Reads the log once, a piece at a time, and keeps of it what a line around a match needs. Knows no job and no caller.
//!
//! Invariant: **whoever goes on with the cursor finds every match once**, wherever pieces and calls are cut.

use std::fmt;
use std::str::FromStr;

use jobyard_api::json::{LogMatch, LogPlace, LogSearch};
use jobyard_model::JobId;
use jobyard_store::logs::LogQuery;
use jobyard_store::{LogChunk, LogStream};
use memchr::memmem::Finder;

use super::reader::bytes_of;
use crate::error::ApiError;
use crate::server::Server;

/// What one call reads at most, before it hands out a cursor.
const SCAN_BYTES: u64 = 32 << 20;
/// As small pieces, that is.
const SCAN_CHUNKS: usize = 8_192;
const PAGE_CHUNKS: u32 = 256;
const PIECE_BYTES: u64 = 1 << 20;
/// How much of its line is shown before and after a match.
const AROUND: usize = 512;

/// What is looked for, and where.
#[derive(Debug, Clone)]
pub(crate) struct Sought {
    pub(crate) job_id: JobId,
    pub(crate) attempt: u32,
    /// One stream, or both, one after the other.
    pub(crate) stream: Option<LogStream>,
    /// Not empty.
    pub(crate) text: Vec<u8>,
    /// ASCII letters match whatever their case.
    pub(crate) ignore_case: bool,
    pub(crate) start: Cursor,
    pub(crate) limit: usize,
}

/// Where a search goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) stream: LogStream,
    pub(crate) offset: u64,
    /// Of the line that the offset lies in, from 1, if that is known.
    pub(crate) line: Option<u64>,
}

impl Cursor {
    /// The beginning of a stream.
    pub(crate) fn begin(stream: LogStream) -> Self {
        Self { stream, offset: 0, line: Some(1) }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", word(self.stream), self.offset, self.line.unwrap_or(0))
    }
}

impl FromStr for Cursor {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        const WHAT: &str = "is no cursor of this call";
        let mut parts = text.split('.');
        let stream = match parts.next() {
            Some("stdout") => LogStream::Stdout,
            Some("stderr") => LogStream::Stderr,
            _ => return Err(WHAT),
        };
        let mut number = || parts.next().and_then(|part| part.parse::<u64>().ok()).ok_or(WHAT);
        let (offset, line) = (number()?, number()?);
        if parts.next().is_some() || i64::try_from(offset).is_err() {
            return Err(WHAT);
        }
        Ok(Self { stream, offset, line: (line > 0).then_some(line) })
    }
}

/// The stream's word on the wire.
pub(crate) fn word(stream: LogStream) -> &'static str {
    match stream {
        LogStream::Stdout => "stdout",
        LogStream::Stderr => "stderr",
    }
}

/// Looks on from the cursor, until enough is found, enough was read, or the log ends.
pub(crate) async fn search(server: &Server, sought: &Sought) -> Result<LogSearch, ApiError> {
    let mut budget = Budget { bytes: SCAN_BYTES, chunks: SCAN_CHUNKS };
    let mut items = Vec::new();
    let mut cursor = sought.start;
    loop {
        let (reached, at_end) = search_stream(server, sought, cursor, (&mut budget, &mut items)).await?;
        let goes_on_with_stderr = sought.stream.is_none() && reached.stream == LogStream::Stdout;
        let scanned_to = LogPlace { stream: word(reached.stream).to_owned(), offset: reached.offset };
        if !at_end {
            return Ok(LogSearch { items, next_cursor: Some(reached.to_string()), scanned_to });
        }
        if !goes_on_with_stderr {
            return Ok(LogSearch { items, next_cursor: None, scanned_to });
        }
        cursor = Cursor::begin(LogStream::Stderr);
    }
}

struct Budget {
    bytes: u64,
    chunks: usize,
}

/// Where the search came to, and whether that is the stream's end.
async fn search_stream(
    server: &Server,
    sought: &Sought,
    cursor: Cursor,
    (budget, items): (&mut Budget, &mut Vec<LogMatch>),
) -> Result<(Cursor, bool), ApiError> {
    let mut window = Window::new(sought, cursor);
    let mut at = cursor.offset.saturating_sub(AROUND as u64);
    loop {
        let query = LogQuery {
            job_id: sought.job_id,
            attempt: sought.attempt,
            stream: Some(cursor.stream),
            from: at,
            after_seq: 0,
            before_seq: None,
            newest: false,
            since: None,
            limit: PAGE_CHUNKS,
        };
        let chunks = server.store().log_chunks(&query).await?;
        let is_last = chunks.len() < PAGE_CHUNKS as usize;
        for chunk in &chunks {
            budget.chunks = budget.chunks.saturating_sub(1);
            if chunk.from > at {
                // What came before is no longer kept.
                window.skip_to(chunk.from);
                at = chunk.from;
            }
            while at < chunk.to {
                let end = chunk.to.min(at + PIECE_BYTES);
                match piece(server, chunk, at, end).await? {
                    Some(bytes) => window.take(at, &bytes),
                    None => window.skip_to(end),
                }
                budget.bytes = budget.bytes.saturating_sub(end - at);
                at = end;
                let is_enough = window.look(items, false);
                if is_enough || budget.bytes == 0 || budget.chunks == 0 {
                    return Ok((window.cursor(), false));
                }
            }
        }
        if is_last {
            let is_enough = window.look(items, true);
            return Ok((window.cursor(), !is_enough));
        }
    }
}

/// Bytes of a chunk, by offsets in the stream; `None` where they are no longer kept.
async fn piece(
    server: &Server,
    chunk: &LogChunk,
    from: u64,
    to: u64,
) -> Result<Option<bytes::Bytes>, ApiError> {
    match bytes_of(server, &chunk.body, from - chunk.from, to - chunk.from).await {
        Ok(bytes) => Ok(Some(bytes)),
        Err(ApiError::LogDropped { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What of the stream is in hand: from a little before the place that is looked at.
struct Window<'s> {
    sought: &'s Sought,
    finder: Finder<'static>,
    stream: LogStream,
    /// Offset in the stream of the first byte in hand.
    base: u64,
    bytes: Vec<u8>,
    /// Index of the first byte that a match may begin with.
    next: usize,
    /// Of the line that `next` lies in, if it is known.
    line: Option<u64>,
}

impl<'s> Window<'s> {
    fn new(sought: &'s Sought, cursor: Cursor) -> Self {
        let text = match sought.ignore_case {
            true => sought.text.to_ascii_lowercase(),
            false => sought.text.clone(),
        };
        let before = cursor.offset.min(AROUND as u64);
        Self {
            sought,
            finder: Finder::new(&text).into_owned(),
            stream: cursor.stream,
            base: cursor.offset - before,
            bytes: Vec::new(),
            next: before as usize,
            line: cursor.line,
        }
    }

    /// Takes the bytes that follow those in hand.
    fn take(&mut self, at: u64, bytes: &[u8]) {
        debug_assert_eq!(at, self.base + self.bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes are missing: nothing matches across the gap, and lines can't be counted over it.
    fn skip_to(&mut self, offset: u64) {
        let wanted = self.base + self.next as u64;
        self.bytes.clear();
        self.base = offset;
        self.next = usize::try_from(wanted.saturating_sub(offset)).unwrap_or(0);
        if wanted < offset {
            self.line = None;
        }
    }

    /// Where to go on.
    fn cursor(&self) -> Cursor {
        Cursor { stream: self.stream, offset: self.base + self.next as u64, line: self.line }
    }

    /// Adds what matches in the bytes in hand, and lets go of those that nobody needs any more. Before the end, what lies
    /// too near to it waits for what follows. Whether enough was found.
    fn look(&mut self, items: &mut Vec<LogMatch>, at_end: bool) -> bool {
        let length = self.sought.text.len();
        let reserve = if at_end { 0 } else { length - 1 + AROUND };
        let limit = self.bytes.len().saturating_sub(reserve);
        while self.next < limit {
            let within = &self.bytes[self.next..self.bytes.len().min(limit + length - 1)];
            let found = match self.sought.ignore_case {
                true => self.finder.find(&within.to_ascii_lowercase()),
                false => self.finder.find(within),
            };
            let Some(start) = found.map(|found| self.next + found) else {
                self.go_to(limit);
                break;
            };
            if items.len() == self.sought.limit {
                self.go_to(start);
                return true;
            }
            self.go_to(start);
            items.push(self.item(start..start + length));
            self.go_to(start + length);
        }
        let unneeded = self.next.saturating_sub(AROUND).min(self.bytes.len());
        self.bytes.drain(..unneeded);
        self.next -= unneeded;
        self.base += unneeded as u64;
        false
    }

    /// Goes on, counting lines.
    fn go_to(&mut self, place: usize) {
        let passed = memchr::memchr_iter(b'\n', &self.bytes[self.next..place]).count() as u64;
        self.line = self.line.map(|line| line + passed);
        self.next = place;
    }

    fn item(&self, found: std::ops::Range<usize>) -> LogMatch {
        let least = found.start.saturating_sub(AROUND);
        let most = self.bytes.len().min(found.end + AROUND);
        let begin = match memchr::memrchr(b'\n', &self.bytes[least..found.start]) {
            Some(end_of_line) => least + end_of_line + 1,
            None => {
                least + self.bytes[least..found.start].iter().take_while(|byte| *byte & 0xc0 == 0x80).count()
            }
        };
        let end = memchr::memchr(b'\n', &self.bytes[found.end..most]).map_or(most, |end| found.end + end);
        LogMatch {
            stream: word(self.stream).to_owned(),
            offset: self.base + found.start as u64,
            length: u32::try_from(found.len()).unwrap_or(u32::MAX),
            line: String::from_utf8_lossy(&self.bytes[begin..end]).into_owned(),
            line_offset: self.base + begin as u64,
            line_number: self.line,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sought(text: &[u8], limit: usize) -> Sought {
        Sought {
            job_id: JobId(uuid::Uuid::nil()),
            attempt: 1,
            stream: None,
            text: text.to_vec(),
            ignore_case: false,
            start: Cursor::begin(LogStream::Stdout),
            limit,
        }
    }

    /// Looks through a whole stream, cut into pieces of this size, with a new window wherever enough was found.
    fn all(log: &[u8], sought: &Sought, piece: usize) -> Vec<LogMatch> {
        let mut found = Vec::new();
        let mut cursor = sought.start;
        loop {
            let mut items = Vec::new();
            let mut window = Window::new(sought, cursor);
            let begin = usize::try_from(window.base).expect("small");
            let mut enough = false;
            for (index, bytes) in log[begin..].chunks(piece).enumerate() {
                window.take((begin + index * piece) as u64, bytes);
                enough = window.look(&mut items, false);
                if enough {
                    break;
                }
            }
            let enough = enough || window.look(&mut items, true);
            found.extend(items);
            if !enough {
                return found;
            }
            cursor = window.cursor().to_string().parse().expect("a cursor");
        }
    }

    #[test]
    fn every_match_is_found_once_wherever_it_is_cut() {
        let mut log = Vec::new();
        let mut expected = Vec::new();
        for number in 0..400_u64 {
            log.extend(
                format!("line {number} ").bytes().chain(std::iter::repeat_n(b'.', number as usize % 97)),
            );
            if number % 7 == 0 {
                expected.push((log.len() as u64, number + 1));
                log.extend(b"needle");
            }
            log.push(b'\n');
        }
        for piece in [1, 5, 64, 600, 100_000] {
            for limit in [1, 3, 500] {
                let found = all(&log, &sought(b"needle", limit), piece);
                let places: Vec<_> =
                    found.iter().map(|item| (item.offset, item.line_number.expect("counted"))).collect();
                assert_eq!(places, expected, "pieces of {piece}, {limit} a call");
                assert!(
                    found.iter().all(|item| item.line.starts_with("line ") && item.line.ends_with("needle"))
                );
            }
        }
    }

    #[test]
    fn binary_endless_lines_and_case_are_fine() {
        let mut log = vec![b'x'; 5_000];
        log.extend(b"Needle\xff\x00NEEDLE");
        log.extend(vec![0x80; 5_000]);
        let folded = Sought { ignore_case: true, ..sought(b"nEEdle", 10) };
        let found = all(&log, &folded, 700);
        assert_eq!(found.iter().map(|item| item.offset).collect::<Vec<_>>(), [5_000, 5_008]);
        assert!(found.iter().all(|item| item.line.len() < 4 * 2 * AROUND && item.line_number == Some(1)));
        assert_eq!(found[0].line_offset, 5_000 - AROUND as u64);
        assert_eq!(all(&log, &sought(b"needle", 10), 700), []);
        assert_eq!(all(&log, &sought(b"\xff\x00N", 10), 1).len(), 1);
        assert_eq!(all(b"aaaa", &sought(b"aa", 10), 1).len(), 2, "matches don't overlap");
    }

    #[test]
    fn a_cursor_reads_back_and_nothing_else_is_one() {
        for cursor in
            [Cursor::begin(LogStream::Stdout), Cursor { stream: LogStream::Stderr, offset: 7, line: None }]
        {
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for text in [
            "",
            "stdout",
            "stdout.1",
            "stdin.1.1",
            "stdout.-1.1",
            "stdout.1.1.1",
            "stdout.9223372036854775808.1",
        ] {
            assert!(text.parse::<Cursor>().is_err(), "{text}");
        }
    }
}
