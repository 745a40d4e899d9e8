//! What a submit would come to.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Why;

/// A job that would be accepted, and what would become of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobCheck {
    /// Whose it would be.
    pub owner_id: String,
    /// What can be accepted but looks wrong.
    pub warnings: Vec<String>,
    /// What it would wait for.
    pub why: Why,
}
