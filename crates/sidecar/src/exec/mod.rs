//! Making the task process. The only unsafe code of the sidecar lives below this module: between a fork and an
//! execve nothing may allocate, and the system calls std and rustix don't have are declared here.
//!
//! Owns: the child until its execve, and the first process of a process namespace. Never: a decision.
//! Invariant: the child closes nothing and inherits nothing: every descriptor of ours is close-on-exec but the
//! three standard ones, which it replaces.

mod child;
#[cfg(not(test))]
mod entry;
mod image;
mod init;
mod spawn;
mod sys;

pub(crate) use child::{Failure, Stage};
pub(crate) use image::{Image, ImageError};
pub(crate) use init::MainStatus;
pub(crate) use spawn::{Spawned, spawn};
pub(crate) use sys::{Reaped, SignalQueue, close_inherited, reap_any};
