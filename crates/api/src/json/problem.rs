//! Every error answer.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The content type of a [`Problem`].
pub const PROBLEM_CONTENT_TYPE: &str = "application/problem+json";

/// What went wrong (RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// `about:blank`: the status says the kind, `code` says which.
    #[serde(rename = "type")]
    pub type_url: String,
    /// The status in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// Stable; for programs to branch on. The list stands in docs/errors.md.
    #[schema(example = "invalid_request")]
    pub code: String,
    /// What happened and what to do, for people.
    pub detail: String,
    /// Every fault found in bad input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ProblemError>,
}

/// One fault of bad input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProblemError {
    /// Where: a JSON pointer into the body, `?name` for a query parameter, or a header's name.
    #[schema(example = "/resources/cpu")]
    pub pointer: String,
    /// What is wrong and what is expected.
    pub detail: String,
    /// Stable; which kind of fault.
    #[schema(example = "out_of_range")]
    pub code: String,
}
