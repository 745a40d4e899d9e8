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
