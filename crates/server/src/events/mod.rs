//! The event stream: one shared tail a server, and a follower a connection.
//!
//! Invariant: **a follower hands out every event after its cursor that matches, once, in order**; where it can't (it
//! fell behind what the tail keeps), it reads the datastore again instead of guessing.

mod follower;
mod tail;

pub(crate) use follower::{Follower, Open};
pub(crate) use tail::EventTail;
