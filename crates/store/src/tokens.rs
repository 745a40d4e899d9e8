//! Tokens, kept hashed.

use jobyard_model::ids::TokenId;
use jobyard_model::{Role, Timestamp};

/// A token to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// Shown in lists; not the secret.
    pub id: TokenId,
    /// SHA-256 of the secret.
    pub hash: [u8; 32],
    /// The principal's name.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The owners it acts for.
    pub owners: Vec<String>,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
}

/// A token as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// Shown in lists.
    pub id: TokenId,
    /// The principal's name.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The owners it acts for.
    pub owners: Vec<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}
