//! Cancel, stop and retry by hand: all repeatable without harm.

use jobyard_model::{JobId, Role};
use jobyard_store::{Control, JobRecord, StoreError};

use super::read_job::{read_job, read_own_job};
use crate::authentication::Caller;
use crate::error::ApiError;
use crate::server::Server;

/// Wants a job cancelled, and gives it as it is then.
pub(crate) async fn cancel_job(
    server: &Server,
    caller: &Caller,
    job_id: JobId,
) -> Result<JobRecord, ApiError> {
    check(server, caller, job_id).await?;
    let control = server.store().cancel(job_id, caller.actor()).await;
    done(server, caller, job_id, control).await
}

/// Wants a service stopped, and gives it as it is then.
pub(crate) async fn stop_job(server: &Server, caller: &Caller, job_id: JobId) -> Result<JobRecord, ApiError> {
    check(server, caller, job_id).await?;
    let control = server.store().stop(job_id, caller.actor()).await;
    done(server, caller, job_id, control).await
}

/// Starts a new round, and gives the job as it is then.
pub(crate) async fn retry_job(
    server: &Server,
    caller: &Caller,
    job_id: JobId,
    after_attempt: Option<u32>,
) -> Result<JobRecord, ApiError> {
    check(server, caller, job_id).await?;
    let control = server.store().retry(job_id, after_attempt, caller.actor()).await;
    done(server, caller, job_id, control).await
}

/// The owner of a job never changes, so checking before the change is enough.
async fn check(server: &Server, caller: &Caller, job_id: JobId) -> Result<(), ApiError> {
    caller.require(Role::Submitter)?;
    read_own_job(server, caller, job_id).await.map(|_| ())
}

async fn done(
    server: &Server,
    caller: &Caller,
    job_id: JobId,
    control: Result<Control, StoreError>,
) -> Result<JobRecord, ApiError> {
    match control? {
        Control::Done | Control::Nothing => read_job(server, caller, job_id).await,
        Control::Refused(status) => Err(ApiError::NotOver { status }),
        Control::WrongKind => Err(ApiError::NotAService),
        Control::NotFound => Err(ApiError::NotFound { what: "job" }),
    }
}
