//! What the worker and the sidecar of an attempt share: the attempt directory, the frames on their
//! connection, the plan of what to execute, the record of how it ended, and the log file.
//!
//! Owns: every byte that one of the two writes and the other reads. Std only; it may touch files. Never: a
//! process, a signal, a clock (times are arguments), a job's policy.
//! Invariant: what one side wrote, the other side of this or the last two minor releases reads, and whatever
//! else it is given is an error, never a panic.
//!
//! # The attempt directory
//! One an attempt, on tmpfs, with a short name, mode 0700, owned by the worker's user.
//!
//! | file | written by | what |
//! |---|---|---|
//! | `plan` | worker, before the sidecar | [`ExecPlan`] without its environment; names the boot it belongs to |
//! | `environment` | worker; **removed by the sidecar** as soon as the task may start | the complete environment. Secrets are added to it when all else is staged, right before the sidecar gets it |
//! | `lock` | worker makes it, sidecar holds it (`flock`) its whole life | held = the sidecar lives. Never a pid |
//! | `decided` | the sidecar (`started`) or a restarted worker (`not_started`): the first wins | a symbolic link whose target is the word, so that it appears whole |
//! | `exit` | worker allocates it with zeros, sidecar fills it in place | [`ExitRecord`] with a checksum |
//! | `socket` | sidecar | where a restarted worker connects |
//! | `launch` | worker | what the worker must know again after a restart; its own format |
//!
//! # Launching
//! 1. Worker: `runtime.prepare(…)` gives an [`ExecPlan`] and its environment.
//! 2. Worker: [`AttemptDirectory::create`]. An error here (no space) is the refusal `disk_full`.
//! 3. Worker: sends [`ToSidecar::Begin`] to an idle sidecar; `jobyard_runtime::SidecarPool` has one, or starts it.
//!    (The sidecar's end of this first connection is its standard input; its environment is empty; it makes a session
//!    of its own. An idle one is nobody's attempt: it holds no lock, and exits when the connection closes.)
//! 4. Sidecar: locks, listens, sends [`FromSidecar::Hello`]. When the plan is `exclusive` it waits for
//!    [`ToSidecar::Go`]. Then it decides `started`, starts the task process and sends
//!    [`FromSidecar::Started`], followed at once by a [`FromSidecar::Heartbeat`].
//! 5. While it runs: heartbeats, [`FromSidecar::LogGrew`]. The worker answers accepted renewals with
//!    [`ToSidecar::Renewed`] (only exclusive plans need it; harmless otherwise).
//! 6. The task ends: the sidecar clears the tree, drains the pipes, writes `exit`, sends
//!    [`FromSidecar::Ended`] and waits for [`ToSidecar::AckOutcome`] (send it when the outcome is safe on the
//!    worker's disk or accepted), upon which it lets go of the lock and says [`FromSidecar::Idle`]: a worker that is its
//!    parent may keep it for another attempt, any other closes the connection. When the record is in its file and no
//!    worker is connected, it exits at once: the file is the message. Only when the file could not be written it stays and answers on
//!    `socket` until acknowledged.
//! 7. Worker: gives the sidecar back or reaps it, `jobyard_runtime::cleanup(&plan)`, [`AttemptDirectory::remove`].
//!
//! When the plan has [`ExecPlan::restart`], a task process that leaves is not the end: the sidecar clears the tree, drains
//! the pipes, says [`FromSidecar::Service`], waits, starts the program again (it kept the environment in memory) and
//! says `Service` again. One log, one working directory, one lease, heartbeats all the time. Step 6 follows when the
//! attempt was to end meanwhile, when the program can't be started any more, or after a code that is final.
//!
//! A launch that fails (no such program …) also ends with an [`ExitRecord`]: `fault` is set and
//! `started_at_ms` is `None`.
//!
//! # Adoption: what a (re)started worker does with each directory it finds
//! [`AttemptDirectory::situation`] answers with one of [`Situation`]'s variants; each says what to do. The connection speaks the same frames;
//! the newest connection replaces the older one, and `Hello` says how far things are. After an end of file on a
//! connection, ask for the situation again: the sidecar may have finished, or died.
//!
//! # Frames
//! `[u32 length of what follows, little endian][u8 kind][payload]`, at most [`MAX_FRAME_BYTES`]. Unknown kinds
//! are skipped, unknown trailing bytes of a payload too. [`FrameBuffer`] cuts a stream of bytes into frames;
//! it does no I/O itself.
//!
//! # The log file
//! On disk, made with the first byte the task writes. [`log::LogReader`] tails it from an offset;
//! [`log::records`] does the same for bytes already read. When the plan has [`ExecPlan::restart`] the log goes on in a new
//! file after a share of [`LogPlan::limit_bytes`] ([`log_parts`]), and the limit is about what lies there: the worker gives
//! room back by removing parts that it has delivered.

mod checksum;
mod codec;
mod directory;
mod envelope;
mod environment;
mod exit_record;
mod frames;
pub mod log;
pub mod log_parts;
mod plan;

pub use codec::DecodeError;
pub use directory::{AttemptDirectory, Decision, Situation, read_boot_id};
pub use environment::{Environment, wipe};
pub use exit_record::{EXIT_FILE_BYTES, EndedBy, ExitRecord, Fault, FaultClass, FaultCode, TaskExit, Usage};
pub use frames::{
    FrameBuffer, FrameError, FromSidecar, Hello, MAX_FRAME_BYTES, ServiceState, SidecarPhase, StopReason,
    ToSidecar,
};
pub use plan::{
    AttemptIdentity, Containment, ExecPlan, Groups, LogPlan, MAX_PLAN_BYTES, MemoryGroup, RestartPlan, Times,
    UserIds,
};
