//! Reading logs: as they were written, from wherever they lie, bounded in memory.
//!
//! Invariant: **what is handed out of a stream is consecutive**; a part that can't be read ends the answer with an
//! error instead of leaving a hole. Only what is no longer kept may be missing at the beginning.

mod reader;
mod retention;
mod search;
mod tail;

pub(crate) use reader::{LogReader, Wanted};
pub use retention::{LogRetention, drop_old_logs};
pub(crate) use search::{Cursor, Sought, search, word};
