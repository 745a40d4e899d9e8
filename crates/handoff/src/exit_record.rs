//! How an attempt ended, as facts. The sidecar states them; what they mean for the job is decided elsewhere.

use crate::codec::{DecodeError, Field, FieldReader, FieldWriter};
use crate::envelope::{HEADER_BYTES, Magic, seal, unseal};

const MAGIC: Magic = *b"JYEXIT";

/// The size of the file `exit`, allocated when the directory is made, so that a full disk can't lose the record.
pub const EXIT_FILE_BYTES: usize = 1024;

/// Messages are cut to this many bytes (at a character), so that a record always fits its file.
const MAX_MESSAGE_BYTES: usize = 512;

/// What made the attempt end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// The task process ended, or never started (see [`ExitRecord::fault`]).
    Itself,
    /// The worker asked for it, or no worker was there for too long (the message says so).
    Stop,
    /// The run-time limit.
    Timeout,
    /// The memory limit: the kernel killed a process of the attempt's memory group.
    Memory,
    /// The machine goes down (SIGTERM to the sidecar).
    Shutdown,
    /// An exclusive attempt whose lease was about to run out.
    Lease,
}

impl EndedBy {
    const ALL: [(Self, u64, &'static str); 6] = [
        (Self::Itself, 1, "itself"),
        (Self::Stop, 2, "stop"),
        (Self::Timeout, 3, "timeout"),
        (Self::Memory, 4, "memory"),
        (Self::Shutdown, 5, "shutdown"),
        (Self::Lease, 6, "lease"),
    ];

    /// The word for it on every wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|entry| entry.0 == self).map_or("itself", |entry| entry.2)
    }

    fn code(self) -> u64 {
        Self::ALL.iter().find(|entry| entry.0 == self).map_or(0, |entry| entry.1)
    }

    fn from_field(field: Field<'_>) -> Result<Self, DecodeError> {
        let code = field.number()?;
        let entry = Self::ALL.iter().find(|entry| entry.1 == code);
        entry.map(|entry| entry.0).ok_or(DecodeError::BadField(field.tag))
    }
}

/// How the main process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskExit {
    /// It exited with this code, 0–255.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

/// Who has to do something about a launch that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultClass {
    /// The job can't work as it is written: not retryable.
    User,
    /// This machine could not do it: retry elsewhere, nobody's fault.
    Platform,
}

/// What kept the task process from starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultCode {
    /// The program does not exist.
    NoSuchProgram,
    /// It is a file without permission to execute, or on a file system mounted noexec.
    NotExecutable,
    /// The interpreter its first line (or its ELF header) names does not exist.
    BadInterpreter,
    /// The first line ends with a carriage return.
    InterpreterLineEnd,
    /// Machine code of another processor.
    WrongArchitecture,
    /// Neither machine code nor a script with an interpreter line.
    UnknownFormat,
    /// The program is a directory.
    ProgramIsDirectory,
    /// No program was given.
    EmptyCommand,
    /// The working directory does not exist.
    DirectoryMissing,
    /// The working directory is a file.
    NotADirectory,
    /// The working directory can't be entered by the task's user.
    DirectoryNotAccessible,
    /// Arguments and environment are larger than the kernel takes (E2BIG).
    ArgumentsTooLong,
    /// An argument or a variable holds a NUL byte, or a variable's name an `=`.
    MalformedArgument,
    /// No process could be made.
    ForkFailed,
    /// A control group could not be joined.
    GroupJoinFailed,
    /// The namespace could not be made.
    NamespaceFailed,
    /// The task's user could not be assumed.
    UserSwitchFailed,
    /// The attempt directory or its plan could not be read.
    PlanUnreadable,
    /// Anything else the kernel answered.
    ExecFailed,
    /// Processes of a service could not be killed, so that it could not be started again beside them.
    NotCleared,
}

impl FaultCode {
    const ALL: [(Self, u64, &'static str); 20] = [
        (Self::NoSuchProgram, 1, "no_such_program"),
        (Self::NotExecutable, 2, "not_executable"),
        (Self::BadInterpreter, 3, "bad_interpreter"),
        (Self::InterpreterLineEnd, 4, "interpreter_line_end"),
        (Self::WrongArchitecture, 5, "wrong_architecture"),
        (Self::UnknownFormat, 6, "unknown_format"),
        (Self::ProgramIsDirectory, 7, "program_is_directory"),
        (Self::EmptyCommand, 8, "empty_command"),
        (Self::DirectoryMissing, 9, "directory_missing"),
        (Self::NotADirectory, 10, "not_a_directory"),
        (Self::DirectoryNotAccessible, 11, "directory_not_accessible"),
        (Self::ArgumentsTooLong, 12, "arguments_too_long"),
        (Self::MalformedArgument, 13, "malformed_argument"),
        (Self::ForkFailed, 64, "fork_failed"),
        (Self::GroupJoinFailed, 65, "group_join_failed"),
        (Self::NamespaceFailed, 66, "namespace_failed"),
        (Self::UserSwitchFailed, 67, "user_switch_failed"),
        (Self::PlanUnreadable, 68, "plan_unreadable"),
        (Self::ExecFailed, 69, "exec_failed"),
        (Self::NotCleared, 70, "not_cleared"),
    ];

    /// Codes from this one on are the platform's.
    const FIRST_OF_PLATFORM: u64 = 64;

    fn code(self) -> u64 {
        Self::ALL.iter().find(|entry| entry.0 == self).map_or(0, |entry| entry.1)
    }

    fn from_field(field: Field<'_>) -> Result<Self, DecodeError> {
        let code = field.number()?;
        let entry = Self::ALL.iter().find(|entry| entry.1 == code);
        entry.map(|entry| entry.0).ok_or(DecodeError::BadField(field.tag))
    }

    /// The word for it on every wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|entry| entry.0 == self).map_or("exec_failed", |entry| entry.2)
    }

    /// Whose fault it is.
    #[must_use]
    pub fn class(self) -> FaultClass {
        if self.code() < Self::FIRST_OF_PLATFORM { FaultClass::User } else { FaultClass::Platform }
    }
}

/// Why the task process did not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What it was; [`FaultCode::class`] says whose.
    pub code: FaultCode,
    /// What happened and what to do about it, in plain words.
    pub message: String,
}

/// What the attempt used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// From the start of the main process to its end, monotonic.
    pub wall_ms: u64,
    /// Of the whole tree where a group counts it, else of the processes that were waited for.
    pub cpu_user_ms: u64,
    /// As above, in the kernel.
    pub cpu_system_ms: u64,
    /// Of the whole tree, page cache included, where a group counts it; else of the largest process.
    pub peak_memory_bytes: u64,
    /// What the task wrote to its standard output, kept or not.
    pub stdout_bytes: u64,
    /// What the task wrote to its standard error, kept or not.
    pub stderr_bytes: u64,
    /// The size of the log file; 0 when there is none.
    pub log_file_bytes: u64,
    /// Output was dropped (limit reached or disk full); the log says where.
    pub log_truncated: bool,
}

/// The facts of an end. Equal facts mean the same report sent twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitRecord {
    /// What made it end.
    pub ended_by: EndedBy,
    /// How the main process ended; `None` when it never started.
    pub exit: Option<TaskExit>,
    /// Why it did not start, when that is what happened.
    pub fault: Option<Fault>,
    /// More for people, when there is more to say.
    pub message: Option<String>,
    /// When the program was executed, unix ms; `None`: the task never ran.
    pub started_at_ms: Option<u64>,
    /// When the attempt was over, unix ms.
    pub ended_at_ms: u64,
    /// What it used.
    pub usage: Usage,
    /// How memory was limited: `cgroup-v1`, `cgroup-v2`, `none`.
    pub limits: String,
    /// Processes of the attempt that could not be killed by then; the node needs a look.
    pub survivors: u32,
}

mod tag {
    pub(super) const ENDED_BY: u16 = 1;
    pub(super) const EXIT_CODE: u16 = 2;
    pub(super) const EXIT_SIGNAL: u16 = 3;
    pub(super) const FAULT_CODE: u16 = 4;
    pub(super) const FAULT_MESSAGE: u16 = 5;
    pub(super) const MESSAGE: u16 = 6;
    pub(super) const STARTED_AT: u16 = 7;
    pub(super) const ENDED_AT: u16 = 8;
    pub(super) const WALL: u16 = 9;
    pub(super) const CPU_USER: u16 = 10;
    pub(super) const CPU_SYSTEM: u16 = 11;
    pub(super) const PEAK_MEMORY: u16 = 12;
    pub(super) const STDOUT_BYTES: u16 = 13;
    pub(super) const STDERR_BYTES: u16 = 14;
    pub(super) const LOG_FILE_BYTES: u16 = 15;
    pub(super) const LOG_TRUNCATED: u16 = 16;
    pub(super) const LIMITS: u16 = 17;
    pub(super) const SURVIVORS: u16 = 18;
}

impl ExitRecord {
    /// A record with nothing in it but what made the attempt end, and when.
    #[must_use]
    pub fn new(ended_by: EndedBy, ended_at_ms: u64) -> Self {
        Self {
            ended_by,
            exit: None,
            fault: None,
            message: None,
            started_at_ms: None,
            ended_at_ms,
            usage: Usage::default(),
            limits: String::from("none"),
            survivors: 0,
        }
    }

    /// The bytes of the record as it stands in its file and in an `Ended` frame.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = FieldWriter::default();
        fields.number(tag::ENDED_BY, self.ended_by.code());
        match self.exit {
            Some(TaskExit::Code(code)) => fields.number(tag::EXIT_CODE, u64::from(code.unsigned_abs())),
            Some(TaskExit::Signal(signal)) => {
                fields.number(tag::EXIT_SIGNAL, u64::from(signal.unsigned_abs()));
            }
            None => {}
        }
        if let Some(fault) = &self.fault {
            fields.number(tag::FAULT_CODE, fault.code.code());
            fields.bytes(tag::FAULT_MESSAGE, cut(&fault.message).as_bytes());
        }
        if let Some(message) = &self.message {
            // Beside a fault's message there is room for a short one only; the two are never both long.
            let room = if self.fault.is_some() { MAX_MESSAGE_BYTES / 8 } else { MAX_MESSAGE_BYTES };
            fields.bytes(tag::MESSAGE, cut_to(message, room).as_bytes());
        }
        fields.optional_number(tag::STARTED_AT, self.started_at_ms);
        fields.number(tag::ENDED_AT, self.ended_at_ms);
        let usage = &self.usage;
        fields.number(tag::WALL, usage.wall_ms);
        fields.number(tag::CPU_USER, usage.cpu_user_ms);
        fields.number(tag::CPU_SYSTEM, usage.cpu_system_ms);
        fields.number(tag::PEAK_MEMORY, usage.peak_memory_bytes);
        fields.number(tag::STDOUT_BYTES, usage.stdout_bytes);
        fields.number(tag::STDERR_BYTES, usage.stderr_bytes);
        fields.number(tag::LOG_FILE_BYTES, usage.log_file_bytes);
        fields.number(tag::LOG_TRUNCATED, usage.log_truncated.into());
        fields.bytes(tag::LIMITS, cut_to(&self.limits, 16).as_bytes());
        fields.number(tag::SURVIVORS, self.survivors.into());
        seal(MAGIC, &fields.finish())
    }

    /// The inverse of [`ExitRecord::encode`]. `None`: allocated and not written yet.
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>, DecodeError> {
        if bytes.iter().take(HEADER_BYTES).all(|byte| *byte == 0) {
            return Ok(None);
        }
        let mut record = Self::new(EndedBy::Itself, 0);
        let mut ended_by = None;
        let mut fault_code = None;
        let mut fault_message = String::new();
        for field in FieldReader::new(unseal(MAGIC, bytes)?) {
            let field = field?;
            match field.tag {
                tag::ENDED_BY => ended_by = Some(EndedBy::from_field(field)?),
                tag::FAULT_CODE => fault_code = Some(FaultCode::from_field(field)?),
                tag::FAULT_MESSAGE => fault_message = field.text()?,
                _ => record.take(field)?,
            }
        }
        record.ended_by = ended_by.ok_or(DecodeError::MissingField(tag::ENDED_BY))?;
        record.fault = fault_code.map(|code| Fault { code, message: fault_message });
        Ok(Some(record))
    }

    fn take(&mut self, field: Field<'_>) -> Result<(), DecodeError> {
        let usage = &mut self.usage;
        match field.tag {
            tag::EXIT_CODE => self.exit = Some(TaskExit::Code(signed(field)?)),
            tag::EXIT_SIGNAL => self.exit = Some(TaskExit::Signal(signed(field)?)),
            tag::MESSAGE => self.message = Some(field.text()?),
            tag::STARTED_AT => self.started_at_ms = Some(field.number()?),
            tag::ENDED_AT => self.ended_at_ms = field.number()?,
            tag::WALL => usage.wall_ms = field.number()?,
            tag::CPU_USER => usage.cpu_user_ms = field.number()?,
            tag::CPU_SYSTEM => usage.cpu_system_ms = field.number()?,
            tag::PEAK_MEMORY => usage.peak_memory_bytes = field.number()?,
            tag::STDOUT_BYTES => usage.stdout_bytes = field.number()?,
            tag::STDERR_BYTES => usage.stderr_bytes = field.number()?,
            tag::LOG_FILE_BYTES => usage.log_file_bytes = field.number()?,
            tag::LOG_TRUNCATED => usage.log_truncated = field.flag()?,
            tag::LIMITS => self.limits = field.text()?,
            tag::SURVIVORS => self.survivors = field.small()?,
            _ => {}
        }
        Ok(())
    }
}

fn signed(field: Field<'_>) -> Result<i32, DecodeError> {
    i32::try_from(field.number()?).map_err(|_| DecodeError::BadField(field.tag))
}

fn cut(text: &str) -> &str {
    cut_to(text, MAX_MESSAGE_BYTES)
}

fn cut_to(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
