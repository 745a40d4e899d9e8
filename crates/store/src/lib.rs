//! The datastore: one trait, two dialects behind it.
//!
//! Owns every table and every statement. Decides nothing about a job's life: it loads rows under a lock, hands them
//! to [`jobyard_model::lifecycle`], and writes what comes back, guarded by what it read and counted.
//!
//! Invariants: **a write that speaks of an attempt is guarded by job, attempt, lease and status.** Lock order is
//! job, then attempt, ascending id; whoever goes another way skips locked rows. An acknowledged call is durable.
//! Lease time is the datastore's clock (PostgreSQL's, or the clock handed to the SQLite store).

pub mod artifacts;
pub mod audit;
pub mod bulk;
pub mod dashboard;
mod encoding;
pub mod error;
pub mod events;
mod filter;
mod groups;
pub mod jobs;
mod ledger;
mod listing;
pub mod logs;
pub mod minutes;
pub mod nodes;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod reports;
pub mod retention;
mod rows;
pub mod sessions;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub mod tokens;
pub mod transfer;
pub mod views;
pub mod wake;

use async_trait::async_trait;
use jobyard_model::node::NodeGate;
use jobyard_model::{ArtifactHash, JobId, LeaseSettings, NodeId, NodeState, SessionId, Timestamp};
use tokio::sync::watch;

pub use artifacts::{ArtifactCutoffs, LeasedAttempt, LeftoverArtifact, NewTree, Retired, TreeRecord};
pub use audit::{Actor, AuditRecord};
pub use bulk::{BulkRecord, BulkStatus, NewBulk};
pub use dashboard::Dashboard;
pub use encoding::policy_of;
pub use error::{StoreError, SubmitError};
pub use events::{EventCursor, EventFilter, EventPage, EventRecord};
pub use jobs::{
    AttemptRecord, Control, Failing, FailingGroup, FailurePrint, JobCount, JobPage, JobQuery, JobRecord,
    JobRow, JobRowPage, NewJob, NewSecrets, PoolSummary, SealedSecrets, StatusCount, Submitted, Summary,
    ValueKey,
};
pub use logs::{LogAnswer, LogBody, LogChunk, LogExtent, LogStream, LogsDropped};
pub use minutes::{MinuteCounts, MinutePage, MinuteQuery, RolledUp, Waits};
pub use nodes::{
    Claimed, HeartbeatAnswer, NodeHeartbeat, NotStarted, PlaceSnapshot, Placement, PoolRecord,
    RegisterAnswer, StopOrder,
};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresConfig, PostgresStore, WakeOn};
pub use reports::{Answer, Report, ReportItem, SilenceReport, Verdict};
pub use retention::{Cutoffs, Removed};
pub use sessions::{NewLogin, NewSession, SessionKey, SessionRecord};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore};
pub use tokens::{NewToken, TokenRecord};
pub use views::{NewView, ViewChange, ViewRecord};
pub use wake::WakeTopic;

/// What server and informer need of the datastore.
///
/// Every call is one transaction; calls made at the same time may share a commit. A call that returns `Err` changed
/// nothing, except [`StoreError::Unknown`]: then the commit's fate is not known and the call may be made again, since
/// every one is absorbed by a key or a guard.
#[async_trait]
pub trait Store: Dashboard {
    // Submission and its control.

    /// Accepts jobs, all or none, and says for each whether it is new. A repeated idempotency key with the same hash
    /// gives the job it made the first time.
    async fn submit(&self, jobs: Vec<NewJob>, by: &Actor) -> Result<Vec<Submitted>, SubmitError>;

    /// Wants the job cancelled: at once when nothing runs, else by raising the intent of its attempt.
    async fn cancel(&self, job_id: JobId, by: &Actor) -> Result<Control, StoreError>;

    /// Wants a service stopped: it ends well, at once when nothing runs, else when its attempt has been stopped.
    async fn stop(&self, job_id: JobId, by: &Actor) -> Result<Control, StoreError>;

    /// Starts a new round of a job that ended badly. With `after_attempt` below the newest attempt nothing is done.
    async fn retry(
        &self,
        job_id: JobId,
        after_attempt: Option<u32>,
        by: &Actor,
    ) -> Result<Control, StoreError>;

    // Reading. Never decides a write.

    /// One job.
    async fn job(&self, job_id: JobId) -> Result<Option<JobRecord>, StoreError>;

    /// All attempts of a job, ended and live, by number.
    async fn attempts(&self, job_id: JobId) -> Result<Vec<AttemptRecord>, StoreError>;

    // Artifacts: the datastore knows which there are, the artifact store has their bytes.

    /// Notes artifacts, with their sizes, whose bytes are durable, and frees the jobs that waited for them. When it fails,
    /// some may be noted.
    async fn add_artifacts(&self, artifacts: Vec<(ArtifactHash, u64)>, by: &Actor) -> Result<(), StoreError>;

    /// As [`Self::add_artifacts`], of one.
    async fn add_artifact(&self, hash: ArtifactHash, size_bytes: u64, by: &Actor) -> Result<(), StoreError> {
        self.add_artifacts(vec![(hash, size_bytes)], by).await
    }

    /// The size of a known artifact.
    async fn artifact(&self, hash: ArtifactHash) -> Result<Option<u64>, StoreError>;

    /// The sizes of artifacts, in order; `None` for those that are not known. Notes that somebody wants to use them.
    async fn artifact_sizes(&self, hashes: Vec<ArtifactHash>) -> Result<Vec<Option<u64>>, StoreError>;

    /// Notes a tree, its manifest being an artifact too, and frees the jobs that waited for it. `false`: not all of
    /// its artifacts are known, and nothing is noted.
    async fn add_tree(&self, tree: NewTree, by: &Actor) -> Result<bool, StoreError>;

    /// A known tree.
    async fn tree(&self, hash: ArtifactHash) -> Result<Option<TreeRecord>, StoreError>;

    /// Whether there is a live attempt with this lease.
    async fn lease_is_live(&self, lease_id: jobyard_model::LeaseId) -> Result<bool, StoreError>;

    /// Whether there is a live attempt with this lease that needs this artifact: its executable, its input, or a file of
    /// the tree that is its input.
    async fn lease_may_fetch(
        &self,
        lease_id: jobyard_model::LeaseId,
        hash: ArtifactHash,
    ) -> Result<bool, StoreError>;

    /// The job and its secrets, for the lease of an attempt of it that was accepted and has not started; `None` when there
    /// is no such attempt, or its job has no secrets.
    async fn secrets_of_lease(
        &self,
        lease_id: jobyard_model::LeaseId,
    ) -> Result<Option<(JobId, SealedSecrets)>, StoreError>;

    /// The live attempt with this lease, and what its job says.
    async fn leased_attempt(
        &self,
        lease_id: jobyard_model::LeaseId,
    ) -> Result<Option<LeasedAttempt>, StoreError>;

    // Nodes and pools.

    /// A worker's start. The newest session wins; another boot id proves the old boot's attempts gone and ends them.
    async fn register_node(
        &self,
        node: &jobyard_model::node::NodeRegistration,
    ) -> Result<RegisterAnswer, StoreError>;

    /// A node heartbeat.
    async fn heartbeat_node(&self, heartbeat: NodeHeartbeat) -> Result<HeartbeatAnswer, StoreError>;

    /// Every node, by name and id.
    async fn nodes(&self) -> Result<Vec<NodeState>, StoreError>;

    /// The jobs with an un-ended attempt on a node, oldest first, at most `limit`.
    async fn jobs_on_node(&self, node_id: NodeId, limit: u32) -> Result<Vec<JobId>, StoreError>;

    /// Opens, cordons or drains a node; draining raises the intent of its attempts to `evict` in the same
    /// transaction. `false`: no such node.
    async fn set_node_gate(&self, node_id: NodeId, gate: NodeGate, by: &Actor) -> Result<bool, StoreError>;

    /// Every pool, by name.
    async fn pools(&self) -> Result<Vec<PoolRecord>, StoreError>;

    /// Makes a pool; one that exists is left as it is.
    async fn put_pool(&self, name: &str, by: &Actor) -> Result<(), StoreError>;

    // The informer's.

    /// The heads of each (lane, owner, shape) of a pool, at most `heads_per_group` each and `limit` in all, and the
    /// pool's nodes with what is reserved on them. Only jobs whose `wait_since` has come.
    async fn place_snapshot(
        &self,
        pool: &str,
        heads_per_group: u32,
        limit: u32,
    ) -> Result<PlaceSnapshot, StoreError>;

    /// Claims waiting jobs for the nodes chosen, each with the next attempt and a new lease. Those that are no longer
    /// waiting, or whose node has closed, is suspended or has a newer session, are left out of the answer. When this
    /// returns, the claims are durable and may be pushed.
    async fn claim(&self, placements: Vec<Placement>) -> Result<Vec<Claimed>, StoreError>;

    /// Ends attempts that surely never started.
    async fn end_not_started(&self, attempts: Vec<NotStarted>) -> Result<u64, StoreError>;

    /// Live attempts that are wanted to stop, oldest first.
    async fn pending_stops(&self, limit: u32) -> Result<Vec<StopOrder>, StoreError>;

    /// Moves jobs whose `run_at` or retry delay is over to `waiting`; a due time further away than its own delay is
    /// due now. Ends those whose `start_within` is over. Returns how many were moved.
    async fn release_due(&self, limit: u32) -> Result<u64, StoreError>;

    /// Gives up on attempts whose lease ran out, unless `report_clock` is stale or silence is not to be judged yet
    /// (promise 4).
    async fn expire_silent(&self, limit: u32) -> Result<SilenceReport, StoreError>;

    /// Removes what is older than the cut-offs, a bounded batch at a time.
    async fn remove_old(&self, cutoffs: Cutoffs, limit: u32) -> Result<Removed, StoreError>;

    /// Finds artifacts that no job and no tree has needed for long and dooms them; removes those that were doomed long
    /// ago and still aren't needed, a bounded batch at a time. A job that is submitted meanwhile finds them, or waits for
    /// an upload.
    async fn retire_artifacts(&self, cutoffs: ArtifactCutoffs, limit: u32) -> Result<Retired, StoreError>;

    /// Artifacts whose bytes are to be removed, oldest first.
    async fn leftover_artifacts(&self, limit: u32) -> Result<Vec<LeftoverArtifact>, StoreError>;

    /// The bytes are gone, or belong to a new upload.
    async fn forget_leftover(&self, hash: ArtifactHash) -> Result<(), StoreError>;

    // The report door's.

    /// Stamps `report_clock`: a server with an open report door lives. After a gap, or a step back of the clock, sets
    /// `reap_not_before` to one lease from now. After a step back it also brings back what lies further ahead than its
    /// own delay: places in the queue, leases.
    async fn stamp_report_clock(&self) -> Result<(), StoreError>;

    /// Carries out what workers report, in one transaction; each item gets its own answer, in order. One bad item
    /// never fails the others.
    async fn report(&self, items: Vec<ReportItem>) -> Result<Vec<Answer>, StoreError>;

    // Logs.

    /// Appends to logs where `from` is the stream's end; answers each stream's end, in order.
    async fn append_logs(&self, chunks: Vec<LogChunk>) -> Result<Vec<LogAnswer>, StoreError>;

    /// Chunks of an attempt by arrival: those of `stream` (or both) that reach beyond `from` (of one stream), or that
    /// arrived after the chunk numbered `after_seq`.
    async fn log_chunks(&self, query: &logs::LogQuery) -> Result<Vec<LogChunk>, StoreError>;

    /// How long each stream of the attempts with these numbers is, by number.
    async fn log_extents(
        &self,
        job_id: JobId,
        attempts: std::ops::RangeInclusive<u32>,
    ) -> Result<Vec<(u32, LogExtent)>, StoreError>;

    /// How long each stream of an attempt is.
    async fn log_extent(&self, job_id: JobId, attempt: u32) -> Result<LogExtent, StoreError>;

    /// Drops what jobs that have not ended said on days before the last `keep_days` (UTC, by arrival), a bounded batch
    /// at a time, from the job after `after` on by id. The last row of each stream stays, so that its offsets go on.
    /// Ended jobs keep theirs until [`Self::remove_old`].
    async fn drop_logs(&self, keep_days: u32, after: Option<JobId>) -> Result<LogsDropped, StoreError>;

    // Events.

    /// Events after the cursor that no running transaction can still precede.
    async fn events_after(
        &self,
        cursor: EventCursor,
        filter: &EventFilter,
        limit: u32,
    ) -> Result<EventPage, StoreError>;

    /// The cursor after the newest event.
    async fn event_head(&self) -> Result<EventCursor, StoreError>;

    // Followers: somebody outside who is told of every event, at least once.

    /// Takes this follower in hand for `hold_ms`, unless somebody else has it; whoever has it may take it again. A new one
    /// begins after `begin`. Gives its place; `None`: somebody else has it.
    async fn hold_follower(
        &self,
        name: &str,
        holder: SessionId,
        hold_ms: u64,
        begin: EventCursor,
    ) -> Result<Option<EventCursor>, StoreError>;

    /// Notes that a follower was told of everything up to `told`. `false`: `holder` doesn't have it any more.
    async fn move_follower(
        &self,
        name: &str,
        holder: SessionId,
        told: EventCursor,
    ) -> Result<bool, StoreError>;

    // Tokens and audit.

    /// Keeps a token's hash.
    async fn add_token(&self, token: &NewToken, by: &Actor) -> Result<(), StoreError>;

    /// The token with this hash, unless revoked or past its end.
    async fn token_by_hash(&self, hash: [u8; 32]) -> Result<Option<TokenRecord>, StoreError>;

    /// Every token, newest first.
    async fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError>;

    /// Revokes a token. `false`: no such token.
    async fn revoke_token(
        &self,
        token_id: jobyard_model::ids::TokenId,
        by: &Actor,
    ) -> Result<bool, StoreError>;

    // Sessions of people in browsers.

    /// Keeps the hash of a code that begins one session.
    async fn add_login(&self, login: NewLogin, by: &Actor) -> Result<(), StoreError>;

    /// Begins a session of whoever has this key, from `address`; a login code is used up by it. `None`: no such key, or
    /// its token is revoked or past its end.
    async fn begin_session(
        &self,
        key: SessionKey,
        session: NewSession,
        address: &str,
    ) -> Result<Option<SessionRecord>, StoreError>;

    /// The session with this hash, unless it is past its end, or its token is or was revoked.
    async fn session_by_hash(&self, hash: [u8; 32]) -> Result<Option<SessionRecord>, StoreError>;

    /// Ends a session. `false`: no such session.
    async fn end_session(&self, hash: [u8; 32], by: &Actor) -> Result<bool, StoreError>;

    /// The audit trail, newest first, below `before` (an audit number).
    async fn audit(&self, before: Option<i64>, limit: u32) -> Result<Vec<AuditRecord>, StoreError>;

    /// The number of the newest row of the audit trail at this instant; `None`: there was none yet.
    async fn audit_number_at(&self, at: Timestamp) -> Result<Option<i64>, StoreError>;

    // Moving to another datastore.

    /// Says all there is, from one snapshot. Refused while attempts have not ended, unless `with_running`: wherever it is
    /// loaded, their leases run out then, and what they report is stale or unknown.
    async fn dump(
        &self,
        with_running: bool,
        into: tokio::sync::mpsc::Sender<transfer::Part>,
    ) -> Result<(), StoreError>;

    /// Takes all there is of another datastore, or nothing; only into one that nobody has used yet.
    async fn load(&self, from: tokio::sync::mpsc::Receiver<transfer::Part>) -> Result<(), StoreError>;

    // Itself.

    /// The datastore's clock.
    async fn now(&self) -> Result<Timestamp, StoreError>;

    /// What it is kept in.
    fn kind(&self) -> DatastoreKind;

    /// The lease times that the store works with.
    fn lease_settings(&self) -> LeaseSettings;

    /// Changes when there may be work of this topic. Lost wake-ups are made good by polling.
    fn wakes(&self, topic: WakeTopic) -> watch::Receiver<u64>;

    /// Finishes what is in hand and lets go of the datastore.
    async fn close(&self);
}

/// What a datastore is kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatastoreKind {
    /// A server, shared by many processes.
    Postgres,
    /// A file of one process.
    Sqlite,
}

impl DatastoreKind {
    /// Its word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
        }
    }
}
