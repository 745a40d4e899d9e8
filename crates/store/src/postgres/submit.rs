//! Accepting jobs: everything is checked before anything is written; calls that come together share a commit, each
//! all or none by itself.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use jobyard_model::lifecycle::{Job, Outstanding};
use jobyard_model::{ArtifactHash, JobId, ShapeId, Timestamp};
use uuid::Uuid;

use super::Core;
use super::fault::{Fault, Shared};
use super::load::{self, Columns};
use super::pools;
use super::query::Query;
use super::session::{Rows, Session};
use super::submission::{Answer, Call, visible};
use super::{artifact_use, audit, secrets, writes};
use crate::encoding::{Prepared, policy_of};
use crate::ledger::{Ledger, Terms};
use crate::rows::{Seat, number_column};
use crate::wake::Wakes;
use crate::{SubmitError, Submitted};

const FIND_KEYS: &str = "SELECT used.owner_id, used.key, used.hash, used.job_id
    FROM unnest($1::int[], $2::text[]) AS asked(owner_id, key) CROSS JOIN LATERAL (
      SELECT * FROM idempotency i WHERE i.owner_id = asked.owner_id AND i.key = asked.key OFFSET 0) used";
const FIND_JOBS: &str = "SELECT id FROM job WHERE id = ANY($1)";
// A doomed one is about to go: it is spared first, and then looked for again.
const FIND_ARTIFACTS: &str = "SELECT hash FROM artifact WHERE hash = ANY($1) AND doomed_ms IS NULL";
// Against `artifacts::add`, which takes the same lock alone: either it sees the waiting job, or we see the artifact.
const LOCK_ARTIFACTS: &str =
    "SELECT pg_advisory_xact_lock_shared(key) FROM unnest($1::bigint[]) key ORDER BY key";

// No ON CONFLICT: whoever used the same key or id in the meantime ends this transaction, and the second try sees it.
const INSERT_KEYS: &str = "INSERT INTO idempotency (owner_id, key, hash, job_id, created_ms)
    SELECT * FROM unnest($1::int[], $2::text[], $3::bytea[], $4::uuid[], $5::bigint[])
    AS new(owner_id, key, hash, job_id, created_ms) ORDER BY owner_id, key";
const INSERT_JOBS: &str = "INSERT INTO job (id, owner_id, pool_id, shape_id, name, kind, submitted_by, created_ms,
    idempotency_key, spec, labels, priority, max_retries)
  SELECT id, owner_id, pool_id, shape_id, name, kind, submitted_by, created_ms, idempotency_key, spec::json,
    labels::json, priority, max_retries
  FROM unnest($1::uuid[], $2::int[], $3::int[], $4::int[], $5::text[], $6::smallint[], $7::text[], $8::bigint[],
    $9::text[], $10::text[], $11::text[], $12::smallint[], $13::int[])
    AS new(id, owner_id, pool_id, shape_id, name, kind, submitted_by, created_ms, idempotency_key, spec, labels,
      priority, max_retries)";
const INSERT_LABELS: &str = "INSERT INTO job_label (key, value, job_id)
    SELECT * FROM unnest($1::text[], $2::text[], $3::uuid[])";
const INSERT_AWAITED: &str =
    "INSERT INTO awaited_artifact (hash, job_id) SELECT * FROM unnest($1::bytea[], $2::uuid[])";

/// Carries out calls in one transaction; when a statement refuses what is in one of them, each in its own.
pub(super) async fn carry_out(core: Arc<Core>, calls: Vec<Call>) -> Vec<Answer> {
    match together(&core, &calls).await {
        Ok(answers) => answers,
        Err(Fault::Statement(_) | Fault::Inconsistent { .. } | Fault::Full(_)) if calls.len() > 1 => {
            let mut answers = Vec::with_capacity(calls.len());
            for call in calls {
                match together(&core, &[call]).await {
                    Ok(answer) => answers.extend(answer),
                    Err(fault) => answers.push(Answer::Failed(fault)),
                }
            }
            answers
        }
        Err(fault) => calls.iter().map(|_| Answer::Failed(fault.clone())).collect(),
    }
}

async fn together(core: &Core, calls: &[Call]) -> Result<Vec<Answer>, Fault> {
    let named =
        calls.iter().flat_map(|call| call.jobs.iter()).map(|prepared| prepared.job.spec.pool.as_str());
    let pools = pools::ids(core, named).await?;
    let mut refused = BTreeMap::new();
    for (place, call) in calls.iter().enumerate() {
        let unknown = call.jobs.iter().position(|prepared| !pools.contains_key(&prepared.job.spec.pool));
        if let Some(index) = unknown {
            let pool = call.jobs[index].job.spec.pool.clone();
            let known = pools::names(core).await?;
            refused.insert(place, Answer::Refused(SubmitError::UnknownPool { index, pool, known }));
        }
    }
    let good = || calls.iter().enumerate().filter(|(place, _)| !refused.contains_key(place));
    let jobs = || good().flat_map(|(_, call)| call.jobs.iter());
    let mut numbers = Numbers { pools, ..Numbers::default() };
    if jobs().next().is_some() {
        let owners = jobs().map(|prepared| prepared.job.spec.owner.as_str());
        numbers.owners = core.interned.owners(&core.database, owners).await?;
        let shapes = jobs().map(|prepared| (prepared.shape.as_str(), prepared.digest));
        numbers.shapes = core.interned.shape_ids(&core.database, shapes).await?;
    }
    let good: Vec<&Call> = good().map(|(_, call)| call).collect();
    let accepted = core.database.try_change(|session| accept(core, session, &good, &numbers)).await?;
    let mut accepted = accepted.into_iter();
    let answer = |place| refused.remove(&place).or_else(|| accepted.next()).unwrap_or_else(Answer::unknown);
    Ok((0..calls.len()).map(answer).collect())
}

/// The numbers of the words in the calls.
#[derive(Debug, Default)]
struct Numbers {
    owners: HashMap<String, i32>,
    pools: HashMap<String, i32>,
    shapes: HashMap<[u8; 32], i32>,
}

impl Numbers {
    fn seat(&self, prepared: &Prepared) -> Result<Seat, Fault> {
        let spec = &prepared.job.spec;
        let known = || {
            Some(Seat {
                owner_id: *self.owners.get(&spec.owner)?,
                pool_id: *self.pools.get(&spec.pool)?,
                shape_id: ShapeId(*self.shapes.get(&prepared.digest)?),
                priority: spec.priority,
            })
        };
        // They were made a moment ago.
        known().ok_or_else(|| Fault::Again(Shared::new("an owner or a shape is gone again")))
    }
}

/// What the datastore knows of the calls already.
#[derive(Debug, Default)]
struct Known {
    keys: HashMap<(i32, String), (Vec<u8>, JobId)>,
    jobs: HashSet<Uuid>,
    artifacts: HashSet<Vec<u8>>,
    now: Timestamp,
}

/// What is to be written.
#[derive(Debug, Default)]
struct Accepted<'c> {
    new: Vec<(&'c Prepared, Seat)>,
    keys: HashMap<(i32, &'c str), (&'c [u8; 32], JobId)>,
    ids: HashSet<JobId>,
    audits: Vec<audit::Note>,
}

async fn accept(
    core: &Core,
    mut session: Session,
    calls: &[&Call],
    numbers: &Numbers,
) -> Result<Vec<Answer>, Fault> {
    let known = look_up(&mut session, calls, numbers).await?;
    let mut accepted = Accepted::default();
    let mut answers = Vec::with_capacity(calls.len());
    for call in calls {
        answers.push(take_in(core, &mut session, call, (numbers, &known), &mut accepted).await?);
    }
    if accepted.new.is_empty() {
        session.roll_back().await?;
        return Ok(answers);
    }
    let (queries, wakes) = statements(&accepted, &known, core)?;
    session.commit(queries).await?;
    core.wakes.bump(wakes);
    Ok(answers)
}

async fn look_up(session: &mut Session, calls: &[&Call], numbers: &Numbers) -> Result<Known, Fault> {
    let jobs = || calls.iter().flat_map(|call| call.jobs.iter());
    let mut keys: Vec<(i32, String)> = Vec::new();
    for prepared in jobs() {
        if let Some((key, _)) = &prepared.job.idempotency {
            keys.push((numbers.seat(prepared)?.owner_id, key.clone()));
        }
    }
    let mut artifacts: Vec<ArtifactHash> =
        jobs().flat_map(|prepared| prepared.job.spec.artifacts()).collect();
    artifacts.sort_unstable();
    artifacts.dedup();
    let [found_keys, found_jobs, found_artifacts, now] = session
        .begin([
            Query::new(FIND_KEYS)
                .bind_each(&keys, |(owner_id, _)| *owner_id)
                .bind_each(&keys, |(_, key)| key.clone()),
            Query::new(FIND_JOBS).bind(jobs().map(|prepared| prepared.job.id.0).collect::<Vec<_>>()),
            find_artifacts(&artifacts),
            Query::new(load::NOW),
        ])
        .await?;
    let mut known = Known { now: load::clock(&now)?, ..Known::default() };
    for row in &found_keys {
        let mut columns = Columns::of(row);
        let key = (columns.take()?, columns.take()?);
        known.keys.insert(key, (columns.take()?, JobId(columns.take()?)));
    }
    known.jobs = first_column(&found_jobs)?;
    known.artifacts = first_column(&found_artifacts)?;
    let missing: Vec<_> =
        artifacts.into_iter().filter(|hash| !known.artifacts.contains(hash.0.as_slice())).collect();
    if !missing.is_empty() {
        let lock = Query::new(LOCK_ARTIFACTS).bind_each(&missing, super::artifacts::lock_key);
        let spare = artifact_use::note_use(&missing);
        let [_, _, found] = session.query([lock, spare, find_artifacts(&missing)]).await?;
        known.artifacts.extend(first_column::<HashSet<Vec<u8>>, _>(&found)?);
    }
    Ok(known)
}

fn find_artifacts(hashes: &[ArtifactHash]) -> Query {
    Query::new(FIND_ARTIFACTS).bind_each(hashes, |hash| hash.0.to_vec())
}

fn first_column<C: FromIterator<T>, T: tokio_postgres::types::FromSqlOwned>(rows: &Rows) -> Result<C, Fault> {
    rows.iter().map(|row| Columns::of(row).take()).collect()
}

/// Checks one call after those before it, and takes its new jobs in. A refused call leaves nothing.
async fn take_in<'c>(
    core: &Core,
    session: &mut Session,
    call: &'c Call,
    (numbers, known): (&Numbers, &Known),
    accepted: &mut Accepted<'c>,
) -> Result<Answer, Fault> {
    let mut own = Accepted::default();
    let mut submitted = Vec::with_capacity(call.jobs.len());
    for (index, prepared) in call.jobs.iter().enumerate() {
        let job = &prepared.job;
        let seat = numbers.seat(prepared)?;
        if let Some((key, hash)) = &job.idempotency {
            let in_batch =
                own.keys.get(&(seat.owner_id, key)).or_else(|| accepted.keys.get(&(seat.owner_id, key)));
            let before = match in_batch {
                Some((hash, job_id)) => Some((hash.as_slice(), *job_id)),
                None => {
                    known.keys.get(&(seat.owner_id, key.clone())).map(|(hash, id)| (hash.as_slice(), *id))
                }
            };
            if let Some((used_for, job_id)) = before {
                if !job.has_hash(used_for) {
                    return Ok(Answer::Refused(SubmitError::KeyConflict { index, job_id }));
                }
                // The same call sent again after an unknown commit made the job itself.
                let created = job_id == job.id && in_batch.is_none() && own.ids.insert(job_id);
                submitted.push(Submitted { id: job_id, created });
                continue;
            }
            own.keys.insert((seat.owner_id, key), (hash, job.id));
        }
        let repeated = known.jobs.contains(&job.id.0) || accepted.ids.contains(&job.id);
        if own.ids.insert(job.id) && !repeated {
            own.new.push((prepared, seat));
        }
        submitted.push(Submitted { id: job.id, created: true });
    }
    if let Some(refused) = over_the_limit(core, session, &own).await? {
        return Ok(Answer::Refused(refused));
    }
    if let Some((first, _)) = own.new.first() {
        let detail = format!("{} jobs", own.new.len());
        let target = first.job.id.to_string();
        accepted.audits.push(audit::Note::new(&call.by, "job.submit", &target, &detail));
    }
    accepted.new.extend(own.new);
    accepted.keys.extend(own.keys);
    accepted.ids.extend(own.ids);
    Ok(Answer::Done(submitted))
}

async fn over_the_limit(
    core: &Core,
    session: &mut Session,
    own: &Accepted<'_>,
) -> Result<Option<SubmitError>, Fault> {
    let mut more: BTreeMap<i32, (u64, &str)> = BTreeMap::new();
    for (prepared, seat) in &own.new {
        more.entry(seat.owner_id).or_insert((0, &prepared.job.spec.owner)).0 += 1;
    }
    for (owner_id, (more, owner)) in more {
        if !core.grants.take(session, owner_id, more).await? {
            let limit = core.grants.limit();
            return Ok(Some(SubmitError::TooManyJobs { owner: owner.to_owned(), limit }));
        }
    }
    Ok(None)
}

fn statements(accepted: &Accepted<'_>, known: &Known, core: &Core) -> Result<(Vec<Query>, Wakes), Fault> {
    let mut ledger = Ledger::new(Terms { now: known.now, leases: core.leases });
    let mut awaited: Vec<(ArtifactHash, JobId)> = Vec::new();
    for (prepared, seat) in &accepted.new {
        let (id, spec) = (prepared.job.id, &prepared.job.spec);
        let known_before = awaited.len();
        let missing = spec.artifacts().filter(|hash| !known.artifacts.contains(hash.0.as_slice()));
        awaited.extend(missing.map(|hash| (hash, id)));
        let artifact_missing = awaited.len() > known_before;
        let outstanding = Outstanding { run_at: spec.run_at, artifact_missing };
        let created = Job::create(id, policy_of(spec), outstanding, known.now);
        ledger.create(created, *seat, &prepared.job.submitted_by);
    }
    let mut queries = vec![insert_jobs(&accepted.new, known.now)];
    queries.extend(insert_labels(&accepted.new));
    let keys: Vec<_> = accepted.keys.iter().collect();
    if !keys.is_empty() {
        queries.push(
            Query::new(INSERT_KEYS)
                .bind_each(&keys, |((owner_id, _), _)| *owner_id)
                .bind_each(&keys, |((_, key), _)| (*key).to_owned())
                .bind_each(&keys, |(_, (hash, _))| hash.to_vec())
                .bind_each(&keys, |(_, (_, job_id))| job_id.0)
                .bind_each(&keys, |_| known.now.0),
        );
    }
    let jobs = accepted.new.iter().map(|(prepared, _)| &prepared.job);
    let hidden = jobs.filter_map(|job| Some((job.id, &job.secrets.as_ref()?.sealed)));
    let hidden: Vec<_> = hidden.collect();
    if !hidden.is_empty() {
        queries.push(secrets::keep(&hidden));
    }
    let needs: Vec<_> = accepted
        .new
        .iter()
        .flat_map(|(prepared, _)| prepared.job.spec.artifacts().map(|hash| (hash, prepared.job.id)))
        .collect();
    if !needs.is_empty() {
        queries.push(artifact_use::note_needs(&needs));
    }
    if !awaited.is_empty() {
        queries.push(
            Query::new(INSERT_AWAITED)
                .bind_each(&awaited, |(hash, _)| hash.0.to_vec())
                .bind_each(&awaited, |(_, job_id)| job_id.0),
        );
    }
    let (more, wakes) = writes::of(ledger)?;
    queries.extend(more);
    queries.push(audit::insert(&accepted.audits));
    Ok((queries, wakes))
}

fn insert_jobs(new: &[(&Prepared, Seat)], now: Timestamp) -> Query {
    Query::new(INSERT_JOBS)
        .bind_each(new, |(prepared, _)| prepared.job.id.0)
        .bind_each(new, |(_, seat)| seat.owner_id)
        .bind_each(new, |(_, seat)| seat.pool_id)
        .bind_each(new, |(_, seat)| seat.shape_id.0)
        .bind_each(new, |(prepared, _)| visible(&prepared.job.spec.name))
        .bind_each(new, |(prepared, _)| prepared.job.spec.kind.code())
        .bind_each(new, |(prepared, _)| visible(&prepared.job.submitted_by))
        .bind_each(new, |_| now.0)
        .bind_each(new, |(prepared, _)| prepared.job.idempotency.as_ref().map(|(key, _)| key.clone()))
        .bind_each(new, |(prepared, _)| prepared.spec.clone())
        .bind_each(new, |(prepared, _)| prepared.labels.clone())
        .bind_each(new, |(_, seat)| i16::from(seat.priority.value()))
        .bind_each(new, |(prepared, _)| number_column(prepared.job.spec.max_retries))
}

fn insert_labels(new: &[(&Prepared, Seat)]) -> Option<Query> {
    let labels: Vec<_> = new
        .iter()
        .map(|(prepared, _)| &prepared.job)
        .flat_map(|job| job.spec.labels.iter().map(|(key, value)| (key, value, job.id.0)))
        .collect();
    let query = || {
        Query::new(INSERT_LABELS)
            .bind_each(&labels, |(key, _, _)| visible(key))
            .bind_each(&labels, |(_, value, _)| visible(value))
            .bind_each(&labels, |(_, _, job_id)| *job_id)
    };
    (!labels.is_empty()).then(query)
}
