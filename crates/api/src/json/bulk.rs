//! Actions on every job that a filter passes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Time;

/// An action to be begun, or to be looked at first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkRequest {
    /// Which jobs: a query string with the conditions of `GET /api/v1/jobs`, such as `status=final_failed&label=team:rev`;
    /// at least one.
    pub filter: String,
    /// `cancel` or `retry`.
    pub action: String,
    /// Only count the jobs that it would act on.
    #[serde(default)]
    pub dry_run: bool,
    /// The same key again begins nothing anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// How many jobs an action would act on, of those that the caller may touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkPreview {
    /// At most 10,000.
    pub matching: u64,
    /// There are more than 10,000.
    pub capped: bool,
    /// `false`: only a bounded number of the newest jobs was looked at, or `capped`; there may be more.
    pub complete: bool,
}

/// An action on every job that a filter passes, carried out in the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Bulk {
    /// Which.
    pub id: String,
    /// As it was given.
    pub filter: String,
    /// `cancel` or `retry`.
    pub action: String,
    /// Who began it.
    pub created_by: String,
    /// When. Jobs that were created later are not touched.
    pub created_time: Time,
    /// `running`, `done` or `stopped`.
    pub status: String,
    /// Jobs that it acted on: `changed` and `unchanged`.
    pub looked_at: u64,
    /// Jobs that it changed.
    pub changed: u64,
    /// Jobs that had moved on, or were as they were meant to be.
    pub unchanged: u64,
    /// When it was done or stopped.
    pub finished_time: Option<Time>,
}
