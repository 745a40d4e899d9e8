//! The report door: what workers say, turned into calls of the store.
//!
//! Owns nothing but the translation. Every item of a request gets its own answer; one that makes no sense never fails
//! the others. Invariant: **an answer other than `later` is given only after the commit**, and log bytes are appended
//! before the outcome that came with them is accepted.

mod artifacts;
mod desk;
mod logs;
mod objects;
mod secrets;
mod stamp;

pub use desk::ReportDesk;
pub use stamp::stamp_report_clock;
