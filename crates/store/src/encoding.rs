//! How values of the model become columns, the same in both dialects.
//!
//! Owns the cleaning of text that strangers wrote, and the numbers and words that stand for enums. Knows no SQL.

use std::fmt::Display;

use jobyard_model::lifecycle::Policy;
use jobyard_model::retry::{Budgets, FailReason, MAX_DELAY_MS};
use jobyard_model::settings::EXCLUSIVE_PAUSE_MS;
use jobyard_model::{ArtifactHash, AttemptEnd, ExitFacts, JobSpec, Shape, Timestamp, Usage};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::{NewJob, StoreError};

/// The longest text of a stranger that is kept: a task's last words, a node's excuse.
pub(crate) const TEXT_BYTES: usize = 4096;

/// What a row that breaks our own rules is reported as.
pub(crate) fn inconsistent(table: &'static str, id: impl Display, what: impl Into<String>) -> StoreError {
    StoreError::Inconsistent { table, id: id.to_string(), what: what.into() }
}

/// Text as it may be stored: NUL, which PostgreSQL refuses, becomes U+FFFD, and more than [`TEXT_BYTES`] is cut with
/// a visible mark.
pub(crate) fn clean(text: &str) -> String {
    const MARK: char = '…';
    let cut = match text.len() > TEXT_BYTES {
        true => &text[..text.floor_char_boundary(TEXT_BYTES - MARK.len_utf8())],
        false => text,
    };
    let mut cleaned = String::with_capacity(cut.len() + MARK.len_utf8());
    for character in cut.chars() {
        let visible = if character == '\0' { char::REPLACEMENT_CHARACTER } else { character };
        // A NUL grows by two bytes, so many of them may reach the bound early.
        if cleaned.len() + visible.len_utf8() > TEXT_BYTES - MARK.len_utf8() && cut.len() < text.len() {
            break;
        }
        cleaned.push(visible);
    }
    if cut.len() < text.len() {
        cleaned.push(MARK);
    }
    cleaned
}

/// An end with all its text cleaned. Its fingerprint stays what it was: no text goes into that.
pub(crate) fn clean_end(end: AttemptEnd) -> AttemptEnd {
    match end {
        AttemptEnd::Exited(facts) => AttemptEnd::Exited(ExitFacts {
            message: clean(&facts.message),
            usage: Usage { limits: clean(&facts.usage.limits), ..facts.usage },
            ..facts
        }),
        AttemptEnd::Vanished { why } => AttemptEnd::Vanished { why: clean(&why) },
        AttemptEnd::NotStarted { why } => AttemptEnd::NotStarted { why: clean(&why) },
        AttemptEnd::Silent => AttemptEnd::Silent,
    }
}

/// An artifact's hash from a column.
///
/// # Errors
/// [`StoreError::Inconsistent`] when it has another length.
pub(crate) fn hash_column(table: &'static str, bytes: &[u8]) -> Result<ArtifactHash, StoreError> {
    let bytes: [u8; 32] = bytes.try_into().map_err(|_| inconsistent(table, "a row", "no SHA-256"))?;
    Ok(ArtifactHash(bytes))
}

/// A value of ours as JSON text.
///
/// # Errors
/// [`StoreError::Inconsistent`] when the value has no JSON form, which none of ours has.
pub(crate) fn to_json<T: Serialize>(table: &'static str, value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| inconsistent(table, "a new row", error.to_string()))
}

/// A value of ours from the JSON text of row `id`.
///
/// # Errors
/// [`StoreError::Inconsistent`] when the text is not what we wrote.
pub(crate) fn from_json<T: DeserializeOwned>(
    table: &'static str,
    id: impl Display,
    text: &str,
) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| inconsistent(table, id, error.to_string()))
}

/// The reason with this word.
pub(crate) fn parse_fail_reason(word: &str) -> Option<FailReason> {
    [
        FailReason::RetriesExhausted,
        FailReason::NotRetryable,
        FailReason::PlatformFailures,
        FailReason::Expired,
    ]
    .into_iter()
    .find(|reason| reason.as_str() == word)
}

/// What of a spec the transitions of its job must know.
#[must_use]
pub fn policy_of(spec: &JobSpec) -> Policy {
    Policy {
        kind: spec.kind,
        budgets: Budgets {
            max_retries: spec.max_retries,
            backoff_ms: spec.backoff_ms,
            no_retry_exit_codes: spec.no_retry_exit_codes.clone(),
        },
        start_within_ms: spec.start_within_ms,
        exclusive: spec.exclusive,
    }
}

/// What of a spec placement must know.
fn shape_of(spec: &JobSpec) -> Shape {
    Shape { resources: spec.resources, node_labels: spec.node_labels.clone(), runtime: spec.runtime }
}

/// A shape's JSON and its digest, under which it is interned. The maps in it are sorted, so equal shapes are equal
/// texts.
///
/// # Errors
/// As [`to_json`].
fn shape_digest(shape: &Shape) -> Result<(String, [u8; 32]), StoreError> {
    let text = to_json("shape", shape)?;
    let digest = Sha256::digest(text.as_bytes()).into();
    Ok((text, digest))
}

/// A job as it is stored. Made by the caller's own task, so that nothing is encoded while others wait for a commit.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) job: NewJob,
    /// Its spec as JSON.
    pub(crate) spec: String,
    /// Its labels as JSON.
    pub(crate) labels: String,
    /// Its shape as JSON.
    pub(crate) shape: String,
    /// Of the shape.
    pub(crate) digest: [u8; 32],
}

impl Prepared {
    /// Encodes a job.
    ///
    /// # Errors
    /// As [`to_json`].
    pub(crate) fn new(job: NewJob) -> Result<Self, StoreError> {
        let (shape, digest) = shape_digest(&shape_of(&job.spec))?;
        let labels = to_json("job", &job.spec.labels)?;
        Ok(Self { spec: to_json("job", &job.spec)?, labels, shape, digest, job })
    }
}

/// An amount as a column; amounts beyond what a column holds don't exist on any machine.
pub(crate) fn column(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// An amount from a column; what is negative counts as nothing.
pub(crate) fn amount(column: i64) -> u64 {
    u64::try_from(column).unwrap_or(0)
}

/// No delay of ours reaches this far: a due time of a retry or a back-off beyond it is left over from before the clock
/// stepped back. The longest is [`MAX_DELAY_MS`] with its tenth of jitter, and what `exclusive` adds to a lease.
pub(crate) fn later_than_any_delay(now: Timestamp) -> Timestamp {
    now.plus_ms(MAX_DELAY_MS + MAX_DELAY_MS / 10 + EXCLUSIVE_PAUSE_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nul_becomes_visible_and_nothing_else_changes() {
        assert_eq!(clean("a\0b\nç"), "a\u{fffd}b\nç");
        assert_eq!(clean(""), "");
    }

    #[test]
    fn megabytes_are_cut_at_a_character_with_a_mark() {
        for text in ["x".repeat(10 << 20), "é".repeat(5000), "\0".repeat(9000), "a".repeat(TEXT_BYTES + 1)] {
            let cleaned = clean(&text);
            assert!(cleaned.len() <= TEXT_BYTES, "{}", cleaned.len());
            assert!(cleaned.ends_with('…'));
        }
        assert_eq!(clean(&"a".repeat(TEXT_BYTES)).len(), TEXT_BYTES);
    }

    #[test]
    fn every_fail_reason_reads_back() {
        assert_eq!(parse_fail_reason("expired"), Some(FailReason::Expired));
        assert_eq!(parse_fail_reason("not_retryable"), Some(FailReason::NotRetryable));
        assert_eq!(parse_fail_reason("retries_exhausted"), Some(FailReason::RetriesExhausted));
        assert_eq!(parse_fail_reason("platform_failures"), Some(FailReason::PlatformFailures));
        assert_eq!(parse_fail_reason(""), None);
    }
}
