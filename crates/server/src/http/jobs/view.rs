//! Jobs and attempts as the caller may see them.

use jobyard_api::json::{
    Attempt, Bytes, Cores, Event, Job, JobOrigin, JobResources, JobResult, JobRow, Seconds, ServiceExit,
    Time, Usage,
};
use jobyard_model::{
    ArtifactHash, AttemptEnd, BinaryUrl, EndedBy, Exit, JobState, LastExit, Outputs, Principal, ServiceRun,
    Timestamp,
};
use jobyard_store::{AttemptRecord, EventRecord, JobRecord};

/// A job; without its `env` for those who don't act for its owner.
pub(crate) fn job(record: JobRecord, viewer: &Principal, now: Timestamp) -> Job {
    let reason = record.reason(now).to_owned();
    let status = record.job.status();
    let service = Service::new(record.service(), record.job.live_attempt().is_some());
    let finished_at = match &record.job.state {
        JobState::Ended(end) => Some(end.finished_at),
        _ => None,
    };
    let spec = record.spec;
    let outputs_in_s3 =
        record.last_end.as_ref().and_then(|(number, ..)| spec.output_of(record.job.id, *number));
    let acts_for = viewer.acts_for(&spec.owner);
    let env = acts_for.then_some(spec.env);
    let seconds = |ms| Seconds { ms };
    let accounts = record.job.accounts;
    Job {
        id: record.job.id,
        owner_id: spec.owner,
        submitted_by: record.submitted_by,
        name: spec.name,
        kind: spec.kind,
        status,
        reason,
        binary_url: spec.binary.map(binary_url),
        command: spec.command,
        input_path: spec.input_path.map(|path| path.to_string()),
        output_path: spec.output_path.map(|place| place.to_string()),
        env,
        created_time: Time(record.created_at),
        started_time: record.started_at.map(Time),
        finished_time: finished_at.map(Time),
        run_at: spec.run_at.map(Time),
        start_within: spec.start_within_ms.map(seconds),
        retry_count: accounts.retry_count,
        max_retries: spec.max_retries,
        backoff: seconds(spec.backoff_ms),
        no_retry_exit_codes: spec.no_retry_exit_codes,
        platform_failures: accounts.platform_failures,
        evictions: accounts.evictions,
        round: record.job.round,
        timeout: spec.timeout_ms.map(seconds),
        stop_grace: seconds(spec.stop_grace_ms),
        resources: JobResources {
            cpu: Cores { milli: spec.resources.cpu_milli },
            memory: Bytes(spec.resources.memory_bytes),
            cpu_limit: spec.cpu_limit_milli.map(|milli| Cores { milli }),
        },
        io_class: spec.io_class,
        runtime: spec.runtime,
        priority: spec.priority.value(),
        preemptible: spec.preemptible,
        exclusive: spec.exclusive,
        pool: spec.pool,
        node_labels: spec.node_labels,
        labels: spec.labels,
        origin: spec.origin.map(|origin| JobOrigin { kind: origin.kind, id: origin.id, key: origin.key }),
        idempotency_key: record.idempotency_key,
        intent: record.job.intent,
        restarts: service.restarts,
        last_exit: service.last_exit,
        next_start: service.next_start,
        result: record.last_end.map(|(number, outcome, end)| {
            let told = Told::new(end);
            let Told { exit_code, signal, message, usage, .. } = told;
            let kept = told.output.filter(|_| acts_for);
            let output = kept.map(|hash| outputs_in_s3.unwrap_or_else(|| format!("sha256:{hash}")));
            JobResult { attempt: number, outcome, exit_code, signal, message, output, usage }
        }),
        attempt: (record.job.last_attempt > 0).then_some(record.job.last_attempt),
        warnings: Vec::new(),
    }
}

/// The most characters of a message in a list.
const SHORT_MESSAGE_CHARS: usize = 200;

/// A line of a list.
pub(crate) fn row(row: jobyard_store::JobRow) -> JobRow {
    let (outcome, told) = match row.last_end {
        Some((_, outcome, end)) => (Some(outcome), Told::new(end)),
        None => (None, Told::default()),
    };
    let (node_id, node_name) = row.node.unzip();
    JobRow {
        id: row.id,
        owner_id: row.owner,
        name: row.name,
        kind: row.kind,
        status: row.status,
        reason: row.reason.to_owned(),
        submitted_by: row.submitted_by,
        pool: row.pool,
        priority: row.priority,
        labels: row.labels,
        intent: row.intent,
        created_time: Time(row.created_at),
        started_time: row.started_at.map(Time),
        finished_time: row.finished_at.map(Time),
        waiting_since_time: row.waiting_since.map(Time),
        retry_count: row.retry_count,
        max_retries: row.max_retries,
        round: row.round,
        attempt: (row.attempt > 0).then_some(row.attempt),
        node_id,
        node_name: node_name.filter(|name| !name.is_empty()),
        outcome,
        exit_code: told.exit_code,
        signal: told.signal,
        message: told.message.chars().take(SHORT_MESSAGE_CHARS).collect(),
    }
}

/// An attempt.
pub(crate) fn attempt(record: AttemptRecord) -> Attempt {
    let (outcome, told) = match record.end {
        Some((outcome, end)) => (Some(outcome), Told::new(end)),
        None => (None, Told::default()),
    };
    let service = Service::new(record.service, record.phase.is_some());
    Attempt {
        number: record.number,
        round: record.round,
        node_id: record.node_id,
        node_name: record.node_name,
        phase: record.phase,
        intent: record.intent,
        outcome,
        ended_by: told.ended_by,
        exit_code: told.exit_code,
        signal: told.signal,
        message: told.message,
        placed_time: Time(record.placed_at),
        accepted_time: record.accepted_at.map(Time),
        started_time: record.started_at.map(Time),
        finished_time: record.ended_at.map(Time),
        lease_until: record.lease_until.filter(|_| record.phase.is_some()).map(Time),
        usage: told.usage,
        restarts: service.restarts,
        last_exit: service.last_exit,
        next_start: service.next_start,
    }
}

/// An event.
pub(crate) fn event(record: &EventRecord) -> Event {
    Event {
        cursor: record.cursor.to_string(),
        time: Time(record.at),
        job_id: record.job_id,
        attempt: record.attempt,
        who: record.who.clone(),
        from: record.from.clone(),
        to: record.to.clone(),
        why: record.why.clone(),
    }
}

fn binary_url(binary: BinaryUrl) -> String {
    match binary {
        BinaryUrl::Artifact(hash) => format!("sha256:{hash}"),
        BinaryUrl::File(path) => format!("file://{path}"),
        BinaryUrl::S3(place) => place.to_string(),
    }
}

/// What a service's attempt says to people.
#[derive(Default)]
struct Service {
    restarts: u32,
    last_exit: Option<ServiceExit>,
    next_start: Option<Time>,
}

impl Service {
    /// Nothing is started again in an attempt that is over.
    fn new(run: Option<ServiceRun>, is_live: bool) -> Self {
        let Some(ServiceRun { restarts, last_exit, next_start }) = run else { return Self::default() };
        let next_start = next_start.filter(|_| is_live).map(Time);
        Self { restarts, last_exit: Some(service_exit(last_exit)), next_start }
    }
}

fn service_exit(last: LastExit) -> ServiceExit {
    let (exit_code, signal) = code_and_signal(last.exit);
    ServiceExit { exit_code, signal, ended_by: last.by, time: Time(last.at) }
}

fn code_and_signal(exit: Exit) -> (Option<i32>, Option<i32>) {
    match exit {
        Exit::Code(code) => (Some(code), None),
        Exit::Signal(signal) => (None, Some(signal)),
        Exit::Unrunnable | Exit::LaunchFault => (None, None),
    }
}

/// What an end says to people.
#[derive(Default)]
struct Told {
    ended_by: Option<EndedBy>,
    exit_code: Option<i32>,
    signal: Option<i32>,
    message: String,
    output: Option<ArtifactHash>,
    usage: Option<Usage>,
}

impl Told {
    fn new(end: AttemptEnd) -> Self {
        let without_witness = |message: String| Self { message, ..Self::default() };
        let facts = match end {
            AttemptEnd::Exited(facts) => facts,
            AttemptEnd::Vanished { why } | AttemptEnd::NotStarted { why } => return without_witness(why),
            AttemptEnd::Silent => {
                return without_witness("its lease ran out without a sign of life".to_owned());
            }
        };
        let (exit_code, signal) = code_and_signal(facts.exit);
        let usage = Usage {
            wall: Seconds { ms: facts.usage.wall_ms },
            cpu_user: Seconds { ms: facts.usage.cpu_user_ms },
            cpu_system: Seconds { ms: facts.usage.cpu_system_ms },
            peak_memory_bytes: facts.usage.peak_memory_bytes,
            limits: facts.usage.limits,
        };
        Self {
            ended_by: Some(facts.ended_by),
            exit_code,
            signal,
            message: facts.message,
            output: match facts.outputs {
                Outputs::Kept(hash) => Some(hash),
                Outputs::None | Outputs::Refused | Outputs::Late => None,
            },
            usage: (exit_code.is_some() || signal.is_some()).then_some(usage),
        }
    }
}
