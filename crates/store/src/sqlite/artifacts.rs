//! The tables `artifact`, `awaited_artifact`, `tree` and `tree_file`.

use jobyard_model::{ArtifactHash, JobEvent, JobId, LeaseId};
use rusqlite::{OptionalExtension, params};

use super::fault::Fault;
use super::scope::Scope;
use super::{artifact_use, audit, load, writes};
use crate::encoding::{amount, column};
use crate::ledger::{Denied, Ledger};
use crate::{Actor, LeasedAttempt, NewTree, TreeRecord};

/// The size of a known artifact.
pub(super) fn size(scope: &Scope<'_>, hash: ArtifactHash) -> Result<Option<u64>, Fault> {
    let found: Option<i64> = scope
        .statement("SELECT size_bytes FROM artifact WHERE hash = ?1")?
        .query_row([hash.0.as_slice()], |row| row.get(0))
        .optional()?;
    Ok(found.map(amount))
}

/// Notes artifacts and frees the jobs that waited for them.
pub(super) fn add(scope: &Scope<'_>, artifacts: &[(ArtifactHash, u64)], by: &Actor) -> Result<(), Fault> {
    for (hash, size_bytes) in artifacts {
        if !insert(scope, *hash, *size_bytes)? {
            artifact_use::note_use(scope, *hash)?;
        } else {
            free_waiting(scope, *hash, by)?;
            audit::note(scope, by, "artifact.add", &hash.to_string(), &format!("{size_bytes} bytes"))?;
        }
    }
    Ok(())
}

/// The sizes of artifacts, in order.
pub(super) fn sizes(scope: &Scope<'_>, hashes: &[ArtifactHash]) -> Result<Vec<Option<u64>>, Fault> {
    hashes
        .iter()
        .map(|hash| {
            artifact_use::note_use(scope, *hash)?;
            size(scope, *hash)
        })
        .collect()
}

/// Notes a tree; `false` when one of its artifacts is not known.
pub(super) fn add_tree(scope: &Scope<'_>, tree: &NewTree, by: &Actor) -> Result<bool, Fault> {
    for hash in &tree.artifacts {
        if size(scope, *hash)?.is_none() {
            return Ok(false);
        }
    }
    let sql = "INSERT INTO tree (hash, files, size_bytes) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    let bytes = tree.hash.0.as_slice();
    if scope.execute(sql, params![bytes, tree.files, column(tree.size_bytes)])? == 0 {
        artifact_use::note_use(scope, tree.hash)?;
        return Ok(true);
    }
    for artifact in &tree.artifacts {
        let sql = "INSERT INTO tree_file (tree, file) VALUES (?1, ?2)";
        scope.execute(sql, params![bytes, artifact.0.as_slice()])?;
    }
    if insert(scope, tree.hash, tree.manifest_bytes)? {
        free_waiting(scope, tree.hash, by)?;
    }
    artifact_use::note_use(scope, tree.hash)?;
    let detail = format!("{} files, {} bytes", tree.files, tree.size_bytes);
    audit::note(scope, by, "tree.add", &tree.hash.to_string(), &detail)?;
    Ok(true)
}

/// A known tree.
pub(super) fn tree(scope: &Scope<'_>, hash: ArtifactHash) -> Result<Option<TreeRecord>, Fault> {
    let found = scope
        .statement("SELECT files, size_bytes FROM tree WHERE hash = ?1")?
        .query_row([hash.0.as_slice()], |row| {
            Ok(TreeRecord { files: row.get(0)?, size_bytes: amount(row.get(1)?) })
        })
        .optional()?;
    Ok(found)
}

/// `false`: it is known already.
fn insert(scope: &Scope<'_>, hash: ArtifactHash, size_bytes: u64) -> Result<bool, Fault> {
    let sql = "INSERT INTO artifact (hash, size_bytes, created_ms, used_ms) VALUES (?1, ?2, ?3, ?3) ON CONFLICT DO NOTHING";
    let inserted = scope.execute(sql, params![hash.0.as_slice(), column(size_bytes), scope.now().0])?;
    Ok(inserted > 0)
}

fn free_waiting(scope: &Scope<'_>, hash: ArtifactHash, by: &Actor) -> Result<(), Fault> {
    let bytes = hash.0.as_slice();
    let waiting = load::ids(scope, "SELECT job_id FROM awaited_artifact WHERE hash = ?1", [bytes])?;
    scope.execute("DELETE FROM awaited_artifact WHERE hash = ?1", [bytes])?;
    let mut ledger = Ledger::new(scope.terms);
    for job_id in waiting {
        let others = "SELECT 1 FROM awaited_artifact WHERE job_id = ?1";
        if scope.statement(others)?.exists([job_id.0])? {
            continue;
        }
        load::into_ledger(scope, &mut ledger, job_id)?;
        match ledger.apply(job_id, JobEvent::ArtifactArrived, &by.name) {
            Ok(()) | Err(Denied::NotLoaded | Denied::Refused(_)) => {}
        }
    }
    writes::carry_out(scope, ledger)
}

/// Whether the live attempt with this lease needs this artifact.
pub(super) fn lease_may_fetch(
    scope: &Scope<'_>,
    lease_id: LeaseId,
    hash: ArtifactHash,
) -> Result<bool, Fault> {
    let Some(LeasedAttempt { spec, .. }) = leased_attempt(scope, lease_id)? else { return Ok(false) };
    if spec.artifacts().any(|needed| needed == hash) {
        return Ok(true);
    }
    let Some(input) = spec.input() else { return Ok(false) };
    let mut in_tree = scope.statement("SELECT 1 FROM tree_file WHERE tree = ?1 AND file = ?2")?;
    Ok(in_tree.exists(params![input.0.as_slice(), hash.0.as_slice()])?)
}

/// The live attempt with this lease, and what its job says.
pub(super) fn leased_attempt(scope: &Scope<'_>, lease_id: LeaseId) -> Result<Option<LeasedAttempt>, Fault> {
    let found: Option<(JobId, u32)> = scope
        .statement("SELECT job_id, number FROM attempt_live WHERE lease_id = ?1")?
        .query_row([lease_id.0], |row| Ok((JobId(row.get(0)?), row.get(1)?)))
        .optional()?;
    let Some((job_id, attempt)) = found else { return Ok(None) };
    Ok(load::spec(scope, job_id)?.map(|spec| LeasedAttempt { job_id, attempt, spec }))
}

/// Whether there is a live attempt with this lease.
pub(super) fn lease_is_live(scope: &Scope<'_>, lease_id: LeaseId) -> Result<bool, Fault> {
    let mut live = scope.statement("SELECT 1 FROM attempt_live WHERE lease_id = ?1")?;
    Ok(live.exists([lease_id.0])?)
}
