//! What belongs to a worker besides the machine: the sidecar's binary and the datastore.

use std::error::Error as _;
use std::fs;
use std::path::Path;

use jobyard_store::{PostgresStore, SqliteStore, StoreError};
use rustix::fs::{Access, access};

use super::Patient;
use crate::output::{Answer, Check};
use crate::roles::{RoleError, datastore};

/// The program header that names an interpreter, which a static program has not.
const PT_INTERP: u32 = 3;

pub(super) fn look_at_sidecar(path: &Path) -> Vec<Check> {
    let runs = access(path, Access::EXEC_OK);
    let found = match runs {
        Ok(()) => path.display().to_string(),
        Err(error) => format!("{}: {error}", path.display()),
    };
    let is_there = Check::new(
        "sidecar",
        Answer::yes_or(Answer::No, runs.is_ok()),
        &found,
        "a small process beside each attempt",
    )
    .needed()
    .fix_unless_yes("put jobyard-sidecar beside jobyard, executable, or name it: worker.sidecar");
    if runs.is_err() {
        return vec![is_there];
    }
    vec![is_there, linking(path)]
}

fn linking(path: &Path) -> Check {
    let (answer, found) = match fs::read(path).map(|binary| has_interpreter(&binary)) {
        Ok(Some(false)) => (Answer::Yes, "needs no libraries"),
        Ok(Some(true)) => (Answer::Warn, "needs the machine's libraries"),
        Ok(None) | Err(_) => (Answer::No, "is no program of a 64-bit machine"),
    };
    Check::new(
        "static sidecar",
        answer,
        found,
        "a static one starts twice as fast and takes a third of the memory",
    )
    .fix_unless_yes("use the one that `cargo xtask build` or the package made")
}

/// Whether an ELF binary of 64 bits, little end first, names an interpreter. `None`: it is none.
fn has_interpreter(binary: &[u8]) -> Option<bool> {
    let number = |at: usize, size: usize| {
        let bytes = binary.get(at..at.checked_add(size)?)?;
        Some(bytes.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte)))
    };
    if !binary.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (start, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let kind = |index: u64| number(usize::try_from(start.checked_add(index * size)?).ok()?, 4);
    (0..count).map(kind).try_fold(false, |found, kind| Some(found || kind? == u64::from(PT_INTERP)))
}

pub(super) async fn look_at_datastore(patient: &Patient) -> Result<Check, RoleError> {
    let means = "the one source of truth; a worker itself needs none, but its servers do";
    if let Some(path) = &patient.database {
        return Ok(match SqliteStore::check(path) {
            Ok(true) => Check::new("datastore", Answer::Yes, &format!("{} fits", path.display()), means),
            Ok(false) => {
                let found = format!("{} is not there yet; `jobyard up` makes it", path.display());
                Check::new("datastore", Answer::Yes, &found, means)
            }
            Err(error) => unusable(&error, means),
        });
    }
    let checked = PostgresStore::check(&datastore::settings(&patient.config)?).await;
    Ok(match checked {
        Ok(()) => Check::new("datastore", Answer::Yes, "PostgreSQL answers and its schema fits", means),
        Err(error) => unusable(&error, means),
    })
}

fn unusable(error: &StoreError, means: &str) -> Check {
    let mut found = error.to_string();
    let mut behind = error.source();
    while let Some(source) = behind {
        found = format!("{found}: {source}");
        behind = source.source();
    }
    let fix = match error {
        StoreError::SchemaTooOld { .. } => "run `jobyard migrate` with these settings",
        StoreError::BinaryTooOld { .. } => "install a newer jobyard",
        StoreError::Refused { .. } => "mend datastore.url: user, password, database",
        _ => "look whether it runs and can be reached from here, and whether its file can be read",
    };
    Check::new("datastore", Answer::No, &found, means).needed().fix_unless_yes(fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF file with a program header for each kind.
    fn elf(kinds: &[u32]) -> Vec<u8> {
        let mut binary = vec![0; 64];
        binary[..6].copy_from_slice(b"\x7fELF\x02\x01");
        binary[32] = 64;
        binary[54] = 56;
        binary[56] = u8::try_from(kinds.len()).unwrap();
        for kind in kinds {
            binary.extend(kind.to_le_bytes());
            binary.extend([0; 52]);
        }
        binary
    }

    #[test]
    fn a_static_program_names_no_interpreter() {
        assert_eq!(has_interpreter(&elf(&[1, 2, 6])), Some(false));
        assert_eq!(has_interpreter(&elf(&[6, PT_INTERP, 1])), Some(true));
        let test = fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(has_interpreter(&test), Some(true), "tests are linked dynamically");
    }

    #[test]
    fn what_is_no_program_is_none() {
        assert_eq!(has_interpreter(b"#!/bin/sh\n"), None);
        assert_eq!(has_interpreter(b""), None);
        let cut_off = &elf(&[1, 2])[..100];
        assert_eq!(has_interpreter(cut_off), None);
        let mut endless = elf(&[1]);
        endless[32..40].fill(0xff);
        assert_eq!(has_interpreter(&endless), None);
    }
}
