//! The tables `artifact`, `awaited_artifact`, `tree` and `tree_file`.

use std::collections::{HashMap, HashSet};

use jobyard_model::{ArtifactHash, JobEvent, JobId, LeaseId};
use uuid::Uuid;

use super::Core;
use super::fault::Fault;
use super::load::{self, Columns};
use super::query::Query;
use super::session::{Rows, Session};
use super::{artifact_use, audit, writes};
use crate::encoding::{amount, column, from_json};
use crate::wake::Wakes;
use crate::{Actor, LeasedAttempt, NewTree, StoreError, TreeRecord};

const SIZE: &str = "SELECT size_bytes FROM artifact WHERE hash = $1";
// Against `submit`, which takes the same lock together with others: either it sees the artifact, or we see its job.
const LOCK: &str = "SELECT pg_advisory_xact_lock(key) FROM unnest($1::bigint[]) key ORDER BY key";
const INSERT: &str = "INSERT INTO artifact (hash, size_bytes, created_ms, used_ms)
    SELECT hash, size_bytes, jobyard_now(), jobyard_now() FROM unnest($1::bytea[], $2::bigint[]) AS new(hash, size_bytes)
    ON CONFLICT DO NOTHING RETURNING hash";
const SIZES: &str = "SELECT hash, size_bytes FROM artifact WHERE hash = ANY($1)";
const COUNT_KNOWN: &str = "SELECT count(*) FROM artifact WHERE hash = ANY($1) AND doomed_ms IS NULL";
const INSERT_TREE: &str = "INSERT INTO tree (hash, files, size_bytes) VALUES ($1, $2, $3)
    ON CONFLICT DO NOTHING RETURNING 1";
const INSERT_TREE_FILES: &str =
    "INSERT INTO tree_file (tree, file) SELECT $1, file FROM unnest($2::bytea[]) file";
const TREE: &str = "SELECT files, size_bytes FROM tree WHERE hash = $1";
const AWAITING: &str = "SELECT DISTINCT job_id FROM awaited_artifact WHERE hash = ANY($1)";
const LEASE: &str = "SELECT 1 FROM attempt_live WHERE lease_id = $1";
const STILL_AWAITING: &str = "SELECT DISTINCT job_id FROM awaited_artifact WHERE job_id = ANY($1)";
const IN_TREE: &str = "SELECT 1 FROM tree_file WHERE tree = $1 AND file = $2";
const FORGET: &str = "DELETE FROM awaited_artifact WHERE hash = ANY($1)";
const OF_LEASE: &str =
    "SELECT job.id, a.number, job.spec::text FROM attempt_live a JOIN job ON job.id = a.job_id
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

/// Artifacts noted in one transaction: each holds a lock of the server's table of them.
const NOTED_AT_ONCE: usize = 200;

/// Notes artifacts and frees the jobs that waited for them.
pub(super) async fn add(
    core: &Core,
    artifacts: &[(ArtifactHash, u64)],
    by: &Actor,
) -> Result<(), StoreError> {
    for some in artifacts.chunks(NOTED_AT_ONCE) {
        core.database.change("noting artifacts", |session| try_add(core, session, some, by)).await?;
    }
    Ok(())
}

async fn try_add(
    core: &Core,
    mut session: Session,
    artifacts: &[(ArtifactHash, u64)],
    by: &Actor,
) -> Result<(), Fault> {
    let hashes: Vec<ArtifactHash> = artifacts.iter().map(|(hash, _)| *hash).collect();
    let [_, inserted, awaiting] =
        session.begin([lock(&hashes), insert(artifacts), ask_awaiting(&hashes)]).await?;
    let new: HashSet<Vec<u8>> =
        inserted.iter().map(|row| Columns::of(row).take()).collect::<Result<_, _>>()?;
    let is_new = |hash: &ArtifactHash| new.contains(hash.0.as_slice());
    let known: Vec<ArtifactHash> = hashes.iter().copied().filter(|hash| !is_new(hash)).collect();
    if new.is_empty() {
        session.commit(vec![artifact_use::note_use(&known)]).await?;
        return Ok(());
    }
    let (mut queries, wakes) = free_waiting(core, &mut session, (&hashes, &awaiting), by).await?;
    let note = |(hash, size_bytes): &(ArtifactHash, u64)| {
        audit::Note::new(by, "artifact.add", &hash.to_string(), &format!("{size_bytes} bytes"))
    };
    let notes: Vec<_> = artifacts.iter().filter(|(hash, _)| is_new(hash)).map(note).collect();
    queries.extend([artifact_use::note_use(&known), audit::insert(&notes)]);
    session.commit(queries).await?;
    core.wakes.bump(wakes);
    Ok(())
}

fn lock(hashes: &[ArtifactHash]) -> Query {
    Query::new(LOCK).bind_each(hashes, lock_key)
}

fn ask_awaiting(hashes: &[ArtifactHash]) -> Query {
    Query::new(AWAITING).bind_each(hashes, |hash| hash.0.to_vec())
}

fn insert(artifacts: &[(ArtifactHash, u64)]) -> Query {
    Query::new(INSERT)
        .bind_each(artifacts, |(hash, _)| hash.0.to_vec())
        .bind_each(artifacts, |(_, size_bytes)| column(*size_bytes))
}

/// What is to be written for the jobs that waited for these artifacts.
async fn free_waiting(
    core: &Core,
    session: &mut Session,
    (hashes, awaiting): (&[ArtifactHash], &Rows),
    by: &Actor,
) -> Result<(Vec<Query>, Wakes), Fault> {
    let jobs: Vec<Uuid> = awaiting.iter().map(|row| Columns::of(row).take()).collect::<Result<_, _>>()?;
    let mut ledger = load::lock_more(session, jobs.clone(), core.leases).await?;
    // With the jobs locked: of two artifacts that arrive together, the later one sees that the other is there.
    let forget = Query::new(FORGET).bind_each(hashes, |hash| hash.0.to_vec());
    let [_, others] = session.query([forget, Query::new(STILL_AWAITING).bind(jobs.clone())]).await?;
    let still: HashSet<Uuid> = others.iter().map(|row| Columns::of(row).take()).collect::<Result<_, _>>()?;
    for job_id in jobs.into_iter().filter(|job_id| !still.contains(job_id)) {
        if let Err(denied) = ledger.apply(JobId(job_id), JobEvent::ArtifactArrived, &by.name) {
            tracing::debug!(%job_id, ?denied, "did not wait for its artifact any more");
        }
    }
    writes::of(ledger)
}

/// The sizes of artifacts, in order.
pub(super) async fn sizes(core: &Core, hashes: &[ArtifactHash]) -> Result<Vec<Option<u64>>, StoreError> {
    const DOING: &str = "looking up artifacts";
    let queries =
        || [artifact_use::note_use(hashes), Query::new(SIZES).bind_each(hashes, |hash| hash.0.to_vec())];
    let [_, rows] = core.database.change_once(queries).await.map_err(|fault| fault.during(DOING))?;
    let mut known: HashMap<Vec<u8>, u64> = HashMap::with_capacity(rows.len());
    for row in &rows {
        let mut columns = Columns::of(row);
        let read = || Ok::<(Vec<u8>, i64), Fault>((columns.take()?, columns.take()?));
        let (hash, size) = { read }().map_err(|fault| fault.during(DOING))?;
        known.insert(hash, amount(size));
    }
    Ok(hashes.iter().map(|hash| known.get(hash.0.as_slice()).copied()).collect())
}

/// Notes a tree; `false` when one of its artifacts is not known.
pub(super) async fn add_tree(core: &Core, tree: &NewTree, by: &Actor) -> Result<bool, StoreError> {
    core.database.change("noting a tree", |session| try_add_tree(core, session, tree, by)).await
}

async fn try_add_tree(core: &Core, mut session: Session, tree: &NewTree, by: &Actor) -> Result<bool, Fault> {
    let bytes = || tree.hash.0.to_vec();
    let files = i32::try_from(tree.files).unwrap_or(i32::MAX);
    let [known, _, noted, inserted, awaiting] = session
        .begin([
            Query::new(COUNT_KNOWN).bind_each(&tree.artifacts, |hash| hash.0.to_vec()),
            lock(&[tree.hash]),
            Query::new(INSERT_TREE).bind(bytes()).bind(files).bind(column(tree.size_bytes)),
            insert(&[(tree.hash, tree.manifest_bytes)]),
            ask_awaiting(&[tree.hash]),
        ])
        .await?;
    let known: i64 = known.first().map_or(Ok(0), |row| Columns::of(row).take())?;
    let is_whole = usize::try_from(known) == Ok(tree.artifacts.len());
    if !is_whole {
        session.roll_back().await?;
        return Ok(false);
    }
    if noted.is_empty() {
        session.commit(vec![artifact_use::note_use(&[tree.hash])]).await?;
        return Ok(true);
    }
    let (mut queries, wakes) = match inserted.is_empty() {
        false => free_waiting(core, &mut session, (&[tree.hash], &awaiting), by).await?,
        true => (Vec::new(), Wakes::default()),
    };
    queries.push(artifact_use::note_use(&[tree.hash]));
    let artifacts = Query::new(INSERT_TREE_FILES).bind(bytes());
    queries.push(artifacts.bind_each(&tree.artifacts, |hash| hash.0.to_vec()));
    let detail = format!("{} files, {} bytes", tree.files, tree.size_bytes);
    queries.push(audit::insert(&[audit::Note::new(by, "tree.add", &tree.hash.to_string(), &detail)]));
    session.commit(queries).await?;
    core.wakes.bump(wakes);
    Ok(true)
}

/// A known tree.
pub(super) async fn tree(core: &Core, hash: ArtifactHash) -> Result<Option<TreeRecord>, StoreError> {
    const DOING: &str = "looking up a tree";
    let rows = core.database.read(|| [Query::new(TREE).bind(hash.0.to_vec())]).await;
    let [rows] = rows.map_err(|fault| fault.during(DOING))?;
    let Some(row) = rows.first() else { return Ok(None) };
    let mut columns = Columns::of(row);
    let read = || Ok::<(i32, i64), Fault>((columns.take()?, columns.take()?));
    let (files, size_bytes) = { read }().map_err(|fault| fault.during(DOING))?;
    Ok(Some(TreeRecord { files: files.unsigned_abs(), size_bytes: amount(size_bytes) }))
}

/// Whether the live attempt with this lease needs this artifact.
pub(super) async fn lease_may_fetch(
    core: &Core,
    lease_id: LeaseId,
    hash: ArtifactHash,
) -> Result<bool, StoreError> {
    const DOING: &str = "looking up what a lease may fetch";
    let Some(LeasedAttempt { spec, .. }) = leased_attempt(core, lease_id).await? else { return Ok(false) };
    if spec.artifacts().any(|needed| needed == hash) {
        return Ok(true);
    }
    let Some(input) = spec.input() else { return Ok(false) };
    let in_tree = || [Query::new(IN_TREE).bind(input.0.to_vec()).bind(hash.0.to_vec())];
    let [rows] = core.database.read(in_tree).await.map_err(|fault| fault.during(DOING))?;
    Ok(!rows.is_empty())
}

/// The live attempt with this lease, and what its job says.
pub(super) async fn leased_attempt(
    core: &Core,
    lease_id: LeaseId,
) -> Result<Option<LeasedAttempt>, StoreError> {
    const DOING: &str = "looking up a lease";
    let rows = core.database.read(|| [Query::new(OF_LEASE).bind(lease_id.0)]).await;
    let [rows] = rows.map_err(|fault| fault.during(DOING))?;
    let Some(row) = rows.first() else { return Ok(None) };
    let mut columns = Columns::of(row);
    let read = || Ok::<(Uuid, i32, String), Fault>((columns.take()?, columns.take()?, columns.take()?));
    let (id, number, spec) = { read }().map_err(|fault| fault.during(DOING))?;
    let spec = from_json("job", id, &spec)?;
    Ok(Some(LeasedAttempt { job_id: JobId(id), attempt: number.unsigned_abs(), spec }))
}

/// Whether there is a live attempt with this lease.
pub(super) async fn lease_is_live(core: &Core, lease_id: LeaseId) -> Result<bool, StoreError> {
    let rows = core.database.read(|| [Query::new(LEASE).bind(lease_id.0)]).await;
    let [rows] = rows.map_err(|fault| fault.during("looking up a lease"))?;
    Ok(!rows.is_empty())
}
