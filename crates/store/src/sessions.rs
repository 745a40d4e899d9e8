//! Sessions of people in browsers, and the codes that begin one; both kept hashed.

use jobyard_model::Timestamp;
use jobyard_model::ids::TokenId;

use crate::TokenRecord;

/// What begins a session: SHA-256 of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionKey {
    /// A token, which stays.
    Token([u8; 32]),
    /// A login code, which is used up.
    Login([u8; 32]),
}

/// A session to be begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewSession {
    /// SHA-256 of what the browser keeps.
    pub hash: [u8; 32],
    /// It ends this long after its beginning, and no later than its token.
    pub lasts_ms: u64,
}

/// A code that begins one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewLogin {
    /// SHA-256 of the code.
    pub hash: [u8; 32],
    /// Whose session it begins.
    pub token_id: TokenId,
    /// How long it can be used.
    pub lasts_ms: u64,
}

/// A session that goes on: its token is neither revoked nor past its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// Who is in session.
    pub token: TokenRecord,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// How many rows that are past their end are removed with each new one.
pub(crate) const SWEPT_WITH_EACH: i64 = 100;
