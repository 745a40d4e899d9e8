//! The HTTP API over loopback, on a real SQLite datastore and a real artifact directory.

mod artifacts;
mod authentication;
mod away;
mod bad_input;
mod bulk;
mod checking;
mod control;
mod events;
mod fleet;
mod limits;
mod listing;
mod log_search;
mod logs;
mod objects;
mod openapi;
mod outputs;
mod pages;
mod reading;
mod secrets;
mod sessions;
mod submitting;
mod support;
mod tokens;
mod trees;
