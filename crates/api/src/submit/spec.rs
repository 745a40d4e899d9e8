//! The defaults: from what was submitted to what is stored.

use jobyard_model::{BinaryUrl, JobKind, JobSpec, Origin, Priority, Resources};

use super::ParsedJob;
use super::fields::STOP_GRACE_DEFAULT_MS;
use super::limits::MAX_NAME_CHARS;
use crate::json::JobSubmit;

const MAX_RETRIES_DEFAULT: u32 = 3;
const BACKOFF_DEFAULT_MS: u64 = 1_000;
const POOL_DEFAULT: &str = "default";

impl ParsedJob {
    /// The job's specification, with its defaults filled in.
    #[must_use]
    pub fn into_spec(self, default_owner: &str) -> JobSpec {
        let job = self.submit;
        let kind = job.kind.unwrap_or(JobKind::Task);
        let asked = job.resources.unwrap_or_default();
        let resources = Resources {
            cpu_milli: asked.cpu.map_or(Resources::DEFAULT.cpu_milli, |cpu| cpu.milli),
            memory_bytes: asked.memory.map_or(Resources::DEFAULT.memory_bytes, |memory| memory.0),
        };
        let binary = job.binary_url.as_deref().and_then(binary);
        JobSpec {
            name: job.name.clone().unwrap_or_else(|| default_name(&job, binary.as_ref())),
            owner: job.owner_id.unwrap_or_else(|| default_owner.to_owned()),
            kind,
            binary,
            command: job.command,
            env: job.env,
            run_at: job.run_at.map(|time| time.0),
            start_within_ms: job.start_within.map(|within| within.ms),
            max_retries: job.max_retries.unwrap_or(MAX_RETRIES_DEFAULT),
            backoff_ms: job.backoff.map_or(BACKOFF_DEFAULT_MS, |backoff| backoff.ms),
            no_retry_exit_codes: job.no_retry_exit_codes,
            timeout_ms: job.timeout.map(|timeout| timeout.ms),
            stop_grace_ms: job.stop_grace.map_or(STOP_GRACE_DEFAULT_MS, |grace| grace.ms),
            resources,
            cpu_limit_milli: asked.cpu_limit.map(|limit| limit.milli),
            io_class: job.io_class.unwrap_or_default(),
            runtime: job.runtime.unwrap_or_default(),
            priority: job.priority.and_then(Priority::new).unwrap_or(default_priority(kind)),
            preemptible: job.preemptible.unwrap_or(false),
            exclusive: job.exclusive.unwrap_or(false),
            pool: job.pool.unwrap_or_else(|| POOL_DEFAULT.to_owned()),
            node_labels: job.node_labels,
            labels: job.labels,
            origin: job.origin.map(|origin| Origin { kind: origin.kind, id: origin.id, key: origin.key }),
            has_secret_env: !job.secret_env.is_empty(),
            input_path: job.input_path.and_then(|path| path.parse().ok()),
            output_path: job.output_path.and_then(|path| path.parse().ok()),
        }
    }
}

fn default_priority(kind: JobKind) -> Priority {
    match kind {
        JobKind::Task => Priority::TASK_DEFAULT,
        JobKind::Service => Priority::SERVICE_DEFAULT,
    }
}

fn binary(url: &str) -> Option<BinaryUrl> {
    if let Some(hash) = url.strip_prefix("sha256:") {
        return hash.parse().ok().map(BinaryUrl::Artifact);
    }
    if url.starts_with("s3://") {
        return url.parse().ok().map(BinaryUrl::S3);
    }
    url.strip_prefix("file://").map(|path| BinaryUrl::File(path.to_owned()))
}

/// The last path part of the program, without what a name can't hold; `job` when nothing is left.
fn default_name(job: &JobSubmit, binary: Option<&BinaryUrl>) -> String {
    let program = match binary {
        Some(BinaryUrl::File(path)) => path.as_str(),
        Some(BinaryUrl::S3(place)) => place.key(),
        Some(BinaryUrl::Artifact(_)) => "",
        None => job.command.first().map_or("", String::as_str),
    };
    let last = program.rsplit('/').next().unwrap_or_default();
    let name: String = last.chars().filter(|letter| !letter.is_control()).take(MAX_NAME_CHARS).collect();
    if name.is_empty() { "job".to_owned() } else { name }
}
