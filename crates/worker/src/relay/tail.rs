//! What of an attempt's log file has gone to the report door, and the next piece of it. Keeps no file open and no
//! bytes beyond one call.
//!
//! Invariant: what is sent of a stream is consecutive, and begins where the report door says the stream ends.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use bytes::{Bytes, BytesMut};
use jobyard_handoff::log::{LogReader, Record, Stream};

/// The most bytes of one chunk.
pub(super) const MAX_CHUNK_BYTES: usize = 256 << 10;
/// From this many chunks of one attempt in one call on, the order between the two streams is given up to keep their
/// number down.
const MANY_CHUNKS: usize = 32;
/// Times the report door may send us back without taking anything.
const MAX_SETBACKS: u32 = 8;

/// Consecutive bytes of one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) stream: Stream,
    /// Offset in the stream.
    pub(super) from: u64,
    /// When the sidecar read the first byte, unix ms.
    pub(super) at_ms: u64,
    pub(super) data: Bytes,
}

/// What the report door answered to a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// The stream ends here now, whatever was sent.
    End(u64),
    /// It could not be taken now.
    Later,
    /// The log is not wanted.
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Position {
    /// Offset in the file.
    file: u64,
    /// Offsets in stdout and stderr.
    streams: [u64; 2],
}

#[derive(Debug)]
pub(super) struct Tail {
    path: PathBuf,
    /// Read up to here.
    position: Position,
    /// Taken up to here.
    confirmed: Position,
    /// The report door has each stream up to here.
    taken: [u64; 2],
    /// The file was said to have this many bytes when a look found no further record.
    dry_at: Option<u64>,
    setbacks: u32,
    delays: u32,
    given_up: bool,
    /// Where the report door is isn't known: somebody else may have sent some of it, or a call had no answer.
    unsure: bool,
}

fn index(stream: Stream) -> usize {
    match stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
    }
}

impl Tail {
    /// Of a log that nobody has sent anything of.
    pub(super) fn of(path: PathBuf) -> Self {
        Self {
            path,
            position: Position::default(),
            confirmed: Position::default(),
            taken: [0; 2],
            dry_at: None,
            setbacks: 0,
            delays: 0,
            given_up: false,
            unsure: false,
        }
    }

    /// Of a log that another worker may have sent some of.
    pub(super) fn of_another(path: PathBuf) -> Self {
        Self { unsure: true, ..Self::of(path) }
    }

    /// Whether what was read last may have to be read again from elsewhere.
    pub(super) fn is_unsure(&self) -> bool {
        self.unsure
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a file of `file_bytes` has more than was read.
    pub(super) fn has_more(&self, file_bytes: u64) -> bool {
        !self.given_up && self.position.file < file_bytes && self.dry_at != Some(file_bytes)
    }

    /// Whether all of a file of `file_bytes` was read and taken.
    pub(super) fn is_delivered(&self, file_bytes: u64) -> bool {
        self.given_up || (!self.has_more(file_bytes) && self.confirmed == self.position)
    }

    /// How often the report door has put us off since it last took something.
    pub(super) fn delays(&self) -> u32 {
        self.delays
    }

    /// The next chunks of a file of `file_bytes`, `budget_bytes` or a little more. A file that is not there or damaged
    /// ends there.
    pub(super) fn read(&mut self, file_bytes: u64, budget_bytes: usize) -> Vec<Chunk> {
        let mut gathered = Gathered::default();
        match self.read_into(&mut gathered, budget_bytes) {
            Ok(Reached::Budget) => {}
            Ok(Reached::End) => self.dry_at = Some(file_bytes),
            Err(error) => {
                self.dry_at = Some(file_bytes);
                self.note_unreadable(&error);
            }
        }
        gathered.chunks.into_iter().map(Draft::finish).collect()
    }

    fn note_unreadable(&self, error: &io::Error) {
        if error.kind() != ErrorKind::NotFound || self.position.file > 0 {
            let path = self.path.display();
            tracing::warn!(error = error as &dyn std::error::Error, %path, "a log can't be read further");
        }
    }

    fn read_into(&mut self, gathered: &mut Gathered, budget_bytes: usize) -> io::Result<Reached> {
        let mut reader = LogReader::open(&self.path, self.position.file)?;
        while gathered.bytes < budget_bytes {
            let records = reader.next_batch()?;
            if records.is_empty() {
                return Ok(Reached::End);
            }
            for record in records {
                if gathered.bytes >= budget_bytes {
                    return Ok(Reached::Budget);
                }
                let at = &mut self.position.streams[index(record.stream)];
                gathered.add(&record, *at, self.taken[index(record.stream)]);
                *at += record.bytes.len() as u64;
                self.position.file = record.end_offset;
            }
        }
        Ok(Reached::Budget)
    }

    /// The call with the last chunks has no answer: they are read again.
    pub(super) fn rewind(&mut self) {
        self.unsure |= self.position != self.confirmed;
        self.position = self.confirmed;
        self.dry_at = None;
    }

    /// What became of the chunks that [`Tail::read`] gave, in order.
    pub(super) fn settle(&mut self, answers: impl IntoIterator<Item = (Stream, Taken)>) {
        for (stream, taken) in answers {
            match taken {
                Taken::End(end) => self.taken[index(stream)] = end,
                Taken::Later => {
                    self.delays += 1;
                    return self.rewind();
                }
                Taken::Refused => return self.give_up("it is not wanted any more"),
            }
        }
        let behind = self.taken.iter().zip(self.position.streams).any(|(taken, read)| *taken < read);
        if !behind {
            self.unsure &= self.confirmed == self.position;
            self.confirmed = self.position;
            self.setbacks = 0;
            self.delays = 0;
        } else if self.setbacks < MAX_SETBACKS {
            // From the top: what the report door has is passed over.
            self.setbacks += 1;
            self.confirmed = Position::default();
            self.rewind();
        } else {
            self.give_up("the report door doesn't take it");
        }
    }

    fn give_up(&mut self, why: &str) {
        tracing::info!(path = %self.path.display(), why, "the rest of a log is not delivered");
        self.given_up = true;
    }
}

enum Reached {
    Budget,
    End,
}

#[derive(Default)]
struct Gathered {
    chunks: Vec<Draft>,
    bytes: usize,
}

struct Draft {
    stream: Stream,
    from: u64,
    at_ms: u64,
    data: BytesMut,
}

impl Draft {
    fn finish(self) -> Chunk {
        let Self { stream, from, at_ms, data } = self;
        Chunk { stream, from, at_ms, data: data.freeze() }
    }
}

impl Gathered {
    /// Adds a record that begins at `from` of its stream, but for what lies before `taken`.
    fn add(&mut self, record: &Record<'_>, from: u64, taken: u64) {
        let known = usize::try_from(taken.saturating_sub(from)).unwrap_or(usize::MAX);
        let Some(data) = record.bytes.get(known..).filter(|data| !data.is_empty()) else { return };
        self.bytes += data.len();
        let fits = |draft: &&mut Draft| {
            draft.stream == record.stream && draft.data.len() + data.len() <= MAX_CHUNK_BYTES
        };
        let many = self.chunks.len() >= MANY_CHUNKS;
        let last = if many {
            self.chunks.iter_mut().rev().find(|draft| draft.stream == record.stream)
        } else {
            self.chunks.last_mut()
        };
        match last.filter(fits) {
            Some(draft) => draft.data.extend_from_slice(data),
            None => self.chunks.push(Draft {
                stream: record.stream,
                from: from + known as u64,
                at_ms: record.at_ms,
                data: data.into(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use super::*;

    struct World {
        _directory: tempfile::TempDir,
        path: PathBuf,
        tail: Tail,
    }

    impl World {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("log");
            Self { _directory: directory, tail: Tail::of(path.clone()), path }
        }

        fn write(&mut self, stream: Stream, text: &str) {
            let mut file = OpenOptions::new().append(true).create(true).open(&self.path).unwrap();
            file.write_all(&jobyard_handoff::log::header(7, stream, text.len())).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }

        fn read(&mut self) -> Vec<(Stream, u64, String)> {
            let chunks = self.tail.read(u64::MAX, 1 << 20).into_iter();
            chunks
                .map(|chunk| (chunk.stream, chunk.from, String::from_utf8(chunk.data.to_vec()).unwrap()))
                .collect()
        }
    }

    use Stream::{Stderr, Stdout};

    #[test]
    fn what_was_taken_is_not_sent_again_and_what_was_not_is() {
        let mut world = World::new();
        world.write(Stdout, "one ");
        world.write(Stdout, "two");
        world.write(Stderr, "oh");
        let sent = [(Stdout, 0, "one two".to_owned()), (Stderr, 0, "oh".to_owned())];
        assert_eq!(world.read(), sent);
        world.tail.rewind();
        assert_eq!(world.read(), sent);
        assert!(!world.tail.is_delivered(0));
        world.tail.settle([(Stdout, Taken::End(7)), (Stderr, Taken::End(2))]);
        assert!(world.tail.is_delivered(0));
        world.write(Stdout, "!");
        assert_eq!(world.read(), [(Stdout, 7, "!".to_owned())]);
    }

    #[test]
    fn a_restarted_tail_goes_on_where_the_report_door_is() {
        let mut world = World::new();
        world.write(Stdout, "abc");
        world.write(Stderr, "xy");
        world.write(Stdout, "def");
        assert_eq!(world.read().len(), 3);
        world.tail.settle([(Stdout, Taken::End(4)), (Stderr, Taken::End(2)), (Stdout, Taken::End(4))]);
        assert_eq!(world.read(), [(Stdout, 4, "ef".to_owned())]);
        world.tail.settle([(Stdout, Taken::End(6))]);
        assert!(world.tail.is_delivered(u64::MAX) || world.read().is_empty());
        assert!(world.tail.is_delivered(u64::MAX));
    }

    #[test]
    fn what_a_file_grew_during_a_call_is_not_missed() {
        let mut world = World::new();
        world.write(Stdout, "abc");
        let file_bytes = std::fs::metadata(&world.path).unwrap().len();
        assert_eq!(world.tail.read(file_bytes, 1 << 20).len(), 1);
        assert!(!world.tail.has_more(file_bytes));
        world.tail.settle([(Stdout, Taken::End(3))]);
        assert!(world.tail.has_more(file_bytes + 1));
    }

    #[test]
    fn a_door_that_never_takes_anything_is_given_up_on() {
        let mut world = World::new();
        world.write(Stdout, "abc");
        for _ in 0..=MAX_SETBACKS {
            assert_eq!(world.read().len(), 1);
            world.tail.settle([(Stdout, Taken::End(0))]);
        }
        assert!(world.tail.is_delivered(u64::MAX));
    }

    #[test]
    fn later_is_later_and_refused_is_never() {
        let mut world = World::new();
        world.write(Stdout, "abc");
        world.read();
        world.tail.settle([(Stdout, Taken::Later)]);
        assert_eq!((world.tail.delays(), world.tail.has_more(19)), (1, true));
        assert_eq!(world.read().len(), 1);
        world.tail.settle([(Stdout, Taken::Refused)]);
        assert!(world.tail.is_delivered(u64::MAX));
    }

    #[test]
    fn a_budget_ends_a_read_and_many_small_records_become_few_chunks() {
        let mut world = World::new();
        for _ in 0..1_000 {
            world.write(Stdout, "o");
            world.write(Stderr, "e");
        }
        let chunks = world.tail.read(u64::MAX, 500);
        assert_eq!(chunks.iter().map(|chunk| chunk.data.len()).sum::<usize>(), 500);
        assert_eq!(chunks.len(), MANY_CHUNKS);
        for stream in [Stdout, Stderr] {
            let mut at = 0;
            for chunk in chunks.iter().filter(|chunk| chunk.stream == stream) {
                assert_eq!(chunk.from, at);
                at += chunk.data.len() as u64;
            }
            assert_eq!(at, 250);
        }
        assert!(world.tail.has_more(u64::MAX));
    }

    #[test]
    fn a_file_that_is_not_there_is_an_empty_log() {
        let mut world = World::new();
        assert!(world.read().is_empty());
        assert!(world.tail.is_delivered(u64::MAX));
    }
}
