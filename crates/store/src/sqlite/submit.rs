//! Accepting jobs: everything is checked before anything is written.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use jobyard_model::lifecycle::{Job, Outstanding};
use jobyard_model::{ArtifactHash, JobId, ShapeId};
use rusqlite::{OptionalExtension, params};

use super::fault::Fault;
use super::scope::Scope;
use super::{artifact_use, artifacts, audit, pools, secrets, writes};
use crate::encoding::{Prepared, policy_of};
use crate::ledger::Ledger;
use crate::rows::Seat;
use crate::{Actor, NewJob, SubmitError, Submitted};

/// Accepts all jobs or none. The inner error means that nothing was written.
pub(super) fn submit(
    scope: &Scope<'_>,
    jobs: &[Prepared],
    by: &Actor,
) -> Result<Result<Vec<Submitted>, SubmitError>, Fault> {
    let answers = match absorb(scope, jobs)? {
        Ok(answers) => answers,
        Err(refused) => return Ok(Err(refused)),
    };
    let new: Vec<&Prepared> =
        jobs.iter().zip(&answers).filter(|(_, answer)| answer.new).map(|(job, _)| job).collect();
    let pool_ids = match pool_ids(scope, jobs)? {
        Ok(pool_ids) => pool_ids,
        Err(refused) => return Ok(Err(refused)),
    };
    if let Some(refused) = over_the_limit(scope, &new)? {
        return Ok(Err(refused));
    }
    insert(scope, &new, &pool_ids, by)?;
    if let Some(first) = new.first() {
        audit::note(scope, by, "job.submit", &first.job.id.to_string(), &format!("{} jobs", new.len()))?;
    }
    Ok(Ok(answers.into_iter().map(|answer| answer.submitted).collect()))
}

struct Absorbed {
    submitted: Submitted,
    /// Has to be written.
    new: bool,
}

type Checked<T> = Result<T, SubmitError>;

/// Finds what was submitted before, by key or (an unknown commit, sent again) by id.
fn absorb(scope: &Scope<'_>, jobs: &[Prepared]) -> Result<Checked<Vec<Absorbed>>, Fault> {
    let mut keys: HashMap<(&str, &str), ([u8; 32], JobId)> = HashMap::new();
    let mut ids = HashSet::new();
    let mut answers = Vec::with_capacity(jobs.len());
    for (index, Prepared { job, .. }) in jobs.iter().enumerate() {
        let known = match &job.idempotency {
            Some((key, _)) => match keys.get(&(job.spec.owner.as_str(), key.as_str())) {
                Some(known) => Some(*known),
                None => used_key(scope, &job.spec.owner, key)?,
            },
            None => None,
        };
        if let (Some((hash, job_id)), Some((key, _))) = (known, &job.idempotency) {
            if !job.has_hash(&hash) {
                return Ok(Err(SubmitError::KeyConflict { index, job_id }));
            }
            keys.insert((&job.spec.owner, key), (hash, job_id));
            let submitted = Submitted { id: job_id, created: job_id == job.id && ids.insert(job_id) };
            answers.push(Absorbed { submitted, new: false });
            continue;
        }
        if let Some((key, hash)) = &job.idempotency {
            keys.insert((&job.spec.owner, key), (*hash, job.id));
        }
        let new = ids.insert(job.id) && !exists(scope, job.id)?;
        answers.push(Absorbed { submitted: Submitted { id: job.id, created: true }, new });
    }
    Ok(Ok(answers))
}

fn used_key(scope: &Scope<'_>, owner: &str, key: &str) -> Result<Option<([u8; 32], JobId)>, Fault> {
    let sql =
        "SELECT hash, job_id FROM owner CROSS JOIN idempotency USING (owner_id) WHERE name = ?1 AND key = ?2";
    let found = scope
        .statement(sql)?
        .query_row([owner, key], |row| Ok((row.get::<_, [u8; 32]>(0)?, JobId(row.get(1)?))));
    Ok(found.optional()?)
}

fn exists(scope: &Scope<'_>, job_id: JobId) -> Result<bool, Fault> {
    Ok(scope.statement("SELECT 1 FROM job WHERE id = ?1")?.exists([job_id.0])?)
}

fn pool_ids<'a>(scope: &Scope<'_>, jobs: &'a [Prepared]) -> Result<Checked<HashMap<&'a str, i32>>, Fault> {
    let mut pool_ids = HashMap::new();
    for (index, Prepared { job, .. }) in jobs.iter().enumerate() {
        let pool = job.spec.pool.as_str();
        if pool_ids.contains_key(pool) {
            continue;
        }
        let Some(pool_id) = pools::id(scope, pool)? else {
            let known = pools::names(scope)?;
            return Ok(Err(SubmitError::UnknownPool { index, pool: pool.to_owned(), known }));
        };
        pool_ids.insert(pool, pool_id);
    }
    Ok(Ok(pool_ids))
}

fn over_the_limit(scope: &Scope<'_>, new: &[&Prepared]) -> Result<Option<SubmitError>, Fault> {
    let mut more: HashMap<&str, u64> = HashMap::new();
    for Prepared { job, .. } in new {
        *more.entry(&job.spec.owner).or_default() += 1;
    }
    for (owner, more) in more {
        let unended: Option<i64> = scope
            .statement("SELECT unended FROM owner WHERE name = ?1")?
            .query_row([owner], |row| row.get(0))
            .optional()?;
        let unended = unended.map_or(0, crate::encoding::amount);
        if unended.saturating_add(more) > scope.max_unended_per_owner {
            let limit = scope.max_unended_per_owner;
            return Ok(Some(SubmitError::TooManyJobs { owner: owner.to_owned(), limit }));
        }
    }
    Ok(None)
}

fn insert(
    scope: &Scope<'_>,
    new: &[&Prepared],
    pool_ids: &HashMap<&str, i32>,
    by: &Actor,
) -> Result<(), Fault> {
    let mut ledger = Ledger::new(scope.terms);
    let (mut owners, mut shapes) = (HashMap::new(), HashMap::new());
    for prepared in new {
        let job = &prepared.job;
        let spec = &job.spec;
        let seat = Seat {
            owner_id: once(&mut owners, spec.owner.as_str(), |owner| owner_id(scope, owner))?,
            pool_id: pool_ids.get(spec.pool.as_str()).copied().unwrap_or_default(),
            shape_id: once(&mut shapes, prepared.digest, |_| shape_id(scope, prepared))?,
            priority: spec.priority,
        };
        let missing = missing_artifacts(scope, job)?;
        let outstanding = Outstanding { run_at: spec.run_at, artifact_missing: !missing.is_empty() };
        ledger.create(Job::create(job.id, policy_of(spec), outstanding, scope.now()), seat, &by.name);
        insert_job(scope, prepared, seat)?;
        secrets::keep(scope, job)?;
        for hash in spec.artifacts() {
            artifact_use::note_need(scope, hash, job.id)?;
            artifact_use::note_use(scope, hash)?;
        }
        for hash in missing {
            scope.execute(
                "INSERT INTO awaited_artifact (hash, job_id) VALUES (?1, ?2)",
                params![hash.0.as_slice(), job.id.0],
            )?;
        }
    }
    writes::carry_out(scope, ledger)
}

/// The number that goes with a word; looked up once a call.
fn once<W: Copy + Eq + Hash, N: Copy>(
    known: &mut HashMap<W, N>,
    word: W,
    look_up: impl FnOnce(W) -> Result<N, Fault>,
) -> Result<N, Fault> {
    match known.get(&word) {
        Some(number) => Ok(*number),
        None => Ok(*known.entry(word).or_insert(look_up(word)?)),
    }
}

fn missing_artifacts(scope: &Scope<'_>, job: &NewJob) -> Result<Vec<ArtifactHash>, Fault> {
    let mut missing = Vec::new();
    for hash in job.spec.artifacts() {
        if artifacts::size(scope, hash)?.is_none() {
            missing.push(hash);
        }
    }
    Ok(missing)
}

fn insert_job(scope: &Scope<'_>, prepared: &Prepared, seat: Seat) -> Result<(), Fault> {
    let job = &prepared.job;
    let key = job.idempotency.as_ref().map(|(key, _)| key.as_str());
    let sql = "INSERT INTO job (id, owner_id, pool_id, shape_id, name, kind, submitted_by, created_ms, \
        idempotency_key, spec, labels, priority, max_retries) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
    scope.execute(
        sql,
        params![
            job.id.0,
            seat.owner_id,
            seat.pool_id,
            seat.shape_id.0,
            job.spec.name,
            job.spec.kind.code(),
            job.submitted_by,
            scope.now().0,
            key,
            prepared.spec,
            prepared.labels,
            seat.priority.value(),
            job.spec.max_retries
        ],
    )?;
    for (label, value) in &job.spec.labels {
        let sql = "INSERT INTO job_label (key, value, job_id) VALUES (?1, ?2, ?3)";
        scope.execute(sql, params![label, value, job.id.0])?;
    }
    if let Some((key, hash)) = &job.idempotency {
        let sql =
            "INSERT INTO idempotency (owner_id, key, hash, job_id, created_ms) VALUES (?1, ?2, ?3, ?4, ?5)";
        let written = params![seat.owner_id, key, hash.as_slice(), job.id.0, scope.now().0];
        scope.execute(sql, written)?;
    }
    Ok(())
}

fn owner_id(scope: &Scope<'_>, name: &str) -> Result<i32, Fault> {
    let find = "SELECT owner_id FROM owner WHERE name = ?1";
    if let Some(owner_id) = scope.statement(find)?.query_row([name], |row| row.get(0)).optional()? {
        return Ok(owner_id);
    }
    let made = scope
        .statement("INSERT INTO owner (name) VALUES (?1) RETURNING owner_id")?
        .query_row([name], |row| row.get(0))?;
    Ok(made)
}

fn shape_id(scope: &Scope<'_>, Prepared { shape, digest, .. }: &Prepared) -> Result<ShapeId, Fault> {
    let find = "SELECT shape_id FROM shape WHERE digest = ?1";
    let found = scope.statement(find)?.query_row([digest.as_slice()], |row| row.get(0)).optional()?;
    if let Some(shape_id) = found {
        return Ok(ShapeId(shape_id));
    }
    let made = scope
        .statement("INSERT INTO shape (digest, spec) VALUES (?1, ?2) RETURNING shape_id")?
        .query_row(params![digest.as_slice(), shape], |row| row.get(0))?;
    Ok(ShapeId(made))
}
