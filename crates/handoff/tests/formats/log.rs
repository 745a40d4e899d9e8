//! Tailing a file that is being written, cut or damaged.

use std::fs::{self, OpenOptions};
use std::io::Write;

use jobyard_handoff::log::{Damaged, LogReader, MAX_DATA_BYTES, Stream, header, records};
use jobyard_handoff::log_parts::{LogPosition, log_of_part, part, parts};

use crate::samples;

#[test]
fn a_torn_last_record_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let whole = samples::log();
    fs::write(&path, &whole[..whole.len() - 3]).unwrap();
    let mut reader = LogReader::open(&path, 0).unwrap();
    assert_eq!(reader.next_batch().unwrap().len(), 2);
    assert_eq!(reader.next_batch().unwrap().len(), 0);
    let offset = reader.offset();
    OpenOptions::new().append(true).open(&path).unwrap().write_all(&whole[whole.len() - 3..]).unwrap();
    let batch = reader.next_batch().unwrap();
    assert_eq!((batch[0].bytes, batch[0].stream), (&b"no newline"[..], Stream::Stdout));
    assert_eq!(batch[0].end_offset, whole.len() as u64);
    // Another reader goes on where one stopped.
    let mut other = LogReader::open(&path, offset).unwrap();
    assert_eq!(other.next_batch().unwrap()[0].bytes, b"no newline");
}

#[test]
fn damage_is_found_and_what_is_before_it_is_kept() {
    let mut bytes = samples::log();
    let good = bytes.len() as u64;
    bytes.extend_from_slice(&[0; 4_096]);
    let all: Vec<_> = records(&bytes, 0).collect();
    assert_eq!(all.len(), 4);
    assert_eq!(all[3], Err(Damaged { offset: good }));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    fs::write(&path, &bytes).unwrap();
    let mut reader = LogReader::open(&path, 0).unwrap();
    assert_eq!(reader.next_batch().unwrap().len(), 3);
    assert_eq!(reader.next_batch().unwrap_err().kind(), std::io::ErrorKind::InvalidData);
}

#[test]
fn large_records_come_one_batch_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut bytes = Vec::new();
    for number in 0..10 {
        bytes.extend_from_slice(&header(number, Stream::Stderr, MAX_DATA_BYTES));
        bytes.resize(bytes.len() + MAX_DATA_BYTES, u8::try_from(number).unwrap());
    }
    fs::write(&path, &bytes).unwrap();
    let mut reader = LogReader::open(&path, 0).unwrap();
    let mut times = Vec::new();
    loop {
        let batch = reader.next_batch().unwrap();
        if batch.is_empty() {
            break;
        }
        times.extend(batch.iter().map(|record| record.at_ms));
    }
    assert_eq!(times, (0..10).collect::<Vec<_>>());
}

#[test]
fn parts_are_named_after_where_they_begin() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.1.b.log");
    let mut second = LogPosition::default();
    second.pass(Stream::Stdout, 100);
    second.pass(Stream::Stderr, 7);
    assert_eq!(second, LogPosition { file: 139, streams: [100, 7] });
    let mut third = second;
    third.pass(Stream::Stderr, 1_000_000);
    for from in [third, LogPosition::default(), second] {
        fs::write(part(&path, from), "").unwrap();
    }
    for other in ["a.1.c.log.139-100-7", "a.1.b.log.1-2", "a.1.b.log.x-2-3", "a.1.b.logs"] {
        fs::write(folder.path().join(other), "").unwrap();
    }
    assert_eq!(parts(&path).unwrap(), [LogPosition::default(), second, third]);
    assert_eq!(part(&path, second).file_name().unwrap(), "a.1.b.log.139-100-7");
    assert_eq!(log_of_part("a.1.b.log.139-100-7"), ("a.1.b.log", second));
    assert_eq!(log_of_part("a.1.b.log"), ("a.1.b.log", LogPosition::default()));
}
