//! Sessions of people in browsers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Me, Time};

/// What begins a session: one of the two.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionCreate {
    /// A token's secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// A login code; it is used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<String>,
}

/// A session that has begun; the cookie comes in a header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// Who is in session.
    pub me: Me,
    /// When it ends.
    pub expires_time: Time,
}

/// A code that begins one session of the caller's token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Login {
    /// The code; the dashboard takes it as `/login#<code>`.
    pub login: String,
    /// Until when it can be used.
    pub expires_time: Time,
}

impl std::fmt::Debug for SessionCreate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SessionCreate").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Login {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Login").field("expires_time", &self.expires_time).finish_non_exhaustive()
    }
}
