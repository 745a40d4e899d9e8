//! An artifact.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An immutable file in the artifact store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Artifact {
    /// SHA-256 of its bytes, 64 lower-case hex digits; its name.
    pub sha256: String,
    /// How many bytes it has.
    pub size_bytes: u64,
}

/// A folder in the artifact store: a manifest, and the artifacts that it names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Tree {
    /// SHA-256 of its manifest, 64 lower-case hex digits; its name.
    pub sha256: String,
    /// How many files it has.
    pub files: u32,
    /// How many bytes they have together.
    pub size_bytes: u64,
}

/// Many small artifacts in one call: what the first line of its body says. Their bytes follow in the same order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ArtifactBatch {
    /// At most 1,000 files.
    #[schema(max_items = 1000)]
    pub files: Vec<BatchedArtifact>,
}

impl ArtifactBatch {
    /// Files in one call.
    pub const MOST_FILES: usize = 1_000;
}

/// One of many artifacts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchedArtifact {
    /// SHA-256 of its bytes, 64 lower-case hex digits; its name.
    pub sha256: String,
    /// How many bytes it has.
    pub size: u64,
}

/// What one call with many artifacts stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactsStored {
    /// How many files.
    pub files: u32,
    /// How many bytes they have together.
    pub size_bytes: u64,
}

/// Artifacts that somebody asks about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ArtifactNames {
    /// At most 1,000 names, 64 lower-case hex digits each.
    #[schema(max_items = 1000)]
    pub sha256: Vec<String>,
}

/// Those that have to be uploaded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct MissingArtifacts {
    /// In the order in which they were asked for, each once.
    pub missing: Vec<String>,
}
