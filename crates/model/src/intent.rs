//! What is wanted of an attempt.

use serde::{Deserialize, Serialize};

/// What is wanted of an attempt. Ordered; only ever raised, so two people who want different things can't undo
/// each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(i16)]
pub enum Intent {
    /// Go on.
    Run = 0,
    /// Leave this node; the job runs again elsewhere.
    Evict = 1,
    /// End the service well.
    Stop = 2,
    /// End the job.
    Cancel = 3,
}

impl Intent {
    /// Every intent, from the weakest.
    pub const ALL: [Self; 4] = [Self::Run, Self::Evict, Self::Stop, Self::Cancel];

    /// The number in the datastore.
    #[must_use]
    pub fn code(self) -> i16 {
        self as i16
    }

    /// The intent with this number in the datastore.
    #[must_use]
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|intent| intent.code() == code)
    }

    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Evict => "evict",
            Self::Stop => "stop",
            Self::Cancel => "cancel",
        }
    }
}
