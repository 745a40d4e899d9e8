//! Jobs over HTTP.

pub(crate) mod control;
pub(crate) mod history;
pub(crate) mod list;
pub(crate) mod log_search;
pub(crate) mod logs;
pub(crate) mod read;
pub(crate) mod submit;
pub(crate) mod view;

pub(super) use control::{cancel, retry, stop};
pub(super) use history::history;
pub(super) use list::{count, list, rows, values};
pub(super) use log_search::{find as search_logs, pieces as log_pieces, sizes as log_sizes};
pub(super) use logs::logs;
pub(super) use read::{attempts, read, why};
pub(super) use submit::{check, submit, submit_batch};
