//! The fleet as a hint: what a submission is warned by. Up to two seconds old; no decision rests on it.

use std::sync::Arc;
use std::time::Duration;

use jobyard_model::{JobSpec, NodeState, Timestamp};
use jobyard_scheduler::obstacle;
use jobyard_store::{Store, StoreError};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::accept_jobs::shape_of;

const REFRESH_AFTER: Duration = Duration::from_secs(2);

/// Keeps the nodes of a moment ago, so that submissions don't each read them all.
#[derive(Debug, Default)]
pub(crate) struct FleetView {
    seen: Mutex<Option<(Instant, Fleet)>>,
}

/// The nodes of one moment.
#[derive(Debug, Clone)]
pub(crate) struct Fleet(Arc<Vec<NodeState>>);

impl FleetView {
    pub(crate) async fn nodes(&self, store: &dyn Store) -> Result<Fleet, StoreError> {
        let mut seen = self.seen.lock().await;
        if let Some((at, fleet)) = &*seen
            && at.elapsed() < REFRESH_AFTER
        {
            return Ok(fleet.clone());
        }
        let fleet = Fleet(Arc::new(store.nodes().await?));
        *seen = Some((Instant::now(), fleet.clone()));
        Ok(fleet)
    }
}

impl Fleet {
    /// Why no node that exists could ever run the job; `None` when one could.
    pub(crate) fn warning(&self, spec: &JobSpec, now: Timestamp) -> Option<String> {
        let shape = shape_of(spec);
        let in_pool = || self.0.iter().filter(|node| node.pool == spec.pool);
        let could =
            |node: &NodeState| obstacle(&shape, node, now).is_none_or(|obstacle| !obstacle.is_lasting());
        if in_pool().any(could) {
            return None;
        }
        if in_pool().next().is_none() {
            return Some(format!("pool `{}` has no nodes yet; the job waits for one", spec.pool));
        }
        for (key, value) in &spec.node_labels {
            if !in_pool().any(|node| node.labels.get(key) == Some(value)) {
                return Some(format!(
                    "no node of pool `{}` has the label {key}={value}; the job waits for one",
                    spec.pool
                ));
            }
        }
        Some(format!(
            "no node of pool `{}` could ever hold this job (it asks for {} cores and {} bytes of memory); it waits for one that can",
            spec.pool,
            jobyard_api::json::Cores { milli: spec.resources.cpu_milli }.as_f64(),
            spec.resources.memory_bytes
        ))
    }
}
