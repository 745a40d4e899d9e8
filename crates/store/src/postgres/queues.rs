//! Where each queue begins: what keeps a placement pass from walking what was claimed long ago.
//!
//! A claimed job leaves its entry in the claim index until no transaction can see it any more. While somebody holds a
//! snapshot, those entries gather before the first job that waits, and whoever reads a queue from its beginning walks
//! them all. So the beginnings are found by a walk of its own, the sweep, and a pass reads from there.
//!
//! While a sweep is quick each pass makes one and sees exactly what waits. A slow one is made beside the passes, for a
//! bounded part of the time; they then read the queues that are known, each from the oldest job it last had, and what
//! comes otherwise (a queue that is new, a job that became visible late or came back with its old place) is found by
//! the next sweep.
//!
//! Owns what one process remembers of a pool's queues. Invariant: it is a hint where to read; jobs come from the
//! datastore alone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jobyard_model::{QueueHead, Timestamp};

use super::Core;
use super::fault::Fault;
use super::load::Columns;
use super::pacing::Pacing;
use super::query::Query;
use super::session::Rows;
use crate::groups::Group;

/// How many groups of a lane are looked at, so that a pool with absurdly many shapes stays readable.
const GROUPS_LOOKED_AT: i64 = 4_096;
/// A job may become visible this long after the time at which it began to wait, and still be seen by the next pass.
const LATE_MS: i64 = 500;
/// A queue is read this long after it last had a job.
const KEPT: Duration = Duration::from_secs(60);

// Steps from queue to queue along the claim index (a loose scan), each time to the first that waits: what it costs
// depends on the queues and on what was claimed before their first job, not on how many wait.
// The first row and the last one say when it began and ended.
const SWEEP: &str = "SELECT NULL::smallint, NULL::int, NULL::int, NULL::smallint, jobyard_stopwatch_us()
  UNION ALL SELECT lanes.lane, queue.owner_id, queue.shape_id, queue.priority, queue.wait_since_ms
  FROM unnest('{0,1,2,3,4}'::smallint[]) lanes(lane) CROSS JOIN LATERAL (
    WITH RECURSIVE step AS (
      (SELECT j.owner_id, j.shape_id, j.priority, j.wait_since_ms FROM job_live j
        WHERE j.status = 2 AND j.pool_id = $1 AND j.lane = lanes.lane
        ORDER BY j.owner_id, j.shape_id, j.priority DESC, j.wait_since_ms LIMIT 1)
      UNION ALL
      SELECT next.* FROM step CROSS JOIN LATERAL (
        (SELECT j.owner_id, j.shape_id, j.priority, j.wait_since_ms FROM job_live j
          WHERE j.status = 2 AND j.pool_id = $1 AND j.lane = lanes.lane AND j.owner_id = step.owner_id
            AND j.shape_id = step.shape_id AND j.priority < step.priority
          ORDER BY j.priority DESC, j.wait_since_ms LIMIT 1)
        UNION ALL
        (SELECT j.owner_id, j.shape_id, j.priority, j.wait_since_ms FROM job_live j
          WHERE j.status = 2 AND j.pool_id = $1 AND j.lane = lanes.lane
            AND (j.owner_id, j.shape_id) > (step.owner_id, step.shape_id)
          ORDER BY j.owner_id, j.shape_id, j.priority DESC, j.wait_since_ms LIMIT 1)
        LIMIT 1) next)
    SELECT * FROM step LIMIT $2) queue
  UNION ALL SELECT NULL, NULL, NULL, NULL, jobyard_stopwatch_us()";

/// Jobs that differ in nothing but their age: one range of the claim index. Sorted as heads are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Queue {
    pub(super) lane: i16,
    pub(super) owner_id: i32,
    pub(super) shape_id: i32,
    pub(super) priority: i16,
}

impl Queue {
    pub(super) fn group(self) -> Group {
        Group { lane: self.lane, owner_id: self.owner_id, shape_id: self.shape_id }
    }
}

/// What is known of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    /// What waits has waited since then, or for less long.
    from_ms: i64,
    /// When it last had a job.
    seen: Instant,
}

/// The queues of one pool.
#[derive(Debug, Default)]
struct Queues {
    marks: BTreeMap<Queue, Mark>,
    pacing: Pacing,
}

/// The queues of every pool that this process places for.
#[derive(Debug)]
pub(super) struct KnownQueues {
    pools: Mutex<BTreeMap<i32, Queues>>,
    since: Instant,
}

impl KnownQueues {
    /// None yet.
    pub(super) fn new() -> Self {
        Self { pools: Mutex::default(), since: Instant::now() }
    }

    /// The queues of a pool and from when on to read each, in order, after a sweep, unless sweeps are slow by now; and
    /// a number that changes each second.
    pub(super) async fn of_pool(
        &self,
        core: &Arc<Core>,
        pool_id: i32,
    ) -> Result<(Vec<(Queue, i64)>, u64), Fault> {
        let (quick, due) = {
            let mut pools = self.lock();
            let pacing = &mut pools.entry(pool_id).or_default().pacing;
            let quick = pacing.is_quick(core.quick_walk_us);
            (quick, !quick && pacing.begin_if_rested())
        };
        if quick {
            self.sweep(core, pool_id).await?;
        } else if due {
            let core = Arc::clone(core);
            tokio::spawn(async move {
                if let Err(fault) = core.queues.sweep(&core, pool_id).await {
                    tracing::warn!(error = ?fault, "looking for queues failed; it is done again");
                }
            });
        }
        let mut pools = self.lock();
        let queues = pools.entry(pool_id).or_default();
        let marks = queues.marks.iter().map(|(queue, mark)| (*queue, mark.from_ms)).collect();
        Ok((marks, self.since.elapsed().as_secs()))
    }

    async fn sweep(&self, core: &Core, pool_id: i32) -> Result<(), Fault> {
        let read = core.database.read(|| [Query::new(SWEEP).bind(pool_id).bind(GROUPS_LOOKED_AT)]).await;
        let swept = read.and_then(|[rows]| Sweep::of(&rows));
        let mut pools = self.lock();
        let queues = pools.entry(pool_id).or_default();
        if queues.pacing.is_quick(core.quick_walk_us) {
            // What it finds is all there is.
            queues.marks.clear();
        }
        queues.pacing.end(swept.as_ref().ok().map(|sweep| sweep.ended_us - sweep.began_us));
        queues.found(&swept?);
        Ok(())
    }

    /// Notes what a pass saw of the queues that it read.
    pub(super) fn note(&self, pool_id: i32, read: &[(Queue, i64)], heads: &[QueueHead], now: Timestamp) {
        if let Some(queues) = self.lock().get_mut(&pool_id) {
            queues.passed(read, heads, now.0);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<i32, Queues>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a sweep brings: each queue with the time since which its oldest job waits.
#[derive(Debug, Default)]
struct Sweep {
    began_us: i64,
    found: Vec<(Queue, i64)>,
    ended_us: i64,
}

impl Sweep {
    fn of(rows: &Rows) -> Result<Self, Fault> {
        let mut sweep = Self::default();
        for (place, row) in rows.iter().enumerate() {
            let mut columns = Columns::of(row);
            if place == 0 || place + 1 == rows.len() {
                columns.skip(4);
                let clock = if place == 0 { &mut sweep.began_us } else { &mut sweep.ended_us };
                *clock = columns.take()?;
                continue;
            }
            let queue = Queue {
                lane: columns.take()?,
                owner_id: columns.take()?,
                shape_id: columns.take()?,
                priority: columns.take()?,
            };
            sweep.found.push((queue, columns.take()?));
        }
        Ok(sweep)
    }
}

impl Queues {
    fn found(&mut self, sweep: &Sweep) {
        let seen = Instant::now();
        for (queue, wait_since_ms) in &sweep.found {
            let mark = self.marks.entry(*queue).or_insert(Mark { from_ms: *wait_since_ms, seen });
            mark.from_ms = mark.from_ms.min(*wait_since_ms);
            mark.seen = seen;
        }
    }

    fn passed(&mut self, read: &[(Queue, i64)], heads: &[QueueHead], now_ms: i64) {
        let mut oldest: BTreeMap<Queue, i64> = BTreeMap::new();
        for head in heads {
            let since = oldest.entry(queue_of(head)).or_insert(head.wait_since.0);
            *since = (*since).min(head.wait_since.0);
        }
        let seen = Instant::now();
        let late_ms = now_ms - LATE_MS;
        for (queue, read_from_ms) in read {
            let Some(mark) = self.marks.get_mut(queue) else { continue };
            if mark.from_ms < *read_from_ms {
                // A sweep has found something older since.
                continue;
            }
            mark.from_ms = late_ms;
            if let Some(since) = oldest.get(queue) {
                *mark = Mark { from_ms: late_ms.min(*since), seen };
            }
        }
        self.marks.retain(|_, mark| mark.seen.elapsed() < KEPT);
    }
}

fn queue_of(head: &QueueHead) -> Queue {
    Queue {
        lane: i16::from(head.priority.lane().value()),
        owner_id: head.owner_id,
        shape_id: head.shape_id.0,
        priority: i16::from(head.priority.value()),
    }
}
