//! `jobyard-sidecar`: one attempt from its start to its exit record, beside the task process; then perhaps another.
//!
//! Owns: its attempt's lock, its task process and everything below it, its pipes and its log file. Never: a
//! database, a network beyond one local socket, a thread, a decision about the job.
//! Invariant: from `Begin` on it depends on nothing of the worker; before that it is nobody's attempt, and ends with
//! its connection. Standard input is that first connection; neither arguments nor the environment are looked at.

#![cfg_attr(not(test), no_main)]

mod clock;
mod connection;
#[expect(unsafe_code, reason = "fork, execve and a few system calls that std and rustix do not have")]
mod exec;
mod faults;
mod idle;
mod log;
mod memory;
mod output;
mod sidecar;
mod task;
mod timers;
mod tree;

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use jobyard_handoff::{AttemptDirectory, EndedBy, ExitRecord};

use crate::connection::Connection;
use crate::idle::{Idle, Link};
use crate::sidecar::Sidecar;

/// How often and how long a starting sidecar tries for its lock: a worker that looks whether it is held takes it
/// for a moment.
const LOCK_TRIES: u32 = 200;
const LOCK_PAUSE_NS: i64 = 5_000_000;

/// Without the C entry, which the tests' own has no room for.
#[cfg(test)]
fn main() {
    std::process::exit(run());
}

/// The exit code. 1: of the last attempt nothing was started, and nothing will be.
fn run() -> i32 {
    exec::close_inherited();
    // The session is ours so that neither a terminal nor the worker's service manager ends us along with the worker.
    let _ = rustix::process::setsid();
    let Some(mut idle) = first_connection().and_then(Idle::new) else { return 1 };
    while let Some((path, link)) = idle.wait() {
        let Some(sidecar) = start(&path, link) else { return 1 };
        match sidecar.run() {
            Some(link) => idle = Idle::again(link),
            None => return 0,
        }
    }
    0
}

/// Takes possession of the directory. `None`: nothing was started and nothing will be; the free lock says so.
fn start(path: &Path, link: Link) -> Option<Sidecar> {
    // From here on the directory has a short name, whatever it was called.
    rustix::process::chdir(path).ok()?;
    let directory = AttemptDirectory::at(".");
    let lock = take_lock(&directory)?;
    let listener = directory.listen().ok()?;
    match directory.plan() {
        Ok(plan) => Some(Sidecar::new((directory, lock), plan, listener, link)),
        Err(error) => {
            let mut record = ExitRecord::new(EndedBy::Itself, clock::now().unix_ms);
            record.fault = Some(faults::unreadable(&error));
            // Without a plan there is nobody to answer for; the worker finds the record, or nothing started.
            let _ = directory.write_exit_record(&record);
            None
        }
    }
}

fn take_lock(directory: &AttemptDirectory) -> Option<File> {
    for _ in 0..LOCK_TRIES {
        if let Some(lock) = directory.try_lock().ok()? {
            return Some(lock);
        }
        let pause = rustix::time::Timespec { tv_sec: 0, tv_nsec: LOCK_PAUSE_NS };
        let _ = rustix::thread::nanosleep(&pause);
    }
    None
}

/// Standard input, which must be a socket; then standard input is closed for what comes after us.
fn first_connection() -> Option<Connection> {
    let stdin = rustix::stdio::stdin();
    let is_socket = rustix::net::sockopt::socket_type(stdin).is_ok();
    let socket: OwnedFd = is_socket.then(|| rustix::io::fcntl_dupfd_cloexec(stdin, 3).ok()).flatten()?;
    // Standard output is nothing (the worker saw to it); should it be something, it is not the connection.
    let _ = rustix::stdio::dup2_stdin(rustix::stdio::stdout().as_fd());
    Some(Connection::new(socket))
}
