//! SQLite's errors, sorted into what a caller does differently.

use std::sync::Arc;

use rusqlite::ErrorCode;

use crate::StoreError;
use crate::error::Source;

/// Why a piece of work inside a transaction failed.
#[derive(Debug)]
pub(super) enum Fault {
    /// SQLite said so.
    Sql(rusqlite::Error),
    /// We said so.
    Store(StoreError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Fault {
    /// What a read gets that was interrupted before it began.
    pub(super) fn interruption() -> Self {
        Self::Sql(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_INTERRUPT),
            None,
        ))
    }

    /// Whether it was interrupted.
    pub(super) fn is_interruption(&self) -> bool {
        matches!(self, Self::Sql(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted))
    }

    /// The fault as the caller sees it.
    pub(super) fn during(self, doing: &'static str) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::Sql(error) => {
                let code = error.sqlite_error_code();
                sorted(code, doing, Box::new(error))
            }
        }
    }
}

/// The error of a commit or of a begin, which every call of the group gets.
pub(super) fn shared(error: &Arc<rusqlite::Error>, doing: &'static str) -> StoreError {
    sorted(error.sqlite_error_code(), doing, Box::new(Arc::clone(error)))
}

fn sorted(code: Option<ErrorCode>, doing: &'static str, source: Source) -> StoreError {
    match code {
        Some(ErrorCode::DiskFull) => StoreError::Full { doing, source },
        Some(
            ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            | ErrorCode::OutOfMemory
            | ErrorCode::OperationAborted
            | ErrorCode::OperationInterrupted
            | ErrorCode::PermissionDenied
            | ErrorCode::ReadOnly,
        ) => StoreError::Unavailable { doing, source },
        _ => StoreError::Statement { doing, source },
    }
}
