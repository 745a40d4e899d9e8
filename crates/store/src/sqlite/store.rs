//! The trait, each call handed to the writer or to a reader.

use std::ops::RangeInclusive;

use async_trait::async_trait;
use jobyard_model::ids::TokenId;
use jobyard_model::node::{NodeGate, NodeRegistration};
use jobyard_model::{ArtifactHash, JobId, LeaseId, LeaseSettings, NodeId, NodeState, SessionId, Timestamp};
use tokio::sync::{mpsc, watch};

use super::scope::Scope;
use super::{
    SqliteStore, artifact_use, artifacts, audit, control, due, events, followers, jobs, logs, node_attempts,
    nodes, placement, pools, reports, retention, secrets, sessions, submit, tokens, transfer,
};
use crate::encoding::Prepared;
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
impl Store for SqliteStore {
    async fn submit(&self, jobs: Vec<NewJob>, by: &Actor) -> Result<Vec<Submitted>, SubmitError> {
        let by = by.clone();
        let jobs = jobs.into_iter().map(Prepared::new).collect::<Result<Vec<_>, _>>()?;
        self.writer.write("submitting jobs", move |scope| submit::submit(scope, &jobs, &by)).await?
    }

    async fn cancel(&self, job_id: JobId, by: &Actor) -> Stored<Control> {
        let by = by.clone();
        self.writer.write("cancelling a job", move |scope| control::cancel(scope, job_id, &by)).await
    }

    async fn stop(&self, job_id: JobId, by: &Actor) -> Stored<Control> {
        let by = by.clone();
        self.writer.write("stopping a service", move |scope| control::stop(scope, job_id, &by)).await
    }

    async fn retry(&self, job_id: JobId, after_attempt: Option<u32>, by: &Actor) -> Stored<Control> {
        let by = by.clone();
        let retry = move |scope: &Scope<'_>| control::retry(scope, job_id, after_attempt, &by);
        self.writer.write("retrying a job", retry).await
    }

    async fn job(&self, job_id: JobId) -> Stored<Option<JobRecord>> {
        self.readers.read("reading a job", move |scope| jobs::one(scope, job_id)).await
    }

    async fn attempts(&self, job_id: JobId) -> Stored<Vec<AttemptRecord>> {
        self.readers.read("reading attempts", move |scope| jobs::attempts(scope, job_id)).await
    }

    async fn add_artifacts(&self, artifacts: Vec<(ArtifactHash, u64)>, by: &Actor) -> Stored<()> {
        let by = by.clone();
        let add = move |scope: &Scope<'_>| artifacts::add(scope, &artifacts, &by);
        self.writer.write("noting artifacts", add).await
    }

    async fn artifact(&self, hash: ArtifactHash) -> Stored<Option<u64>> {
        self.readers.read("looking up an artifact", move |scope| artifacts::size(scope, hash)).await
    }

    async fn artifact_sizes(&self, hashes: Vec<ArtifactHash>) -> Stored<Vec<Option<u64>>> {
        self.writer.write("looking up artifacts", move |scope| artifacts::sizes(scope, &hashes)).await
    }

    async fn add_tree(&self, tree: NewTree, by: &Actor) -> Stored<bool> {
        let by = by.clone();
        let add = move |scope: &Scope<'_>| artifacts::add_tree(scope, &tree, &by);
        self.writer.write("noting a tree", add).await
    }

    async fn tree(&self, hash: ArtifactHash) -> Stored<Option<TreeRecord>> {
        self.readers.read("looking up a tree", move |scope| artifacts::tree(scope, hash)).await
    }

    async fn lease_is_live(&self, lease_id: LeaseId) -> Stored<bool> {
        self.readers.read("looking up a lease", move |scope| artifacts::lease_is_live(scope, lease_id)).await
    }

    async fn leased_attempt(&self, lease_id: LeaseId) -> Stored<Option<LeasedAttempt>> {
        let find = move |scope: &Scope<'_>| artifacts::leased_attempt(scope, lease_id);
        self.readers.read("looking up a lease", find).await
    }

    async fn lease_may_fetch(&self, lease_id: LeaseId, hash: ArtifactHash) -> Stored<bool> {
        let may = move |scope: &Scope<'_>| artifacts::lease_may_fetch(scope, lease_id, hash);
        self.readers.read("looking up a lease", may).await
    }

    async fn secrets_of_lease(&self, lease_id: LeaseId) -> Stored<Option<(JobId, SealedSecrets)>> {
        self.readers.read("looking up secrets", move |scope| secrets::of_lease(scope, lease_id)).await
    }

    async fn register_node(&self, node: &NodeRegistration) -> Stored<RegisterAnswer> {
        let node = node.clone();
        self.writer.write("registering a node", move |scope| nodes::register(scope, &node)).await
    }

    async fn heartbeat_node(&self, heartbeat: NodeHeartbeat) -> Stored<HeartbeatAnswer> {
        self.writer.write("noting a node heartbeat", move |scope| nodes::heartbeat(scope, &heartbeat)).await
    }

    async fn nodes(&self) -> Stored<Vec<NodeState>> {
        self.readers.read("reading nodes", |scope| nodes::of_pool(scope, None)).await
    }

    async fn jobs_on_node(&self, node_id: NodeId, limit: u32) -> Stored<Vec<JobId>> {
        let read = move |scope: &Scope<'_>| node_attempts::jobs(scope, node_id, limit);
        self.readers.read("reading what is on a node", read).await
    }

    async fn set_node_gate(&self, node_id: NodeId, gate: NodeGate, by: &Actor) -> Stored<bool> {
        let by = by.clone();
        self.writer
            .write("setting a node's gate", move |scope| nodes::set_gate(scope, node_id, gate, &by))
            .await
    }

    async fn pools(&self) -> Stored<Vec<PoolRecord>> {
        self.readers.read("reading pools", pools::all).await
    }

    async fn put_pool(&self, name: &str, by: &Actor) -> Stored<()> {
        let (name, by) = (name.to_owned(), by.clone());
        self.writer.write("making a pool", move |scope| pools::put(scope, &name, &by)).await
    }

    async fn place_snapshot(&self, pool: &str, heads_per_group: u32, limit: u32) -> Stored<PlaceSnapshot> {
        let pool = pool.to_owned();
        let read = move |scope: &Scope<'_>| placement::snapshot(scope, &pool, heads_per_group, limit);
        self.readers.read("reading what waits", read).await
    }

    async fn claim(&self, placements: Vec<Placement>) -> Stored<Vec<Claimed>> {
        self.writer.write("claiming jobs", move |scope| placement::claim(scope, &placements)).await
    }

    async fn end_not_started(&self, attempts: Vec<NotStarted>) -> Stored<u64> {
        let end = move |scope: &Scope<'_>| reports::end_not_started(scope, &attempts);
        self.writer.write("ending attempts that never started", end).await
    }

    async fn pending_stops(&self, limit: u32) -> Stored<Vec<StopOrder>> {
        self.readers.read("reading pending stops", move |scope| placement::pending_stops(scope, limit)).await
    }

    async fn release_due(&self, limit: u32) -> Stored<u64> {
        self.writer.write("releasing due jobs", move |scope| due::release(scope, limit)).await
    }

    async fn expire_silent(&self, limit: u32) -> Stored<SilenceReport> {
        self.writer.write("giving up silent attempts", move |scope| due::expire_silent(scope, limit)).await
    }

    async fn remove_old(&self, cutoffs: Cutoffs, limit: u32) -> Stored<Removed> {
        let remove = move |scope: &Scope<'_>| retention::remove_old(scope, cutoffs, limit);
        self.writer.write("removing what is old", remove).await
    }

    async fn retire_artifacts(&self, cutoffs: ArtifactCutoffs, limit: u32) -> Stored<Retired> {
        let retire = move |scope: &Scope<'_>| artifact_use::retire(scope, cutoffs, limit);
        self.writer.write("retiring artifacts", retire).await
    }

    async fn leftover_artifacts(&self, limit: u32) -> Stored<Vec<LeftoverArtifact>> {
        self.readers.read("looking for left-overs", move |scope| artifact_use::leftovers(scope, limit)).await
    }

    async fn forget_leftover(&self, hash: ArtifactHash) -> Stored<()> {
        let forget = move |scope: &Scope<'_>| artifact_use::forget_leftover(scope, hash);
        self.writer.write("forgetting a left-over", forget).await
    }

    async fn stamp_report_clock(&self) -> Stored<()> {
        self.writer.write("stamping the report clock", reports::stamp).await
    }

    async fn report(&self, items: Vec<ReportItem>) -> Stored<Vec<Answer>> {
        self.writer.write("carrying out reports", move |scope| reports::report(scope, &items)).await
    }

    async fn append_logs(&self, chunks: Vec<LogChunk>) -> Stored<Vec<LogAnswer>> {
        self.writer.write("appending to logs", move |scope| logs::append(scope, &chunks)).await
    }

    async fn log_chunks(&self, query: &LogQuery) -> Stored<Vec<LogChunk>> {
        let query = query.clone();
        self.readers.read("reading logs", move |scope| logs::chunks(scope, &query)).await
    }

    async fn log_extents(
        &self,
        job_id: JobId,
        attempts: RangeInclusive<u32>,
    ) -> Stored<Vec<(u32, LogExtent)>> {
        let read = move |scope: &Scope<'_>| logs::extents(scope, job_id, attempts);
        self.readers.read("looking for the end of a log", read).await
    }

    async fn log_extent(&self, job_id: JobId, attempt: u32) -> Stored<LogExtent> {
        self.readers.read("measuring logs", move |scope| logs::extent(scope, job_id, attempt)).await
    }

    async fn drop_logs(&self, keep_days: u32, after: Option<JobId>) -> Stored<LogsDropped> {
        let drop = move |scope: &Scope<'_>| logs::drop_old(scope, keep_days, after);
        self.writer.write("dropping old logs", drop).await
    }

    async fn events_after(&self, cursor: EventCursor, filter: &EventFilter, limit: u32) -> Stored<EventPage> {
        let filter = filter.clone();
        self.readers.read("reading events", move |scope| events::after(scope, cursor, &filter, limit)).await
    }

    async fn event_head(&self) -> Stored<EventCursor> {
        self.readers.read("reading the newest event", events::head).await
    }

    async fn hold_follower(
        &self,
        name: &str,
        holder: SessionId,
        hold_ms: u64,
        begin: EventCursor,
    ) -> Stored<Option<EventCursor>> {
        let name = name.to_owned();
        let hold = move |scope: &Scope<'_>| followers::hold(scope, &name, (holder, hold_ms), begin);
        self.writer.write("taking a follower in hand", hold).await
    }

    async fn move_follower(&self, name: &str, holder: SessionId, told: EventCursor) -> Stored<bool> {
        let name = name.to_owned();
        let told = move |scope: &Scope<'_>| followers::told(scope, &name, holder, told);
        self.writer.write("moving a follower", told).await
    }

    async fn add_token(&self, token: &NewToken, by: &Actor) -> Stored<()> {
        let (token, by) = (token.clone(), by.clone());
        self.writer.write("adding a token", move |scope| tokens::add(scope, &token, &by)).await
    }

    async fn token_by_hash(&self, hash: [u8; 32]) -> Stored<Option<TokenRecord>> {
        self.readers.read("looking up a token", move |scope| tokens::by_hash(scope, hash)).await
    }

    async fn tokens(&self) -> Stored<Vec<TokenRecord>> {
        self.readers.read("reading tokens", tokens::all).await
    }

    async fn revoke_token(&self, token_id: TokenId, by: &Actor) -> Stored<bool> {
        let by = by.clone();
        self.writer.write("revoking a token", move |scope| tokens::revoke(scope, token_id, &by)).await
    }

    async fn add_login(&self, login: NewLogin, by: &Actor) -> Stored<()> {
        let by = by.clone();
        self.writer.write("keeping a login code", move |scope| sessions::add_login(scope, &login, &by)).await
    }

    async fn begin_session(
        &self,
        key: SessionKey,
        session: NewSession,
        address: &str,
    ) -> Stored<Option<SessionRecord>> {
        let address = address.to_owned();
        let begin = move |scope: &Scope<'_>| sessions::begin(scope, key, session, &address);
        self.writer.write("beginning a session", begin).await
    }

    async fn session_by_hash(&self, hash: [u8; 32]) -> Stored<Option<SessionRecord>> {
        self.readers.read("looking up a session", move |scope| sessions::by_hash(scope, hash)).await
    }

    async fn end_session(&self, hash: [u8; 32], by: &Actor) -> Stored<bool> {
        let by = by.clone();
        self.writer.write("ending a session", move |scope| sessions::end(scope, hash, &by)).await
    }

    async fn audit(&self, before: Option<i64>, limit: u32) -> Stored<Vec<AuditRecord>> {
        self.readers.read("reading the audit trail", move |scope| audit::page(scope, before, limit)).await
    }

    async fn audit_number_at(&self, at: Timestamp) -> Stored<Option<i64>> {
        self.readers.read("reading the audit trail", move |scope| audit::number_at(scope, at)).await
    }

    async fn dump(&self, with_running: bool, into: mpsc::Sender<Part>) -> Stored<()> {
        self.readers.read("exporting", move |scope| transfer::dump(scope, with_running, &into)).await
    }

    async fn load(&self, from: mpsc::Receiver<Part>) -> Stored<()> {
        let from = std::sync::Mutex::new(Some(from));
        self.writer.write("importing", move |scope| transfer::load(scope, &from)).await
    }

    async fn now(&self) -> Stored<Timestamp> {
        Ok(self.clock.now())
    }

    fn kind(&self) -> DatastoreKind {
        DatastoreKind::Sqlite
    }

    fn lease_settings(&self) -> LeaseSettings {
        self.leases
    }

    fn wakes(&self, topic: WakeTopic) -> watch::Receiver<u64> {
        self.wakers.subscribe(topic)
    }

    async fn close(&self) {
        self.shut_down().await;
    }
}
