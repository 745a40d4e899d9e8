//! The plan of an attempt: everything the sidecar needs to start, watch and end a task process, and everything
//! another process needs to clear up after it. Written once by the worker, never changed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::codec::{DecodeError, Field, FieldReader, FieldWriter};
use crate::envelope::{Magic, seal, unseal};

const MAGIC: Magic = *b"JYPLAN";

/// A plan file larger than this is refused by writer and reader. The kernel's own limit on arguments and
/// environment is 2 MiB with common settings, at most 6 MiB; larger ones would fail with E2BIG anyway.
pub const MAX_PLAN_BYTES: usize = 32 << 20;

/// Who an attempt is. The sidecar repeats it in `Hello`; it gives it no meaning.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AttemptIdentity {
    /// The job's id.
    pub job_id: String,
    /// The attempt's number, from 1.
    pub attempt: u32,
    /// The right under which it runs.
    pub lease_id: String,
}

/// The user and group a task process runs as. Supplementary groups are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserIds {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// No other attempt on this machine has this uid, so that whatever runs under it belongs to this attempt.
    pub private: bool,
}

/// What holds the processes of an attempt together, so that none survives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Containment {
    /// A control group; see [`ExecPlan::groups`]. Nothing escapes.
    Cgroup,
    /// A process namespace of its own: everything in it dies with its first process, which dies with the
    /// sidecar.
    PidNamespace {
        /// Made inside a new user namespace, because the worker is not root.
        user_namespace: bool,
    },
    /// The sidecar adopts orphans and kills its descendants. Best effort: what is forked while we kill may
    /// escape, and a killed sidecar leaves finding them to the environment they carry.
    Subreaper,
}

/// The control groups of an attempt, as directories. All absent: nothing is limited or counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Groups {
    /// Version 1 `memory`.
    pub memory_v1: Option<PathBuf>,
    /// Version 1 `cpu`.
    pub cpu_v1: Option<PathBuf>,
    /// Version 1 `pids`.
    pub pids_v1: Option<PathBuf>,
    /// A leaf of the unified hierarchy, with or without controllers.
    pub unified: Option<PathBuf>,
    /// The unified leaf has the memory controller.
    pub unified_memory: bool,
}

/// Where memory is limited and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryGroup<'a> {
    /// Version 1: one victim dies, the rest lives on; the sidecar kills the rest.
    V1(&'a Path),
    /// Unified: the kernel kills the whole group (`memory.oom.group`).
    Unified(&'a Path),
}

impl Groups {
    /// Every directory, in the order they are joined.
    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        [&self.memory_v1, &self.cpu_v1, &self.pids_v1, &self.unified].into_iter().filter_map(|d| d.as_deref())
    }

    /// A directory whose `cgroup.procs` lists all processes of the attempt, the one that can kill first.
    #[must_use]
    pub fn members(&self) -> Option<&Path> {
        self.unified.as_deref().or_else(|| self.directories().next())
    }

    /// Where memory is limited, if it is.
    #[must_use]
    pub fn memory(&self) -> Option<MemoryGroup<'_>> {
        match (&self.memory_v1, &self.unified) {
            (Some(directory), _) => Some(MemoryGroup::V1(directory)),
            (None, Some(directory)) if self.unified_memory => Some(MemoryGroup::Unified(directory)),
            (None, _) => None,
        }
    }

    /// How memory is limited: `cgroup-v1`, `cgroup-v2` or `none`.
    #[must_use]
    pub fn limits(&self) -> &'static str {
        match self.memory() {
            Some(MemoryGroup::V1(_)) => "cgroup-v1",
            Some(MemoryGroup::Unified(_)) => "cgroup-v2",
            None => "none",
        }
    }
}

/// Every duration the sidecar counts, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Run-time limit from the start of the process, on the monotonic clock; 0 = none.
    pub timeout_ms: u64,
    /// Between TERM and KILL, unless a `Stop` says otherwise.
    pub stop_grace_ms: u64,
    /// Between two heartbeats.
    pub heartbeat_ms: u64,
    /// How long a renewal lasts; counted for exclusive attempts only.
    pub lease_ms: u64,
    /// An exclusive task is gone this long before its lease runs out (10 s unless a test wants it shorter).
    pub lease_margin_ms: u64,
    /// Without a worker for this long, the task is stopped.
    pub orphan_limit_ms: u64,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            timeout_ms: 0,
            stop_grace_ms: 10_000,
            heartbeat_ms: 60_000,
            lease_ms: 180_000,
            lease_margin_ms: 10_000,
            orphan_limit_ms: 24 * 3_600_000,
        }
    }
}

/// When a task process that left is started again: a service's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestartPlan {
    /// Before the first restart; doubles with each.
    pub first_delay_ms: u64,
    /// Before any restart at most.
    pub longest_delay_ms: u64,
    /// After a process that was up this long the delays begin anew.
    pub calm_ms: u64,
    /// A process that leaves with one of these codes is the last one.
    pub final_exit_codes: Vec<i32>,
}

impl Default for RestartPlan {
    fn default() -> Self {
        Self {
            first_delay_ms: 1_000,
            longest_delay_ms: 60_000,
            calm_ms: 10 * 60_000,
            final_exit_codes: Vec::new(),
        }
    }
}

/// Where output goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogPlan {
    /// The log file, on disk. Its folder exists; the file is made with the first byte.
    pub path: PathBuf,
    /// Bytes of output kept; what comes after is counted and dropped. Of a log in parts: bytes of all parts that are
    /// there at a time.
    pub limit_bytes: u64,
}

/// See the module. The environment travels apart, in [`crate::Environment`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecPlan {
    /// The boot this plan was made in; under any other one its processes are gone.
    pub boot_id: String,
    /// Whose attempt it is.
    pub identity: AttemptIdentity,
    /// The file to execute, absolute. Empty: an empty command, reported as a fault.
    pub program: PathBuf,
    /// All of argv, with argv\[0\].
    pub arguments: Vec<OsString>,
    /// The working directory of the task process.
    pub directory: PathBuf,
    /// The attempt's private directory, emptied by `cleanup`; `None`: nothing to empty.
    pub scratch: Option<PathBuf>,
    /// Whom to run as; `None`: as the sidecar.
    pub user: Option<UserIds>,
    /// What holds the processes together.
    pub containment: Containment,
    /// The control groups to join.
    pub groups: Groups,
    /// The memory limit, for messages; the group enforces it.
    pub memory_limit_bytes: Option<u64>,
    /// Every duration.
    pub times: Times,
    /// Start only after `Go`, and stop before the lease runs out.
    pub exclusive: bool,
    /// `None`: the attempt ends with its task process.
    pub restart: Option<RestartPlan>,
    /// Where output goes.
    pub log: LogPlan,
}

mod tag {
    pub(super) const BOOT_ID: u16 = 1;
    pub(super) const JOB_ID: u16 = 2;
    pub(super) const ATTEMPT: u16 = 3;
    pub(super) const LEASE_ID: u16 = 4;
    pub(super) const PROGRAM: u16 = 5;
    pub(super) const ARGUMENT: u16 = 6;
    pub(super) const DIRECTORY: u16 = 7;
    pub(super) const SCRATCH: u16 = 8;
    pub(super) const UID: u16 = 9;
    pub(super) const GID: u16 = 10;
    pub(super) const UID_PRIVATE: u16 = 11;
    pub(super) const CONTAINMENT: u16 = 12;
    pub(super) const MEMORY_V1: u16 = 13;
    pub(super) const CPU_V1: u16 = 14;
    pub(super) const PIDS_V1: u16 = 15;
    pub(super) const UNIFIED: u16 = 16;
    pub(super) const UNIFIED_MEMORY: u16 = 17;
    pub(super) const MEMORY_LIMIT: u16 = 18;
    pub(super) const TIMEOUT: u16 = 19;
    pub(super) const STOP_GRACE: u16 = 20;
    pub(super) const HEARTBEAT: u16 = 21;
    pub(super) const LEASE: u16 = 22;
    pub(super) const LEASE_MARGIN: u16 = 23;
    pub(super) const ORPHAN_LIMIT: u16 = 24;
    pub(super) const EXCLUSIVE: u16 = 25;
    pub(super) const LOG_PATH: u16 = 26;
    pub(super) const LOG_LIMIT: u16 = 27;
    pub(super) const RESTART_FIRST: u16 = 40;
    pub(super) const RESTART_LONGEST: u16 = 41;
    pub(super) const RESTART_CALM: u16 = 42;
    pub(super) const FINAL_EXIT_CODE: u16 = 43;
}

const CONTAINED_BY_CGROUP: u64 = 1;
const CONTAINED_BY_PID_NAMESPACE: u64 = 2;
const CONTAINED_BY_USER_AND_PID_NAMESPACE: u64 = 3;
const CONTAINED_BY_SUBREAPER: u64 = 4;

impl Containment {
    fn code(self) -> u64 {
        match self {
            Self::Cgroup => CONTAINED_BY_CGROUP,
            Self::PidNamespace { user_namespace: false } => CONTAINED_BY_PID_NAMESPACE,
            Self::PidNamespace { user_namespace: true } => CONTAINED_BY_USER_AND_PID_NAMESPACE,
            Self::Subreaper => CONTAINED_BY_SUBREAPER,
        }
    }

    fn from_field(field: Field<'_>) -> Result<Self, DecodeError> {
        match field.number()? {
            CONTAINED_BY_CGROUP => Ok(Self::Cgroup),
            CONTAINED_BY_PID_NAMESPACE => Ok(Self::PidNamespace { user_namespace: false }),
            CONTAINED_BY_USER_AND_PID_NAMESPACE => Ok(Self::PidNamespace { user_namespace: true }),
            CONTAINED_BY_SUBREAPER => Ok(Self::Subreaper),
            _ => Err(DecodeError::BadField(field.tag)),
        }
    }

    /// The word for it: `cgroup`, `pidns` or `subreaper`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cgroup => "cgroup",
            Self::PidNamespace { .. } => "pidns",
            Self::Subreaper => "subreaper",
        }
    }
}

impl ExecPlan {
    /// The bytes of the file `plan`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = FieldWriter::default();
        fields.bytes(tag::BOOT_ID, self.boot_id.as_bytes());
        fields.bytes(tag::JOB_ID, self.identity.job_id.as_bytes());
        fields.number(tag::ATTEMPT, self.identity.attempt.into());
        fields.bytes(tag::LEASE_ID, self.identity.lease_id.as_bytes());
        fields.path(tag::PROGRAM, &self.program);
        for argument in &self.arguments {
            fields.os(tag::ARGUMENT, argument);
        }
        fields.path(tag::DIRECTORY, &self.directory);
        fields.optional_path(tag::SCRATCH, self.scratch.as_deref());
        if let Some(user) = self.user {
            fields.number(tag::UID, user.uid.into());
            fields.number(tag::GID, user.gid.into());
            fields.number(tag::UID_PRIVATE, user.private.into());
        }
        fields.number(tag::CONTAINMENT, self.containment.code());
        fields.optional_path(tag::MEMORY_V1, self.groups.memory_v1.as_deref());
        fields.optional_path(tag::CPU_V1, self.groups.cpu_v1.as_deref());
        fields.optional_path(tag::PIDS_V1, self.groups.pids_v1.as_deref());
        fields.optional_path(tag::UNIFIED, self.groups.unified.as_deref());
        fields.number(tag::UNIFIED_MEMORY, self.groups.unified_memory.into());
        fields.optional_number(tag::MEMORY_LIMIT, self.memory_limit_bytes);
        self.encode_times(&mut fields);
        fields.number(tag::EXCLUSIVE, self.exclusive.into());
        self.encode_restart(&mut fields);
        fields.path(tag::LOG_PATH, &self.log.path);
        fields.number(tag::LOG_LIMIT, self.log.limit_bytes);
        seal(MAGIC, &fields.finish())
    }

    fn encode_times(&self, fields: &mut FieldWriter) {
        fields.number(tag::TIMEOUT, self.times.timeout_ms);
        fields.number(tag::STOP_GRACE, self.times.stop_grace_ms);
        fields.number(tag::HEARTBEAT, self.times.heartbeat_ms);
        fields.number(tag::LEASE, self.times.lease_ms);
        fields.number(tag::LEASE_MARGIN, self.times.lease_margin_ms);
        fields.number(tag::ORPHAN_LIMIT, self.times.orphan_limit_ms);
    }

    fn encode_restart(&self, fields: &mut FieldWriter) {
        let Some(restart) = &self.restart else { return };
        fields.number(tag::RESTART_FIRST, restart.first_delay_ms);
        fields.number(tag::RESTART_LONGEST, restart.longest_delay_ms);
        fields.number(tag::RESTART_CALM, restart.calm_ms);
        for code in &restart.final_exit_codes {
            fields.number(tag::FINAL_EXIT_CODE, u64::from(code.unsigned_abs()));
        }
    }

    /// The inverse of [`ExecPlan::encode`]; also of what the last two minor releases wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() > MAX_PLAN_BYTES {
            return Err(DecodeError::TooLarge);
        }
        let mut draft = Draft::default();
        for field in FieldReader::new(unseal(MAGIC, bytes)?) {
            draft.take(field?)?;
        }
        draft.finish()
    }
}

/// A plan while its fields come in. What a wrong default would make dangerous is required.
#[derive(Default)]
struct Draft {
    boot_id: Option<String>,
    identity: AttemptIdentity,
    program: Option<PathBuf>,
    arguments: Vec<OsString>,
    directory: Option<PathBuf>,
    scratch: Option<PathBuf>,
    uid: Option<u32>,
    gid: Option<u32>,
    uid_private: bool,
    containment: Option<Containment>,
    groups: Groups,
    memory_limit_bytes: Option<u64>,
    times: Times,
    exclusive: Option<bool>,
    restart: Option<RestartPlan>,
    log: LogPlan,
}

impl Draft {
    fn take(&mut self, field: Field<'_>) -> Result<(), DecodeError> {
        match field.tag {
            tag::BOOT_ID => self.boot_id = Some(field.text()?),
            tag::JOB_ID => self.identity.job_id = field.text()?,
            tag::ATTEMPT => self.identity.attempt = field.small()?,
            tag::LEASE_ID => self.identity.lease_id = field.text()?,
            tag::PROGRAM => self.program = Some(field.path()),
            tag::ARGUMENT => self.arguments.push(field.os()),
            tag::DIRECTORY => self.directory = Some(field.path()),
            tag::SCRATCH => self.scratch = Some(field.path()),
            tag::UID => self.uid = Some(field.small()?),
            tag::GID => self.gid = Some(field.small()?),
            tag::UID_PRIVATE => self.uid_private = field.flag()?,
            tag::CONTAINMENT => self.containment = Some(Containment::from_field(field)?),
            tag::MEMORY_V1 => self.groups.memory_v1 = Some(field.path()),
            tag::CPU_V1 => self.groups.cpu_v1 = Some(field.path()),
            tag::PIDS_V1 => self.groups.pids_v1 = Some(field.path()),
            tag::UNIFIED => self.groups.unified = Some(field.path()),
            tag::UNIFIED_MEMORY => self.groups.unified_memory = field.flag()?,
            tag::MEMORY_LIMIT => self.memory_limit_bytes = Some(field.number()?),
            tag::TIMEOUT => self.times.timeout_ms = field.number()?,
            tag::STOP_GRACE => self.times.stop_grace_ms = field.number()?,
            tag::HEARTBEAT => self.times.heartbeat_ms = field.number()?,
            tag::LEASE => self.times.lease_ms = field.number()?,
            tag::LEASE_MARGIN => self.times.lease_margin_ms = field.number()?,
            tag::ORPHAN_LIMIT => self.times.orphan_limit_ms = field.number()?,
            tag::EXCLUSIVE => self.exclusive = Some(field.flag()?),
            tag::LOG_PATH => self.log.path = field.path(),
            tag::LOG_LIMIT => self.log.limit_bytes = field.number()?,
            _ => self.take_restart(field)?,
        }
        Ok(())
    }

    /// Any of these fields says that there are restarts.
    fn take_restart(&mut self, field: Field<'_>) -> Result<(), DecodeError> {
        let restart = &mut self.restart;
        match field.tag {
            tag::RESTART_FIRST => restart.get_or_insert_default().first_delay_ms = field.number()?,
            tag::RESTART_LONGEST => restart.get_or_insert_default().longest_delay_ms = field.number()?,
            tag::RESTART_CALM => restart.get_or_insert_default().calm_ms = field.number()?,
            tag::FINAL_EXIT_CODE => {
                let code = i32::try_from(field.number()?).map_err(|_| DecodeError::BadField(field.tag))?;
                restart.get_or_insert_default().final_exit_codes.push(code);
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<ExecPlan, DecodeError> {
        let user = match (self.uid, self.gid) {
            (Some(uid), Some(gid)) => Some(UserIds { uid, gid, private: self.uid_private }),
            (None, None) => None,
            (Some(_), None) => return Err(DecodeError::MissingField(tag::GID)),
            (None, Some(_)) => return Err(DecodeError::MissingField(tag::UID)),
        };
        Ok(ExecPlan {
            boot_id: required(self.boot_id, tag::BOOT_ID)?,
            identity: self.identity,
            program: required(self.program, tag::PROGRAM)?,
            arguments: self.arguments,
            directory: required(self.directory, tag::DIRECTORY)?,
            scratch: self.scratch,
            user,
            containment: required(self.containment, tag::CONTAINMENT)?,
            groups: self.groups,
            memory_limit_bytes: self.memory_limit_bytes,
            times: self.times,
            exclusive: required(self.exclusive, tag::EXCLUSIVE)?,
            restart: self.restart,
            log: self.log,
        })
    }
}

fn required<T>(value: Option<T>, tag: u16) -> Result<T, DecodeError> {
    value.ok_or(DecodeError::MissingField(tag))
}
