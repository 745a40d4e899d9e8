//! Saying what a submit would come to, without one.

use jobyard_api::json::JobCheck;
use jobyard_api::submit::ParsedJob;
use jobyard_model::Role;
use jobyard_model::lifecycle::{Job, Outstanding};
use jobyard_store::{JobRecord, NewJob, SubmitError, policy_of};

use super::accept_jobs::{Shape, new_jobs, refused, warnings};
use super::explain_waiting::explain_waiting;
use crate::authentication::Caller;
use crate::error::ApiError;
use crate::server::Server;

/// Checks a job as a submit would, up to keeping it, and says what it would wait for. Idempotency keys and the owner's
/// number of jobs are not looked at.
pub(crate) async fn check_job(
    server: &Server,
    caller: &Caller,
    parsed: ParsedJob,
) -> Result<JobCheck, ApiError> {
    caller.require(Role::Submitter)?;
    let jobs = new_jobs(server, caller, vec![parsed], Shape::Single)?;
    let warnings = warnings(server, &jobs).await?;
    let job = jobs.into_iter().next().ok_or(ApiError::NotFound { what: "job" })?;
    let pools = server.store().pools().await?;
    if !pools.iter().any(|pool| pool.name == job.spec.pool) {
        let known = pools.into_iter().map(|pool| pool.name).collect();
        let error = SubmitError::UnknownPool { index: 0, pool: job.spec.pool, known };
        return Err(refused(error, Shape::Single));
    }
    let record = as_submitted(server, job).await?;
    let mut nodes = server.store().nodes().await?;
    nodes.retain(|node| node.pool == record.spec.pool);
    let why = explain_waiting(&record, &nodes, record.created_at);
    Ok(JobCheck { owner_id: record.spec.owner, warnings, why })
}

/// The job as it would be right after the submit.
async fn as_submitted(server: &Server, job: NewJob) -> Result<JobRecord, ApiError> {
    let NewJob { id, spec, submitted_by, .. } = job;
    let mut artifact_missing = false;
    for hash in spec.artifacts() {
        artifact_missing |= server.store().artifact(hash).await?.is_none();
    }
    let now = server.store().now().await?;
    let outstanding = Outstanding { run_at: spec.run_at, artifact_missing };
    Ok(JobRecord {
        job: Job::create(id, policy_of(&spec), outstanding, now).job,
        spec,
        submitted_by,
        created_at: now,
        idempotency_key: None,
        started_at: None,
        last_end: None,
        last_service: None,
    })
}
