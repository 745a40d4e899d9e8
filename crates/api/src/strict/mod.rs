//! Strict reading of JSON bodies: every fault is named, none is guessed away.
//!
//! Owns the tree in which doubled fields stay visible, the pointers into it, and the readers that turn a part of it
//! into a value or a [`Fault`]. Knows no noun: what a job may say stands in [`crate::submit`].
//!
//! Invariant: reading never stops at the first fault, and what it reports is bounded ([`MAX_FAULTS`]).

mod fault;
mod object;
mod pointer;
mod read;
mod tree;

pub use fault::{Fault, FaultCode, Faults, MAX_FAULTS};
pub use object::Object;
pub use pointer::Pointer;
pub use read::{Amount, Range, flag, items, object, text, text_map, texts, whole};
pub use tree::{Tree, parse};
