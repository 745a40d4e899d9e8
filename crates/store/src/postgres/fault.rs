//! What a failed statement means for the caller: nothing changed, fate unknown, full, do it again, or our defect.
//!
//! Owns the reading of SQLSTATEs. Invariant: "nothing changed" is only said when the COMMIT was not sent, or the
//! server itself said that it rolled back.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use crate::StoreError;
use crate::error::Source;

/// SQLSTATE of `jobyard_expect`: a guarded write changed another number of rows than what was read promised.
const WRONG_COUNT: &str = "JY001";

/// Why a transaction did not do what it was asked. Cheap to copy: calls that share a commit share its fault.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    /// Rolled back for the benefit of another transaction: the same call may work now.
    Again(Shared),
    /// The connection or the server is gone, or doesn't answer; nothing was changed.
    Lost(Shared),
    /// No connection can be had; nothing was changed.
    Unavailable(Shared),
    /// The connection broke between COMMIT and its answer.
    Unknown(Shared),
    /// The disk is full; nothing was changed.
    Full(Shared),
    /// A look over many rows ran into its limit of time.
    TooSlow,
    /// A statement of ours is wrong; nothing was changed.
    Statement(Shared),
    /// A row that breaks our own rules; nothing was changed.
    Inconsistent { table: &'static str, id: String, what: String },
}

/// A driver's error that several callers get.
#[derive(Clone)]
pub(super) struct Shared(Arc<dyn StdError + Send + Sync>);

/// Whether the COMMIT had been sent when the error came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It had not: whatever happened, nothing was changed.
    BeforeCommit,
    /// It had.
    Commit,
}

impl Fault {
    /// Reads a driver's error.
    pub(super) fn new(error: tokio_postgres::Error, stage: Stage) -> Self {
        let code = error.code().cloned();
        let class = code.as_ref().map_or("", |code| &code.code()[..2]).to_owned();
        let error = Shared(Arc::new(error));
        let Some(code) = code else { return Self::gone(error, stage) };
        match code {
            SqlState::T_R_DEADLOCK_DETECTED
            | SqlState::T_R_SERIALIZATION_FAILURE
            | SqlState::LOCK_NOT_AVAILABLE
            | SqlState::UNIQUE_VIOLATION => Self::Again(error),
            ref code if code.code() == WRONG_COUNT => Self::Again(error),
            SqlState::DISK_FULL => Self::Full(error),
            SqlState::READ_ONLY_SQL_TRANSACTION => Self::Lost(error),
            SqlState::QUERY_CANCELED => Self::Unavailable(error),
            // A session that was ended while it waited for its standby has committed here.
            _ if class == "57" || class == "08" => Self::gone(error, stage),
            _ if class == "53" => Self::Unavailable(error),
            _ => Self::Statement(error),
        }
    }

    /// The connection broke, or the server did not answer in time.
    pub(super) fn gone(error: Shared, stage: Stage) -> Self {
        match stage {
            Stage::BeforeCommit => Self::Lost(error),
            Stage::Commit => Self::Unknown(error),
        }
    }

    /// Whether connections made before it are not to be used any more: the server restarted, or is no primary now.
    pub(super) fn spoils_connections(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::Unknown(_))
    }

    /// What the caller is told.
    pub(super) fn during(self, doing: &'static str) -> StoreError {
        match self {
            Self::Again(error) | Self::Lost(error) | Self::Unavailable(error) => {
                StoreError::Unavailable { doing, source: error.into_source() }
            }
            Self::Unknown(error) => StoreError::Unknown { doing, source: error.into_source() },
            Self::TooSlow => StoreError::TooSlow { doing },
            Self::Full(error) => StoreError::Full { doing, source: error.into_source() },
            Self::Statement(error) => StoreError::Statement { doing, source: error.into_source() },
            Self::Inconsistent { table, id, what } => StoreError::Inconsistent { table, id, what },
        }
    }
}

/// What a reading that was shared with others gives its caller; `None` came to no end.
pub(super) fn found<T>(answer: Option<Result<T, Fault>>, doing: &'static str) -> Result<T, StoreError> {
    let abandoned = || Err(Fault::Unavailable(Shared::new("the reading was abandoned")));
    answer.unwrap_or_else(abandoned).map_err(|fault| fault.during(doing))
}

impl From<StoreError> for Fault {
    /// Of the pure rooms, which only ever find a row inconsistent.
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Inconsistent { table, id, what } => Self::Inconsistent { table, id, what },
            other => Self::Statement(Shared(Arc::new(other))),
        }
    }
}

impl From<PoolError> for Fault {
    fn from(error: PoolError) -> Self {
        Self::Unavailable(Shared(Arc::new(error)))
    }
}

impl Shared {
    /// In our own words.
    pub(super) fn new(words: impl Into<Source>) -> Self {
        Self(Arc::from(words.into()))
    }

    fn into_source(self) -> Source {
        Box::new(self)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl fmt::Display for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl StdError for Shared {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}
