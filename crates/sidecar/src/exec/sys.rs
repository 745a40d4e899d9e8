//! System calls that neither std nor rustix offers, as safe functions. The C library is linked by std anyway.

use std::ffi::{c_char, c_int, c_long, c_uint};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::process::Signal;

pub(crate) const CLONE_NEWNS: u64 = 0x0002_0000;
pub(crate) const CLONE_NEWUSER: u64 = 0x1000_0000;
pub(crate) const CLONE_NEWPID: u64 = 0x2000_0000;
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// The same number on every architecture Linux has had since.
const SYS_CLONE3: c_long = 435;
const SIGCHLD: u64 = 17;
const SIG_DFL: usize = 0;
const SIG_SETMASK: c_int = 2;
const SFD_NONBLOCK_CLOEXEC: c_int = 0o2_004_000;
const WNOHANG: c_int = 1;
const SIGNAL_INFO_BYTES: usize = 128;

/// As the C library lays it out: 1,024 signals, of which the first word is used.
#[repr(C)]
struct SignalSet([u64; 16]);

#[repr(C)]
#[derive(Default)]
struct ResourceUsage {
    user: [c_long; 2],
    system: [c_long; 2],
    largest_resident_kib: c_long,
    rest: [c_long; 13],
}

/// `struct clone_args` up to and with `cgroup` (version 2).
#[repr(C)]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn fork() -> c_int;
    fn execve(
        path: *const c_char,
        arguments: *const *const c_char,
        environment: *const *const c_char,
    ) -> c_int;
    fn _exit(status: c_int) -> !;
    fn wait4(pid: c_int, status: *mut c_int, options: c_int, usage: *mut ResourceUsage) -> c_int;
    fn signalfd(fd: c_int, set: *const SignalSet, flags: c_int) -> c_int;
    fn sigprocmask(how: c_int, set: *const SignalSet, old: *mut SignalSet) -> c_int;
    fn signal(number: c_int, handler: usize) -> usize;
    fn kill(pid: c_int, number: c_int) -> c_int;
    fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int;
}

/// Closes every descriptor above the standard three: what the worker may have leaked into us.
pub(crate) fn close_inherited() {
    // SAFETY: called first thing, before this process has opened or wrapped any descriptor above 2.
    unsafe { close_range(3, c_uint::MAX, 0) };
}

/// Closes every descriptor from `first` to `last`, owners or not.
///
/// # Safety
/// No value that owns one of them may be used or dropped afterwards.
pub(crate) unsafe fn close_span(first: RawFd, last: RawFd) {
    if let (Ok(first), Ok(last)) = (c_uint::try_from(first), c_uint::try_from(last)) {
        // SAFETY: the caller's promise.
        unsafe { close_range(first, last, 0) };
    }
}

/// Sends a signal to every process of this namespace but its first, which is the caller.
pub(crate) fn signal_everybody(number: Signal) {
    // SAFETY: always sound; only called by the first process of a namespace of our own.
    unsafe { kill(-1, number.as_raw()) };
}

pub(crate) enum Forked {
    Child,
    Parent(i32),
}

/// A child in new namespaces (`flags`) and, where the kernel takes it, directly in a unified control group. The
/// flag says whether it is in the group already.
///
/// # Safety
/// This process has one thread. The child must not return from the caller: it ends in `execute` or `exit_now`.
pub(crate) unsafe fn clone_process(flags: u64, group: Option<BorrowedFd<'_>>) -> io::Result<(Forked, bool)> {
    let group = group.and_then(|group| u64::try_from(group.as_raw_fd()).ok());
    let arguments = CloneArguments {
        flags: flags | group.map_or(0, |_| CLONE_INTO_CGROUP),
        exit_signal: SIGCHLD,
        cgroup: group.unwrap_or(0),
        ..CloneArguments::default()
    };
    // SAFETY: without a stack and CLONE_VM this is a fork; the structure lives through the call.
    let pid = unsafe { syscall(SYS_CLONE3, &raw const arguments, size_of::<CloneArguments>()) };
    if pid >= 0 {
        return Ok((forked(pid), group.is_some()));
    }
    let error = io::Error::last_os_error();
    if flags != 0 {
        return Err(error);
    }
    // Filtered away, an older kernel, or a group that refuses (the child then says which): do it in steps.
    // SAFETY: one thread, says the caller.
    let pid = unsafe { fork() };
    if pid >= 0 { Ok((forked(pid.into()), false)) } else { Err(io::Error::last_os_error()) }
}

fn forked(pid: c_long) -> Forked {
    match i32::try_from(pid) {
        Ok(0) | Err(_) => Forked::Child,
        Ok(pid) => Forked::Parent(pid),
    }
}

/// Replaces this process; the answer is why it could not.
///
/// # Safety
/// Both arrays end with a null pointer and hold pointers to NUL-terminated strings.
pub(crate) unsafe fn execute(
    path: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> io::Error {
    // SAFETY: the caller's promise.
    unsafe { execve(path, arguments, environment) };
    io::Error::last_os_error()
}

/// Ends without running anything of the parent's (destructors, buffers).
pub(crate) fn exit_now(status: i32) -> ! {
    // SAFETY: always sound; what is not released, the kernel releases.
    unsafe { _exit(status) }
}

/// All signals handled as if nobody had ever touched them: what a parent ignores stays ignored through an execve.
pub(crate) fn reset_signals() {
    for number in 1..=31 {
        // SAFETY: no handler is installed, and KILL and STOP merely refuse.
        unsafe { signal(number, SIG_DFL) };
    }
    let none = SignalSet([0; 16]);
    // SAFETY: the set lives through the call; no old set is asked for.
    unsafe { sigprocmask(SIG_SETMASK, &raw const none, std::ptr::null_mut()) };
}

/// Signals as a descriptor to poll, instead of handlers.
pub(crate) struct SignalQueue(OwnedFd);

impl SignalQueue {
    /// Blocks TERM and CHLD for this process and queues them here; INT and HUP are blocked and forgotten (a
    /// terminal is none of our business).
    pub(crate) fn install() -> io::Result<Self> {
        let wanted = set_of(&[Signal::TERM, Signal::CHILD]);
        let blocked = set_of(&[Signal::TERM, Signal::CHILD, Signal::INT, Signal::HUP]);
        // SAFETY: both sets live through the calls.
        let fd = unsafe {
            sigprocmask(SIG_SETMASK, &raw const blocked, std::ptr::null_mut());
            signalfd(-1, &raw const wanted, SFD_NONBLOCK_CLOEXEC)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else owns.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The same queue under a descriptor not below `lowest`.
    pub(crate) fn duplicate(&self, lowest: RawFd) -> io::Result<Self> {
        Ok(Self(rustix::io::fcntl_dupfd_cloexec(&self.0, lowest)?))
    }

    /// Takes everything queued; true when TERM was among it. (Children are looked for anyway.)
    pub(crate) fn take(&self) -> bool {
        let mut terminate = false;
        let mut info = [0; SIGNAL_INFO_BYTES];
        while let Ok(SIGNAL_INFO_BYTES) = rustix::io::read(&self.0, &mut info) {
            let number = u32::from_ne_bytes([info[0], info[1], info[2], info[3]]);
            terminate |= i64::from(number) == i64::from(Signal::TERM.as_raw());
        }
        terminate
    }
}

impl AsFd for SignalQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn set_of(signals: &[Signal]) -> SignalSet {
    let mut set = SignalSet([0; 16]);
    for signal in signals {
        set.0[0] |= 1 << (signal.as_raw() - 1);
    }
    set
}

/// A child that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reaped {
    pub(crate) pid: i32,
    /// As wait(2) encodes it.
    pub(crate) status: i32,
    pub(crate) user_ms: u64,
    pub(crate) system_ms: u64,
    pub(crate) largest_resident_bytes: u64,
}

/// One ended child, if there is one. Never blocks.
pub(crate) fn reap_any() -> Option<Reaped> {
    let mut status = 0;
    let mut usage = ResourceUsage::default();
    // SAFETY: both places live through the call and have the layout of the C library.
    let pid = unsafe { wait4(-1, &raw mut status, WNOHANG, &raw mut usage) };
    (pid > 0).then(|| Reaped {
        pid,
        status,
        user_ms: milliseconds(usage.user),
        system_ms: milliseconds(usage.system),
        largest_resident_bytes: u64::try_from(usage.largest_resident_kib).unwrap_or(0) * 1024,
    })
}

fn milliseconds([seconds, microseconds]: [c_long; 2]) -> u64 {
    u64::try_from(seconds).unwrap_or(0) * 1_000 + u64::try_from(microseconds).unwrap_or(0) / 1_000
}
