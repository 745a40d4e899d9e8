//! One call a node: a node that does not answer holds up no other.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jobyard_api::doors::WorkerDoor;
use jobyard_api::proto;
use jobyard_model::NodeId;
use tokio_util::task::TaskTracker;

/// What a node is to be told, and by which door.
pub(crate) struct Delivery {
    pub(crate) door: Arc<dyn WorkerDoor>,
    pub(crate) request: proto::StopRequest,
}

/// The calls in flight.
///
/// Invariant: a node has at most one call in flight and one that waits for it; the newest takes the place of the one
/// that waits, since it names all that is still wanted.
#[derive(Clone)]
pub(crate) struct Deliveries {
    tasks: TaskTracker,
    nodes: Arc<Mutex<HashMap<NodeId, Option<Delivery>>>>,
}

impl Deliveries {
    pub(crate) fn new(tasks: TaskTracker) -> Self {
        Self { tasks, nodes: Arc::default() }
    }

    /// Delivers at once, or after the call in flight. Never waits.
    pub(crate) fn deliver(&self, node_id: NodeId, delivery: Delivery) {
        match self.lock().entry(node_id) {
            Entry::Occupied(mut waiting) => {
                waiting.insert(Some(delivery));
            }
            Entry::Vacant(idle) => {
                idle.insert(None);
                self.tasks.spawn(self.clone().call(node_id, delivery));
            }
        }
    }

    /// Calls until nothing waits any more. After a failure it leaves what waits to the loop, which comes again.
    async fn call(self, node_id: NodeId, mut delivery: Delivery) {
        loop {
            let told = delivery.door.stop(delivery.request).await;
            let mut nodes = self.lock();
            let waiting = nodes.remove(&node_id).flatten();
            match (told, waiting) {
                (Ok(_), Some(next)) => {
                    nodes.insert(node_id, None);
                    delivery = next;
                }
                (Ok(_), None) => return,
                (Err(error), _) => {
                    drop(nodes);
                    tracing::info!(%node_id, error = &error as &dyn std::error::Error, "stop not delivered, repeating");
                    return;
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<NodeId, Option<Delivery>>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
