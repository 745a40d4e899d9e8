//! Who did what.

use jobyard_model::Timestamp;

/// Who makes a changing call; ends up in the audit trail and in the events' `who`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// A principal's name, or a role's (`informer`).
    pub name: String,
    /// Where the call came from, empty for our own roles.
    pub address: String,
}

impl Actor {
    /// One of our own roles.
    #[must_use]
    pub fn role(name: &str) -> Self {
        Self { name: name.to_owned(), address: String::new() }
    }
}

/// One changing call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRecord {
    /// Ascending; the cursor of a page.
    pub number: i64,
    /// When.
    pub at: Timestamp,
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
