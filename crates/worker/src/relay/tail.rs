//! What of an attempt's log has gone to the report door, and the next piece of it. Keeps no file open and no bytes
//! beyond one call. Of a log in parts those that the report door has may be removed.
//!
//! Invariant: what is sent of a stream is consecutive, and begins where the report door says the stream ends; no part
//! is given back before the report door said that it has it.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use jobyard_handoff::log::{LogReader, Stream};
use jobyard_handoff::log_parts::{LogPosition, part, parts};

use super::chunks::{Chunk, Gathered};

/// Times the report door may send us back without taking anything.
const MAX_SETBACKS: u32 = 8;

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

/// A place in a log, and where the part begins that it lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Place {
    at: LogPosition,
    part: LogPosition,
}

#[derive(Debug)]
pub(super) struct Tail {
    path: PathBuf,
    /// The beginning of what is there.
    oldest: Place,
    /// Read up to here.
    read: Place,
    /// Taken up to here.
    confirmed: Place,
    /// The parts that come before the one that is being read, from the oldest on.
    passed: VecDeque<LogPosition>,
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

impl Tail {
    /// Of a log that nobody has sent anything of.
    pub(super) fn of(path: PathBuf) -> Self {
        Self {
            path,
            oldest: Place::default(),
            read: Place::default(),
            confirmed: Place::default(),
            passed: VecDeque::new(),
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
        !self.given_up && self.read.at.file < file_bytes && self.dry_at != Some(file_bytes)
    }

    /// Whether all of a file of `file_bytes` was read and taken.
    pub(super) fn is_delivered(&self, file_bytes: u64) -> bool {
        self.given_up || (!self.has_more(file_bytes) && self.confirmed == self.read)
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
        gathered.finish()
    }

    fn note_unreadable(&self, error: &io::Error) {
        if error.kind() != ErrorKind::NotFound || self.read.at.file > 0 {
            let path = self.path.display();
            tracing::warn!(error = error as &dyn std::error::Error, %path, "a log can't be read further");
        }
    }

    fn read_into(&mut self, gathered: &mut Gathered, budget_bytes: usize) -> io::Result<Reached> {
        let mut reader = self.open()?;
        while gathered.bytes() < budget_bytes {
            let records = reader.next_batch()?;
            if records.is_empty() {
                match self.next_part()? {
                    Some(next) => reader = next,
                    None => return Ok(Reached::End),
                }
                continue;
            }
            for record in records {
                if gathered.bytes() >= budget_bytes {
                    return Ok(Reached::Budget);
                }
                let stream = record.stream.index();
                gathered.add(&record, self.read.at.streams[stream], self.taken[stream]);
                self.read.at.pass(record.stream, record.bytes.len());
            }
        }
        Ok(Reached::Budget)
    }

    fn open(&mut self) -> io::Result<LogReader> {
        let offset = self.read.at.file - self.read.part.file;
        match LogReader::open(&part(&self.path, self.read.part), offset) {
            Err(error) if error.kind() == ErrorKind::NotFound && self.read == Place::default() => {
                // Another worker may have given back its first parts.
                let Some(at) = parts(&self.path)?.first().copied() else { return Err(error) };
                let oldest = Place { at, part: at };
                (self.oldest, self.read, self.confirmed) = (oldest, oldest, oldest);
                self.taken = at.streams;
                LogReader::open(&part(&self.path, at), 0)
            }
            opened => opened,
        }
    }

    /// The part that begins where this one ends, once there is one.
    fn next_part(&mut self) -> io::Result<Option<LogReader>> {
        let Place { at, part: this } = self.read;
        if at == this {
            return Ok(None);
        }
        match LogReader::open(&part(&self.path, at), 0) {
            Ok(next) => {
                self.passed.push_back(this);
                self.read.part = at;
                Ok(Some(next))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The files of those parts that the report door has, none of them twice.
    pub(super) fn give_back(&mut self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        while let Some(passed) = self.passed.pop_front_if(|passed| *passed < self.confirmed.part) {
            files.push(part(&self.path, passed));
        }
        if !files.is_empty() {
            let part = self.passed.front().copied().unwrap_or(self.confirmed.part);
            self.oldest = Place { at: part, part };
        }
        files
    }

    /// The call with the last chunks has no answer: they are read again.
    pub(super) fn rewind(&mut self) {
        self.unsure |= self.read != self.confirmed;
        self.read = self.confirmed;
        self.passed.retain(|passed| *passed < self.confirmed.part);
        self.dry_at = None;
    }

    /// What became of the chunks that [`Tail::read`] gave, in order.
    pub(super) fn settle(&mut self, answers: impl IntoIterator<Item = (Stream, Taken)>) {
        for (stream, taken) in answers {
            match taken {
                Taken::End(end) => self.taken[stream.index()] = end,
                Taken::Later => {
                    self.delays += 1;
                    return self.rewind();
                }
                Taken::Refused => return self.give_up("it is not wanted any more"),
            }
        }
        let behind = self.taken.iter().zip(self.read.at.streams).any(|(taken, read)| *taken < read);
        if !behind {
            self.unsure &= self.confirmed == self.read;
            self.confirmed = self.read;
            self.setbacks = 0;
            self.delays = 0;
        } else if self.setbacks < MAX_SETBACKS {
            // From the top: what the report door has is passed over.
            self.setbacks += 1;
            self.confirmed = self.oldest;
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

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use super::*;
    use crate::relay::chunks::MANY_CHUNKS;

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

    /// Three parts of "0123456789" each, and their files.
    fn in_parts() -> (World, [PathBuf; 3]) {
        let mut world = World::new();
        let mut at = LogPosition::default();
        let files = [(); 3].map(|()| {
            let file = part(&world.path, at);
            let path = std::mem::replace(&mut world.path, file.clone());
            for text in ["01234", "56789"] {
                world.write(Stdout, text);
                at.pass(Stdout, text.len());
            }
            world.path = path;
            file
        });
        (world, files)
    }

    fn digits(from: u64) -> Vec<(Stream, u64, String)> {
        let text: String = (from..30).map(|digit| (digit % 10).to_string()).collect();
        vec![(Stdout, from, text)]
    }

    #[test]
    fn parts_are_read_one_after_the_other_and_given_back_once_they_are_taken() {
        let (mut world, files) = in_parts();
        assert_eq!(world.read(), digits(0));
        assert!(world.tail.give_back().is_empty(), "before the answer");
        world.tail.rewind();
        assert_eq!(world.read(), digits(0));
        world.tail.settle([(Stdout, Taken::Later)]);
        assert!(world.tail.give_back().is_empty(), "it was put off");
        assert_eq!(world.read(), digits(0));
        world.tail.settle([(Stdout, Taken::End(30))]);
        assert_eq!(world.tail.give_back(), files[..2], "but not the one that is being written");
        assert!(world.tail.give_back().is_empty(), "none of them twice");
        assert!(world.tail.is_delivered(u64::MAX));
    }

    #[test]
    fn a_part_that_is_half_taken_is_kept() {
        let (mut world, files) = in_parts();
        assert_eq!(world.tail.read(u64::MAX, 15)[0].data, "012345678901234");
        world.tail.settle([(Stdout, Taken::End(15))]);
        assert_eq!(world.tail.give_back(), files[..1]);
        std::fs::remove_file(&files[0]).unwrap();
        assert_eq!(world.read(), digits(15));
        // Somebody else had sent less than was thought.
        world.tail.settle([(Stdout, Taken::End(12))]);
        assert_eq!(world.read(), digits(12));
        world.tail.settle([(Stdout, Taken::End(30))]);
        assert_eq!(world.tail.give_back(), files[1..2]);
    }

    /// Killed after the report door took something and before, or after, it was given back.
    #[test]
    fn the_next_worker_begins_with_the_oldest_part_there_is() {
        for given_back in 0..=2 {
            let (mut world, files) = in_parts();
            files[..given_back].iter().for_each(|file| std::fs::remove_file(file).unwrap());
            world.tail = Tail::of_another(world.path.clone());
            assert_eq!(world.read(), digits(given_back as u64 * 10));
            // The report door has all that was given back, and a little more.
            world.tail.settle([(Stdout, Taken::End(23))]);
            assert_eq!(world.read(), digits(23), "{given_back} given back");
            world.tail.settle([(Stdout, Taken::End(30))]);
            assert_eq!(world.tail.give_back(), files[given_back..2]);
            assert!(world.tail.is_delivered(u64::MAX));
        }
    }
}
