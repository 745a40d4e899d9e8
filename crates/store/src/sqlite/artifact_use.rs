//! Who needs an artifact: the table `job_artifact`, the columns `used_ms` and `doomed_ms`, and `artifact_leftover`.

use jobyard_model::{ArtifactHash, JobId, Timestamp};
use rusqlite::params;

use super::fault::Fault;
use super::scope::Scope;
use crate::encoding::hash_column;
use crate::{ArtifactCutoffs, LeftoverArtifact, Retired};

/// An artifact that is asked for more often is noted this often.
pub(super) const NOTE_USE_AFTER_MS: u64 = 60 * 60 * 1000;

const NEEDED: &str = "SELECT EXISTS (SELECT 1 FROM job_artifact WHERE hash = ?1) \
    OR EXISTS (SELECT 1 FROM tree_file WHERE file = ?1)";

/// Notes what a job needs, or left behind.
pub(super) fn note_need(scope: &Scope<'_>, hash: ArtifactHash, job_id: JobId) -> Result<(), Fault> {
    let sql = "INSERT INTO job_artifact (hash, job_id) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    scope.execute(sql, params![hash.0.as_slice(), job_id.0])?;
    Ok(())
}

/// Notes that somebody wants to use it; a doomed one is spared.
pub(super) fn note_use(scope: &Scope<'_>, hash: ArtifactHash) -> Result<(), Fault> {
    let now = scope.now();
    let sql = "UPDATE artifact SET used_ms = ?2, doomed_ms = NULL \
        WHERE hash = ?1 AND (doomed_ms IS NOT NULL OR used_ms < ?3)";
    let long_ago = now.0.saturating_sub_unsigned(NOTE_USE_AFTER_MS);
    scope.execute(sql, params![hash.0.as_slice(), now.0, long_ago])?;
    Ok(())
}

/// See [`crate::Store::retire_artifacts`].
pub(super) fn retire(scope: &Scope<'_>, cutoffs: ArtifactCutoffs, limit: u32) -> Result<Retired, Fault> {
    let mut retired = Retired::default();
    let now = scope.now();
    let sql = "SELECT hash FROM artifact WHERE doomed_ms < ?1 ORDER BY doomed_ms LIMIT ?2";
    for hash in hashes(scope, sql, cutoffs.doomed, limit)? {
        if is_needed(scope, hash)? {
            note_use(scope, hash)?;
            retired.needed += 1;
        } else {
            remove(scope, hash)?;
            retired.removed += 1;
        }
    }
    let sql = "SELECT hash FROM artifact WHERE doomed_ms IS NULL AND used_ms < ?1 ORDER BY used_ms LIMIT ?2";
    for hash in hashes(scope, sql, cutoffs.unused, limit)? {
        let bytes = hash.0.as_slice();
        if is_needed(scope, hash)? {
            scope.execute("UPDATE artifact SET used_ms = ?2 WHERE hash = ?1", params![bytes, now.0])?;
            retired.needed += 1;
        } else {
            scope.execute("UPDATE artifact SET doomed_ms = ?2 WHERE hash = ?1", params![bytes, now.0])?;
            retired.doomed += 1;
        }
    }
    Ok(retired)
}

fn hashes(scope: &Scope<'_>, sql: &str, before: Timestamp, limit: u32) -> Result<Vec<ArtifactHash>, Fault> {
    let mut statement = scope.statement(sql)?;
    let rows = statement.query_map(params![before.0, limit], |row| row.get::<_, Vec<u8>>(0))?;
    let mut found = Vec::new();
    for bytes in rows {
        found.push(hash_column("artifact", &bytes?)?);
    }
    Ok(found)
}

fn is_needed(scope: &Scope<'_>, hash: ArtifactHash) -> Result<bool, Fault> {
    Ok(scope.statement(NEEDED)?.query_row([hash.0.as_slice()], |row| row.get(0))?)
}

fn remove(scope: &Scope<'_>, hash: ArtifactHash) -> Result<(), Fault> {
    let bytes = hash.0.as_slice();
    for sql in [
        "DELETE FROM tree_file WHERE tree = ?1",
        "DELETE FROM tree WHERE hash = ?1",
        "DELETE FROM artifact WHERE hash = ?1",
    ] {
        scope.execute(sql, [bytes])?;
    }
    let sql = "INSERT INTO artifact_leftover (hash, since_ms) VALUES (?1, ?2) \
        ON CONFLICT (hash) DO UPDATE SET since_ms = excluded.since_ms";
    scope.execute(sql, params![bytes, scope.now().0])?;
    Ok(())
}

/// Artifacts whose bytes are to be removed, oldest first.
pub(super) fn leftovers(scope: &Scope<'_>, limit: u32) -> Result<Vec<LeftoverArtifact>, Fault> {
    let mut statement =
        scope.statement("SELECT hash, since_ms FROM artifact_leftover ORDER BY since_ms LIMIT ?1")?;
    let rows = statement.query_map([limit], |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get(1)?)))?;
    let mut found = Vec::new();
    for row in rows {
        let (bytes, since_ms) = row?;
        let hash = hash_column("artifact_leftover", &bytes)?;
        found.push(LeftoverArtifact { hash, since: Timestamp(since_ms) });
    }
    Ok(found)
}

/// The bytes are gone, or belong to a new upload.
pub(super) fn forget_leftover(scope: &Scope<'_>, hash: ArtifactHash) -> Result<(), Fault> {
    scope.execute("DELETE FROM artifact_leftover WHERE hash = ?1", [hash.0.as_slice()])?;
    Ok(())
}
