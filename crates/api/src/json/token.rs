//! Tokens, and who one is.

use jobyard_model::Role;
use jobyard_model::ids::TokenId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::words::RoleWord;
use super::{Seconds, Time};

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Which; not the secret.
    #[schema(value_type = String, format = "uuid")]
    pub id: TokenId,
    /// The principal's name.
    pub name: String,
    /// What it may do.
    #[schema(value_type = RoleWord)]
    pub role: Role,
    /// The owners it acts for; the first is the default.
    pub owners: Vec<String>,
    /// When it was made.
    pub created_time: Time,
    /// When it ends.
    pub expires_time: Option<Time>,
    /// When it was revoked.
    pub revoked_time: Option<Time>,
}

/// A token to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenCreate {
    /// The principal's name; shown as `submitted_by` and in the audit trail.
    #[schema(max_length = 200)]
    pub name: String,
    /// What it may do.
    #[schema(value_type = RoleWord)]
    pub role: Role,
    /// The owners it acts for; the first is the default.
    #[serde(default)]
    pub owners: Vec<String>,
    /// How long it lives; for ever when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<Seconds>,
}

/// A new token: the only time its secret is shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenCreated {
    /// What goes behind `Authorization: Bearer`.
    pub secret: String,
    /// The rest of it.
    pub token: Token,
}

impl std::fmt::Debug for TokenCreated {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("TokenCreated").field("token", &self.token).finish_non_exhaustive()
    }
}

/// Who makes the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    /// The principal's name.
    pub name: String,
    /// What it may do.
    #[schema(value_type = RoleWord)]
    pub role: Role,
    /// The owners it acts for; the first is the default. Operators and admins act for all.
    pub owners: Vec<String>,
}
