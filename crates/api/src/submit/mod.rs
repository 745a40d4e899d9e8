//! From the bytes of a submission to a job's specification, or to every fault in it.
//!
//! Owns what a job may say: types, limits, what goes together, what is not built yet, and the defaults. Never looks
//! anything up: whether the pool exists, whether the token may use the owner, is the server's to ask.
//!
//! Invariant: a [`JobSpec`] that comes out of here can be stored and run as it is.

mod fields;
mod limits;
mod rules;
mod spec;

use sha2::{Digest, Sha256};

use crate::json::JobSubmit;
use crate::strict::{self, FaultCode, Faults, Pointer};

pub use limits::{MAX_BATCH, MAX_ENVIRONMENT_BYTES, MAX_LABELS, MAX_NAME_CHARS, MAX_TEXT_BYTES};
pub use rules::{check_key, check_name};

/// Whether `file://` executables are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileUrls {
    /// Any file of the node may be run.
    Allowed,
    /// None may.
    #[default]
    Refused,
}

/// Whether a job may bring secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SecretEnvs {
    /// The server has a key to keep them with.
    Accepted,
    /// It has none.
    #[default]
    Refused,
}

/// What of the server's settings a submission depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubmitSettings {
    /// Whether `file://` executables are accepted.
    pub file_urls: FileUrls,
    /// Whether a job may bring secrets.
    pub secret_envs: SecretEnvs,
    /// The full lease: the `stop_grace` of an exclusive job may be a third of it.
    pub lease_ms: u64,
}

/// A checked submission, before its defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedJob {
    /// What was submitted, in canonical form: durations in milliseconds, memory in bytes, maps in order.
    pub submit: JobSubmit,
}

impl ParsedJob {
    /// SHA-256 over [`Self::canonical`]. Of a job with secrets it must not be kept: they could be guessed from it.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.canonical()).into()
    }

    /// The job as parsed, before defaults and without its key, in one form: two spellings of one job are the same
    /// (`"90s"` and `90`, another order of fields), and a later default does not change it. Holds its secrets.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        let keyless = JobSubmit { idempotency_key: None, ..self.submit.clone() };
        // Plain data can't fail. An error would only make two equal jobs look different.
        serde_json::to_vec(&keyless).unwrap_or_default()
    }
}

/// Reads one job.
///
/// # Errors
/// Every fault found.
pub fn parse_job(body: &[u8], settings: &SubmitSettings) -> Result<ParsedJob, Faults> {
    let tree = strict::parse(body)?;
    let mut faults = Faults::default();
    let job = fields::read_job(&tree, settings, &Pointer::Root, &mut faults);
    match job {
        Some(submit) if faults.is_empty() => Ok(ParsedJob { submit }),
        _ => Err(faults),
    }
}

/// Reads `{"jobs": […]}`, 1 to [`MAX_BATCH`] of them.
///
/// # Errors
/// Every fault found; pointers name index and field.
pub fn parse_batch(body: &[u8], settings: &SubmitSettings) -> Result<Vec<ParsedJob>, Faults> {
    let tree = strict::parse(body)?;
    let mut faults = Faults::default();
    let root = Pointer::Root;
    let mut jobs = Vec::new();
    if let Some(mut batch) = strict::object(&tree, "an object with `jobs`", &root, &mut faults) {
        let at = root.field("jobs");
        match batch.take("jobs", &mut faults) {
            None => faults.add(&at, FaultCode::Missing, "a batch needs `jobs`, a list of 1 to 10,000 jobs"),
            Some(list) => {
                let items = strict::items(list, "a list of jobs", &at, &mut faults).unwrap_or_default();
                if items.is_empty() || items.len() > MAX_BATCH {
                    let detail = format!("a batch has 1 to {MAX_BATCH} jobs, this one has {}", items.len());
                    faults.add(&at, FaultCode::TooMany, detail);
                } else {
                    let read = |(index, item)| fields::read_job(item, settings, &at.item(index), &mut faults);
                    jobs = items
                        .iter()
                        .enumerate()
                        .filter_map(read)
                        .map(|submit| ParsedJob { submit })
                        .collect();
                }
            }
        }
        batch.finish(&mut faults);
    }
    if faults.is_empty() { Ok(jobs) } else { Err(faults) }
}

#[cfg(test)]
mod tests;
