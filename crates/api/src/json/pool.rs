//! A named set of nodes and the jobs sent to it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Time;

/// A pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// When it was made.
    pub created_time: Time,
}
