//! How workers are reached.

use std::sync::Arc;

use jobyard_api::doors::WorkerDoor;
use jobyard_model::NodeId;

/// Finds the door of a node. In `jobyard up` the worker itself, else a connection to the address it registered.
pub trait WorkerDoors: Send + Sync + 'static {
    /// The door of the node that registered `address`. Connects lazily: never blocks.
    fn door(&self, node_id: NodeId, address: &str) -> Arc<dyn WorkerDoor>;
}
