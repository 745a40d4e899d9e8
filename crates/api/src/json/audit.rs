//! Who did what.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Time;

/// One changing call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Audit {
    /// Ascending.
    pub number: i64,
    /// When.
    pub time: Time,
    /// Who.
    pub who: String,
    /// From where.
    pub address: String,
    /// Such as `job.submit`.
    pub action: String,
    /// An id or a name.
    pub target: String,
    /// Such as how many.
    pub detail: String,
}
