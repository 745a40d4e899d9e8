//! A datastore with a node or two, and words for what happens on it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use jobyard_model::node::NodeRegistration;
use jobyard_model::{
    AttemptEnd, EndedBy, Exit, ExitFacts, IoClass, JobId, JobKind, JobSpec, NodeId, Outputs, Priority,
    Resources, Runtime, SessionId, Status, Timestamp, Usage,
};
use jobyard_store::{
    Actor, Answer, Claimed, DatastoreKind, JobRecord, NewJob, Placement, RegisterAnswer, Report, ReportItem,
    Store, Submitted, Verdict,
};
use uuid::Uuid;

/// What differs between the dialects.
#[async_trait]
pub(crate) trait Dialect: Send + Sync {
    /// What the store says of itself.
    fn kind(&self) -> DatastoreKind;

    /// Lets this much time pass for the datastore, as if nobody had called it meanwhile; a negative amount is a step
    /// back of its clock.
    async fn pass(&self, duration_ms: i64);

    /// The first column of each row that a person at a prompt would see.
    async fn ask(&self, sql: &str) -> Vec<String>;

    /// The same question in the dialect's words: which running jobs were silent for 180 seconds.
    fn silent_for_180_seconds(&self) -> &'static str;

    /// A store on the same datastore as another server would open it; the same one where there can't be two.
    async fn another(&self) -> Arc<dyn Store>;
}

/// A datastore of its own for each case.
pub(crate) struct World {
    /// What is tested.
    pub(crate) store: Arc<dyn Store>,
    /// How.
    pub(crate) dialect: Box<dyn Dialect>,
    /// The most un-ended jobs of an owner; what the store was opened with.
    pub(crate) max_unended_per_owner: u64,
}

/// A registered node.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// As it registered.
    pub(crate) registration: NodeRegistration,
}

impl Node {
    pub(crate) fn id(&self) -> NodeId {
        self.registration.node_id
    }
}

static COUNTER: AtomicU64 = AtomicU64::new(1);

/// A number that no other call gets.
pub(crate) fn unique() -> u64 {
    COUNTER.fetch_add(1, Ordering::Relaxed)
}

/// An id newer than all before.
pub(crate) fn new_job_id() -> JobId {
    let millis = 1_700_000_000_000 + unique();
    JobId(uuid::Builder::from_unix_timestamp_millis(millis, &[7; 10]).into_uuid())
}

pub(crate) fn ann() -> Actor {
    Actor { name: "ann".to_owned(), address: "127.0.0.1".to_owned() }
}

/// A task of owner `team` that runs `true`.
pub(crate) fn spec() -> JobSpec {
    JobSpec {
        owner: "team".to_owned(),
        name: "count".to_owned(),
        kind: JobKind::Task,
        binary: None,
        command: vec!["true".to_owned()],
        env: BTreeMap::new(),
        run_at: None,
        start_within_ms: None,
        max_retries: 3,
        backoff_ms: 1_000,
        no_retry_exit_codes: Vec::new(),
        timeout_ms: None,
        stop_grace_ms: 10_000,
        resources: Resources::DEFAULT,
        cpu_limit_milli: None,
        io_class: IoClass::Mixed,
        runtime: Runtime::Process,
        priority: Priority::TASK_DEFAULT,
        preemptible: false,
        exclusive: false,
        pool: "default".to_owned(),
        node_labels: BTreeMap::new(),
        labels: BTreeMap::new(),
        origin: None,
        input_path: None,
        has_secret_env: false,
        output_path: None,
    }
}

pub(crate) fn new_job(spec: JobSpec) -> NewJob {
    NewJob { id: new_job_id(), spec, submitted_by: "ann".to_owned(), idempotency: None, secrets: None }
}

pub(crate) fn with_key(spec: JobSpec, key: &str, hash: u8) -> NewJob {
    NewJob { idempotency: Some((key.to_owned(), [hash; 32])), ..new_job(spec) }
}

/// What a sidecar says of a task process that left by itself with this code.
pub(crate) fn exit(code: i32) -> AttemptEnd {
    exit_with(EndedBy::Itself, Exit::Code(code), "")
}

pub(crate) fn exit_with(ended_by: EndedBy, exit: Exit, message: &str) -> AttemptEnd {
    AttemptEnd::Exited(ExitFacts {
        ended_by,
        exit,
        message: message.to_owned(),
        started_at: Some(Timestamp(1)),
        ended_at: Timestamp(2),
        usage: Usage { wall_ms: 5, limits: "none".to_owned(), ..Usage::default() },
        outputs: Outputs::None,
    })
}

pub(crate) fn item(claimed: &Claimed, report: Report) -> ReportItem {
    ReportItem { job_id: claimed.job_id, attempt: claimed.attempt, lease_id: claimed.lease_id, report }
}

impl World {
    pub(crate) async fn submit(&self, spec: JobSpec) -> JobId {
        self.submit_all(vec![new_job(spec)]).await[0].id
    }

    pub(crate) async fn submit_all(&self, jobs: Vec<NewJob>) -> Vec<Submitted> {
        self.store.submit(jobs, &ann()).await.unwrap()
    }

    pub(crate) async fn submit_many(&self, count: usize, spec: &JobSpec) -> Vec<JobId> {
        let jobs = (0..count).map(|_| new_job(spec.clone())).collect();
        self.submit_all(jobs).await.into_iter().map(|submitted| submitted.id).collect()
    }

    /// A node in the pool `default` with room for everything.
    pub(crate) async fn node(&self) -> Node {
        let number = unique();
        let registration = NodeRegistration {
            node_id: NodeId(Uuid::from_u128(u128::from(number) << 64 | 1)),
            session: SessionId(Uuid::from_u128(u128::from(number) << 64 | 2)),
            boot_id: format!("boot-{number}"),
            name: format!("node-{number}"),
            pool: "default".to_owned(),
            capacity: Resources { cpu_milli: 64_000, memory_bytes: 64 << 30 },
            max_attempts: 1_000,
            labels: BTreeMap::from([("zone".to_owned(), "a".to_owned())]),
            runtimes: vec![Runtime::Process],
            containment: "subreaper".to_owned(),
            door: "/run/node.sock".to_owned(),
            version: "0.1.0".to_owned(),
        };
        let answer = self.store.register_node(&registration).await.unwrap();
        assert_eq!(answer, RegisterAnswer::Welcome { ended: 0 });
        Node { registration }
    }

    pub(crate) async fn claim(&self, job_ids: &[JobId], node: &Node) -> Vec<Claimed> {
        let place = |job_id| Placement { job_id, node_id: node.id(), session: node.registration.session };
        self.store.claim(job_ids.iter().copied().map(place).collect()).await.unwrap()
    }

    /// A new job in phase `placed`.
    pub(crate) async fn placed(&self, spec: JobSpec, node: &Node) -> Claimed {
        let job_id = self.submit(spec).await;
        self.claim(&[job_id], node).await.remove(0)
    }

    /// A new job whose task process exists.
    pub(crate) async fn running(&self, spec: JobSpec, node: &Node) -> Claimed {
        let claimed = self.placed(spec, node).await;
        assert_eq!(self.report(&claimed, Report::Started).await, Verdict::Accepted);
        claimed
    }

    /// A new job that is over: `success`.
    pub(crate) async fn ended(&self, spec: JobSpec, node: &Node) -> JobId {
        let claimed = self.running(spec, node).await;
        assert_eq!(self.end(&claimed, exit(0)).await, Verdict::Accepted);
        claimed.job_id
    }

    pub(crate) async fn report(&self, claimed: &Claimed, report: Report) -> Verdict {
        self.report_all(vec![item(claimed, report)]).await[0].verdict
    }

    pub(crate) async fn end(&self, claimed: &Claimed, end: AttemptEnd) -> Verdict {
        self.report(claimed, Report::Ended(end)).await
    }

    pub(crate) async fn report_all(&self, items: Vec<ReportItem>) -> Vec<Answer> {
        self.store.report(items).await.unwrap()
    }

    pub(crate) async fn job(&self, job_id: JobId) -> JobRecord {
        self.store.job(job_id).await.unwrap().unwrap()
    }

    pub(crate) async fn status(&self, job_id: JobId) -> Status {
        self.job(job_id).await.job.status()
    }

    pub(crate) async fn pass(&self, duration_ms: i64) {
        self.dialect.pass(duration_ms).await;
    }

    /// As [`Self::pass`], while a server with an open report door lives and is heard.
    pub(crate) async fn pass_in_service(&self, duration_ms: i64) {
        self.store.stamp_report_clock().await.unwrap();
        let mut left_ms = duration_ms;
        while left_ms > 0 {
            let step_ms = left_ms.min(10_000);
            self.pass(step_ms).await;
            self.store.stamp_report_clock().await.unwrap();
            left_ms -= step_ms;
        }
    }

    /// As [`Self::pass_in_service`] for longer than any hold on silence that an earlier gap may have left.
    pub(crate) async fn settle(&self) {
        self.pass_in_service(200_000).await;
    }
}
