//! Frames on the connection between worker and sidecar, and how a stream of bytes is cut into them.
//! No I/O here: either side reads and writes its socket as it likes.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::codec::DecodeError;
use crate::exit_record::{ExitRecord, TaskExit};
use crate::plan::AttemptIdentity;

/// A frame that says it is longer is an error, and the connection is over.
pub const MAX_FRAME_BYTES: usize = 64 << 10;

const LENGTH_BYTES: usize = 4;

/// Why the worker wants the task to end. For the message only: every reason is `ended_by: stop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// A service is stopped.
    Stop,
    /// The node is wanted for something else.
    Evict,
    /// The job was cancelled.
    Cancel,
    /// The lease is not this attempt's any more.
    Stale,
}

impl StopReason {
    fn code(self) -> u8 {
        match self {
            Self::Stop => 1,
            Self::Evict => 2,
            Self::Cancel => 3,
            Self::Stale => 4,
        }
    }

    /// A reason a newer worker has and this sidecar doesn't know is still a stop.
    fn from_code(code: u8) -> Self {
        match code {
            2 => Self::Evict,
            3 => Self::Cancel,
            4 => Self::Stale,
            _ => Self::Stop,
        }
    }
}

/// Worker → sidecar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToSidecar {
    /// To an idle sidecar: the attempt in this directory is yours. One that has an attempt ignores it.
    Begin {
        /// Absolute.
        directory: PathBuf,
    },
    /// An exclusive attempt may start: the datastore acknowledged its acceptance, and the report that carried it
    /// was sent at this time on CLOCK_BOOTTIME. It counts as the first renewal.
    Go {
        /// CLOCK_BOOTTIME, ms.
        sent_at_boottime_ms: u64,
    },
    /// A renewal was accepted that was sent at this time. Older ones than the newest known are ignored.
    Renewed {
        /// CLOCK_BOOTTIME, ms.
        sent_at_boottime_ms: u64,
    },
    /// End the task: TERM, then KILL after the grace. Repeatable; a later one can only shorten the grace.
    Stop {
        /// Why.
        reason: StopReason,
        /// Until KILL.
        grace_ms: u64,
    },
    /// The outcome is safe: be [`FromSidecar::Idle`].
    AckOutcome,
}

/// How far the sidecar is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SidecarPhase {
    /// An exclusive attempt waits for `Go`.
    Waiting,
    /// The process is being made.
    Starting,
    /// The task process exists.
    Running,
    /// TERM was sent, or the main process ended and the rest is being cleared.
    Ending,
    /// Over; `Ended` follows.
    Ended,
    /// A service's task process left and will be started again.
    BackingOff,
}

impl SidecarPhase {
    const ALL: [(Self, u8); 6] = [
        (Self::Waiting, 1),
        (Self::Starting, 2),
        (Self::Running, 3),
        (Self::Ending, 4),
        (Self::Ended, 5),
        (Self::BackingOff, 6),
    ];

    fn code(self) -> u8 {
        Self::ALL.iter().find(|entry| entry.0 == self).map_or(0, |entry| entry.1)
    }
}

/// The first frame on every connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// Whose attempt it is.
    pub identity: AttemptIdentity,
    /// How far it is.
    pub phase: SidecarPhase,
    /// When the program was executed, unix ms.
    pub started_at_ms: Option<u64>,
    /// The main process as this machine's process namespace sees it; 0 before there is one.
    pub main_pid: u32,
    /// The size of the log file so far.
    pub log_file_bytes: u64,
}

/// A service after its task process left for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceState {
    /// How often it was started again.
    pub restarts: u32,
    /// How it left last.
    pub last_exit: TaskExit,
    /// It was the memory limit.
    pub out_of_memory: bool,
    /// When it left last, unix ms.
    pub last_exit_at_ms: u64,
    /// When it is started again, unix ms; `None` while it runs.
    pub next_start_at_ms: Option<u64>,
}

/// Sidecar → worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromSidecar {
    /// See [`Hello`].
    Hello(Hello),
    /// The program was executed.
    Started {
        /// Unix ms.
        started_at_ms: u64,
        /// As in [`Hello::main_pid`].
        main_pid: u32,
    },
    /// The sidecar watches the task. Only this renews an attempt in `running`.
    Heartbeat {
        /// CLOCK_BOOTTIME, ms.
        sent_at_boottime_ms: u64,
    },
    /// The log file has this many bytes now. At once for the first, then at most each 50 ms.
    LogGrew {
        /// Its size.
        file_bytes: u64,
    },
    /// A service's task process left, or was started again. Repeated on each new connection; the newest one counts.
    Service(ServiceState),
    /// It is over. Repeated on each new connection until acknowledged.
    Ended(Box<ExitRecord>),
    /// The attempt is acknowledged and its lock is free: `Begin` another, or close the connection, upon which it
    /// exits. Nothing is said after it until then. (One that can't be used again closes the connection instead.)
    Idle,
}

/// Why a connection can't go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// Longer than [`MAX_FRAME_BYTES`], or without a kind.
    BadLength(u32),
    /// A known kind whose payload is malformed.
    BadPayload {
        /// The kind.
        kind: u8,
    },
    /// A malformed exit record in `Ended`.
    BadRecord(DecodeError),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadLength(length) => write!(f, "a frame of {length} bytes"),
            Self::BadPayload { kind } => write!(f, "a malformed frame of kind {kind}"),
            Self::BadRecord(_) => f.write_str("a malformed exit record"),
        }
    }
}

impl std::error::Error for FrameError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::BadRecord(source) => Some(source),
            Self::BadLength(_) | Self::BadPayload { .. } => None,
        }
    }
}

mod kind {
    pub(super) const GO: u8 = 1;
    pub(super) const RENEWED: u8 = 2;
    pub(super) const STOP: u8 = 3;
    pub(super) const ACK_OUTCOME: u8 = 4;
    pub(super) const BEGIN: u8 = 5;
    pub(super) const HELLO: u8 = 65;
    pub(super) const STARTED: u8 = 66;
    pub(super) const HEARTBEAT: u8 = 67;
    pub(super) const LOG_GREW: u8 = 68;
    pub(super) const ENDED: u8 = 69;
    pub(super) const IDLE: u8 = 70;
    pub(super) const SERVICE: u8 = 71;
}

fn frame(out: &mut Vec<u8>, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    out.push(kind);
    write(out);
    let length = u32::try_from(out.len() - start - LENGTH_BYTES).unwrap_or(u32::MAX);
    out[start..start + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    // Ids are short; one that is not is cut rather than breaking the frame.
    let text = &text[..text.floor_char_boundary(usize::from(u16::MAX) / 4)];
    out.extend_from_slice(&u16::try_from(text.len()).unwrap_or(0).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// A path is no longer than the kernel's 4,096 bytes; what is can't be opened, and is cut.
fn put_path(out: &mut Vec<u8>, path: &Path) {
    let bytes = path.as_os_str().as_bytes();
    let bytes = &bytes[..bytes.len().min(usize::from(u16::MAX) / 4)];
    out.extend_from_slice(&u16::try_from(bytes.len()).unwrap_or(0).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Takes what it needs from the front of a payload; what is left over is ignored.
struct Payload<'a>(&'a [u8]);

impl Payload<'_> {
    fn u8(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn u32(&mut self) -> Option<u32> {
        let (bytes, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*bytes))
    }

    fn u64(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    fn bytes(&mut self) -> Option<&[u8]> {
        let (length, rest) = self.0.split_first_chunk::<2>()?;
        let (bytes, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<String> {
        std::str::from_utf8(self.bytes()?).ok().map(str::to_owned)
    }

    fn path(&mut self) -> Option<PathBuf> {
        Some(OsString::from_vec(self.bytes()?.to_vec()).into())
    }
}

/// What can be read from a frame. Sealed: the two directions.
pub trait Incoming: Sized + sealed::Sealed {
    /// `Ok(None)`: a kind this release doesn't know.
    #[doc(hidden)]
    fn read(kind: u8, payload: &[u8]) -> Result<Option<Self>, FrameError>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::ToSidecar {}
    impl Sealed for super::FromSidecar {}
}

impl ToSidecar {
    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Go { sent_at_boottime_ms } => {
                frame(out, kind::GO, |out| out.extend_from_slice(&sent_at_boottime_ms.to_le_bytes()));
            }
            Self::Renewed { sent_at_boottime_ms } => {
                frame(out, kind::RENEWED, |out| out.extend_from_slice(&sent_at_boottime_ms.to_le_bytes()));
            }
            Self::Stop { reason, grace_ms } => frame(out, kind::STOP, |out| {
                out.push(reason.code());
                out.extend_from_slice(&grace_ms.to_le_bytes());
            }),
            Self::AckOutcome => frame(out, kind::ACK_OUTCOME, |_| {}),
            Self::Begin { directory } => frame(out, kind::BEGIN, |out| put_path(out, directory)),
        }
    }
}

impl Incoming for ToSidecar {
    fn read(kind: u8, payload: &[u8]) -> Result<Option<Self>, FrameError> {
        let mut payload = Payload(payload);
        let bad = FrameError::BadPayload { kind };
        Ok(Some(match kind {
            kind::GO => Self::Go { sent_at_boottime_ms: payload.u64().ok_or(bad)? },
            kind::RENEWED => Self::Renewed { sent_at_boottime_ms: payload.u64().ok_or(bad)? },
            kind::STOP => {
                let reason = StopReason::from_code(payload.u8().ok_or(bad)?);
                Self::Stop { reason, grace_ms: payload.u64().ok_or(bad)? }
            }
            kind::ACK_OUTCOME => Self::AckOutcome,
            kind::BEGIN => Self::Begin { directory: payload.path().ok_or(bad)? },
            _ => return Ok(None),
        }))
    }
}

impl FromSidecar {
    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello(hello) => frame(out, kind::HELLO, |out| hello.encode(out)),
            Self::Started { started_at_ms, main_pid } => frame(out, kind::STARTED, |out| {
                out.extend_from_slice(&started_at_ms.to_le_bytes());
                out.extend_from_slice(&main_pid.to_le_bytes());
            }),
            Self::Heartbeat { sent_at_boottime_ms } => {
                frame(out, kind::HEARTBEAT, |out| out.extend_from_slice(&sent_at_boottime_ms.to_le_bytes()));
            }
            Self::LogGrew { file_bytes } => {
                frame(out, kind::LOG_GREW, |out| out.extend_from_slice(&file_bytes.to_le_bytes()));
            }
            Self::Service(state) => frame(out, kind::SERVICE, |out| state.encode(out)),
            Self::Ended(record) => frame(out, kind::ENDED, |out| out.extend_from_slice(&record.encode())),
            Self::Idle => frame(out, kind::IDLE, |_| {}),
        }
    }
}

impl Incoming for FromSidecar {
    fn read(kind: u8, payload: &[u8]) -> Result<Option<Self>, FrameError> {
        let bad = FrameError::BadPayload { kind };
        let mut rest = Payload(payload);
        Ok(Some(match kind {
            kind::HELLO => Self::Hello(Hello::decode(&mut rest).ok_or(bad)?),
            kind::STARTED => {
                Self::Started { started_at_ms: rest.u64().ok_or(bad)?, main_pid: rest.u32().ok_or(bad)? }
            }
            kind::HEARTBEAT => Self::Heartbeat { sent_at_boottime_ms: rest.u64().ok_or(bad)? },
            kind::LOG_GREW => Self::LogGrew { file_bytes: rest.u64().ok_or(bad)? },
            kind::SERVICE => Self::Service(ServiceState::decode(&mut rest).ok_or(bad)?),
            kind::ENDED => {
                let record = ExitRecord::decode(payload).map_err(FrameError::BadRecord)?;
                Self::Ended(Box::new(record.ok_or(bad)?))
            }
            kind::IDLE => Self::Idle,
            _ => return Ok(None),
        }))
    }
}

impl Hello {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.phase.code());
        out.extend_from_slice(&self.identity.attempt.to_le_bytes());
        out.extend_from_slice(&self.started_at_ms.unwrap_or(0).to_le_bytes());
        out.extend_from_slice(&self.main_pid.to_le_bytes());
        out.extend_from_slice(&self.log_file_bytes.to_le_bytes());
        put_text(out, &self.identity.job_id);
        put_text(out, &self.identity.lease_id);
    }

    fn decode(payload: &mut Payload<'_>) -> Option<Self> {
        let phase = payload.u8()?;
        let phase = SidecarPhase::ALL.iter().find(|entry| entry.1 == phase)?.0;
        let attempt = payload.u32()?;
        let started_at_ms = Some(payload.u64()?).filter(|at| *at != 0);
        let main_pid = payload.u32()?;
        let log_file_bytes = payload.u64()?;
        let identity = AttemptIdentity { attempt, job_id: payload.text()?, lease_id: payload.text()? };
        Some(Self { identity, phase, started_at_ms, main_pid, log_file_bytes })
    }
}

impl ServiceState {
    const CODE: u8 = 1;
    const SIGNAL: u8 = 2;

    fn encode(&self, out: &mut Vec<u8>) {
        let (kind, value) = match self.last_exit {
            TaskExit::Code(code) => (Self::CODE, code),
            TaskExit::Signal(signal) => (Self::SIGNAL, signal),
        };
        out.extend_from_slice(&self.restarts.to_le_bytes());
        out.push(kind);
        out.extend_from_slice(&value.unsigned_abs().to_le_bytes());
        out.push(self.out_of_memory.into());
        out.extend_from_slice(&self.last_exit_at_ms.to_le_bytes());
        out.extend_from_slice(&self.next_start_at_ms.unwrap_or(0).to_le_bytes());
    }

    fn decode(payload: &mut Payload<'_>) -> Option<Self> {
        let restarts = payload.u32()?;
        let kind = payload.u8()?;
        let value = i32::try_from(payload.u32()?).ok()?;
        let last_exit = match kind {
            Self::CODE => TaskExit::Code(value),
            Self::SIGNAL => TaskExit::Signal(value),
            _ => return None,
        };
        Some(Self {
            restarts,
            last_exit,
            out_of_memory: payload.u8()? != 0,
            last_exit_at_ms: payload.u64()?,
            next_start_at_ms: Some(payload.u64()?).filter(|at| *at != 0),
        })
    }
}

/// Bytes as they came, frames as they are asked for.
#[derive(Debug, Default)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
    taken: usize,
}

impl FrameBuffer {
    /// Adds what was read from the connection.
    pub fn extend(&mut self, bytes: &[u8]) {
        if self.taken > 0 {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole frame of a known kind; `None` until more bytes come. After an error the connection is
    /// of no use any more.
    pub fn next_frame<F: Incoming>(&mut self) -> Result<Option<F>, FrameError> {
        loop {
            let waiting = &self.bytes[self.taken..];
            let Some((length, rest)) = waiting.split_first_chunk::<LENGTH_BYTES>() else {
                return Ok(None);
            };
            let length = u32::from_le_bytes(*length);
            let bytes = usize::try_from(length).unwrap_or(usize::MAX);
            if bytes == 0 || bytes > MAX_FRAME_BYTES {
                return Err(FrameError::BadLength(length));
            }
            let Some((kind, payload)) = rest.get(..bytes).and_then(<[u8]>::split_first) else {
                return Ok(None);
            };
            let frame = F::read(*kind, payload)?;
            self.taken += LENGTH_BYTES + bytes;
            if frame.is_some() {
                return Ok(frame);
            }
        }
    }
}
