//! Saved views.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Time;

/// A view to be kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ViewWrite {
    /// For people; unique among those of one principal.
    #[schema(max_length = 200)]
    pub name: String,
    /// A query string with the conditions of `GET /api/v1/jobs`; may be empty.
    pub filter: String,
    /// Whether everybody sees it.
    #[serde(default)]
    pub shared: bool,
}

/// A filter that somebody gave a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct View {
    /// Which.
    pub id: String,
    /// For people.
    pub name: String,
    /// A query string with the conditions of `GET /api/v1/jobs`.
    pub filter: String,
    /// Whether everybody sees it.
    pub shared: bool,
    /// The principal that made it, and may change it.
    pub created_by: String,
    /// When.
    pub created_time: Time,
    /// When it was changed last.
    pub changed_time: Time,
}
