//! What the calls do, one a file. Each takes a [`crate::authentication::Caller`], checks what it may, and makes one
//! call of the store.

pub(crate) mod accept_jobs;
pub(crate) mod check_job;
pub(crate) mod control_job;
pub(crate) mod create_login;
pub(crate) mod create_token;
pub(crate) mod explain_waiting;
pub(crate) mod fleet;
pub(crate) mod node_attempts;
pub(crate) mod read_job;
pub(crate) mod search_audit;
pub(crate) mod set_node_gate;
