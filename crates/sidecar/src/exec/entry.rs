//! The process's entry, in place of the one std brings: that one looks for the stack's bounds in /proc, installs
//! handlers for faults and ignores SIGPIPE, which is a tenth of what a sidecar costs to start.

use std::ffi::{c_char, c_int};

/// Called by the C library, which has set up everything else (the arguments that `std::env` hands out, too).
// SAFETY: the name and the signature are those the C library expects, and nothing else defines it.
#[unsafe(no_mangle)]
extern "C" fn main(_count: c_int, _arguments: *const *const c_char) -> c_int {
    crate::run()
}
