//! What a user submits.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::s3::InvalidS3Url;
use crate::{ArtifactHash, JobId, Priority, Resources, S3Url, Timestamp};

/// What kind of job it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(i16)]
pub enum JobKind {
    /// Ends by itself.
    Task = 0,
    /// Is meant to stay up; has no run-time limit.
    Service = 1,
}

impl JobKind {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Service => "service",
        }
    }

    /// The number in the datastore.
    #[must_use]
    pub fn code(self) -> i16 {
        self as i16
    }

    /// The kind with this number in the datastore.
    #[must_use]
    pub fn from_code(code: i16) -> Option<Self> {
        [Self::Task, Self::Service].into_iter().find(|kind| kind.code() == code)
    }
}

/// Where a job's time goes; stored for placement that mixes, without effect yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IoClass {
    /// Mostly computes.
    Cpu,
    /// Mostly waits for files or the network.
    Io,
    /// Some of both.
    #[default]
    Mixed,
}

/// How a task process is isolated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runtime {
    /// A plain process with its own user id, session and control group.
    #[default]
    Process,
}

impl Runtime {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
        }
    }
}

/// Where a job's executable lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BinaryUrl {
    /// `sha256:<hex>`: an artifact.
    Artifact(#[serde(with = "hash_text")] ArtifactHash),
    /// `file://<absolute path>`: a file of the node, where the server's settings allow it. Holds the path.
    File(String),
    /// `s3://<bucket>/<key>`: an object, where the server's settings allow it.
    S3(S3Url),
}

/// Where a job's input lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputPath {
    /// `sha256:<hex>`: a tree, or a single artifact.
    Stored(ArtifactHash),
    /// `s3://<bucket>/<key>`: an object, or with a `/` at its end all objects below it, where the server's settings
    /// allow it.
    S3(S3Url),
}

/// Why a text names no input.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum InvalidInputPath {
    /// It is neither kind.
    #[error(
        "expected `sha256:` and the 64 lower-case hex digits of a tree's or artifact's hash, or s3://<bucket>/<key>"
    )]
    Unknown,
    /// It is a place in S3 that can't be used.
    #[error(transparent)]
    S3(#[from] InvalidS3Url),
}

impl fmt::Display for InputPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stored(hash) => write!(formatter, "sha256:{hash}"),
            Self::S3(place) => place.fmt(formatter),
        }
    }
}

impl FromStr for InputPath {
    type Err = InvalidInputPath;

    fn from_str(text: &str) -> Result<Self, InvalidInputPath> {
        if text.starts_with("s3://") {
            return Ok(Self::S3(text.parse()?));
        }
        let hash = text.strip_prefix("sha256:").and_then(|hash| hash.parse().ok());
        hash.map(Self::Stored).ok_or(InvalidInputPath::Unknown)
    }
}

impl Serialize for InputPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for InputPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

pub(crate) mod hash_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::ArtifactHash;

    pub(crate) fn serialize<S: Serializer>(hash: &ArtifactHash, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(hash)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ArtifactHash, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// What made a job, when it wasn't a person: a schedule, a workflow run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Such as `schedule`.
    pub kind: String,
    /// Which one.
    pub id: String,
    /// Which occurrence or step of it.
    pub key: String,
}

/// A job as submitted, checked and with its defaults filled in. Never changes after the insert.
///
/// The serialised form is the datastore's, not the wire's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// The team that is accounted for.
    pub owner: String,
    /// Shown to people; need not be unique.
    pub name: String,
    /// Task or service.
    pub kind: JobKind,
    /// The executable; without it `command[0]` names one that the node has.
    pub binary: Option<BinaryUrl>,
    /// With `binary` the arguments, without it the program and its arguments.
    pub command: Vec<String>,
    /// The environment that the task process gets besides `JOBYARD_*` and `PATH`.
    pub env: BTreeMap<String, String>,
    /// Not before this instant.
    pub run_at: Option<Timestamp>,
    /// Expires when no attempt was `running` this long after creation or `run_at`.
    pub start_within_ms: Option<u64>,
    /// How many retries the user's failures may cost.
    pub max_retries: u32,
    /// Delay before the first retry; doubles with each.
    pub backoff_ms: u64,
    /// Exit codes that say: can't work again.
    pub no_retry_exit_codes: Vec<i32>,
    /// From the start of the task process, each attempt anew.
    pub timeout_ms: Option<u64>,
    /// Between TERM and KILL.
    pub stop_grace_ms: u64,
    /// What placement reserves.
    pub resources: Resources,
    /// A hard cap in thousandths of a core.
    pub cpu_limit_milli: Option<u64>,
    /// Stored without effect yet.
    pub io_class: IoClass,
    /// How the task process is isolated.
    pub runtime: Runtime,
    /// How urgent it is.
    pub priority: Priority,
    /// Stored without effect yet.
    pub preemptible: bool,
    /// At most one live attempt, ever (promise 3).
    pub exclusive: bool,
    /// The pool it waits in.
    pub pool: String,
    /// What a node must be labelled with.
    pub node_labels: BTreeMap<String, String>,
    /// For people and filters.
    pub labels: BTreeMap<String, String>,
    /// What made the job, when it wasn't a person.
    pub origin: Option<Origin>,
    /// What is staged for each attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_path: Option<InputPath>,
    /// Where its outputs go, below a folder for each attempt; `None`: into the artifact store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_path: Option<S3Url>,
    /// It came with secrets, which are kept apart.
    #[serde(default, skip_serializing_if = "is_false")]
    pub has_secret_env: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls is given a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl JobSpec {
    /// The artifact that is executed.
    #[must_use]
    pub fn executable(&self) -> Option<ArtifactHash> {
        match self.binary {
            Some(BinaryUrl::Artifact(hash)) => Some(hash),
            Some(BinaryUrl::File(_) | BinaryUrl::S3(_)) | None => None,
        }
    }

    /// The tree or artifact that is staged.
    #[must_use]
    pub fn input(&self) -> Option<ArtifactHash> {
        match self.input_path {
            Some(InputPath::Stored(hash)) => Some(hash),
            Some(InputPath::S3(_)) | None => None,
        }
    }

    /// Where an attempt's outputs lie, when they don't go into the artifact store: `<output_path>/<job>/<attempt>/`.
    #[must_use]
    pub fn output_of(&self, job_id: JobId, attempt: u32) -> Option<String> {
        self.output_path.as_ref().map(|place| format!("{}{job_id}/{attempt}/", place.as_prefix()))
    }

    /// Every artifact that must be there before an attempt can start, each once.
    pub fn artifacts(&self) -> impl Iterator<Item = ArtifactHash> {
        let executable = self.executable();
        executable.into_iter().chain(self.input().filter(move |input| Some(*input) != executable))
    }
}
