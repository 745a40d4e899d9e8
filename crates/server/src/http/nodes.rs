//! Nodes over HTTP.

use axum::Json;
use axum::extract::{Path, State};
use jobyard_api::json::{DrainPreview, Node, NodeAttempt, Page, Problem, Time};
use jobyard_model::node::NodeGate;
use jobyard_model::placement::NODE_HEARD_WITHIN_MS;
use jobyard_model::{NodeState, Role, Timestamp};

use super::{path_id, whole_list};
use crate::authentication::Caller;
use crate::error::ApiError;
use crate::operations::node_attempts::{self as operations, attempts_of, read_node};
use crate::operations::set_node_gate::set_node_gate;
use crate::server::Server;

/// Lists the nodes.
#[utoipa::path(
    get, path = "/api/v1/nodes", tag = "nodes",
    responses((status = 200, description = "Every node, by name", body = Page<Node>))
)]
pub(super) async fn list(State(server): State<Server>, caller: Caller) -> Result<Json<Page<Node>>, ApiError> {
    caller.require(Role::Viewer)?;
    let _pass = server.doors().read.enter().await?;
    let nodes = server.store().nodes().await?;
    let now = server.store().now().await?;
    Ok(whole_list(nodes.into_iter().map(|node| view(node, now)).collect()))
}

/// Reads one node.
#[utoipa::path(
    get, path = "/api/v1/nodes/{id}", tag = "nodes", params(("id" = String, Path, description = "The node")),
    responses(
        (status = 200, description = "The node as it is now", body = Node),
        (status = 404, description = "No such node", body = Problem)
    )
)]
pub(super) async fn read(
    State(server): State<Server>,
    caller: Caller,
    id: Path<String>,
) -> Result<Json<Node>, ApiError> {
    caller.require(Role::Viewer)?;
    let _pass = server.doors().read.enter().await?;
    let node = read_node(&server, path_id(id)?).await?;
    let now = server.store().now().await?;
    Ok(Json(view(node, now)))
}

/// Lists the un-ended attempts on a node.
#[utoipa::path(
    get, path = "/api/v1/nodes/{id}/attempts", tag = "nodes", params(("id" = String, Path, description = "The node")),
    responses(
        (status = 200, description = "All of them, oldest job first", body = Page<NodeAttempt>),
        (status = 404, description = "No such node", body = Problem)
    )
)]
pub(super) async fn attempts(
    State(server): State<Server>,
    caller: Caller,
    id: Path<String>,
) -> Result<Json<Page<NodeAttempt>>, ApiError> {
    caller.require(Role::Viewer)?;
    let _pass = server.doors().read.enter().await?;
    Ok(whole_list(attempts_of(&server, path_id(id)?).await?))
}

/// Says which attempts a drain would move, and where each would find room now. Changes nothing.
#[utoipa::path(
    get, path = "/api/v1/nodes/{id}/drain", tag = "nodes", params(("id" = String, Path, description = "The node")),
    responses(
        (status = 200, description = "As it is now; whatever waits besides is not looked at", body = DrainPreview),
        (status = 404, description = "No such node", body = Problem)
    )
)]
pub(super) async fn preview_drain(
    State(server): State<Server>,
    caller: Caller,
    id: Path<String>,
) -> Result<Json<DrainPreview>, ApiError> {
    caller.require(Role::Viewer)?;
    let _pass = server.doors().read.enter().await?;
    Ok(Json(operations::preview_drain(&server, path_id(id)?).await?))
}

/// Lets no new attempts onto a node; those it has go on.
#[utoipa::path(
    post, path = "/api/v1/nodes/{id}/cordon", tag = "nodes", params(("id" = String, Path, description = "The node")),
    responses(
        (status = 200, description = "The node as it is now", body = Node),
        (status = 404, description = "No such node", body = Problem)
    )
)]
pub(super) async fn cordon(
    server: State<Server>,
    caller: Caller,
    id: Path<String>,
) -> Result<Json<Node>, ApiError> {
    set(server, caller, id, NodeGate::Cordoned).await
}

/// Lets attempts onto a node again; also ends a drain.
#[utoipa::path(
    post, path = "/api/v1/nodes/{id}/uncordon", tag = "nodes",
    params(("id" = String, Path, description = "The node")),
    responses(
        (status = 200, description = "The node as it is now", body = Node),
        (status = 404, description = "No such node", body = Problem)
    )
)]
pub(super) async fn uncordon(
    server: State<Server>,
    caller: Caller,
    id: Path<String>,
) -> Result<Json<Node>, ApiError> {
    set(server, caller, id, NodeGate::Open).await
}

/// Empties a node: no new attempts, and those it has move elsewhere at nobody's cost.
#[utoipa::path(
    post, path = "/api/v1/nodes/{id}/drain", tag = "nodes", params(("id" = String, Path, description = "The node")),
    responses(
        (status = 200, description = "The node as it is now", body = Node),
        (status = 404, description = "No such node", body = Problem)
    )
)]
pub(super) async fn drain(
    server: State<Server>,
    caller: Caller,
    id: Path<String>,
) -> Result<Json<Node>, ApiError> {
    set(server, caller, id, NodeGate::Draining).await
}

async fn set(
    State(server): State<Server>,
    caller: Caller,
    id: Path<String>,
    gate: NodeGate,
) -> Result<Json<Node>, ApiError> {
    let _pass = server.doors().change.enter().await?;
    let node = set_node_gate(&server, &caller, path_id(id)?, gate).await?;
    let now = server.store().now().await?;
    Ok(Json(view(node, now)))
}

fn view(node: NodeState, now: Timestamp) -> Node {
    let heard = now.ms_since(node.heard_at) <= NODE_HEARD_WITHIN_MS;
    let free = node.suspended.is_none() && node.quarantined.is_none();
    Node {
        id: node.node_id,
        name: node.name,
        pool: node.pool,
        available: heard && free && node.gate == NodeGate::Open,
        gate: node.gate,
        suspended: node.suspended,
        quarantined: node.quarantined,
        heard_time: Time(node.heard_at),
        capacity: node.capacity.into(),
        reserved: node.reserved.into(),
        attempts: node.attempts,
        max_attempts: node.max_attempts,
        labels: node.labels,
        runtimes: node.runtimes,
        containment: node.containment,
        version: node.version,
    }
}
