//! How long logs are, how they came, and what is found in them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Time;

/// How long the log of an attempt is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogSizes {
    /// Which attempt.
    pub attempt: u32,
    /// Bytes of standard output.
    pub stdout: u64,
    /// Bytes of standard error.
    pub stderr: u64,
    /// Nothing more comes.
    pub over: bool,
}

/// Consecutive bytes of one stream that were read at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogPiece {
    /// The order of arrival within the attempt, over both streams; any of them is a cursor.
    pub number: i64,
    /// `stdout` or `stderr`.
    pub stream: String,
    /// Offset in the stream of the first byte.
    pub from: u64,
    /// Offset in the stream after the last byte.
    pub to: u64,
    /// When the first byte was read, by the node's clock.
    pub time: Time,
}

/// What was found, and how far was looked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogSearch {
    /// By stream and offset.
    pub items: Vec<LogMatch>,
    /// Give this as `cursor` to go on looking; absent at the log's end.
    pub next_cursor: Option<String>,
    /// Nothing else is to be found before this place.
    pub scanned_to: LogPlace,
}

/// A place in a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogPlace {
    /// `stdout` or `stderr`.
    pub stream: String,
    /// Offset in the stream.
    pub offset: u64,
}

/// One place where the text stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogMatch {
    /// `stdout` or `stderr`.
    pub stream: String,
    /// Offset in the stream of the first byte that matches.
    pub offset: u64,
    /// How many bytes match.
    pub length: u32,
    /// The line around it, of a long one 512 bytes before and after; what is no UTF-8 is replaced.
    pub line: String,
    /// Offset in the stream of the first byte of `line`.
    pub line_offset: u64,
    /// The line's number from 1; absent when the search did not begin at the log's beginning.
    pub line_number: Option<u64>,
}
