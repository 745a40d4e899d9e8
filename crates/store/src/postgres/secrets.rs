//! The table `job_secret`.

use jobyard_model::{JobId, LeaseId};

use super::Core;
use super::fault::Fault;
use super::load::Columns;
use super::query::Query;
use crate::{SealedSecrets, StoreError};

const INSERT: &str = "INSERT INTO job_secret (job_id, key_id, sealed)
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::bytea[])";
const OF_LEASE: &str = "SELECT job_id, key_id, sealed FROM attempt_live JOIN job_secret USING (job_id)
    WHERE lease_id = $1 AND phase = 1";

/// Keeps what new jobs have to hide.
pub(super) fn keep(secrets: &[(JobId, &SealedSecrets)]) -> Query {
    Query::new(INSERT)
        .bind_each(secrets, |(job_id, _)| job_id.0)
        .bind_each(secrets, |(_, secrets)| secrets.key_id.clone())
        .bind_each(secrets, |(_, secrets)| secrets.sealed.clone())
}

/// See [`crate::Store::secrets_of_lease`].
pub(super) async fn of_lease(
    core: &Core,
    lease_id: LeaseId,
) -> Result<Option<(JobId, SealedSecrets)>, StoreError> {
    let failed = |fault: Fault| fault.during("looking up secrets");
    let [rows] = core.database.read(|| [Query::new(OF_LEASE).bind(lease_id.0)]).await.map_err(failed)?;
    let Some(row) = rows.first() else { return Ok(None) };
    let mut columns = Columns::of(row);
    let mut read = || {
        let job_id = JobId(columns.take()?);
        Ok((job_id, SealedSecrets { key_id: columns.take()?, sealed: columns.take()? }))
    };
    read().map(Some).map_err(failed)
}
