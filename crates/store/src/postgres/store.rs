//! The trait, each call handed to its file.

use std::ops::RangeInclusive;
use std::sync::Arc;

use async_trait::async_trait;
use jobyard_model::ids::TokenId;
use jobyard_model::node::{NodeGate, NodeRegistration};
use jobyard_model::{ArtifactHash, JobId, LeaseId, LeaseSettings, NodeId, NodeState, SessionId, Timestamp};
use tokio::sync::{mpsc, watch};

use super::query::Query;
use super::{
    PostgresStore, artifact_use, artifacts, audit, control, due, events, fault, followers, jobs, load, logs,
    node_attempts, nodes, placement, pools, reports, retention, secrets, sessions, submission, submit,
    tokens, transfer,
};
use crate::logs::LogQuery;
use crate::transfer::Part;
use crate::{
    Actor, Answer, ArtifactCutoffs, AttemptRecord, AuditRecord, Claimed, Control, Cutoffs, DatastoreKind,
    EventCursor, EventFilter, EventPage, HeartbeatAnswer, JobRecord, LeasedAttempt, LeftoverArtifact,
    LogAnswer, LogChunk, LogExtent, LogsDropped, NewJob, NewLogin, NewSession, NewToken, NewTree,
    NodeHeartbeat, NotStarted, PlaceSnapshot, Placement, PoolRecord, RegisterAnswer, Removed, ReportItem,
    Retired, SealedSecrets, SessionKey, SessionRecord, SilenceReport, StopOrder, Store, StoreError,
    SubmitError, Submitted, TokenRecord, TreeRecord, WakeTopic,
};

type Stored<T> = Result<T, StoreError>;

#[async_trait]
impl Store for PostgresStore {
    async fn submit(&self, jobs: Vec<NewJob>, by: &Actor) -> Result<Vec<Submitted>, SubmitError> {
        let call = submission::Call::new(jobs, by)?;
        let (core, weight) = (Arc::clone(&self.core), call.weight());
        let carry_out = move |calls| submit::carry_out(Arc::clone(&core), calls);
        let answer = self.submits.call(call, weight, carry_out).await;
        answer.unwrap_or_else(submission::Answer::unknown).into_result()
    }

    async fn cancel(&self, job_id: JobId, by: &Actor) -> Stored<Control> {
        control::cancel(&self.core, job_id, by).await
    }

    async fn stop(&self, job_id: JobId, by: &Actor) -> Stored<Control> {
        control::stop(&self.core, job_id, by).await
    }

    async fn retry(&self, job_id: JobId, after_attempt: Option<u32>, by: &Actor) -> Stored<Control> {
        control::retry(&self.core, job_id, after_attempt, by).await
    }

    async fn job(&self, job_id: JobId) -> Stored<Option<JobRecord>> {
        let core = Arc::clone(&self.core);
        let found = self.jobs.call(job_id, 1, move |ids| jobs::find(Arc::clone(&core), ids)).await;
        fault::found(found, "reading a job")
    }

    async fn attempts(&self, job_id: JobId) -> Stored<Vec<AttemptRecord>> {
        jobs::attempts(&self.core, job_id).await
    }

    async fn add_artifacts(&self, artifacts: Vec<(ArtifactHash, u64)>, by: &Actor) -> Stored<()> {
        artifacts::add(&self.core, &artifacts, by).await
    }

    async fn artifact(&self, hash: ArtifactHash) -> Stored<Option<u64>> {
        artifacts::size(&self.core, hash).await
    }

    async fn artifact_sizes(&self, hashes: Vec<ArtifactHash>) -> Stored<Vec<Option<u64>>> {
        artifacts::sizes(&self.core, &hashes).await
    }

    async fn add_tree(&self, tree: NewTree, by: &Actor) -> Stored<bool> {
        artifacts::add_tree(&self.core, &tree, by).await
    }

    async fn tree(&self, hash: ArtifactHash) -> Stored<Option<TreeRecord>> {
        artifacts::tree(&self.core, hash).await
    }

    async fn lease_is_live(&self, lease_id: LeaseId) -> Stored<bool> {
        artifacts::lease_is_live(&self.core, lease_id).await
    }

    async fn leased_attempt(&self, lease_id: LeaseId) -> Stored<Option<LeasedAttempt>> {
        artifacts::leased_attempt(&self.core, lease_id).await
    }

    async fn lease_may_fetch(&self, lease_id: LeaseId, hash: ArtifactHash) -> Stored<bool> {
        artifacts::lease_may_fetch(&self.core, lease_id, hash).await
    }

    async fn secrets_of_lease(&self, lease_id: LeaseId) -> Stored<Option<(JobId, SealedSecrets)>> {
        secrets::of_lease(&self.core, lease_id).await
    }

    async fn register_node(&self, node: &NodeRegistration) -> Stored<RegisterAnswer> {
        nodes::register(&self.core, node).await
    }

    async fn heartbeat_node(&self, heartbeat: NodeHeartbeat) -> Stored<HeartbeatAnswer> {
        nodes::heartbeat(&self.core, &heartbeat).await
    }

    async fn nodes(&self) -> Stored<Vec<NodeState>> {
        nodes::all(&self.core).await
    }

    async fn jobs_on_node(&self, node_id: NodeId, limit: u32) -> Stored<Vec<JobId>> {
        node_attempts::jobs(&self.core, node_id, limit).await
    }

    async fn set_node_gate(&self, node_id: NodeId, gate: NodeGate, by: &Actor) -> Stored<bool> {
        nodes::set_gate(&self.core, node_id, gate, by).await
    }

    async fn pools(&self) -> Stored<Vec<PoolRecord>> {
        pools::all(&self.core).await
    }

    async fn put_pool(&self, name: &str, by: &Actor) -> Stored<()> {
        pools::put(&self.core, name, by).await
    }

    async fn place_snapshot(&self, pool: &str, heads_per_group: u32, limit: u32) -> Stored<PlaceSnapshot> {
        placement::snapshot(&self.core, pool, heads_per_group, limit).await
    }

    async fn claim(&self, placements: Vec<Placement>) -> Stored<Vec<Claimed>> {
        placement::claim(&self.core, &placements).await
    }

    async fn end_not_started(&self, attempts: Vec<NotStarted>) -> Stored<u64> {
        reports::end_not_started(&self.core, &attempts).await
    }

    async fn pending_stops(&self, limit: u32) -> Stored<Vec<StopOrder>> {
        placement::pending_stops(&self.core, limit).await
    }

    async fn release_due(&self, limit: u32) -> Stored<u64> {
        due::release(&self.core, limit).await
    }

    async fn expire_silent(&self, limit: u32) -> Stored<SilenceReport> {
        due::expire_silent(&self.core, limit).await
    }

    async fn remove_old(&self, cutoffs: Cutoffs, limit: u32) -> Stored<Removed> {
        retention::remove_old(&self.core, cutoffs, limit).await
    }

    async fn retire_artifacts(&self, cutoffs: ArtifactCutoffs, limit: u32) -> Stored<Retired> {
        artifact_use::retire(&self.core, cutoffs, limit).await
    }

    async fn leftover_artifacts(&self, limit: u32) -> Stored<Vec<LeftoverArtifact>> {
        artifact_use::leftovers(&self.core, limit).await
    }

    async fn forget_leftover(&self, hash: ArtifactHash) -> Stored<()> {
        artifact_use::forget_leftover(&self.core, hash).await
    }

    async fn stamp_report_clock(&self) -> Stored<()> {
        reports::stamp(&self.core).await
    }

    async fn report(&self, items: Vec<ReportItem>) -> Stored<Vec<Answer>> {
        let (core, weight) = (Arc::clone(&self.core), items.len());
        let carry_out = move |calls| reports::carry_out(Arc::clone(&core), calls);
        reports::into_result(self.reports.call(Arc::new(items), weight, carry_out).await)
    }

    async fn append_logs(&self, chunks: Vec<LogChunk>) -> Stored<Vec<LogAnswer>> {
        logs::append(&self.core, &chunks).await
    }

    async fn log_chunks(&self, query: &LogQuery) -> Stored<Vec<LogChunk>> {
        logs::chunks(&self.core, query).await
    }

    async fn log_extents(
        &self,
        job_id: JobId,
        attempts: RangeInclusive<u32>,
    ) -> Stored<Vec<(u32, LogExtent)>> {
        logs::extents(&self.core, job_id, attempts).await
    }

    async fn log_extent(&self, job_id: JobId, attempt: u32) -> Stored<LogExtent> {
        logs::extent(&self.core, job_id, attempt).await
    }

    async fn drop_logs(&self, keep_days: u32, after: Option<JobId>) -> Stored<LogsDropped> {
        logs::drop_old(&self.core, keep_days, after).await
    }

    async fn events_after(&self, cursor: EventCursor, filter: &EventFilter, limit: u32) -> Stored<EventPage> {
        events::after(&self.core, cursor, filter, limit).await
    }

    async fn event_head(&self) -> Stored<EventCursor> {
        events::head(&self.core).await
    }

    async fn hold_follower(
        &self,
        name: &str,
        holder: SessionId,
        hold_ms: u64,
        begin: EventCursor,
    ) -> Result<Option<EventCursor>, StoreError> {
        followers::hold(&self.core, name, (holder, hold_ms), begin).await
    }

    async fn move_follower(
        &self,
        name: &str,
        holder: SessionId,
        told: EventCursor,
    ) -> Result<bool, StoreError> {
        followers::told(&self.core, name, holder, told).await
    }

    async fn add_token(&self, token: &NewToken, by: &Actor) -> Stored<()> {
        tokens::add(&self.core, token, by).await
    }

    async fn token_by_hash(&self, hash: [u8; 32]) -> Stored<Option<TokenRecord>> {
        let core = Arc::clone(&self.core);
        let found = self.tokens.call(hash, 1, move |hashes| tokens::find(Arc::clone(&core), hashes)).await;
        fault::found(found, "looking up a token")
    }

    async fn tokens(&self) -> Stored<Vec<TokenRecord>> {
        tokens::all(&self.core).await
    }

    async fn revoke_token(&self, token_id: TokenId, by: &Actor) -> Stored<bool> {
        tokens::revoke(&self.core, token_id, by).await
    }

    async fn add_login(&self, login: NewLogin, by: &Actor) -> Stored<()> {
        sessions::add_login(&self.core, &login, by).await
    }

    async fn begin_session(
        &self,
        key: SessionKey,
        session: NewSession,
        address: &str,
    ) -> Stored<Option<SessionRecord>> {
        sessions::begin(&self.core, key, session, address).await
    }

    async fn session_by_hash(&self, hash: [u8; 32]) -> Stored<Option<SessionRecord>> {
        let core = Arc::clone(&self.core);
        let found =
            self.sessions.call(hash, 1, move |hashes| sessions::find(Arc::clone(&core), hashes)).await;
        fault::found(found, "looking up a session")
    }

    async fn end_session(&self, hash: [u8; 32], by: &Actor) -> Stored<bool> {
        sessions::end(&self.core, hash, by).await
    }

    async fn audit(&self, before: Option<i64>, limit: u32) -> Stored<Vec<AuditRecord>> {
        audit::page(&self.core, before, limit).await
    }

    async fn audit_number_at(&self, at: Timestamp) -> Stored<Option<i64>> {
        audit::number_at(&self.core, at).await
    }

    async fn dump(&self, with_running: bool, into: mpsc::Sender<Part>) -> Stored<()> {
        transfer::dump(&self.config, with_running, &into).await
    }

    async fn load(&self, from: mpsc::Receiver<Part>) -> Stored<()> {
        transfer::load(&self.config, from).await
    }

    async fn now(&self) -> Stored<Timestamp> {
        const DOING: &str = "reading the datastore's clock";
        let rows = self.core.database.read(|| [Query::new(load::NOW)]).await;
        let [rows] = rows.map_err(|fault| fault.during(DOING))?;
        load::clock(&rows).map_err(|fault| fault.during(DOING))
    }

    fn kind(&self) -> DatastoreKind {
        DatastoreKind::Postgres
    }

    fn lease_settings(&self) -> LeaseSettings {
        self.core.leases
    }

    fn wakes(&self, topic: WakeTopic) -> watch::Receiver<u64> {
        self.core.wakes.subscribe(topic)
    }

    async fn close(&self) {
        self.submits.drained().await;
        self.reports.drained().await;
        self.jobs.drained().await;
        self.tokens.drained().await;
        self.sessions.drained().await;
        self.core.wakes.close();
        self.core.looks.close();
        self.core.own_looks.close();
        self.core.database.close();
    }
}
