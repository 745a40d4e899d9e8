//! Outcomes that could not be delivered at once, a file each, until the report door has answered them. They survive
//! the machine.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

use jobyard_api::grpc::convert::{AttemptReport, Said};
use jobyard_api::proto;
use jobyard_model::{AttemptEnd, LeaseId};

use crate::launch::AttemptRef;

#[derive(Debug, Clone)]
pub(crate) struct Spool {
    directory: PathBuf,
}

impl Spool {
    pub(crate) fn at(directory: PathBuf) -> Self {
        Self { directory }
    }

    fn path(&self, lease_id: LeaseId) -> PathBuf {
        self.directory.join(lease_id.to_string())
    }

    /// Durable when it returns.
    pub(crate) fn keep(&self, attempt: &AttemptRef, end: &AttemptEnd) -> io::Result<()> {
        let bytes = prost::Message::encode_to_vec(&proto::Report::from(&report(attempt, end)));
        let path = self.path(attempt.lease_id);
        let draft = path.with_extension("new");
        let mut file = File::create(&draft)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(draft, path)?;
        File::open(&self.directory)?.sync_all()
    }

    /// Repeatable.
    pub(crate) fn remove(&self, lease_id: LeaseId) -> io::Result<()> {
        match fs::remove_file(self.path(lease_id)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// All that is there. What can't be read is not an outcome; it is left for whoever looks and said in the log.
    pub(crate) fn load(&self) -> io::Result<Vec<(AttemptRef, AttemptEnd)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let path = entry?.path();
            if path.extension().is_some() {
                fs::remove_file(path)?;
                continue;
            }
            match read(&fs::read(&path)?) {
                Some(kept) => found.push(kept),
                None => tracing::error!(path = %path.display(), "not an undelivered outcome"),
            }
        }
        Ok(found)
    }
}

fn report(attempt: &AttemptRef, end: &AttemptEnd) -> AttemptReport {
    AttemptReport {
        job_id: attempt.job_id,
        attempt: attempt.number,
        lease_id: attempt.lease_id,
        what: Said::Ended(end.clone()),
    }
}

fn read(bytes: &[u8]) -> Option<(AttemptRef, AttemptEnd)> {
    let report: proto::Report = prost::Message::decode(bytes).ok()?;
    let report = AttemptReport::try_from(&report).ok()?;
    let Said::Ended(end) = report.what else { return None };
    let AttemptReport { job_id, attempt: number, lease_id, .. } = report;
    Some((AttemptRef { job_id, number, lease_id }, end))
}

#[cfg(test)]
mod tests {
    use jobyard_model::JobId;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn what_is_kept_is_found_again_and_a_torn_file_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let spool = Spool::at(directory.path().to_owned());
        let id = Uuid::from_u128(5);
        let attempt = AttemptRef { job_id: JobId(id), number: 2, lease_id: LeaseId(id) };
        let end = AttemptEnd::Vanished { why: "gone".to_owned() };
        spool.keep(&attempt, &end).unwrap();
        spool.keep(&attempt, &end).unwrap();
        fs::write(directory.path().join("draft.new"), "half").unwrap();
        fs::write(directory.path().join("nonsense"), [0xff]).unwrap();
        assert_eq!(spool.load().unwrap(), [(attempt, end)]);
        spool.remove(attempt.lease_id).unwrap();
        spool.remove(attempt.lease_id).unwrap();
        assert!(spool.load().unwrap().is_empty());
    }
}
