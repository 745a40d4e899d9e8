//! The tables `artifact` and `awaited_artifact`.

use jobyard_model::{ArtifactHash, BinaryUrl, JobEvent, JobId, LeaseId};
use rusqlite::{OptionalExtension, params};

use super::fault::Fault;
use super::scope::Scope;
use super::{audit, load, writes};
use crate::Actor;
use crate::encoding::{amount, column};
use crate::ledger::{Denied, Ledger};

/// The size of a known artifact.
pub(super) fn size(scope: &Scope<'_>, hash: ArtifactHash) -> Result<Option<u64>, Fault> {
    let found: Option<i64> = scope
        .statement("SELECT size_bytes FROM artifact WHERE hash = ?1")?
        .query_row([hash.0.as_slice()], |row| row.get(0))
        .optional()?;
    Ok(found.map(amount))
}

/// Notes an artifact and frees the jobs that waited for it.
pub(super) fn add(scope: &Scope<'_>, hash: ArtifactHash, size_bytes: u64, by: &Actor) -> Result<(), Fault> {
    let sql =
        "INSERT INTO artifact (hash, size_bytes, created_ms) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    let bytes = hash.0.as_slice();
    if scope.execute(sql, params![bytes, column(size_bytes), scope.now().0])? == 0 {
        return Ok(());
    }
    let waiting = load::ids(scope, "SELECT job_id FROM awaited_artifact WHERE hash = ?1", [bytes])?;
    let mut ledger = Ledger::new(scope.terms);
    for job_id in waiting {
        load::into_ledger(scope, &mut ledger, job_id)?;
        match ledger.apply(job_id, JobEvent::ArtifactArrived, &by.name) {
            Ok(()) | Err(Denied::NotLoaded | Denied::Refused(_)) => {}
        }
    }
    scope.execute("DELETE FROM awaited_artifact WHERE hash = ?1", [bytes])?;
    writes::carry_out(scope, ledger)?;
    audit::note(scope, by, "artifact.add", &hash.to_string(), &format!("{size_bytes} bytes"))
}

/// The executable that the live attempt with this lease may fetch.
pub(super) fn of_lease(scope: &Scope<'_>, lease_id: LeaseId) -> Result<Option<ArtifactHash>, Fault> {
    let job_id: Option<JobId> = scope
        .statement("SELECT job_id FROM attempt_live WHERE lease_id = ?1")?
        .query_row([lease_id.0], |row| row.get(0).map(JobId))
        .optional()?;
    let Some(job_id) = job_id else { return Ok(None) };
    let binary = load::spec(scope, job_id)?.and_then(|spec| spec.binary);
    Ok(match binary {
        Some(BinaryUrl::Artifact(hash)) => Some(hash),
        Some(BinaryUrl::File(_)) | None => None,
    })
}
