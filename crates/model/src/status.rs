//! Where a job is.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Where a job is (design: "The life of a job").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(i16)]
pub enum Status {
    /// Something is outstanding: an artifact, or `run_at` lies ahead.
    Ready = 1,
    /// Waits for a node.
    Waiting = 2,
    /// Has an attempt that has not ended.
    Running = 3,
    /// Waits for the delay after a failure.
    Retry = 4,
    /// Ended well.
    Success = 5,
    /// Ended badly, for good unless somebody retries it by hand.
    FinalFailed = 6,
    /// Ended because somebody wanted it to.
    Cancelled = 7,
}

impl Status {
    /// Every status, in the order of a life.
    pub const ALL: [Self; 7] = [
        Self::Ready,
        Self::Waiting,
        Self::Running,
        Self::Retry,
        Self::Success,
        Self::FinalFailed,
        Self::Cancelled,
    ];

    /// Whether a job in this status is over (a retry by hand aside).
    #[must_use]
    pub fn is_end(self) -> bool {
        matches!(self, Self::Success | Self::FinalFailed | Self::Cancelled)
    }

    /// The number in the datastore.
    #[must_use]
    pub fn code(self) -> i16 {
        self as i16
    }

    /// The status with this number in the datastore.
    #[must_use]
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.code() == code)
    }

    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Retry => "retry",
            Self::Success => "success",
            Self::FinalFailed => "final_failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Status {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|status| status.as_str() == text).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|status| status.as_str()).collect();
            format!("no such status; the statuses are {}", known.join(", "))
        })
    }
}
