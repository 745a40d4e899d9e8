//! Opening, cordoning and draining a node.

use jobyard_model::node::NodeGate;
use jobyard_model::{NodeId, NodeState, Role};

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::server::Server;

/// Sets a node's gate, and gives the node as it is then.
pub(crate) async fn set_node_gate(
    server: &Server,
    caller: &Caller,
    node_id: NodeId,
    gate: NodeGate,
) -> Result<NodeState, ApiError> {
    caller.require(Role::Operator)?;
    let missing = ApiError::NotFound { what: "node" };
    if !server.store().set_node_gate(node_id, gate, caller.actor()).await? {
        return Err(missing);
    }
    let nodes = server.store().nodes().await?;
    nodes.into_iter().find(|node| node.node_id == node_id).ok_or(missing)
}
