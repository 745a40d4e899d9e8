//! Real processes on a real datastore, for tests that kill them.
//!
//! [`Yard`] is a running installation: `jobyard up` on SQLite, or one of each role on PostgreSQL. Nobody depends on
//! this crate. Every process is ended by its id when the yard goes.
#![expect(clippy::expect_used, reason = "in a test a surprise is a failure")]

mod disk;
mod groups;
mod jobs;
mod loud;
mod memory;
mod notebook;
mod plan;
mod postgres;
mod process;
mod wait;
mod yard;

pub use groups::Unit;
pub use jobs::{ended, outcomes, submit, submit_all, time_passes, until_over, until_phase};
pub use jobyard_test_s3::{ACCESS_KEY_ID, S3Server, SECRET_ACCESS_KEY};
pub use loud::{Loudness, many_loud_attempts, one_loud_attempt};
pub use memory::Peaks;
pub use notebook::Notebook;
pub use plan::{Datastore, YardPlan};
pub use process::{Signal, bin};
pub use wait::{DEADLINE, eventually, processes_named};
pub use yard::{Role, Yard};
