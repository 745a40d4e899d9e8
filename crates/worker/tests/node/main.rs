//! The worker with real sidecars and real processes, from the launch to the answered outcome.
//!
//! Needs `cargo build -p jobyard-sidecar` before.

#![expect(clippy::unwrap_used, reason = "a test that can't go on says where")]

mod artifacts;
mod delivery;
mod desk;
mod inputs;
mod launching;
mod objects;
mod outputs;
mod restarts;
mod secrets;
mod services;
mod standing;
mod stopping;
mod world;
