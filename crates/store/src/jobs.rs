//! Jobs and attempts as they are submitted, controlled and read.

use jobyard_model::lifecycle::{Job, JobState, RESTARTING};
use jobyard_model::retry::FailReason;
use jobyard_model::{
    AttemptEnd, Intent, JobId, JobSpec, LeaseId, NodeId, Outcome, Phase, Resources, ServiceRun, Status,
    Timestamp,
};

/// A job to be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    /// UUIDv7, made by the door.
    pub id: JobId,
    /// Checked, with its defaults.
    pub spec: JobSpec,
    /// The principal's name.
    pub submitted_by: String,
    /// The key and the hash of the spec as parsed, before defaults: SHA-256, or with secrets a keyed one.
    pub idempotency: Option<(String, [u8; 32])>,
    /// Its `secret_env`, if it has one.
    pub secrets: Option<NewSecrets>,
}

impl NewJob {
    /// Whether `hash`, which is kept with the key, is of the same spec.
    pub(crate) fn has_hash(&self, hash: &[u8]) -> bool {
        let own = self.idempotency.iter().map(|(_, hash)| hash);
        let earlier = self.secrets.iter().flat_map(|secrets| &secrets.earlier_hashes);
        own.chain(earlier).any(|own| own == hash)
    }
}

/// The secrets of a job to be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSecrets {
    /// As they are kept.
    pub sealed: SealedSecrets,
    /// What the spec's hash is under each key that was the first one before.
    pub earlier_hashes: Vec<[u8; 32]>,
}

/// Secrets as they are kept; what is in them only servers can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedSecrets {
    /// Which key opens them.
    pub key_id: String,
    /// Nonce and ciphertext, bound to the job.
    pub sealed: Vec<u8>,
}

/// A job that was accepted, now or with the same key before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    /// The job's id; the first one's when the key was used before.
    pub id: JobId,
    /// `false`: the key was used before.
    pub created: bool,
}

/// What a cancel, stop or retry did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// It was done.
    Done,
    /// It was so already, or a newer attempt exists: nothing was changed, and that is fine.
    Nothing,
    /// It makes no sense in this status (a retry of a job that is not over).
    Refused(Status),
    /// It makes no sense for this kind of job (a stop of a task).
    WrongKind,
    /// There is no such job.
    NotFound,
}

/// A job as read: spec, where it is, what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRecord {
    /// As submitted.
    pub spec: JobSpec,
    /// The principal's name.
    pub submitted_by: String,
    /// By the datastore's clock.
    pub created_at: Timestamp,
    /// The idempotency key it came with.
    pub idempotency_key: Option<String>,
    /// Status, accounts, round, intent; the live attempt while there is one.
    pub job: Job,
    /// When the first attempt of the newest round was `running`.
    pub started_at: Option<Timestamp>,
    /// How the newest ended attempt ended.
    pub last_end: Option<(u32, Outcome, AttemptEnd)>,
    /// What a service went through in its newest ended attempt.
    pub last_service: Option<ServiceRun>,
}

impl JobRecord {
    /// What a service went through in its newest attempt.
    #[must_use]
    pub fn service(&self) -> Option<ServiceRun> {
        self.job.live_attempt().map_or(self.last_service, |attempt| attempt.service)
    }

    /// The `reason` shown beside the status: the phase while running, why it waits or ended, or empty.
    #[must_use]
    pub fn reason(&self, now: Timestamp) -> &'static str {
        match &self.job.state {
            JobState::Running(attempt) if attempt.is_restarting() => RESTARTING,
            JobState::Running(attempt) => attempt.phase.as_str(),
            JobState::Ready { artifact_missing: true, .. } => "artifact_missing",
            JobState::Ready { .. } => "run_at",
            JobState::Waiting { since } if *since > now => "backing_off",
            JobState::Waiting { .. } => "",
            JobState::Retry { .. } => "backing_off",
            JobState::Ended(end) => end.reason.map_or("", FailReason::as_str),
        }
    }
}

/// Which jobs to list. All filters must match; an empty one matches all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobQuery {
    /// Any of these.
    pub statuses: Vec<Status>,
    /// The owner.
    pub owner: Option<String>,
    /// The exact name.
    pub name: Option<String>,
    /// All of these labels.
    pub labels: Vec<(String, String)>,
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
    /// Below this id.
    pub cursor: Option<JobId>,
    /// 1–500.
    pub limit: u32,
}

impl JobQuery {
    /// Whether a job with this spec passes the filters that only the spec can tell.
    pub(crate) fn matches(&self, job_id: JobId, spec: &JobSpec) -> bool {
        let labels = self.labels.iter().all(|(key, value)| spec.labels.get(key) == Some(value));
        let origin = self.origin.as_ref().is_none_or(|(kind, id)| {
            spec.origin.as_ref().is_some_and(|origin| origin.kind == *kind && origin.id == *id)
        });
        labels && origin && self.text.as_ref().is_none_or(|text| holds_text(job_id, spec, text))
    }
}

fn holds_text(job_id: JobId, spec: &JobSpec, text: &str) -> bool {
    let wanted = text.to_lowercase();
    job_id.to_string().contains(&wanted)
        || spec.name.to_lowercase().contains(&wanted)
        || spec.command.join(" ").to_lowercase().contains(&wanted)
}

/// A page of jobs, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobPage {
    /// May be fewer than asked for and still have a next page: what one page scans is bounded.
    pub items: Vec<JobRecord>,
    /// The cursor of the next page.
    pub next: Option<JobId>,
}

/// An attempt as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRecord {
    /// From 1.
    pub number: u32,
    /// The round it belongs to.
    pub round: u32,
    /// The fence; never shown.
    pub lease_id: LeaseId,
    /// Where.
    pub node_id: NodeId,
    /// The node's name, if it is still known.
    pub node_name: String,
    /// `None` once ended.
    pub phase: Option<Phase>,
    /// What is wanted, while it lives.
    pub intent: Intent,
    /// When it was claimed.
    pub placed_at: Timestamp,
    /// When it was accepted.
    pub accepted_at: Option<Timestamp>,
    /// When its task process was reported.
    pub started_at: Option<Timestamp>,
    /// When its end was accepted.
    pub ended_at: Option<Timestamp>,
    /// The last time its lease was renewed plus the lease.
    pub lease_until: Option<Timestamp>,
    /// How and why it ended.
    pub end: Option<(Outcome, AttemptEnd)>,
    /// What a service went through in it.
    pub service: Option<ServiceRun>,
}

/// How many jobs have a status; counting stops at a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusCount {
    /// The status.
    pub status: Status,
    /// At most the bound.
    pub count: u64,
    /// There are more.
    pub capped: bool,
}

/// What the overview shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// One for each status; ended ones within the last 24 hours.
    pub counts: Vec<StatusCount>,
    /// Since when the job that waits longest has waited.
    pub oldest_waiting: Option<Timestamp>,
    /// Nodes heard of lately.
    pub nodes_heard: u32,
    /// All nodes.
    pub nodes: u32,
    /// What heard nodes offer.
    pub capacity: Resources,
    /// What un-ended attempts reserve.
    pub reserved: Resources,
}

/// Counting stops here.
pub const COUNT_BOUND: u64 = 10_000;
