//! Real attempts: the real sidecar beside real processes, driven as the worker drives it.

mod adoption;
mod containment;
mod ending;
mod faults;
mod lease;
mod normal;
mod output;
mod world;
