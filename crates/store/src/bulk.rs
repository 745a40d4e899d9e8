//! Actions on every job that a filter passes, carried out a batch at a time.

use jobyard_model::{BulkAction, JobId, Timestamp};
use uuid::Uuid;

/// An action to be begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewBulk {
    /// Made by the door.
    pub id: Uuid,
    /// The filter as it was given.
    pub filter: String,
    /// What is done.
    pub action: BulkAction,
    /// Whose jobs it may touch; `None`: everybody's.
    pub owners: Option<Vec<String>>,
    /// The same key of the same principal begins nothing anew.
    pub idempotency_key: Option<String>,
}

/// Where an action is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkStatus {
    /// There may be more jobs to act on.
    Running,
    /// All were acted on.
    Done,
    /// Somebody stopped it; what was done stays done.
    Stopped,
}

impl BulkStatus {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Running, Self::Done, Self::Stopped];

    /// The number in the datastore.
    #[must_use]
    pub fn code(self) -> i16 {
        self as i16
    }

    /// The one with this number in the datastore.
    #[must_use]
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.code() == code)
    }

    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Stopped => "stopped",
        }
    }
}

/// An action as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkRecord {
    /// Which.
    pub id: Uuid,
    /// The filter as it was given.
    pub filter: String,
    /// What is done.
    pub action: BulkAction,
    /// Whose jobs it may touch; `None`: everybody's.
    pub owners: Option<Vec<String>>,
    /// The principal that began it.
    pub created_by: String,
    /// When; jobs that were created later are not touched.
    pub created_at: Timestamp,
    /// Where it is.
    pub status: BulkStatus,
    /// Jobs below this id are still to be acted on; `None` before the first batch.
    pub cursor: Option<JobId>,
    /// Jobs that it changed.
    pub changed: u64,
    /// Jobs that it found as they were meant to be, or gone.
    pub unchanged: u64,
    /// When it was done or stopped.
    pub finished_at: Option<Timestamp>,
}

/// How many batches of an action are kept to be asked about, and for how long.
pub(crate) const KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1_000;
