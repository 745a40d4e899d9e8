//! The node daemon: registers a machine, launches attempts beside sidecars, relays what they say to the report door,
//! and takes over those that are still alive when it is restarted.
//!
//! Owns: the node's identity and session, which attempts are on this machine, their directories and slots, the cache
//! of executables, and everything said to the report door. Never: a datastore, a job's policy, a decision whether an
//! attempt is lost; it never pulls work.
//!
//! Invariants: **an attempt that was answered `accepted` has a directory that the next worker finds**; an outcome is
//! kept until the report door has answered it; a lease that ended, was refused or was stopped here never starts again
//! in this session; dropping the worker harms no task.
//!
//! Where to look: [`Worker`] is the door and the start; `keeper/` is the life of one attempt from its launch to its
//! clean-up; `relay/` gathers what all of them say into calls of the report door.

mod adoption;
mod artifacts;
mod connection;
mod error;
mod facts;
mod heartbeats;
mod identity;
mod inputs;
mod keeper;
mod launch;
mod node;
mod outputs;
mod places;
mod probe;
mod relay;
mod secrets;
mod settings;
mod spool;
mod table;
mod users;
mod worker;

pub use error::{StartError, WorkerError};
pub use places::attempt_state;
pub use settings::{WorkerSettings, WorkerTimes};
pub use worker::{HandedOver, Worker, WorkerParts};
