//! Who needs an artifact: the table `job_artifact`, the columns `used_ms` and `doomed_ms`, and `artifact_leftover`.
//!
//! Removing one takes two steps, some minutes apart: a submit that saw the artifact before the first step has committed,
//! and is seen, when the second looks who needs it; one that comes later spares the artifact or finds it missing.

use jobyard_model::{ArtifactHash, JobId, Timestamp};

use super::Core;
use super::fault::Fault;
use super::load::Columns;
use super::query::Query;
use super::session::{Rows, Session};
use crate::encoding::hash_column;
use crate::{ArtifactCutoffs, LeftoverArtifact, Retired, StoreError};

const NOTE_NEEDS: &str =
    "INSERT INTO job_artifact (hash, job_id) SELECT * FROM unnest($1::bytea[], $2::uuid[])
    ON CONFLICT DO NOTHING";
// An artifact that is asked for more often is noted once an hour. In the order of hashes, so that two of these don't
// wait for each other in a circle.
const NOTE_USE: &str = "WITH asked AS MATERIALIZED (
    SELECT hash FROM artifact WHERE hash = ANY($1)
      AND (doomed_ms IS NOT NULL OR used_ms < jobyard_now() - 3600000) ORDER BY hash FOR UPDATE)
  UPDATE artifact SET used_ms = jobyard_now(), doomed_ms = NULL FROM asked WHERE artifact.hash = asked.hash";

const LONG_DOOMED: &str = "WITH old AS MATERIALIZED (
    SELECT hash FROM artifact WHERE doomed_ms < $1 ORDER BY doomed_ms LIMIT $2 FOR UPDATE SKIP LOCKED)
  SELECT hash, EXISTS (SELECT 1 FROM job_artifact j WHERE j.hash = old.hash)
    OR EXISTS (SELECT 1 FROM tree_file t WHERE t.file = old.hash) FROM old";
const LONG_UNUSED: &str = "WITH old AS MATERIALIZED (
    SELECT hash FROM artifact WHERE doomed_ms IS NULL AND used_ms < $1 ORDER BY used_ms LIMIT $2
    FOR UPDATE SKIP LOCKED)
  SELECT hash, EXISTS (SELECT 1 FROM job_artifact j WHERE j.hash = old.hash)
    OR EXISTS (SELECT 1 FROM tree_file t WHERE t.file = old.hash) FROM old";
const SPARE: &str = "UPDATE artifact SET used_ms = jobyard_now(), doomed_ms = NULL WHERE hash = ANY($1)";
const DOOM: &str = "UPDATE artifact SET doomed_ms = jobyard_now() WHERE hash = ANY($1)";
const REMOVE: [&str; 4] = [
    "DELETE FROM tree_file WHERE tree = ANY($1)",
    "DELETE FROM tree WHERE hash = ANY($1)",
    "DELETE FROM artifact WHERE hash = ANY($1)",
    "INSERT INTO artifact_leftover (hash, since_ms) SELECT hash, jobyard_now() FROM unnest($1::bytea[]) hash
       ON CONFLICT (hash) DO UPDATE SET since_ms = excluded.since_ms",
];
const LEFTOVERS: &str = "SELECT hash, since_ms FROM artifact_leftover ORDER BY since_ms LIMIT $1";
const FORGET_LEFTOVER: &str = "DELETE FROM artifact_leftover WHERE hash = $1";

/// Notes what jobs need, or left behind.
pub(super) fn note_needs(needs: &[(ArtifactHash, JobId)]) -> Query {
    Query::new(NOTE_NEEDS)
        .bind_each(needs, |(hash, _)| hash.0.to_vec())
        .bind_each(needs, |(_, job_id)| job_id.0)
}

/// Notes that somebody wants to use them; doomed ones are spared.
pub(super) fn note_use(hashes: &[ArtifactHash]) -> Query {
    Query::new(NOTE_USE).bind_each(hashes, |hash| hash.0.to_vec())
}

/// See [`crate::Store::retire_artifacts`].
pub(super) async fn retire(core: &Core, cutoffs: ArtifactCutoffs, limit: u32) -> Result<Retired, StoreError> {
    core.database.change("retiring artifacts", |session| try_retire(session, cutoffs, limit)).await
}

async fn try_retire(mut session: Session, cutoffs: ArtifactCutoffs, limit: u32) -> Result<Retired, Fault> {
    let old = |sql, before: Timestamp| Query::new(sql).bind(before.0).bind(i64::from(limit));
    let [doomed, unused] =
        session.begin([old(LONG_DOOMED, cutoffs.doomed), old(LONG_UNUSED, cutoffs.unused)]).await?;
    let (mut needed, to_remove) = by_need(&doomed)?;
    let (also_needed, to_doom) = by_need(&unused)?;
    needed.extend(also_needed);
    let retired = Retired {
        doomed: to_doom.len() as u64,
        removed: to_remove.len() as u64,
        needed: needed.len() as u64,
    };
    if retired == Retired::default() {
        session.roll_back().await?;
        return Ok(retired);
    }
    let mut queries = vec![Query::new(SPARE).bind(needed), Query::new(DOOM).bind(to_doom)];
    queries.extend(REMOVE.map(|sql| Query::new(sql).bind(to_remove.clone())));
    session.commit(queries).await?;
    Ok(retired)
}

/// As columns.
type Hashes = Vec<Vec<u8>>;

/// Those that are needed, and those that aren't.
fn by_need(rows: &Rows) -> Result<(Hashes, Hashes), Fault> {
    let (mut needed, mut others) = (Vec::new(), Vec::new());
    for row in rows {
        let mut columns = Columns::of(row);
        let hash: Vec<u8> = columns.take()?;
        if columns.take()? { needed.push(hash) } else { others.push(hash) }
    }
    Ok((needed, others))
}

/// Artifacts whose bytes are to be removed, oldest first.
pub(super) async fn leftovers(core: &Core, limit: u32) -> Result<Vec<LeftoverArtifact>, StoreError> {
    try_leftovers(core, limit).await.map_err(|fault| fault.during("looking for left-overs"))
}

async fn try_leftovers(core: &Core, limit: u32) -> Result<Vec<LeftoverArtifact>, Fault> {
    let [rows] = core.database.read(|| [Query::new(LEFTOVERS).bind(i64::from(limit))]).await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut columns = Columns::of(row);
        let bytes: Vec<u8> = columns.take()?;
        let hash = hash_column("artifact_leftover", &bytes)?;
        found.push(LeftoverArtifact { hash, since: Timestamp(columns.take()?) });
    }
    Ok(found)
}

/// The bytes are gone, or belong to a new upload.
pub(super) async fn forget_leftover(core: &Core, hash: ArtifactHash) -> Result<(), StoreError> {
    let forgotten = core.database.change_once(|| [Query::new(FORGET_LEFTOVER).bind(hash.0.to_vec())]).await;
    forgotten.map(|_| ()).map_err(|fault| fault.during("forgetting a left-over"))
}
