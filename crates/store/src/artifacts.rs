//! Artifacts and trees, as the datastore knows them.

use jobyard_model::{ArtifactHash, JobId, JobSpec, Timestamp};

/// A tree to be noted. The bytes of its manifest are durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTree {
    /// The manifest's hash.
    pub hash: ArtifactHash,
    /// How many bytes the manifest has.
    pub manifest_bytes: u64,
    /// The artifacts that it names, each once, in ascending order.
    pub artifacts: Vec<ArtifactHash>,
    /// How many files it has; several may be the same artifact.
    pub files: u32,
    /// How many bytes its files have together.
    pub size_bytes: u64,
}

/// A known tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeRecord {
    /// How many files it has.
    pub files: u32,
    /// How many bytes they have together.
    pub size_bytes: u64,
}

/// What may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArtifactCutoffs {
    /// What was used before and is needed by nobody is doomed.
    pub unused: Timestamp,
    /// What was doomed before and is still needed by nobody goes. Further back than any transaction can last.
    pub doomed: Timestamp,
}

/// What one batch of retiring did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retired {
    /// Artifacts that are now doomed.
    pub doomed: u64,
    /// Artifacts that are not known any more; their bytes are left over.
    pub removed: u64,
    /// Artifacts that were looked at and are needed.
    pub needed: u64,
}

/// An artifact that is not known any more and whose bytes may still lie in the artifact store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftoverArtifact {
    /// Which.
    pub hash: ArtifactHash,
    /// Since when. Bytes that were written later belong to a new upload.
    pub since: Timestamp,
}

/// A live attempt, as found by its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasedAttempt {
    /// Its job.
    pub job_id: JobId,
    /// Its number.
    pub attempt: u32,
    /// What its job says.
    pub spec: JobSpec,
}
