//! Who did it, and what they may.

use serde::{Deserialize, Serialize};

/// What a token may do; each role may also do what the ones before it may. `Node` stands apart: it may only join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// May join a node, nothing else.
    Node,
    /// Sees every job's status.
    Viewer,
    /// Submits, cancels and retries jobs of the owners the token acts for.
    Submitter,
    /// Sees and steers everything; cordons and drains nodes.
    Operator,
    /// Makes tokens and reads the audit trail.
    Admin,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 5] = [Self::Node, Self::Viewer, Self::Submitter, Self::Operator, Self::Admin];

    /// The word on the wire and in the datastore.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Viewer => "viewer",
            Self::Submitter => "submitter",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// The role with this word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }
}

/// Who makes a call: a token's name, what it may, and for which owners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Shown as `submitted_by` and in the audit trail.
    pub name: String,
    /// What the principal may do.
    pub role: Role,
    /// The owners the principal acts for; the first is the default. Operators and admins act for all.
    pub owners: Vec<String>,
}

impl Principal {
    /// Whether `env`, logs, cancel and retry of this owner's jobs are open to the principal.
    #[must_use]
    pub fn acts_for(&self, owner: &str) -> bool {
        self.role >= Role::Operator || self.owners.iter().any(|own| own == owner)
    }
}
