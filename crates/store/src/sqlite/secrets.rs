//! The table `job_secret`.

use jobyard_model::{JobId, LeaseId};
use rusqlite::{OptionalExtension, params};

use super::fault::Fault;
use super::scope::Scope;
use crate::{NewJob, SealedSecrets};

/// Keeps what a new job has to hide.
pub(super) fn keep(scope: &Scope<'_>, job: &NewJob) -> Result<(), Fault> {
    let Some(secrets) = &job.secrets else { return Ok(()) };
    let SealedSecrets { key_id, sealed } = &secrets.sealed;
    let sql = "INSERT INTO job_secret (job_id, key_id, sealed) VALUES (?1, ?2, ?3)";
    scope.execute(sql, params![job.id.0, key_id, sealed])?;
    Ok(())
}

/// See [`crate::Store::secrets_of_lease`].
pub(super) fn of_lease(
    scope: &Scope<'_>,
    lease_id: LeaseId,
) -> Result<Option<(JobId, SealedSecrets)>, Fault> {
    let sql = "SELECT job_id, key_id, sealed FROM attempt_live CROSS JOIN job_secret USING (job_id) \
        WHERE lease_id = ?1 AND phase = 1";
    let found = scope.statement(sql)?.query_row([lease_id.0], |row| {
        Ok((JobId(row.get(0)?), SealedSecrets { key_id: row.get(1)?, sealed: row.get(2)? }))
    });
    Ok(found.optional()?)
}
