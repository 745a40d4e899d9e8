//! The worker with real sidecars and real processes, from the launch to the answered outcome.
//!
//! Needs `cargo build -p jobyard-sidecar` before.

mod artifacts;
mod delivery;
mod launching;
mod restarts;
mod standing;
mod stopping;
mod world;
