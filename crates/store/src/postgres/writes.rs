//! Carries out what the ledger decided: set by set, each write guarded by what was read, each set counted by the
//! server before the COMMIT that was sent along with it.

use jobyard_model::node::SUSPEND_AFTER;
use jobyard_model::{NodeId, SessionId};

use super::artifact_use;
use super::fault::Fault;
use super::query::Query;
use crate::ledger::{JobUpdate, Ledger, NodeMark, Writes};
use crate::rows::{AttemptRow, EndRow, EventRow, HistoryRow, JobRow};
use crate::wake::{WakeTopic, Wakes};

// How each set finds its rows: for each item a look-up that stands by itself (`OFFSET 0`), then the place in the table.
// The hot tables are often vacuumed while they are empty, and a planner that believes they are still empty reads them
// whole for each item if it may choose. The rows are locked, so their places don't change.

const UPDATE_JOBS: &str = "WITH changed AS (
  UPDATE job_live SET status = new.status, wait_since_ms = new.wait_since_ms, due_ms = new.due_ms,
    artifact_missing = new.artifact_missing, start_deadline_ms = new.start_deadline_ms, attempt = new.attempt,
    lease_id = new.lease_id, intent = new.intent, retry_count = new.retry_count,
    platform_failures = new.platform_failures, platform_since_ms = new.platform_since_ms,
    unpaid_in_row = new.unpaid_in_row, evictions = new.evictions, avoid_node = new.avoid_node,
    started_ms = new.started_ms
  FROM unnest($2::uuid[], $3::smallint[], $4::int[], $5::uuid[], $6::smallint[], $7::bigint[], $8::bigint[],
    $9::boolean[], $10::bigint[], $11::int[], $12::uuid[], $13::smallint[], $14::int[], $15::int[], $16::bigint[],
    $17::int[], $18::int[], $19::uuid[], $20::bigint[])
    AS new(id, was_status, was_attempt, was_lease_id, status, wait_since_ms, due_ms, artifact_missing,
      start_deadline_ms, attempt, lease_id, intent, retry_count, platform_failures, platform_since_ms, unpaid_in_row,
      evictions, avoid_node, started_ms)
  CROSS JOIN LATERAL (SELECT j.ctid AS place FROM job_live j
    WHERE j.id = new.id AND j.status = new.was_status AND j.attempt = new.was_attempt
      AND j.lease_id IS NOT DISTINCT FROM new.was_lease_id OFFSET 0) found
  WHERE job_live.ctid = found.place
  RETURNING 1)
  SELECT jobyard_expect((SELECT count(*) FROM changed), $1, 'job_live updated')";

const DELETE_JOBS: &str = "WITH changed AS (
  DELETE FROM job_live USING unnest($2::uuid[], $3::smallint[], $4::int[], $5::uuid[])
    AS old(id, status, attempt, lease_id)
  CROSS JOIN LATERAL (SELECT j.ctid AS place FROM job_live j
    WHERE j.id = old.id AND j.status = old.status AND j.attempt = old.attempt
      AND j.lease_id IS NOT DISTINCT FROM old.lease_id OFFSET 0) found
  WHERE job_live.ctid = found.place
  RETURNING 1)
  SELECT jobyard_expect((SELECT count(*) FROM changed), $1, 'job_live deleted')";

const FORGET_AWAITED: &str = "DELETE FROM awaited_artifact WHERE job_id = ANY($1)";

const INSERT_JOBS: &str = "INSERT INTO job_live (id, status, kind, pool_id, shape_id, owner_id, lane, priority,
    wait_since_ms, due_ms, artifact_missing, start_deadline_ms, attempt, lease_id, intent, round, retry_count,
    platform_failures, platform_since_ms, unpaid_in_row, evictions, avoid_node, max_retries, backoff_ms,
    no_retry_exit_codes, start_within_ms, exclusive, started_ms)
  SELECT * FROM unnest($1::uuid[], $2::smallint[], $3::smallint[], $4::int[], $5::int[], $6::int[], $7::smallint[],
    $8::smallint[], $9::bigint[], $10::bigint[], $11::boolean[], $12::bigint[], $13::int[], $14::uuid[],
    $15::smallint[], $16::int[], $17::int[], $18::int[], $19::bigint[], $20::int[], $21::int[], $22::uuid[],
    $23::int[], $24::bigint[], $25::text[], $26::bigint[], $27::boolean[], $28::bigint[])";

const UPDATE_ATTEMPTS: &str = "WITH changed AS (
  UPDATE attempt_live SET phase = new.phase, accepted_ms = new.accepted_ms, started_ms = new.started_ms,
    lease_until_ms = new.lease_until_ms, heard_ms = new.heard_ms, service = new.service
  FROM unnest($2::uuid[], $3::int[], $4::uuid[], $5::smallint[], $6::bigint[], $7::bigint[], $8::bigint[],
    $9::bigint[], $10::text[])
    AS new(job_id, number, lease_id, phase, accepted_ms, started_ms, lease_until_ms, heard_ms, service)
  CROSS JOIN LATERAL (SELECT a.ctid AS place FROM attempt_live a
    WHERE a.job_id = new.job_id AND a.number = new.number AND a.lease_id = new.lease_id OFFSET 0) found
  WHERE attempt_live.ctid = found.place
  RETURNING 1)
  SELECT jobyard_expect((SELECT count(*) FROM changed), $1, 'attempt_live updated')";

const DELETE_ATTEMPTS: &str = "WITH changed AS (
  DELETE FROM attempt_live USING unnest($2::uuid[], $3::int[], $4::uuid[]) AS old(job_id, number, lease_id)
  CROSS JOIN LATERAL (SELECT a.ctid AS place FROM attempt_live a
    WHERE a.job_id = old.job_id AND a.number = old.number AND a.lease_id = old.lease_id OFFSET 0) found
  WHERE attempt_live.ctid = found.place
  RETURNING 1)
  SELECT jobyard_expect((SELECT count(*) FROM changed), $1, 'attempt_live deleted')";

const INSERT_ATTEMPTS: &str = "INSERT INTO attempt_live (job_id, number, lease_id, node_id, session, phase, placed_ms,
    accepted_ms, started_ms, lease_until_ms, heard_ms, cpu_milli, memory_bytes)
  SELECT * FROM unnest($1::uuid[], $2::int[], $3::uuid[], $4::uuid[], $5::uuid[], $6::smallint[], $7::bigint[],
    $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[])";

const INSERT_HISTORY: &str = "INSERT INTO attempt (job_id, number, round, phase, outcome, retryable, lease_id,
    node_id, session, placed_ms, accepted_ms, started_ms, lease_until_ms, ended_ms, fingerprint, \"end\", service,
    node_name)
  SELECT new.*, coalesce((SELECT node.name FROM node WHERE node.node_id = new.node_id), '')
  FROM unnest($1::uuid[], $2::int[], $3::int[], $4::smallint[], $5::smallint[], $6::boolean[], $7::uuid[],
    $8::uuid[], $9::uuid[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[],
    $16::text[], $17::text[]) AS new(job_id, number, round, phase, outcome, retryable, lease_id, node_id, session,
    placed_ms, accepted_ms, started_ms, lease_until_ms, ended_ms, fingerprint, end_json, service)";

const REOPEN: &str = "WITH changed AS (
  UPDATE job_end SET current = false FROM unnest($2::uuid[], $3::int[]) AS old(job_id, round)
  WHERE job_end.job_id = old.job_id AND job_end.round = old.round AND job_end.current
  RETURNING 1)
  SELECT jobyard_expect((SELECT count(*) FROM changed), $1, 'job_end reopened')";

const INSERT_ENDS: &str = "INSERT INTO job_end (job_id, round, status, intent, current, attempt, retry_count,
    platform_failures, unpaid_in_row, evictions, finished_ms, started_ms, platform_since_ms, reason)
  SELECT job_id, round, status, intent, true, attempt, retry_count, platform_failures, unpaid_in_row, evictions,
    finished_ms, started_ms, platform_since_ms, reason
  FROM unnest($1::uuid[], $2::int[], $3::smallint[], $4::smallint[], $5::int[], $6::int[], $7::int[], $8::int[],
    $9::int[], $10::bigint[], $11::bigint[], $12::bigint[], $13::text[])
    AS new(job_id, round, status, intent, attempt, retry_count, platform_failures, unpaid_in_row, evictions,
      finished_ms, started_ms, platform_since_ms, reason)";

// `place` keeps the order in which the numbers are drawn.
const INSERT_EVENTS: &str = "INSERT INTO event (at_ms, job_id, attempt, who, from_, to_, why)
  SELECT at_ms, job_id, attempt, who, from_, to_, why
  FROM unnest($1::bigint[], $2::uuid[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[])
    WITH ORDINALITY AS new(at_ms, job_id, attempt, who, from_, to_, why, place) ORDER BY place";

// In the order of ids, so that two batches that mark the same nodes don't wait for each other in a circle.
const LOCK_NODES: &str = "SELECT 1 FROM node WHERE node_id = ANY($1) ORDER BY node_id FOR NO KEY UPDATE";

const MARK_NODES: &str = "UPDATE node SET
    bad_in_row = CASE WHEN mark.reset THEN 0 ELSE node.bad_in_row END + mark.bad,
    suspended = CASE WHEN CASE WHEN mark.reset THEN 0 ELSE node.bad_in_row END + mark.bad >= $4
      THEN coalesce(node.suspended, $5) ELSE node.suspended END
  FROM unnest($1::uuid[], $2::boolean[], $3::int[], $6::uuid[]) AS mark(node_id, reset, bad, session)
  WHERE node.node_id = mark.node_id AND node.session = mark.session AND (mark.bad > 0 OR node.bad_in_row <> 0)";

/// The statements that write all that became of the ledger's jobs, and whom to wake once they are committed.
pub(super) fn of(ledger: Ledger) -> Result<(Vec<Query>, Wakes), Fault> {
    let mut writes = ledger.into_writes()?;
    let mut queries = Vec::new();
    jobs(&writes, &mut queries);
    attempts(&writes, &mut queries);
    ends(&writes, &mut queries);
    if !writes.events.is_empty() {
        queries.push(insert_events(&writes.events));
    }
    if writes.nodes.values().any(|mark| mark.bad > 0) {
        writes.wakes.add(WakeTopic::Placement);
    }
    mark_nodes(&writes, &mut queries);
    Ok((queries, writes.wakes))
}

fn jobs(writes: &Writes, queries: &mut Vec<Query>) {
    if !writes.updated_jobs.is_empty() {
        queries.push(update_jobs(&writes.updated_jobs));
    }
    if !writes.deleted_jobs.is_empty() {
        queries.push(delete_jobs(&writes.deleted_jobs));
    }
    let awaiting: Vec<_> =
        writes.deleted_jobs.iter().filter(|row| row.artifact_missing).map(|row| row.id).collect();
    if !awaiting.is_empty() {
        queries.push(Query::new(FORGET_AWAITED).bind(awaiting));
    }
    if !writes.inserted_jobs.is_empty() {
        queries.push(insert_jobs(&writes.inserted_jobs));
    }
}

fn attempts(writes: &Writes, queries: &mut Vec<Query>) {
    if !writes.updated_attempts.is_empty() {
        queries.push(update_attempts(&writes.updated_attempts));
    }
    if !writes.deleted_attempts.is_empty() {
        queries.push(delete_attempts(&writes.deleted_attempts));
    }
    if !writes.inserted_attempts.is_empty() {
        queries.push(insert_attempts(&writes.inserted_attempts));
    }
    if !writes.history.is_empty() {
        queries.push(insert_history(&writes.history));
        if !writes.outputs.is_empty() {
            queries.push(artifact_use::note_needs(&writes.outputs));
        }
    }
}

fn ends(writes: &Writes, queries: &mut Vec<Query>) {
    if !writes.reopened.is_empty() {
        let reopen = Query::new(REOPEN)
            .bind(counted(&writes.reopened))
            .bind_each(&writes.reopened, |(job_id, _)| job_id.0)
            .bind_each(&writes.reopened, |(_, round)| *round);
        queries.push(reopen);
    }
    if !writes.ends.is_empty() {
        queries.push(insert_ends(&writes.ends));
    }
}

fn update_jobs(rows: &[JobUpdate]) -> Query {
    Query::new(UPDATE_JOBS)
        .bind(counted(rows))
        .bind_each(rows, |row| row.before.id)
        .bind_each(rows, |row| row.before.status)
        .bind_each(rows, |row| row.before.attempt)
        .bind_each(rows, |row| row.before.lease_id)
        .bind_each(rows, |row| row.after.status)
        .bind_each(rows, |row| row.after.wait_since_ms)
        .bind_each(rows, |row| row.after.due_ms)
        .bind_each(rows, |row| row.after.artifact_missing)
        .bind_each(rows, |row| row.after.start_deadline_ms)
        .bind_each(rows, |row| row.after.attempt)
        .bind_each(rows, |row| row.after.lease_id)
        .bind_each(rows, |row| row.after.intent)
        .bind_each(rows, |row| row.after.retry_count)
        .bind_each(rows, |row| row.after.platform_failures)
        .bind_each(rows, |row| row.after.platform_since_ms)
        .bind_each(rows, |row| row.after.unpaid_in_row)
        .bind_each(rows, |row| row.after.evictions)
        .bind_each(rows, |row| row.after.avoid_node)
        .bind_each(rows, |row| row.after.started_ms)
}

fn delete_jobs(rows: &[JobRow]) -> Query {
    Query::new(DELETE_JOBS)
        .bind(counted(rows))
        .bind_each(rows, |row| row.id)
        .bind_each(rows, |row| row.status)
        .bind_each(rows, |row| row.attempt)
        .bind_each(rows, |row| row.lease_id)
}

fn insert_jobs(rows: &[JobRow]) -> Query {
    Query::new(INSERT_JOBS)
        .bind_each(rows, |row| row.id)
        .bind_each(rows, |row| row.status)
        .bind_each(rows, |row| row.kind)
        .bind_each(rows, |row| row.pool_id)
        .bind_each(rows, |row| row.shape_id)
        .bind_each(rows, |row| row.owner_id)
        .bind_each(rows, |row| row.lane)
        .bind_each(rows, |row| row.priority)
        .bind_each(rows, |row| row.wait_since_ms)
        .bind_each(rows, |row| row.due_ms)
        .bind_each(rows, |row| row.artifact_missing)
        .bind_each(rows, |row| row.start_deadline_ms)
        .bind_each(rows, |row| row.attempt)
        .bind_each(rows, |row| row.lease_id)
        .bind_each(rows, |row| row.intent)
        .bind_each(rows, |row| row.round)
        .bind_each(rows, |row| row.retry_count)
        .bind_each(rows, |row| row.platform_failures)
        .bind_each(rows, |row| row.platform_since_ms)
        .bind_each(rows, |row| row.unpaid_in_row)
        .bind_each(rows, |row| row.evictions)
        .bind_each(rows, |row| row.avoid_node)
        .bind_each(rows, |row| row.max_retries)
        .bind_each(rows, |row| row.backoff_ms)
        .bind_each(rows, |row| row.no_retry_exit_codes.clone())
        .bind_each(rows, |row| row.start_within_ms)
        .bind_each(rows, |row| row.exclusive)
        .bind_each(rows, |row| row.started_ms)
}

fn update_attempts(rows: &[AttemptRow]) -> Query {
    Query::new(UPDATE_ATTEMPTS)
        .bind(counted(rows))
        .bind_each(rows, |row| row.job_id)
        .bind_each(rows, |row| row.number)
        .bind_each(rows, |row| row.lease_id)
        .bind_each(rows, |row| row.phase)
        .bind_each(rows, |row| row.accepted_ms)
        .bind_each(rows, |row| row.started_ms)
        .bind_each(rows, |row| row.lease_until_ms)
        .bind_each(rows, |row| row.heard_ms)
        .bind_each(rows, |row| row.service.clone())
}

fn delete_attempts(rows: &[AttemptRow]) -> Query {
    Query::new(DELETE_ATTEMPTS)
        .bind(counted(rows))
        .bind_each(rows, |row| row.job_id)
        .bind_each(rows, |row| row.number)
        .bind_each(rows, |row| row.lease_id)
}

fn insert_attempts(rows: &[AttemptRow]) -> Query {
    Query::new(INSERT_ATTEMPTS)
        .bind_each(rows, |row| row.job_id)
        .bind_each(rows, |row| row.number)
        .bind_each(rows, |row| row.lease_id)
        .bind_each(rows, |row| row.node_id)
        .bind_each(rows, |row| row.session)
        .bind_each(rows, |row| row.phase)
        .bind_each(rows, |row| row.placed_ms)
        .bind_each(rows, |row| row.accepted_ms)
        .bind_each(rows, |row| row.started_ms)
        .bind_each(rows, |row| row.lease_until_ms)
        .bind_each(rows, |row| row.heard_ms)
        .bind_each(rows, |row| row.cpu_milli)
        .bind_each(rows, |row| row.memory_bytes)
}

fn insert_history(rows: &[HistoryRow]) -> Query {
    Query::new(INSERT_HISTORY)
        .bind_each(rows, |row| row.job_id)
        .bind_each(rows, |row| row.number)
        .bind_each(rows, |row| row.round)
        .bind_each(rows, |row| row.phase)
        .bind_each(rows, |row| row.outcome)
        .bind_each(rows, |row| row.retryable)
        .bind_each(rows, |row| row.lease_id)
        .bind_each(rows, |row| row.node_id)
        .bind_each(rows, |row| row.session)
        .bind_each(rows, |row| row.placed_ms)
        .bind_each(rows, |row| row.accepted_ms)
        .bind_each(rows, |row| row.started_ms)
        .bind_each(rows, |row| row.lease_until_ms)
        .bind_each(rows, |row| row.ended_ms)
        .bind_each(rows, |row| row.fingerprint)
        .bind_each(rows, |row| row.end_json.clone())
        .bind_each(rows, |row| row.service.clone())
}

fn insert_ends(rows: &[EndRow]) -> Query {
    Query::new(INSERT_ENDS)
        .bind_each(rows, |row| row.job_id)
        .bind_each(rows, |row| row.round)
        .bind_each(rows, |row| row.status)
        .bind_each(rows, |row| row.intent)
        .bind_each(rows, |row| row.attempt)
        .bind_each(rows, |row| row.retry_count)
        .bind_each(rows, |row| row.platform_failures)
        .bind_each(rows, |row| row.unpaid_in_row)
        .bind_each(rows, |row| row.evictions)
        .bind_each(rows, |row| row.finished_ms)
        .bind_each(rows, |row| row.started_ms)
        .bind_each(rows, |row| row.platform_since_ms)
        .bind_each(rows, |row| row.reason.clone())
}

fn insert_events(rows: &[EventRow]) -> Query {
    Query::new(INSERT_EVENTS)
        .bind_each(rows, |row| row.at_ms)
        .bind_each(rows, |row| row.job_id)
        .bind_each(rows, |row| row.attempt)
        .bind_each(rows, |row| row.who.clone())
        .bind_each(rows, |row| row.from)
        .bind_each(rows, |row| row.to)
        .bind_each(rows, |row| row.why.clone())
}

fn mark_nodes(writes: &Writes, queries: &mut Vec<Query>) {
    let marks: Vec<((NodeId, SessionId), NodeMark)> =
        writes.nodes.iter().map(|(node, mark)| (*node, *mark)).collect();
    if marks.is_empty() {
        return;
    }
    if marks.len() > 1 {
        queries.push(Query::new(LOCK_NODES).bind_each(&marks, |((node_id, _), _)| node_id.0));
    }
    let mark = Query::new(MARK_NODES)
        .bind_each(&marks, |((node_id, _), _)| node_id.0)
        .bind_each(&marks, |(_, mark)| mark.reset)
        .bind_each(&marks, |(_, mark)| crate::rows::number_column(mark.bad))
        .bind(crate::rows::number_column(SUSPEND_AFTER))
        .bind(format!("{SUSPEND_AFTER} attempts in a row did not start here"))
        .bind_each(&marks, |((_, session), _)| session.0);
    queries.push(mark);
}

/// How many rows a set is to change.
fn counted<T>(rows: &[T]) -> i64 {
    i64::try_from(rows.len()).unwrap_or(i64::MAX)
}
