//! Real attempts: the real sidecar beside real processes, driven as the worker drives it.

#![expect(clippy::unwrap_used, reason = "a test that can't go on says where")]

mod adoption;
mod containment;
mod ending;
mod faults;
mod idle;
mod lease;
mod normal;
mod output;
mod secrets;
mod services;
mod world;
