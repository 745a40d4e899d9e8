//! Carries out what the ledger decided: each write guarded by what was read, each counted.

use std::collections::BTreeMap;

use jobyard_model::node::SUSPEND_AFTER;
use jobyard_model::{JobId, NodeId, SessionId};
use rusqlite::params;

use super::artifact_use;
use super::fault::Fault;
use super::scope::Scope;
use crate::encoding::inconsistent;
use crate::ledger::{JobUpdate, Ledger, NodeMark, Writes};
use crate::rows::{AttemptRow, EndRow, EventRow, HistoryRow, JobRow};
use crate::wake::WakeTopic;

const INSERT_JOB: &str = "INSERT INTO job_live (id, status, kind, pool_id, shape_id, owner_id, lane, priority, \
    wait_since_ms, due_ms, artifact_missing, start_deadline_ms, attempt, lease_id, intent, round, retry_count, \
    platform_failures, platform_since_ms, unpaid_in_row, evictions, avoid_node, max_retries, backoff_ms, \
    no_retry_exit_codes, start_within_ms, exclusive, started_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, \
    ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28)";

const UPDATE_JOB: &str = "UPDATE job_live SET status = ?5, wait_since_ms = ?6, due_ms = ?7, artifact_missing = ?8, \
    start_deadline_ms = ?9, attempt = ?10, lease_id = ?11, intent = ?12, retry_count = ?13, \
    platform_failures = ?14, platform_since_ms = ?15, unpaid_in_row = ?16, evictions = ?17, avoid_node = ?18, \
    started_ms = ?19 WHERE id = ?1 AND status = ?2 AND attempt = ?3 AND lease_id IS ?4";

const DELETE_JOB: &str =
    "DELETE FROM job_live WHERE id = ?1 AND status = ?2 AND attempt = ?3 AND lease_id IS ?4";

const INSERT_ATTEMPT: &str = "INSERT INTO attempt_live (job_id, number, lease_id, node_id, session, phase, \
    placed_ms, accepted_ms, started_ms, lease_until_ms, heard_ms, cpu_milli, memory_bytes) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";

const UPDATE_ATTEMPT: &str = "UPDATE attempt_live SET phase = ?4, accepted_ms = ?5, started_ms = ?6, \
    lease_until_ms = ?7, heard_ms = ?8, service = ?9 WHERE job_id = ?1 AND number = ?2 AND lease_id = ?3";

const DELETE_ATTEMPT: &str = "DELETE FROM attempt_live WHERE job_id = ?1 AND number = ?2 AND lease_id = ?3";

const INSERT_HISTORY: &str = "INSERT INTO attempt (job_id, number, round, phase, outcome, retryable, lease_id, \
    node_id, session, node_name, placed_ms, accepted_ms, started_ms, lease_until_ms, ended_ms, fingerprint, \"end\", \
    service) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, coalesce((SELECT name FROM node WHERE node_id = ?8), ''), \
    ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";

const INSERT_END: &str = "INSERT INTO job_end (job_id, round, status, intent, current, attempt, retry_count, \
    platform_failures, unpaid_in_row, evictions, finished_ms, started_ms, platform_since_ms, reason) \
    VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";

const INSERT_EVENT: &str = "INSERT INTO event (at_ms, job_id, attempt, who, from_, to_, why) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

/// Writes all that became of the ledger's jobs.
pub(super) fn carry_out(scope: &Scope<'_>, ledger: Ledger) -> Result<(), Fault> {
    let writes = ledger.into_writes()?;
    if writes.is_empty() {
        return Ok(());
    }
    jobs(scope, &writes)?;
    attempts(scope, &writes)?;
    for (job_id, round) in &writes.reopened {
        reopen(scope, *job_id, *round)?;
    }
    for end in &writes.ends {
        insert_end(scope, end)?;
    }
    for event in &writes.events {
        insert_event(scope, event)?;
    }
    for (node, mark) in &writes.nodes {
        mark_node(scope, *node, *mark)?;
    }
    scope.wake_all(writes.wakes);
    Ok(())
}

fn jobs(scope: &Scope<'_>, writes: &Writes) -> Result<(), Fault> {
    for update in &writes.updated_jobs {
        update_job(scope, update)?;
    }
    for row in &writes.deleted_jobs {
        delete_job(scope, row)?;
    }
    for row in &writes.inserted_jobs {
        insert_job(scope, row)?;
    }
    let mut unended: BTreeMap<i32, i64> = BTreeMap::new();
    writes.deleted_jobs.iter().for_each(|row| *unended.entry(row.owner_id).or_default() -= 1);
    writes.inserted_jobs.iter().for_each(|row| *unended.entry(row.owner_id).or_default() += 1);
    for (owner_id, change) in unended {
        let sql = "UPDATE owner SET unended = unended + ?2 WHERE owner_id = ?1";
        expect_one(scope.execute(sql, params![owner_id, change])?, "owner", owner_id)?;
    }
    Ok(())
}

fn attempts(scope: &Scope<'_>, writes: &Writes) -> Result<(), Fault> {
    for row in &writes.updated_attempts {
        let changed = scope.execute(
            UPDATE_ATTEMPT,
            params![
                row.job_id,
                row.number,
                row.lease_id,
                row.phase,
                row.accepted_ms,
                row.started_ms,
                row.lease_until_ms,
                row.heard_ms,
                row.service
            ],
        )?;
        expect_one(changed, "attempt_live", row.job_id)?;
    }
    for row in &writes.deleted_attempts {
        let changed = scope.execute(DELETE_ATTEMPT, params![row.job_id, row.number, row.lease_id])?;
        expect_one(changed, "attempt_live", row.job_id)?;
    }
    for row in &writes.inserted_attempts {
        insert_attempt(scope, row)?;
    }
    for row in &writes.history {
        insert_history(scope, row)?;
    }
    for (hash, job_id) in &writes.outputs {
        artifact_use::note_need(scope, *hash, *job_id)?;
    }
    Ok(())
}

fn insert_job(scope: &Scope<'_>, row: &JobRow) -> Result<(), Fault> {
    scope.execute(
        INSERT_JOB,
        params![
            row.id,
            row.status,
            row.kind,
            row.pool_id,
            row.shape_id,
            row.owner_id,
            row.lane,
            row.priority,
            row.wait_since_ms,
            row.due_ms,
            row.artifact_missing,
            row.start_deadline_ms,
            row.attempt,
            row.lease_id,
            row.intent,
            row.round,
            row.retry_count,
            row.platform_failures,
            row.platform_since_ms,
            row.unpaid_in_row,
            row.evictions,
            row.avoid_node,
            row.max_retries,
            row.backoff_ms,
            row.no_retry_exit_codes,
            row.start_within_ms,
            row.exclusive,
            row.started_ms
        ],
    )?;
    Ok(())
}

fn update_job(scope: &Scope<'_>, JobUpdate { before, after }: &JobUpdate) -> Result<(), Fault> {
    let changed = scope.execute(
        UPDATE_JOB,
        params![
            before.id,
            before.status,
            before.attempt,
            before.lease_id,
            after.status,
            after.wait_since_ms,
            after.due_ms,
            after.artifact_missing,
            after.start_deadline_ms,
            after.attempt,
            after.lease_id,
            after.intent,
            after.retry_count,
            after.platform_failures,
            after.platform_since_ms,
            after.unpaid_in_row,
            after.evictions,
            after.avoid_node,
            after.started_ms
        ],
    )?;
    expect_one(changed, "job_live", before.id)
}

fn delete_job(scope: &Scope<'_>, row: &JobRow) -> Result<(), Fault> {
    let changed = scope.execute(DELETE_JOB, params![row.id, row.status, row.attempt, row.lease_id])?;
    expect_one(changed, "job_live", row.id)?;
    if row.artifact_missing {
        scope.execute("DELETE FROM awaited_artifact WHERE job_id = ?1", [row.id])?;
    }
    Ok(())
}

fn insert_attempt(scope: &Scope<'_>, row: &AttemptRow) -> Result<(), Fault> {
    scope.execute(
        INSERT_ATTEMPT,
        params![
            row.job_id,
            row.number,
            row.lease_id,
            row.node_id,
            row.session,
            row.phase,
            row.placed_ms,
            row.accepted_ms,
            row.started_ms,
            row.lease_until_ms,
            row.heard_ms,
            row.cpu_milli,
            row.memory_bytes
        ],
    )?;
    Ok(())
}

fn insert_history(scope: &Scope<'_>, row: &HistoryRow) -> Result<(), Fault> {
    scope.execute(
        INSERT_HISTORY,
        params![
            row.job_id,
            row.number,
            row.round,
            row.phase,
            row.outcome,
            row.retryable,
            row.lease_id,
            row.node_id,
            row.session,
            row.placed_ms,
            row.accepted_ms,
            row.started_ms,
            row.lease_until_ms,
            row.ended_ms,
            row.fingerprint,
            row.end_json,
            row.service
        ],
    )?;
    Ok(())
}

fn reopen(scope: &Scope<'_>, job_id: JobId, round: i32) -> Result<(), Fault> {
    let sql = "UPDATE job_end SET current = 0 WHERE job_id = ?1 AND round = ?2 AND current";
    let changed = scope.execute(sql, params![job_id.0, round])?;
    expect_one(changed, "job_end", job_id)
}

fn insert_end(scope: &Scope<'_>, row: &EndRow) -> Result<(), Fault> {
    scope.execute(
        INSERT_END,
        params![
            row.job_id,
            row.round,
            row.status,
            row.intent,
            row.attempt,
            row.retry_count,
            row.platform_failures,
            row.unpaid_in_row,
            row.evictions,
            row.finished_ms,
            row.started_ms,
            row.platform_since_ms,
            row.reason
        ],
    )?;
    Ok(())
}

fn insert_event(scope: &Scope<'_>, row: &EventRow) -> Result<(), Fault> {
    scope.execute(
        INSERT_EVENT,
        params![row.at_ms, row.job_id, row.attempt, row.who, row.from, row.to, row.why],
    )?;
    Ok(())
}

/// Counts failures to launch in a row, and suspends the node at [`SUSPEND_AFTER`].
fn mark_node(
    scope: &Scope<'_>,
    (node_id, session): (NodeId, SessionId),
    mark: NodeMark,
) -> Result<(), Fault> {
    if mark.reset {
        let sql = "UPDATE node SET bad_in_row = 0 WHERE node_id = ?1 AND session = ?2 AND bad_in_row <> 0";
        scope.execute(sql, [node_id.0, session.0])?;
    }
    if mark.bad > 0 {
        let why = format!("{SUSPEND_AFTER} attempts in a row did not start here");
        let sql = "UPDATE node SET bad_in_row = bad_in_row + ?2, suspended = CASE WHEN bad_in_row + ?2 >= ?3 \
            THEN coalesce(suspended, ?4) ELSE suspended END WHERE node_id = ?1 AND session = ?5";
        scope.execute(sql, params![node_id.0, mark.bad, SUSPEND_AFTER, why, session.0])?;
        scope.wake(WakeTopic::Placement);
    }
    Ok(())
}

/// With one writer a count other than one is a defect; the call is rolled back.
pub(super) fn expect_one(
    changed: usize,
    table: &'static str,
    id: impl std::fmt::Display,
) -> Result<(), Fault> {
    match changed {
        1 => Ok(()),
        _ => Err(inconsistent(table, id, format!("{changed} rows matched what was read")).into()),
    }
}
