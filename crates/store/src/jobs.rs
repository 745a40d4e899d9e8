//! Jobs and attempts as they are submitted, controlled and read.

use std::collections::BTreeMap;

use jobyard_model::lifecycle::{Job, JobState, RESTARTING};
use jobyard_model::placement::NODE_HEARD_WITHIN_MS;
use jobyard_model::retry::FailReason;
use jobyard_model::{
    AttemptEnd, Intent, JobFilter, JobId, JobKind, JobSpec, LeaseId, NodeId, NodeState, Outcome, Phase,
    Resources, ServiceRun, Status, Timestamp,
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

/// Which jobs to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobQuery {
    /// Which.
    pub filter: JobFilter,
    /// Below this id.
    pub cursor: Option<JobId>,
    /// 1–500.
    pub limit: u32,
}

/// A page of jobs, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobPage {
    /// May be fewer than asked for and still have a next page: what one page scans is bounded.
    pub items: Vec<JobRecord>,
    /// The cursor of the next page.
    pub next: Option<JobId>,
}

/// A job as a line of a list: nothing of its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRow {
    /// Which.
    pub id: JobId,
    /// The owner.
    pub owner: String,
    /// Its name.
    pub name: String,
    /// Task or service.
    pub kind: JobKind,
    /// Where it is.
    pub status: Status,
    /// As [`JobRecord::reason`].
    pub reason: &'static str,
    /// The principal's name.
    pub submitted_by: String,
    /// The pool it waits in.
    pub pool: String,
    /// 0–100.
    pub priority: u8,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// What is wanted of it.
    pub intent: Intent,
    /// By the datastore's clock.
    pub created_at: Timestamp,
    /// When the first attempt of the newest round was `running`.
    pub started_at: Option<Timestamp>,
    /// When the newest round ended.
    pub finished_at: Option<Timestamp>,
    /// Since when it waits for a place; only while it does. In the future while it backs off.
    pub waiting_since: Option<Timestamp>,
    /// Retries that its own failures cost in this round.
    pub retry_count: u32,
    /// How many they may cost.
    pub max_retries: u32,
    /// From 1.
    pub round: u32,
    /// The newest attempt's number, 0 before the first.
    pub attempt: u32,
    /// The node of the newest attempt: id, and name if that is still known.
    pub node: Option<(NodeId, String)>,
    /// How the newest ended attempt ended.
    pub last_end: Option<(u32, Outcome, AttemptEnd)>,
}

/// A page of lines, newest first; otherwise as [`JobPage`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobRowPage {
    /// May be fewer than asked for and still have a next page.
    pub items: Vec<JobRow>,
    /// The cursor of the next page.
    pub next: Option<JobId>,
}

/// How many jobs a filter passes; counting stops at a bound.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobCount {
    /// At most [`COUNT_BOUND`].
    pub count: u64,
    /// There are more than [`COUNT_BOUND`].
    pub capped: bool,
    /// All jobs that could pass were looked at; otherwise there may be more than `count`.
    pub complete: bool,
    /// Those that were counted, by status; every status once.
    pub by_status: Vec<StatusCount>,
}

/// Which values a filter can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueKey {
    /// Owners.
    Owner,
    /// Names of jobs.
    Name,
    /// Keys of labels.
    LabelKey,
    /// Values of this label.
    Label(String),
    /// Pools.
    Pool,
    /// Names of nodes.
    Node,
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
    /// The same of each pool that has nodes, by name.
    pub pools: Vec<PoolSummary>,
    /// When a server with an open report door last said that it lives; `None`: never.
    pub report_clock: Option<Timestamp>,
    /// When an informer last counted what happened, or looked whether there was something to count; `None`: never.
    pub counted: Option<Timestamp>,
}

/// What a pool offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolSummary {
    /// Its name.
    pub name: String,
    /// Nodes heard of lately.
    pub nodes_heard: u32,
    /// All its nodes.
    pub nodes: u32,
    /// What heard nodes offer.
    pub capacity: Resources,
    /// What un-ended attempts reserve.
    pub reserved: Resources,
}

/// What the fleet offers, pool by pool.
pub(crate) fn pools_of(nodes: &[NodeState], now: Timestamp) -> Vec<PoolSummary> {
    let mut pools: BTreeMap<&str, PoolSummary> = BTreeMap::new();
    for node in nodes {
        let pool = pools.entry(&node.pool).or_insert_with(|| PoolSummary {
            name: node.pool.clone(),
            nodes_heard: 0,
            nodes: 0,
            capacity: Resources::default(),
            reserved: Resources::default(),
        });
        pool.nodes += 1;
        pool.reserved = pool.reserved.plus(node.reserved);
        if now.ms_since(node.heard_at) <= NODE_HEARD_WITHIN_MS {
            pool.nodes_heard += 1;
            pool.capacity = pool.capacity.plus(node.capacity);
        }
    }
    pools.into_values().collect()
}

/// A time that is 0 while there was none.
pub(crate) fn once(ms: i64) -> Option<Timestamp> {
    (ms > 0).then_some(Timestamp(ms))
}

/// Jobs that failed for good in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailingGroup {
    /// What makes them alike.
    pub print: FailurePrint,
    /// How many there are.
    pub count: u64,
    /// The newest of them.
    pub last_job: JobId,
    /// When that one failed.
    pub last_at: Timestamp,
}

/// What of a failure tells it apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailurePrint {
    /// The owner.
    pub owner: String,
    /// The job's name.
    pub name: String,
    /// Why it is over.
    pub reason: FailReason,
    /// How its last attempt ended; `None`: it had none.
    pub outcome: Option<Outcome>,
    /// The code it left with.
    pub exit_code: Option<i32>,
    /// The signal it died of.
    pub signal: Option<i32>,
}

/// What fails, the most frequent first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Failing {
    /// At most [`FAILING_GROUPS`].
    pub groups: Vec<FailingGroup>,
    /// All that failed was looked at, and all groups are there.
    pub complete: bool,
}

/// Most groups that are told of.
pub const FAILING_GROUPS: usize = 50;
/// So many failures are looked at, the newest.
pub(crate) const FAILURES: usize = 2_000;

/// Groups failures, the newest first.
pub(crate) fn grouped(failures: Vec<(FailurePrint, JobId, Timestamp)>) -> Failing {
    let is_whole = failures.len() < FAILURES;
    let mut groups: BTreeMap<FailurePrint, FailingGroup> = BTreeMap::new();
    for (print, last_job, last_at) in failures {
        let new = || FailingGroup { print: print.clone(), count: 0, last_job, last_at };
        groups.entry(print.clone()).or_insert_with(new).count += 1;
    }
    let mut groups: Vec<FailingGroup> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse((group.count, group.last_at)));
    let complete = is_whole && groups.len() <= FAILING_GROUPS;
    groups.truncate(FAILING_GROUPS);
    Failing { groups, complete }
}

/// Counting stops here.
pub const COUNT_BOUND: u64 = 10_000;
