//! The files of every released format, as they were written then. A release adds a folder; a folder is never changed.
//!
//! `cargo test -p jobyard-handoff -- --ignored write_goldens` writes those of this version, for the day it is new.

use std::fs;
use std::path::{Path, PathBuf};

use jobyard_handoff::log::records;
use jobyard_handoff::{Environment, ExecPlan, ExitRecord, FrameBuffer, FromSidecar, ToSidecar};

use crate::samples;

/// The minor release whose format this is.
const CURRENT: &str = "0.1";
/// Every release whose attempts a worker of this one may find.
const READABLE: [&str; 1] = ["0.1"];

fn folder(release: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens").join(release)
}

fn current() -> Vec<(&'static str, Vec<u8>)> {
    let mut to_sidecar = Vec::new();
    samples::to_sidecar().iter().for_each(|frame| frame.encode(&mut to_sidecar));
    let mut from_sidecar = Vec::new();
    samples::from_sidecar().iter().for_each(|frame| frame.encode(&mut from_sidecar));
    let mut from_service = Vec::new();
    samples::from_service().iter().for_each(|frame| frame.encode(&mut from_service));
    vec![
        ("plan", samples::plan().encode()),
        ("plan-of-service", samples::service_plan().encode()),
        ("environment", samples::environment().encode()),
        ("exit", samples::record().encode()),
        ("exit-failed-launch", samples::failed_launch().encode()),
        ("to-sidecar", to_sidecar),
        ("from-sidecar", from_sidecar),
        ("from-sidecar-of-service", from_service),
        ("log", samples::log()),
    ]
}

#[test]
fn what_this_release_writes_is_what_it_wrote() {
    for (name, bytes) in current() {
        let golden = fs::read(folder(CURRENT).join(name)).unwrap();
        assert!(golden == bytes, "{name} is written differently: that is a new version of the format");
    }
}

#[test]
fn what_earlier_releases_wrote_is_read() {
    for release in READABLE {
        let read = |name| fs::read(folder(release).join(name)).unwrap();
        assert_eq!(ExecPlan::decode(&read("plan")).unwrap(), samples::plan());
        assert_eq!(ExecPlan::decode(&read("plan-of-service")).unwrap(), samples::service_plan());
        assert_eq!(Environment::decode(&read("environment")).unwrap(), samples::environment());
        assert_eq!(ExitRecord::decode(&read("exit")).unwrap(), Some(samples::record()));
        let failed = ExitRecord::decode(&read("exit-failed-launch")).unwrap();
        assert_eq!(failed, Some(samples::failed_launch()));
        let mut buffer = FrameBuffer::default();
        buffer.extend(&read("to-sidecar"));
        for frame in samples::to_sidecar() {
            assert_eq!(buffer.next_frame::<ToSidecar>().unwrap(), Some(frame));
        }
        let mut buffer = FrameBuffer::default();
        buffer.extend(&read("from-sidecar"));
        for frame in samples::from_sidecar() {
            assert_eq!(buffer.next_frame::<FromSidecar>().unwrap(), Some(frame));
        }
        let mut buffer = FrameBuffer::default();
        buffer.extend(&read("from-sidecar-of-service"));
        for frame in samples::from_service() {
            assert_eq!(buffer.next_frame::<FromSidecar>().unwrap(), Some(frame));
        }
        let log = read("log");
        assert_eq!(records(&log, 0).filter(Result::is_ok).count(), 3);
    }
}

#[test]
#[ignore = "writes files into the source"]
fn write_goldens() {
    fs::create_dir_all(folder(CURRENT)).unwrap();
    for (name, bytes) in current() {
        fs::write(folder(CURRENT).join(name), bytes).unwrap();
    }
}
