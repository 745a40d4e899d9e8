//! Which jobs: the filter that lists, counts, saved views and bulk operations share.

use std::str::FromStr;

use crate::lifecycle::RESTARTING;
use crate::retry::FailReason;
use crate::{JobId, JobKind, Lane, Outcome, Phase, Status, Timestamp};

/// One of these; or, negated, none of them. Without values it is no condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Any<T> {
    /// What is looked for.
    pub values: Vec<T>,
    /// Whether it must not be one of them.
    pub negated: bool,
}

impl<T> Default for Any<T> {
    fn default() -> Self {
        Self { values: Vec::new(), negated: false }
    }
}

impl<T> Any<T> {
    /// One of these.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = T>) -> Self {
        Self { values: values.into_iter().collect(), negated: false }
    }

    /// None of these.
    #[must_use]
    pub fn none_of(values: impl IntoIterator<Item = T>) -> Self {
        Self { negated: true, ..Self::of(values) }
    }

    /// Whether it is no condition.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values, when it is these that are wanted.
    #[must_use]
    pub fn wanted(&self) -> Option<&[T]> {
        (!self.negated && !self.values.is_empty()).then_some(self.values.as_slice())
    }
}

/// What a text must be. Case counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextMatch {
    /// Exactly this.
    Is(String),
    /// Begins with this.
    Begins(String),
    /// Has this in it.
    Holds(String),
}

/// What of a job's labels is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelCondition {
    /// The label's key.
    pub key: String,
    /// What its value is; no values: the job has the label.
    pub value: Any<TextMatch>,
}

/// Why a job is where it is, as `reason` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasonWord {
    /// It failed for good.
    Failed(FailReason),
    /// It runs, and its attempt is in this phase.
    Phase(Phase),
    /// It runs, and its task process waits for its next start.
    Restarting,
    /// It waits after an attempt that ended.
    BackingOff,
    /// Its executable or input is still to be uploaded.
    ArtifactMissing,
    /// Its time has not come.
    RunAt,
}

impl ReasonWord {
    /// All there are.
    pub const ALL: [Self; 12] = [
        Self::Failed(FailReason::RetriesExhausted),
        Self::Failed(FailReason::NotRetryable),
        Self::Failed(FailReason::PlatformFailures),
        Self::Failed(FailReason::Expired),
        Self::Phase(Phase::Placed),
        Self::Phase(Phase::Starting),
        Self::Phase(Phase::Running),
        Self::Phase(Phase::Finishing),
        Self::Restarting,
        Self::BackingOff,
        Self::ArtifactMissing,
        Self::RunAt,
    ];

    /// The word in a job's `reason`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed(reason) => reason.as_str(),
            Self::Phase(phase) => phase.as_str(),
            Self::Restarting => RESTARTING,
            Self::BackingOff => "backing_off",
            Self::ArtifactMissing => "artifact_missing",
            Self::RunAt => "run_at",
        }
    }
}

impl FromStr for ReasonWord {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|reason| reason.as_str() == word);
        found.ok_or_else(|| {
            format!("no such reason; the reasons are {}", Self::ALL.map(Self::as_str).join(", "))
        })
    }
}

/// Which jobs. All conditions must hold; an empty filter passes every job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobFilter {
    /// Where it is.
    pub statuses: Any<Status>,
    /// The team that is accounted for.
    pub owners: Any<String>,
    /// The name.
    pub names: Any<TextMatch>,
    /// All of these hold.
    pub labels: Vec<LabelCondition>,
    /// The node of the newest attempt: its name, or its id.
    pub nodes: Any<String>,
    /// How the newest ended attempt ended.
    pub outcomes: Any<Outcome>,
    /// The code that the newest ended attempt's task process left with.
    pub exit_codes: Any<i32>,
    /// The signal that the newest ended attempt's task process died of.
    pub signals: Any<i32>,
    /// The `reason`.
    pub reasons: Any<ReasonWord>,
    /// Task or service.
    pub kinds: Any<JobKind>,
    /// The pool it waits in.
    pub pools: Any<String>,
    /// The band of its priority.
    pub lanes: Any<Lane>,
    /// Who submitted it.
    pub submitted_by: Any<String>,
    /// The origin's kind and id.
    pub origin: Option<(String, String)>,
    /// The key it came with.
    pub idempotency_key: Option<String>,
    /// Part of the id, the name, or the command line, without regard to case.
    pub text: Option<String>,
    /// Created at or after.
    pub created_after: Option<Timestamp>,
    /// Created before.
    pub created_before: Option<Timestamp>,
}

impl JobFilter {
    /// Jobs with one of these statuses.
    #[must_use]
    pub fn of_statuses(statuses: impl IntoIterator<Item = Status>) -> Self {
        Self { statuses: Any::of(statuses), ..Self::default() }
    }

    /// Whether it passes every job.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it asks for nothing but statuses.
    #[must_use]
    pub fn is_of_statuses(&self) -> bool {
        Self { statuses: Any::default(), ..self.clone() }.is_empty()
    }

    /// Whether a job of these texts passes `text`.
    #[must_use]
    pub fn holds_text(&self, job_id: JobId, name: &str, command: &str) -> bool {
        let Some(text) = &self.text else { return true };
        let wanted = text.to_lowercase();
        job_id.to_string().contains(&wanted)
            || name.to_lowercase().contains(&wanted)
            || command.to_lowercase().contains(&wanted)
    }
}
