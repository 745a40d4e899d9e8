//! Reading one job, and whether the caller may see inside.

use jobyard_model::{JobId, Role};
use jobyard_store::JobRecord;

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::server::Server;

/// A job that every viewer may see; `env` is for those who act for its owner.
pub(crate) async fn read_job(server: &Server, caller: &Caller, job_id: JobId) -> Result<JobRecord, ApiError> {
    caller.require(Role::Viewer)?;
    server.store().job(job_id).await?.ok_or(ApiError::NotFound { what: "job" })
}

/// A job whose logs the caller may read.
pub(crate) async fn read_own_job(
    server: &Server,
    caller: &Caller,
    job_id: JobId,
) -> Result<JobRecord, ApiError> {
    let record = read_job(server, caller, job_id).await?;
    caller.require_owner(&record.spec.owner)?;
    Ok(record)
}
