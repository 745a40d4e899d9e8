//! What is reserved on a pool's nodes, without walking attempts that ended long ago.
//!
//! An attempt that ended leaves its entry in the index of its node until no transaction can see it any more. What is
//! reserved is added up along that index while such a walk is quick. Once it is slow, each pass looks up by their keys
//! the attempts that the pass before it found, and walks only the entries that are younger; a walk of all is made
//! beside the passes now and then, for what became visible late, and to see whether it is quick again.
//!
//! Owns what one process remembers of a pool's live attempts. Invariant: it is a hint where to read; what is reserved
//! comes from the datastore alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jobyard_model::{NodeId, NodeState, Resources, Timestamp};
use uuid::Uuid;

use super::Core;
use super::fault::Fault;
use super::load::{self, Columns};
use super::nodes;
use super::pacing::Pacing;
use super::query::Query;
use super::session::Rows;
use crate::encoding::amount;

/// A claim may become visible this long after the time that it says, and still be counted by the next pass.
const LATE_MS: i64 = 500;
/// What looking one attempt up costs at most; a walk that takes longer for each that it finds passes many that are over.
const LOOK_UP_US: i64 = 3;

const LIVE: &str = "SELECT a.job_id, a.placed_ms, a.node_id, a.phase < 3, a.cpu_milli, a.memory_bytes
  FROM unnest($2::uuid[]) known(job_id) CROSS JOIN LATERAL (
    SELECT * FROM attempt_live WHERE attempt_live.job_id = known.job_id AND placed_ms < $3 OFFSET 0) a
  UNION ALL SELECT a.job_id, a.placed_ms, a.node_id, a.phase < 3, a.cpu_milli, a.memory_bytes
  FROM node CROSS JOIN LATERAL (
    SELECT * FROM attempt_live WHERE attempt_live.node_id = node.node_id AND placed_ms >= $3 OFFSET 0) a
  WHERE node.pool_id = $1";
const WALK: &str = "SELECT a.job_id, a.placed_ms FROM node CROSS JOIN LATERAL (
    SELECT job_id, placed_ms FROM attempt_live WHERE attempt_live.node_id = node.node_id OFFSET 0) a
  WHERE node.pool_id = $1";

/// The live attempts of every pool that this process places for.
#[derive(Debug, Default)]
pub(super) struct KnownAttempts(Mutex<BTreeMap<i32, Known>>);

#[derive(Debug, Default)]
struct Known {
    /// `None` while walking is quick.
    listed: Option<Listed>,
    pacing: Pacing,
}

/// The attempts that were placed before a time, and are looked up by their keys.
#[derive(Debug, Clone, Default)]
struct Listed {
    attempts: BTreeSet<Uuid>,
    before_ms: i64,
}

/// How a pass reads the nodes of a pool.
pub(super) struct NodesReading {
    pool_id: i32,
    listed: Option<Listed>,
}

impl NodesReading {
    /// The statements: the clock, and the nodes and their attempts as the stopwatch runs.
    pub(super) fn queries(&self) -> [Query; 5] {
        let stopwatch = || Query::new(load::STOPWATCH);
        let now = Query::new(load::NOW);
        let live = |listed: &Listed| {
            Query::new(LIVE)
                .bind(self.pool_id)
                .bind(listed.attempts.iter().copied().collect::<Vec<_>>())
                .bind(listed.before_ms)
        };
        match &self.listed {
            None => [now, stopwatch(), nodes::of_pool(Some(self.pool_id)), stopwatch(), stopwatch()],
            Some(listed) => {
                [now, stopwatch(), nodes::without_attempts(self.pool_id), live(listed), stopwatch()]
            }
        }
    }
}

impl KnownAttempts {
    /// How to read the nodes of this pool next.
    pub(super) fn reading(&self, pool_id: i32) -> NodesReading {
        let listed = self.lock().get(&pool_id).and_then(|known| known.listed.clone());
        NodesReading { pool_id, listed }
    }

    /// The nodes by id, and the time, from the answers to [`NodesReading::queries`].
    pub(super) fn nodes(
        &self,
        core: &Arc<Core>,
        reading: &NodesReading,
        [now, before, nodes, live, after]: [&Rows; 5],
    ) -> Result<(Vec<NodeState>, Timestamp), Fault> {
        let now = load::clock(now)?;
        let took_us = load::elapsed_us(before, after)?;
        let mut nodes = nodes::states(nodes)?;
        nodes.sort_by_key(|node| node.node_id);
        let slow = match &reading.listed {
            None => {
                let found = nodes.iter().map(|node| i64::from(node.attempts)).sum();
                is_slow(core, took_us, found)
            }
            Some(listed) => {
                let live = live.iter().map(Live::of).collect::<Result<Vec<_>, _>>()?;
                reserve(&mut nodes, &live);
                self.pass_saw(reading.pool_id, listed, &live, now);
                true
            }
        };
        if slow {
            self.walk_if_rested(core, reading.pool_id);
        }
        Ok((nodes, now))
    }

    /// The next pass looks up those that were found, and what a walk has added since this one was begun.
    fn pass_saw(&self, pool_id: i32, read: &Listed, live: &[Live], now: Timestamp) {
        if let Some(listed) = self.lock().get_mut(&pool_id).and_then(|known| known.listed.as_mut()) {
            let found = live.iter().map(|live| (live.job_id, live.placed_ms));
            let mut found = Listed::placed_before(now.0 - LATE_MS, found);
            found.attempts.extend(listed.attempts.difference(&read.attempts));
            *listed = found;
        }
    }

    fn walk_if_rested(&self, core: &Arc<Core>, pool_id: i32) {
        if !self.lock().entry(pool_id).or_default().pacing.begin_if_rested() {
            return;
        }
        let core = Arc::clone(core);
        tokio::spawn(async move {
            if let Err(fault) = core.attempts.walk(&core, pool_id).await {
                tracing::warn!(error = ?fault, "listing live attempts failed; it is done again");
            }
        });
    }

    async fn walk(&self, core: &Core, pool_id: i32) -> Result<(), Fault> {
        let stopwatch = || Query::new(load::STOPWATCH);
        let queries = || [Query::new(load::NOW), stopwatch(), Query::new(WALK).bind(pool_id), stopwatch()];
        let walked = core.database.read(queries).await.and_then(|[now, before, rows, after]| {
            let rows = rows.iter().map(|row| {
                let mut columns = Columns::of(row);
                Ok((columns.take()?, columns.take()?))
            });
            let rows = rows.collect::<Result<Vec<(Uuid, i64)>, Fault>>()?;
            Ok((rows, load::clock(&now)?, load::elapsed_us(&before, &after)?))
        });
        let mut pools = self.lock();
        let known = pools.entry(pool_id).or_default();
        known.pacing.end(walked.as_ref().ok().map(|(_, _, took_us)| *took_us));
        let (rows, began, took_us) = walked?;
        let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
        let found = Listed::placed_before(began.0 - LATE_MS, rows.into_iter());
        known.listed = match (is_slow(core, took_us, count), known.listed.take()) {
            (false, _) => None,
            (true, None) => Some(found),
            (true, Some(listed)) => Some(listed.and(found)),
        };
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<i32, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listed {
    fn placed_before(before_ms: i64, live: impl Iterator<Item = (Uuid, i64)>) -> Self {
        let old = live.filter(|(_, placed_ms)| *placed_ms < before_ms);
        Self { attempts: old.map(|(job_id, _)| job_id).collect(), before_ms }
    }

    /// Both; an attempt that is over by now is not found any more, and goes with the next pass.
    fn and(mut self, found: Self) -> Self {
        self.attempts.extend(found.attempts);
        self.before_ms = self.before_ms.max(found.before_ms);
        self
    }
}

/// A live attempt.
struct Live {
    job_id: Uuid,
    placed_ms: i64,
    node_id: NodeId,
    reserved: Resources,
}

impl Live {
    fn of(row: &tokio_postgres::Row) -> Result<Self, Fault> {
        let mut columns = Columns::of(row);
        let (job_id, placed_ms, node_id) = (columns.take()?, columns.take()?, NodeId(columns.take()?));
        let reserves: bool = columns.take()?;
        let all = Resources { cpu_milli: amount(columns.take()?), memory_bytes: amount(columns.take()?) };
        let reserved = if reserves { all } else { Resources::default() };
        Ok(Self { job_id, placed_ms, node_id, reserved })
    }
}

/// Adds what these attempts reserve; `nodes` ascends by id.
fn reserve(nodes: &mut [NodeState], live: &[Live]) {
    for live in live {
        // A node of another pool by now, if it isn't here.
        if let Ok(place) = nodes.binary_search_by_key(&live.node_id, |node| node.node_id) {
            nodes[place].reserved = nodes[place].reserved.plus(live.reserved);
            nodes[place].attempts += 1;
        }
    }
}

/// Whether a walk that found so many attempts passed many that are over.
fn is_slow(core: &Core, took_us: i64, attempts: i64) -> bool {
    took_us > core.quick_walk_us + core.quick_walk_us.min(LOOK_UP_US) * attempts
}
