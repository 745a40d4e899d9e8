//! Saved views: filters that somebody gave a name.

use jobyard_model::Timestamp;
use uuid::Uuid;

/// What is kept of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewView {
    /// Which.
    pub id: Uuid,
    /// For people; unique among those of one principal.
    pub name: String,
    /// As a query string.
    pub filter: String,
    /// Whether everybody sees it.
    pub shared: bool,
}

/// A view as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewRecord {
    /// What is kept.
    pub view: NewView,
    /// The principal that made it.
    pub created_by: String,
    /// When.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub changed_at: Timestamp,
    /// From 1; one more with each change.
    pub version: u32,
}

/// What became of a change of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ViewChange {
    /// It was done.
    Done(ViewRecord),
    /// Its principal has another view of that name.
    NameTaken,
    /// Somebody changed it meanwhile.
    ChangedMeanwhile,
    /// There is no such view.
    NotFound,
}
