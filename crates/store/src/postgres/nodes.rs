//! The table `node`: registration, heartbeats, gates.
//!
//! Lock order: jobs and attempts first, the node last, as every report does it.

use jobyard_model::node::{NodeGate, NodeRegistration};
use jobyard_model::{
    AttemptEnd, Intent, JobEvent, JobId, NodeId, NodeState, Resources, SessionId, Timestamp,
};
use uuid::Uuid;

use super::Core;
use super::fault::{Fault, Shared};
use super::load::{self, Columns};
use super::query::Query;
use super::session::{Rows, Session};
use super::{audit, pools, writes};
use crate::encoding::{amount, clean, column, from_json, inconsistent, to_json};
use crate::ledger::{Ledger, WORKER};
use crate::rows::{number, number_column};
use crate::wake::{WakeTopic, Wakes};
use crate::{Actor, HeartbeatAnswer, NodeHeartbeat, RegisterAnswer, StoreError};

const KNOWN: &str =
    "SELECT session, previous_session, boot_id, previous_boot_id FROM node WHERE node_id = $1";
const OF_OLDER_SESSIONS: &str = "SELECT job_id FROM attempt_live WHERE node_id = $1 AND session <> $2";
const ON_NODE: &str = "SELECT job_id FROM attempt_live WHERE node_id = $1";

const INSERT: &str =
    "INSERT INTO node (node_id, session, boot_id, name, pool_id, cpu_milli, memory_bytes, max_attempts,
    labels, runtimes, containment, door, version, gate, bad_in_row, heard_ms, registered_ms)
  SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 0, 0, clock.now_ms, clock.now_ms
  FROM (SELECT jobyard_now() AS now_ms OFFSET 0) clock";
const UPDATE: &str = "WITH changed AS (
    UPDATE node SET session = $2, boot_id = $3, name = $4, pool_id = $5, cpu_milli = $6, memory_bytes = $7,
      max_attempts = $8, labels = $9, runtimes = $10, containment = $11, door = $12, version = $13,
      previous_session = $14, previous_boot_id = $15, quarantined = coalesce($16, quarantined),
      heard_ms = clock.now_ms, registered_ms = clock.now_ms
    FROM (SELECT jobyard_now() AS now_ms OFFSET 0) clock
    WHERE node_id = $1 AND session = $17 AND boot_id = $18 RETURNING 1)
  SELECT jobyard_expect((SELECT count(*) FROM changed), 1, 'node registered')";

const HEARTBEAT: &str = "WITH was AS MATERIALIZED (
    SELECT suspended FROM node WHERE node_id = $1 AND session = $2 FOR NO KEY UPDATE)
  UPDATE node SET heard_ms = jobyard_now(),
    bad_in_row = CASE WHEN $3 AND was.suspended IS NOT NULL THEN 0 ELSE node.bad_in_row END,
    suspended = CASE WHEN $3 THEN NULL ELSE node.suspended END
  FROM was WHERE node.node_id = $1 AND node.session = $2 RETURNING was.suspended, node.gate";
const FIND: &str = "SELECT 1 FROM node WHERE node_id = $1";

// Opening a node also says that an operator has looked at its quarantine.
const SET_GATE: &str = "UPDATE node SET gate = $2::smallint,
    quarantined = CASE WHEN $2::smallint = 0 THEN NULL ELSE quarantined END,
    previous_boot_id = CASE WHEN $2::smallint = 0 THEN NULL ELSE previous_boot_id END
  WHERE node_id = $1 RETURNING 1";

const STATES: &str = "SELECT node.node_id, node.session, node.name, pool.name, node.cpu_milli, node.memory_bytes,
    node.max_attempts, node.labels, node.runtimes, node.containment, node.door, node.version, node.gate,
    node.suspended, node.quarantined, node.heard_ms, reserved.cpu_milli, reserved.memory_bytes, reserved.attempts
  FROM node JOIN pool ON pool.pool_id = node.pool_id CROSS JOIN LATERAL (
    SELECT coalesce(sum(cpu_milli) FILTER (WHERE phase < 3), 0)::bigint AS cpu_milli,
      coalesce(sum(memory_bytes) FILTER (WHERE phase < 3), 0)::bigint AS memory_bytes, count(*) AS attempts
    FROM attempt_live WHERE attempt_live.node_id = node.node_id AND attempt_live.placed_ms >= $2) reserved
  WHERE $1::int IS NULL OR node.pool_id = $1 ORDER BY node.name, node.node_id";

const TAKING_TURNS: &str = "two boots of this node take turns: do two machines share one data directory?";

/// What a registration is measured against.
#[derive(Debug, PartialEq, Eq)]
struct Known {
    session: Uuid,
    previous_session: Option<Uuid>,
    boot_id: String,
    previous_boot_id: Option<String>,
}

/// A worker's start.
pub(super) async fn register(core: &Core, node: &NodeRegistration) -> Result<RegisterAnswer, StoreError> {
    const DOING: &str = "registering a node";
    let pool_id = core.interned.pool_id(&core.database, &node.pool).await;
    let Some(pool_id) = pool_id.map_err(|fault| fault.during(DOING))? else {
        let known = pools::names(core).await.map_err(|fault| fault.during(DOING))?;
        return Ok(RegisterAnswer::UnknownPool { known });
    };
    core.database.change(DOING, |session| try_register(core, session, node, pool_id)).await
}

async fn try_register(
    core: &Core,
    mut session: Session,
    node: &NodeRegistration,
    pool_id: i32,
) -> Result<RegisterAnswer, Fault> {
    let attempts = Query::new(OF_OLDER_SESSIONS).bind(node.node_id.0).bind(node.session.0);
    let [known, older] = session.begin([Query::new(KNOWN).bind(node.node_id.0), attempts]).await?;
    let Some(known) = known.first().map(Known::read).transpose()? else {
        session.commit(vec![insert(node, pool_id)?]).await?;
        core.wakes.bump(Wakes::of(WakeTopic::Placement));
        return Ok(RegisterAnswer::Welcome { ended: 0 });
    };
    if known.previous_session == Some(node.session.0) {
        session.roll_back().await?;
        return Ok(RegisterAnswer::Superseded);
    }
    let booted = known.boot_id != node.boot_id;
    let back_again = booted && known.previous_boot_id.as_deref() == Some(node.boot_id.as_str());
    let mut ended = 0;
    let mut queries = Vec::new();
    let mut wakes = Wakes::of(WakeTopic::Placement);
    if back_again {
        // Neither boot proves anything about the other's attempts.
        tracing::error!(node_id = %node.node_id, TAKING_TURNS, "node quarantined");
    } else if booted {
        let jobs = older.iter().map(|row| Columns::of(row).take()).collect::<Result<Vec<Uuid>, _>>()?;
        let mut ledger = load::lock_more(&mut session, jobs.clone(), core.leases).await?;
        ended = end_old_boot(&mut ledger, &jobs, node.session);
        let (writes, more) = writes::of(ledger)?;
        queries.extend(writes);
        wakes.merge(more);
    }
    // Guarded by what was read: whoever registered in between sends us through all of it again.
    queries.push(update(node, pool_id, &known, back_again)?);
    session.commit(queries).await?;
    core.wakes.bump(wakes);
    Ok(RegisterAnswer::Welcome { ended })
}

/// Another boot id proves that nothing of the old boot runs any more.
fn end_old_boot(ledger: &mut Ledger, jobs: &[Uuid], session: SessionId) -> u64 {
    let mut ended = 0;
    for job_id in jobs.iter().copied().map(JobId) {
        let attempt = ledger.job(job_id).and_then(|job| job.live_attempt());
        let Some(attempt) = attempt.filter(|attempt| attempt.session != session) else { continue };
        let end = AttemptEnd::Vanished { why: "the node booted anew".to_owned() };
        let event = JobEvent::End { lease_id: attempt.lease_id, end };
        ended += u64::from(ledger.apply(job_id, event, WORKER).is_ok());
    }
    ended
}

impl Known {
    fn read(row: &tokio_postgres::Row) -> Result<Self, Fault> {
        let mut columns = Columns::of(row);
        Ok(Self {
            session: columns.take()?,
            previous_session: columns.take()?,
            boot_id: columns.take()?,
            previous_boot_id: columns.take()?,
        })
    }
}

fn insert(node: &NodeRegistration, pool_id: i32) -> Result<Query, Fault> {
    describe(Query::new(INSERT), node, pool_id)
}

fn update(node: &NodeRegistration, pool_id: i32, known: &Known, back_again: bool) -> Result<Query, Fault> {
    let booted = known.boot_id != node.boot_id;
    let previous_boot_id = if booted { Some(known.boot_id.clone()) } else { known.previous_boot_id.clone() };
    let new_session = known.session != node.session.0;
    let previous_session = if new_session { Some(known.session) } else { known.previous_session };
    Ok(describe(Query::new(UPDATE), node, pool_id)?
        .bind(previous_session)
        .bind(previous_boot_id)
        .bind(back_again.then_some(TAKING_TURNS))
        .bind(known.session)
        .bind(known.boot_id.clone()))
}

fn describe(query: Query, node: &NodeRegistration, pool_id: i32) -> Result<Query, Fault> {
    Ok(query
        .bind(node.node_id.0)
        .bind(node.session.0)
        .bind(clean(&node.boot_id))
        .bind(clean(&node.name))
        .bind(pool_id)
        .bind(column(node.capacity.cpu_milli))
        .bind(column(node.capacity.memory_bytes))
        .bind(number_column(node.max_attempts))
        .bind(to_json("node", &node.labels)?)
        .bind(to_json("node", &node.runtimes)?)
        .bind(clean(&node.containment))
        .bind(clean(&node.door))
        .bind(clean(&node.version)))
}

/// A node heartbeat.
pub(super) async fn heartbeat(core: &Core, heartbeat: &NodeHeartbeat) -> Result<HeartbeatAnswer, StoreError> {
    try_heartbeat(core, heartbeat).await.map_err(|fault| fault.during("noting a node heartbeat"))
}

async fn try_heartbeat(core: &Core, heartbeat: &NodeHeartbeat) -> Result<HeartbeatAnswer, Fault> {
    let queries = || {
        let note =
            Query::new(HEARTBEAT).bind(heartbeat.node_id.0).bind(heartbeat.session.0).bind(heartbeat.proven);
        [note, Query::new(FIND).bind(heartbeat.node_id.0)]
    };
    let [noted, found] = core.database.change_once(queries).await?;
    let Some(row) = noted.first() else {
        return Ok(match found.is_empty() {
            true => HeartbeatAnswer::Unknown,
            false => HeartbeatAnswer::Superseded,
        });
    };
    let mut columns = Columns::of(row);
    let (suspended, gate): (Option<String>, i16) = (columns.take()?, columns.take()?);
    if heartbeat.proven && suspended.is_some() {
        core.wakes.bump(Wakes::of(WakeTopic::Placement));
    }
    let gate = NodeGate::from_code(gate);
    let gate = gate.ok_or_else(|| inconsistent("node", heartbeat.node_id, "no such gate"))?;
    Ok(HeartbeatAnswer::Heard { suspended: suspended.filter(|_| !heartbeat.proven), gate })
}

/// Opens, cordons or drains a node. `false`: no such node.
pub(super) async fn set_gate(
    core: &Core,
    node_id: NodeId,
    gate: NodeGate,
    by: &Actor,
) -> Result<bool, StoreError> {
    core.database
        .change("setting a node's gate", |session| try_set_gate(core, session, (node_id, gate), by))
        .await
}

async fn try_set_gate(
    core: &Core,
    mut session: Session,
    (node_id, gate): (NodeId, NodeGate),
    by: &Actor,
) -> Result<bool, Fault> {
    let (action, evict) = match gate {
        NodeGate::Open => ("node.uncordon", false),
        NodeGate::Cordoned => ("node.cordon", false),
        NodeGate::Draining => ("node.drain", true),
    };
    let [attempts] = session.begin([Query::new(ON_NODE).bind(node_id.0)]).await?;
    let mut jobs = attempts.iter().map(|row| Columns::of(row).take()).collect::<Result<Vec<Uuid>, _>>()?;
    jobs.retain(|_| evict);
    let mut ledger = load::lock_more(&mut session, jobs.clone(), core.leases).await?;
    for job_id in jobs.into_iter().map(JobId) {
        let here = |job: &jobyard_model::Job| job.live_attempt().is_some_and(|live| live.node_id == node_id);
        if !ledger.job(job_id).is_some_and(here) {
            continue;
        }
        // Who is wanted to stop for a stronger reason refuses it.
        if let Err(denied) = ledger.apply(job_id, JobEvent::Raise(Intent::Evict), &by.name) {
            tracing::debug!(%job_id, ?denied, "not evicted");
        }
    }
    let [set] = session.query([Query::new(SET_GATE).bind(node_id.0).bind(gate.code())]).await?;
    if set.is_empty() {
        session.roll_back().await?;
        return Ok(false);
    }
    let (mut queries, mut wakes) = writes::of(ledger)?;
    queries.push(audit::insert(&[audit::Note::new(by, action, &node_id.to_string(), "")]));
    session.commit(queries).await?;
    wakes.add(WakeTopic::Placement);
    core.wakes.bump(wakes);
    Ok(true)
}

/// Every node, by name and id.
pub(super) async fn all(core: &Core) -> Result<Vec<NodeState>, StoreError> {
    const DOING: &str = "reading the nodes";
    let rows = core.database.read(|| [of_pool(None)]).await;
    let [rows] = rows.map_err(|fault| fault.during(DOING))?;
    states(&rows).map_err(|fault| fault.during(DOING))
}

/// The statement that reads the nodes of a pool, or all, with what is reserved on them; for [`states`].
pub(super) fn of_pool(pool_id: Option<i32>) -> Query {
    Query::new(STATES).bind(pool_id).bind(i64::MIN)
}

/// As [`of_pool`], with nothing reserved.
pub(super) fn without_attempts(pool_id: i32) -> Query {
    Query::new(STATES).bind(Some(pool_id)).bind(i64::MAX)
}

/// The answer to [`of_pool`].
pub(super) fn states(rows: &Rows) -> Result<Vec<NodeState>, Fault> {
    rows.iter().map(state).collect()
}

fn state(row: &tokio_postgres::Row) -> Result<NodeState, Fault> {
    let mut columns = Columns::of(row);
    let node_id = NodeId(columns.take()?);
    let session = SessionId(columns.take()?);
    let (name, pool) = (columns.take()?, columns.take()?);
    let capacity = Resources { cpu_milli: amount(columns.take()?), memory_bytes: amount(columns.take()?) };
    let max_attempts = number(columns.take()?);
    let (labels, runtimes): (String, String) = (columns.take()?, columns.take()?);
    let (containment, door, version) = (columns.take()?, columns.take()?, columns.take()?);
    let gate = NodeGate::from_code(columns.take()?);
    let (suspended, quarantined) = (columns.take()?, columns.take()?);
    let heard_at = Timestamp(columns.take()?);
    let reserved = Resources { cpu_milli: amount(columns.take()?), memory_bytes: amount(columns.take()?) };
    let attempts: i64 = columns.take()?;
    Ok(NodeState {
        node_id,
        session,
        name,
        pool,
        capacity,
        max_attempts,
        labels: from_json("node", node_id, &labels)?,
        runtimes: from_json("node", node_id, &runtimes)?,
        containment,
        door,
        version,
        gate: gate.ok_or_else(|| inconsistent("node", node_id, "no such gate"))?,
        suspended,
        quarantined,
        heard_at,
        reserved,
        attempts: u32::try_from(attempts).map_err(|error| Fault::Statement(Shared::new(error)))?,
    })
}
