//! Some of many.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A page. It may be short, even empty, and still have a next one: what one page scans is bounded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    /// In the order of the list.
    pub items: Vec<T>,
    /// Give this as `cursor` for the next page; absent on the last one.
    pub next_cursor: Option<String>,
}
