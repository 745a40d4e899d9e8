//! The tables `artifact` and `awaited_artifact`.

use jobyard_model::{ArtifactHash, BinaryUrl, JobEvent, JobId, JobSpec, LeaseId};
use uuid::Uuid;

use super::Core;
use super::fault::Fault;
use super::load::{self, Columns};
use super::query::Query;
use super::session::Session;
use super::{audit, writes};
use crate::encoding::{amount, column, from_json};
use crate::{Actor, StoreError};

const SIZE: &str = "SELECT size_bytes FROM artifact WHERE hash = $1";
// Against `submit`, which takes the same lock together with others: either it sees the artifact, or we see its job.
const LOCK: &str = "SELECT pg_advisory_xact_lock($1)";
const INSERT: &str = "INSERT INTO artifact (hash, size_bytes, created_ms) VALUES ($1, $2, jobyard_now())
    ON CONFLICT DO NOTHING RETURNING 1";
const AWAITING: &str = "SELECT job_id FROM awaited_artifact WHERE hash = $1";
const FORGET: &str = "DELETE FROM awaited_artifact WHERE hash = $1";
const OF_LEASE: &str = "SELECT job.id, job.spec::text FROM attempt_live a JOIN job ON job.id = a.job_id
    WHERE a.lease_id = $1";

/// The advisory lock that stands for an artifact which may not be there yet.
pub(super) fn lock_key(hash: &ArtifactHash) -> i64 {
    let [first, ..] = hash.0.as_chunks().0 else { return 0 };
    i64::from_be_bytes(*first)
}

/// The size of a known artifact.
pub(super) async fn size(core: &Core, hash: ArtifactHash) -> Result<Option<u64>, StoreError> {
    const DOING: &str = "looking up an artifact";
    let rows = core.database.read(|| [Query::new(SIZE).bind(hash.0.to_vec())]).await;
    let [rows] = rows.map_err(|fault| fault.during(DOING))?;
    let size = rows.first().map(|row| Columns::of(row).take()).transpose();
    Ok(size.map_err(|fault| fault.during(DOING))?.map(amount))
}

/// Notes an artifact and frees the jobs that waited for it.
pub(super) async fn add(
    core: &Core,
    hash: ArtifactHash,
    size_bytes: u64,
    by: &Actor,
) -> Result<(), StoreError> {
    let added =
        core.database.change("noting an artifact", |session| try_add(core, session, (hash, size_bytes), by));
    added.await
}

async fn try_add(
    core: &Core,
    mut session: Session,
    (hash, size_bytes): (ArtifactHash, u64),
    by: &Actor,
) -> Result<(), Fault> {
    let bytes = || hash.0.to_vec();
    let [_, inserted, awaiting] = session
        .begin([
            Query::new(LOCK).bind(lock_key(&hash)),
            Query::new(INSERT).bind(bytes()).bind(column(size_bytes)),
            Query::new(AWAITING).bind(bytes()),
        ])
        .await?;
    if inserted.is_empty() {
        return session.roll_back().await;
    }
    let jobs: Vec<Uuid> = awaiting.iter().map(|row| Columns::of(row).take()).collect::<Result<_, _>>()?;
    let mut ledger = load::lock_more(&mut session, jobs.clone(), core.leases).await?;
    for job_id in jobs {
        if let Err(denied) = ledger.apply(JobId(job_id), JobEvent::ArtifactArrived, &by.name) {
            tracing::debug!(%job_id, ?denied, "did not wait for its artifact any more");
        }
    }
    let (mut queries, wakes) = writes::of(ledger)?;
    queries.push(Query::new(FORGET).bind(bytes()));
    let note = audit::Note::new(by, "artifact.add", &hash.to_string(), &format!("{size_bytes} bytes"));
    queries.push(audit::insert(&[note]));
    session.commit(queries).await?;
    core.wakes.bump(wakes);
    Ok(())
}

/// The executable that the live attempt with this lease may fetch.
pub(super) async fn of_lease(core: &Core, lease_id: LeaseId) -> Result<Option<ArtifactHash>, StoreError> {
    const DOING: &str = "looking up what a lease may fetch";
    let rows = core.database.read(|| [Query::new(OF_LEASE).bind(lease_id.0)]).await;
    let [rows] = rows.map_err(|fault| fault.during(DOING))?;
    let Some(row) = rows.first() else { return Ok(None) };
    let mut columns = Columns::of(row);
    let read = || Ok::<(Uuid, String), Fault>((columns.take()?, columns.take()?));
    let (id, spec) = { read }().map_err(|fault| fault.during(DOING))?;
    let spec: JobSpec = from_json("job", id, &spec)?;
    Ok(match spec.binary {
        Some(BinaryUrl::Artifact(hash)) => Some(hash),
        Some(BinaryUrl::File(_)) | None => None,
    })
}
