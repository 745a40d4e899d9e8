//! One try at running a job on one node.

use serde::{Deserialize, Serialize};

use crate::{ArtifactHash, Intent, JobKind, LeaseId, NodeId, ServiceRun, SessionId, Timestamp};

/// Where an attempt is that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(i16)]
pub enum Phase {
    /// Claimed and committed; the worker has not answered.
    Placed = 0,
    /// The worker took it and is preparing.
    Starting = 1,
    /// The task process exists.
    Running = 2,
    /// The task process ended; outputs are going up.
    Finishing = 3,
}

impl Phase {
    /// Every phase, in order.
    pub const ALL: [Self; 4] = [Self::Placed, Self::Starting, Self::Running, Self::Finishing];

    /// The number in the datastore.
    #[must_use]
    pub fn code(self) -> i16 {
        self as i16
    }

    /// The phase with this number in the datastore.
    #[must_use]
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.code() == code)
    }

    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Placed => "placed",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Finishing => "finishing",
        }
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(i16)]
pub enum Outcome {
    /// Exit 0, by itself.
    Succeeded = 0,
    /// Another exit, a signal, or something that can't be run.
    Failed = 1,
    /// Ran longer than its `timeout`.
    TimedOut = 2,
    /// Asked for more memory than it has.
    OomKilled = 3,
    /// Its lease ran out, or its sidecar or node died.
    Lost = 4,
    /// The platform could not start it.
    LaunchFailed = 5,
    /// Surely never started.
    NotStarted = 6,
    /// Had to leave its node.
    Evicted = 7,
    /// A service that was stopped.
    Stopped = 8,
    /// Somebody cancelled the job.
    Cancelled = 9,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 10] = [
        Self::Succeeded,
        Self::Failed,
        Self::TimedOut,
        Self::OomKilled,
        Self::Lost,
        Self::LaunchFailed,
        Self::NotStarted,
        Self::Evicted,
        Self::Stopped,
        Self::Cancelled,
    ];

    /// The number in the datastore.
    #[must_use]
    pub fn code(self) -> i16 {
        self as i16
    }

    /// The outcome with this number in the datastore.
    #[must_use]
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.code() == code)
    }

    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::OomKilled => "oom_killed",
            Self::Lost => "lost",
            Self::LaunchFailed => "launch_failed",
            Self::NotStarted => "not_started",
            Self::Evicted => "evicted",
            Self::Stopped => "stopped",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What made the task process end, as its sidecar saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(i16)]
pub enum EndedBy {
    /// Nobody but itself.
    Itself = 0,
    /// A Stop that the sidecar was given.
    Stop = 1,
    /// The attempt's `timeout`.
    Timeout = 2,
    /// The memory limit.
    Memory = 3,
    /// The machine goes down.
    Shutdown = 4,
    /// The sidecar stopped itself, since the lease of an `exclusive` attempt was about to end.
    Lease = 5,
}

impl EndedBy {
    /// Every way.
    pub const ALL: [Self; 6] =
        [Self::Itself, Self::Stop, Self::Timeout, Self::Memory, Self::Shutdown, Self::Lease];

    /// The number in the datastore.
    #[must_use]
    pub fn code(self) -> i16 {
        self as i16
    }

    /// The way with this number in the datastore.
    #[must_use]
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|ended_by| ended_by.code() == code)
    }

    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Itself => "itself",
            Self::Stop => "stop",
            Self::Timeout => "timeout",
            Self::Memory => "memory",
            Self::Shutdown => "shutdown",
            Self::Lease => "lease",
        }
    }
}

/// How the task process left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// With this code, 0–255.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// There never was a process, for a reason that can't change: the user's to mend.
    Unrunnable,
    /// There never was a process, for a reason of the platform's.
    LaunchFault,
}

/// What an attempt used. Zero where the node can't measure.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Between start and end of the task process, by a monotonic clock.
    pub wall_ms: u64,
    /// In user mode, all processes of the attempt where the containment can tell.
    pub cpu_user_ms: u64,
    /// In the kernel.
    pub cpu_system_ms: u64,
    /// The most memory at one time.
    pub peak_memory_bytes: u64,
    /// What enforced the limits: `cgroup-v1`, `cgroup-v2`, `none`.
    pub limits: String,
}

/// What became of what the task process left in its output folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outputs {
    /// It left nothing, or came to no end after which outputs go up.
    #[default]
    None,
    /// It is this tree of the artifact store.
    Kept(#[serde(with = "crate::job::hash_text")] ArtifactHash),
    /// It can't be kept, for a reason that is the user's to mend.
    Refused,
    /// It was not up in time.
    Late,
}

/// What a sidecar reports of an ended task process: facts, no names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitFacts {
    /// What made it end.
    pub ended_by: EndedBy,
    /// How it left.
    pub exit: Exit,
    /// In plain words, empty when there is nothing to say. May hold anything; cleaned before it is stored.
    pub message: String,
    /// By the node's clock; shown, never compared.
    pub started_at: Option<Timestamp>,
    /// By the node's clock; shown, never compared.
    pub ended_at: Timestamp,
    /// What it used.
    pub usage: Usage,
    /// What became of its outputs.
    #[serde(default)]
    pub outputs: Outputs,
}

/// Why an attempt is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttemptEnd {
    /// The sidecar saw it end.
    Exited(ExitFacts),
    /// Evidence without a witness: the sidecar is dead, or the machine booted anew.
    Vanished {
        /// What is known.
        why: String,
    },
    /// It surely never started: the worker refused, or the connect failed before a byte was written.
    NotStarted {
        /// The worker's refusal, or what became of the connect.
        why: String,
    },
    /// The lease ran out.
    Silent,
}

impl AttemptEnd {
    /// Tells reports about one lease apart: the same report resent has the same fingerprint (FNV-1a, 64 bits).
    #[must_use]
    pub fn fingerprint(&self) -> i64 {
        let text = match self {
            Self::Exited(facts) => {
                format!("exited {:?} {:?} {}", facts.ended_by, facts.exit, facts.ended_at.0)
            }
            Self::Vanished { .. } => "vanished".to_owned(),
            Self::NotStarted { .. } => "not started".to_owned(),
            Self::Silent => "silent".to_owned(),
        };
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        hash.cast_signed()
    }
}

/// An attempt that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveAttempt {
    /// From 1, never reused within a job.
    pub number: u32,
    /// The fence.
    pub lease_id: LeaseId,
    /// Where it was placed.
    pub node_id: NodeId,
    /// The node's session that it was placed for.
    pub session: SessionId,
    /// Where it is.
    pub phase: Phase,
    /// When it was claimed.
    pub placed_at: Timestamp,
    /// When the worker's acceptance was accepted.
    pub accepted_at: Option<Timestamp>,
    /// When the task process was reported.
    pub started_at: Option<Timestamp>,
    /// When the lease runs out, by the datastore's clock.
    pub lease_until: Timestamp,
    /// Of a service, once its task process left for the first time.
    pub service: Option<ServiceRun>,
}

impl LiveAttempt {
    /// Whether a service's task process waits for its next start.
    #[must_use]
    pub fn is_restarting(&self) -> bool {
        self.phase == Phase::Running && self.service.is_some_and(|run| run.is_waiting())
    }
}

/// Names the outcome from the facts, what was wanted, and where the attempt was (design §3).
#[must_use]
pub fn name_outcome(end: &AttemptEnd, phase: Phase, intent: Intent, kind: JobKind) -> Outcome {
    match end {
        AttemptEnd::NotStarted { .. } => Outcome::NotStarted,
        AttemptEnd::Silent if phase == Phase::Placed => Outcome::NotStarted,
        AttemptEnd::Silent | AttemptEnd::Vanished { .. } => Outcome::Lost,
        AttemptEnd::Exited(facts) => name_exit(facts, intent, kind),
    }
}

fn name_exit(facts: &ExitFacts, intent: Intent, kind: JobKind) -> Outcome {
    match facts.exit {
        Exit::LaunchFault => return Outcome::LaunchFailed,
        Exit::Unrunnable => return Outcome::Failed,
        Exit::Code(_) | Exit::Signal(_) => {}
    }
    match facts.ended_by {
        // A service above `run` counts as stopped however it leaves.
        EndedBy::Itself if kind == JobKind::Service && intent > Intent::Run => stopped_as(intent),
        EndedBy::Itself if facts.exit == Exit::Code(0) => match facts.outputs {
            Outputs::None | Outputs::Kept(_) => Outcome::Succeeded,
            Outputs::Refused => Outcome::Failed,
            Outputs::Late => Outcome::Lost,
        },
        EndedBy::Itself => Outcome::Failed,
        EndedBy::Stop => stopped_as(intent),
        EndedBy::Timeout => Outcome::TimedOut,
        EndedBy::Memory => Outcome::OomKilled,
        EndedBy::Shutdown => Outcome::Evicted,
        EndedBy::Lease => Outcome::Lost,
    }
}

/// What a stop is called. One that nobody wanted (a worker that had no contact for a day) leaves the node.
fn stopped_as(intent: Intent) -> Outcome {
    match intent {
        Intent::Run | Intent::Evict => Outcome::Evicted,
        Intent::Stop => Outcome::Stopped,
        Intent::Cancel => Outcome::Cancelled,
    }
}
