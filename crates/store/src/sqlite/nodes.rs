//! The table `node`: registration, heartbeats, gates.

use jobyard_model::node::{NodeGate, NodeRegistration};
use jobyard_model::{AttemptEnd, Intent, JobEvent, NodeId, NodeState, Resources, SessionId, Timestamp};
use rusqlite::{OptionalExtension, Row, params};
use uuid::Uuid;

use super::fault::Fault;
use super::scope::Scope;
use super::{audit, load, pools, writes};
use crate::encoding::{amount, clean, column, from_json, inconsistent, to_json};
use crate::ledger::{Ledger, WORKER};
use crate::wake::WakeTopic;
use crate::{Actor, HeartbeatAnswer, NodeHeartbeat, RegisterAnswer};

/// What a registration is measured against.
struct Known {
    session: Uuid,
    previous_session: Option<Uuid>,
    boot_id: String,
    previous_boot_id: Option<String>,
}

/// A worker's start.
pub(super) fn register(scope: &Scope<'_>, node: &NodeRegistration) -> Result<RegisterAnswer, Fault> {
    let Some(pool_id) = pools::id(scope, &node.pool)? else {
        return Ok(RegisterAnswer::UnknownPool { known: pools::names(scope)? });
    };
    let known = known(scope, node.node_id)?;
    if known.as_ref().is_some_and(|known| known.previous_session == Some(node.session.0)) {
        return Ok(RegisterAnswer::Superseded);
    }
    let mut ended = 0;
    match &known {
        None => insert(scope, node, pool_id)?,
        Some(known) => {
            let booted = known.boot_id != node.boot_id;
            let back_again = booted && known.previous_boot_id.as_deref() == Some(node.boot_id.as_str());
            update(scope, node, pool_id, known)?;
            if back_again {
                quarantine(scope, node.node_id)?;
            } else if booted {
                ended = end_old_boot(scope, node)?;
            }
        }
    }
    scope.wake(WakeTopic::Placement);
    Ok(RegisterAnswer::Welcome { ended })
}

fn known(scope: &Scope<'_>, node_id: NodeId) -> Result<Option<Known>, Fault> {
    let sql = "SELECT session, previous_session, boot_id, previous_boot_id FROM node WHERE node_id = ?1";
    let found = scope.statement(sql)?.query_row([node_id.0], |row| {
        Ok(Known {
            session: row.get(0)?,
            previous_session: row.get(1)?,
            boot_id: row.get(2)?,
            previous_boot_id: row.get(3)?,
        })
    });
    Ok(found.optional()?)
}

fn insert(scope: &Scope<'_>, node: &NodeRegistration, pool_id: i32) -> Result<(), Fault> {
    let sql = "INSERT INTO node (node_id, session, boot_id, name, pool_id, cpu_milli, memory_bytes, max_attempts, \
        labels, runtimes, containment, door, version, gate, bad_in_row, heard_ms, registered_ms) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, 0, 0, ?14, ?14)";
    scope.execute(
        sql,
        params![
            node.node_id.0,
            node.session.0,
            node.boot_id,
            clean(&node.name),
            pool_id,
            column(node.capacity.cpu_milli),
            column(node.capacity.memory_bytes),
            node.max_attempts,
            to_json("node", &node.labels)?,
            to_json("node", &node.runtimes)?,
            clean(&node.containment),
            node.door,
            clean(&node.version),
            scope.now().0
        ],
    )?;
    Ok(())
}

fn update(scope: &Scope<'_>, node: &NodeRegistration, pool_id: i32, known: &Known) -> Result<(), Fault> {
    let booted = known.boot_id != node.boot_id;
    let previous_boot_id = if booted { Some(&known.boot_id) } else { known.previous_boot_id.as_ref() };
    let new_session = known.session != node.session.0;
    let previous_session = if new_session { Some(known.session) } else { known.previous_session };
    let sql = "UPDATE node SET session = ?2, previous_session = ?3, boot_id = ?4, previous_boot_id = ?5, name = ?6, \
        pool_id = ?7, cpu_milli = ?8, memory_bytes = ?9, max_attempts = ?10, labels = ?11, runtimes = ?12, \
        containment = ?13, door = ?14, version = ?15, heard_ms = ?16, registered_ms = ?16 WHERE node_id = ?1";
    let changed = scope.execute(
        sql,
        params![
            node.node_id.0,
            node.session.0,
            previous_session,
            node.boot_id,
            previous_boot_id,
            clean(&node.name),
            pool_id,
            column(node.capacity.cpu_milli),
            column(node.capacity.memory_bytes),
            node.max_attempts,
            to_json("node", &node.labels)?,
            to_json("node", &node.runtimes)?,
            clean(&node.containment),
            node.door,
            clean(&node.version),
            scope.now().0
        ],
    )?;
    writes::expect_one(changed, "node", node.node_id)
}

/// Two machines with one node id take turns: neither boot proves anything about the other's attempts.
fn quarantine(scope: &Scope<'_>, node_id: NodeId) -> Result<(), Fault> {
    let why = "two boots of this node take turns: do two machines share one data directory?";
    tracing::error!(%node_id, why, "node quarantined");
    let changed =
        scope.execute("UPDATE node SET quarantined = ?2 WHERE node_id = ?1", params![node_id.0, why])?;
    writes::expect_one(changed, "node", node_id)
}

/// Another boot id proves that nothing of the old boot runs any more.
fn end_old_boot(scope: &Scope<'_>, node: &NodeRegistration) -> Result<u64, Fault> {
    let sql = "SELECT job_id FROM attempt_live WHERE node_id = ?1 AND session <> ?2";
    let job_ids = load::ids(scope, sql, params![node.node_id.0, node.session.0])?;
    let mut ledger = Ledger::new(scope.terms);
    let mut ended = 0;
    for job_id in job_ids {
        load::into_ledger(scope, &mut ledger, job_id)?;
        let lease = ledger.job(job_id).and_then(|job| job.live_attempt()).map(|attempt| attempt.lease_id);
        let Some(lease_id) = lease else { continue };
        let end = AttemptEnd::Vanished { why: "the node booted anew".to_owned() };
        ended += u64::from(ledger.apply(job_id, JobEvent::End { lease_id, end }, WORKER).is_ok());
    }
    writes::carry_out(scope, ledger)?;
    Ok(ended)
}

/// A node heartbeat.
pub(super) fn heartbeat(scope: &Scope<'_>, heartbeat: &NodeHeartbeat) -> Result<HeartbeatAnswer, Fault> {
    let sql = "SELECT session, suspended, gate FROM node WHERE node_id = ?1";
    let found = scope
        .statement(sql)?
        .query_row([heartbeat.node_id.0], |row| {
            Ok((SessionId(row.get(0)?), row.get::<_, Option<String>>(1)?, row.get(2)?))
        })
        .optional()?;
    let Some((session, suspended, gate)) = found else { return Ok(HeartbeatAnswer::Unknown) };
    if session != heartbeat.session {
        return Ok(HeartbeatAnswer::Superseded);
    }
    let proven = heartbeat.proven && suspended.is_some();
    let sql = match proven {
        true => "UPDATE node SET heard_ms = ?2, suspended = NULL, bad_in_row = 0 WHERE node_id = ?1",
        false => "UPDATE node SET heard_ms = ?2 WHERE node_id = ?1",
    };
    let changed = scope.execute(sql, params![heartbeat.node_id.0, scope.now().0])?;
    writes::expect_one(changed, "node", heartbeat.node_id)?;
    if proven {
        scope.wake(WakeTopic::Placement);
    }
    let gate =
        NodeGate::from_code(gate).ok_or_else(|| inconsistent("node", heartbeat.node_id, "no such gate"))?;
    Ok(HeartbeatAnswer::Heard { suspended: suspended.filter(|_| !proven), gate })
}

/// Opens, cordons or drains a node. Opening it also says that an operator has looked at its quarantine.
pub(super) fn set_gate(
    scope: &Scope<'_>,
    node_id: NodeId,
    gate: NodeGate,
    by: &Actor,
) -> Result<bool, Fault> {
    let sql = match gate {
        NodeGate::Open => {
            "UPDATE node SET gate = ?2, quarantined = NULL, previous_boot_id = NULL WHERE node_id = ?1"
        }
        NodeGate::Cordoned | NodeGate::Draining => "UPDATE node SET gate = ?2 WHERE node_id = ?1",
    };
    if scope.execute(sql, params![node_id.0, gate.code()])? == 0 {
        return Ok(false);
    }
    let action = match gate {
        NodeGate::Open => "node.uncordon",
        NodeGate::Cordoned => "node.cordon",
        NodeGate::Draining => "node.drain",
    };
    if gate == NodeGate::Draining {
        evict_all(scope, node_id, by)?;
    }
    audit::note(scope, by, action, &node_id.to_string(), "")?;
    scope.wake(WakeTopic::Placement);
    Ok(true)
}

fn evict_all(scope: &Scope<'_>, node_id: NodeId, by: &Actor) -> Result<(), Fault> {
    let job_ids = load::ids(scope, "SELECT job_id FROM attempt_live WHERE node_id = ?1", [node_id.0])?;
    let mut ledger = Ledger::new(scope.terms);
    for job_id in job_ids {
        load::into_ledger(scope, &mut ledger, job_id)?;
        // Who is wanted to stop for a stronger reason refuses it.
        if let Err(denied) = ledger.apply(job_id, JobEvent::Raise(Intent::Evict), &by.name) {
            tracing::debug!(%job_id, ?denied, "not evicted");
        }
    }
    writes::carry_out(scope, ledger)
}

/// The nodes of a pool, or all, by name and id, with what is reserved on them.
pub(super) fn of_pool(scope: &Scope<'_>, pool_id: Option<i32>) -> Result<Vec<NodeState>, Fault> {
    let sql = "SELECT node.node_id, session, node.name, pool.name, node.cpu_milli, node.memory_bytes, \
        max_attempts, labels, runtimes, containment, door, version, gate, suspended, quarantined, heard_ms, \
        coalesce(reserved.cpu_milli, 0), coalesce(reserved.memory_bytes, 0), coalesce(reserved.attempts, 0) \
        FROM node JOIN pool USING (pool_id) LEFT JOIN (SELECT node_id, sum(cpu_milli) FILTER (WHERE phase < 3) AS cpu_milli, \
        sum(memory_bytes) FILTER (WHERE phase < 3) AS memory_bytes, count(*) AS attempts FROM attempt_live GROUP BY node_id) AS reserved \
        USING (node_id) WHERE ?1 IS NULL OR pool_id = ?1 ORDER BY node.name, node.node_id";
    let mut statement = scope.statement(sql)?;
    let mut rows = statement.query([pool_id])?;
    let mut nodes = Vec::new();
    while let Some(row) = rows.next()? {
        nodes.push(node_state(row)?);
    }
    Ok(nodes)
}

fn node_state(row: &Row<'_>) -> Result<NodeState, Fault> {
    let node_id = NodeId(row.get(0)?);
    let gate = NodeGate::from_code(row.get(12)?);
    Ok(NodeState {
        node_id,
        session: SessionId(row.get(1)?),
        name: row.get(2)?,
        pool: row.get(3)?,
        capacity: Resources { cpu_milli: amount(row.get(4)?), memory_bytes: amount(row.get(5)?) },
        max_attempts: row.get(6)?,
        labels: from_json("node", node_id, &row.get::<_, String>(7)?)?,
        runtimes: from_json("node", node_id, &row.get::<_, String>(8)?)?,
        containment: row.get(9)?,
        door: row.get(10)?,
        version: row.get(11)?,
        gate: gate.ok_or_else(|| inconsistent("node", node_id, "no such gate"))?,
        suspended: row.get(13)?,
        quarantined: row.get(14)?,
        heard_at: Timestamp(row.get(15)?),
        reserved: Resources { cpu_milli: amount(row.get(16)?), memory_bytes: amount(row.get(17)?) },
        attempts: row.get(18)?,
    })
}
