//! Accepting jobs: whose they may be, which ids they get, what looks wrong about them.

use std::collections::BTreeSet;
use std::time::Duration;

use jobyard_api::json::ProblemError;
use jobyard_api::strict::{Fault, FaultCode, Faults};
use jobyard_api::submit::ParsedJob;
use jobyard_model::{BinaryUrl, InputPath, JobId, JobSpec, Role, S3Url};
use jobyard_store::{NewJob, NewSecrets, StoreError, SubmitError, Submitted};

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::s3::S3Access;
use crate::secrets::SealError;
use crate::server::Server;

/// How often a submission is repeated whose commit's fate is not known. The ids are the same each time, so the
/// datastore absorbs what it has already.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(200);

/// Warnings beyond this many would only repeat themselves.
const MAX_WARNINGS: usize = 20;

/// Where the jobs stood in the request, for the pointers of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The body is the job.
    Single,
    /// The body has `jobs`.
    Batch,
}

impl Shape {
    fn pointer(self, index: usize, field: &str) -> String {
        match self {
            Self::Single => format!("/{field}"),
            Self::Batch => format!("/jobs/{index}/{field}"),
        }
    }
}

/// Jobs that were accepted.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) items: Vec<Submitted>,
    pub(crate) warnings: Vec<String>,
}

/// Accepts jobs, all or none. When this returns, they are durable.
pub(crate) async fn accept_jobs(
    server: &Server,
    caller: &Caller,
    parsed: Vec<ParsedJob>,
    shape: Shape,
) -> Result<Accepted, ApiError> {
    caller.require(Role::Submitter)?;
    let jobs = new_jobs(server, caller, parsed, shape)?;
    let warnings = warnings(server, &jobs).await?;
    let items = submit(server, caller, jobs, shape).await?;
    let created = items.iter().filter(|item| item.created).count();
    server.metrics().jobs_submitted.inc_by(created as u64);
    Ok(Accepted { items, warnings })
}

/// The jobs as they would be kept: whose they are, and nothing that their owner may not name.
pub(super) fn new_jobs(
    server: &Server,
    caller: &Caller,
    parsed: Vec<ParsedJob>,
    shape: Shape,
) -> Result<Vec<NewJob>, ApiError> {
    let principal = caller.principal();
    let default_owner = principal.owners.first();
    let mut jobs = Vec::with_capacity(parsed.len());
    let mut foreign = Vec::new();
    for (index, job) in parsed.into_iter().enumerate() {
        let pointer = || shape.pointer(index, "owner_id");
        let Some(owner) = job.submit.owner_id.as_ref().or(default_owner).cloned() else {
            let detail = "name the owner: the token acts for none in particular";
            return Err(ApiError::fault(pointer(), FaultCode::Missing, detail));
        };
        if !principal.acts_for(&owner) {
            let detail = format!("the token does not act for owner `{owner}`");
            foreign.push(ProblemError { pointer: pointer(), detail, code: "foreign_owner".to_owned() });
            continue;
        }
        let id = server.job_ids().next();
        let (hash, secrets) = hash_and_secrets(server, id, &job)?;
        let idempotency = job.submit.idempotency_key.clone().map(|key| (key, hash));
        let submitted_by = principal.name.clone();
        jobs.push(NewJob { id, spec: job.into_spec(&owner), submitted_by, idempotency, secrets });
    }
    if !foreign.is_empty() {
        return Err(ApiError::ForeignOwner { errors: foreign });
    }
    let mut faults = Faults::default();
    for (index, job) in jobs.iter().enumerate() {
        check_places(server, &job.spec, |field, detail| {
            let pointer = shape.pointer(index, field);
            faults.push(Fault { pointer, code: FaultCode::NotAllowed, detail });
        });
    }
    if faults.is_empty() { Ok(jobs) } else { Err(faults.into()) }
}

/// The servers' credentials are not everybody's: which places in S3 a job may name depends on its owner.
fn check_places(server: &Server, spec: &JobSpec, mut fault: impl FnMut(&'static str, String)) {
    let executable = match &spec.binary {
        Some(BinaryUrl::S3(place)) => Some(place),
        Some(BinaryUrl::Artifact(_) | BinaryUrl::File(_)) | None => None,
    };
    let input = match &spec.input_path {
        Some(InputPath::S3(place)) => Some(place),
        Some(InputPath::Stored(_)) | None => None,
    };
    let output = spec.output_path.as_ref().map(S3Url::as_prefix);
    let named = [
        ("binary_url", executable, S3Access::Read),
        ("input_path", input, S3Access::Read),
        ("output_path", output.as_ref(), S3Access::ReadWrite),
    ];
    for (field, place, wanted) in named {
        if let Some(Err(why)) = place.map(|place| server.buckets().check(&spec.owner, place, wanted)) {
            fault(field, why);
        }
    }
}

/// What the job is known again by, and its secrets as they are kept.
fn hash_and_secrets(
    server: &Server,
    id: JobId,
    job: &ParsedJob,
) -> Result<([u8; 32], Option<NewSecrets>), ApiError> {
    let secrets = &job.submit.secret_env;
    if secrets.is_empty() {
        return Ok((job.hash(), None));
    }
    // The reader refuses secrets where there is no key.
    let keys = server.secret_keys().ok_or(SealError)?;
    let (hash, earlier_hashes) = keys.fingerprints(&job.canonical());
    let sealed = keys.seal(id, &secrets.0)?;
    Ok((hash, Some(NewSecrets { sealed, earlier_hashes })))
}

async fn submit(
    server: &Server,
    caller: &Caller,
    jobs: Vec<NewJob>,
    shape: Shape,
) -> Result<Vec<Submitted>, ApiError> {
    let mut tries_left = TRIES;
    loop {
        tries_left -= 1;
        match server.store().submit(jobs.clone(), caller.actor()).await {
            Err(SubmitError::Store(StoreError::Unknown { doing, source })) if tries_left > 0 => {
                tracing::warn!(error = &*source as &dyn std::error::Error, doing, "submission repeated");
                tokio::time::sleep(PAUSE).await;
            }
            answer => return answer.map_err(|error| refused(error, shape)),
        }
    }
}

/// What a submit is refused with.
pub(super) fn refused(error: SubmitError, shape: Shape) -> ApiError {
    match error {
        SubmitError::KeyConflict { index, job_id } => {
            ApiError::KeyConflict { job_id, pointer: shape.pointer(index, "idempotency_key") }
        }
        SubmitError::UnknownPool { index, pool, known } => {
            let detail = format!("there is no pool `{pool}`; the pools are {}", known.join(", "));
            ApiError::fault(shape.pointer(index, "pool"), FaultCode::Unknown, detail)
        }
        SubmitError::TooManyJobs { owner, limit } => ApiError::TooManyJobs { owner, limit },
        SubmitError::Store(error) => error.into(),
    }
}

/// What can be accepted but looks wrong: no node that exists could ever run it.
pub(super) async fn warnings(server: &Server, jobs: &[NewJob]) -> Result<Vec<String>, ApiError> {
    let fleet = server.fleet().nodes(server.store()).await?;
    let now = server.clock().now();
    let mut warnings = BTreeSet::new();
    for NewJob { spec, .. } in jobs {
        warnings.extend(fleet.warning(spec, now));
        if warnings.len() >= MAX_WARNINGS {
            break;
        }
    }
    Ok(warnings.into_iter().collect())
}

/// What placement looks at.
pub(crate) fn shape_of(spec: &JobSpec) -> jobyard_model::Shape {
    jobyard_model::Shape {
        resources: spec.resources,
        node_labels: spec.node_labels.clone(),
        runtime: spec.runtime,
    }
}
