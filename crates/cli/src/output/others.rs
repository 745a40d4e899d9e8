//! Nodes, artifacts and tokens for people.

use jobyard_client::json::{Artifact, Node, Token, TokenCreated, Tree};
use jobyard_model::node::NodeGate;
use serde::Serialize;

use super::jobs::memory;
use super::table::{self, Column, Tint, Value};
use super::{Output, Style};

/// The fleet.
#[derive(Serialize)]
pub(crate) struct NodeList {
    /// By name.
    pub(crate) items: Vec<Node>,
}

impl Output for NodeList {
    fn table(&self, style: &Style) -> String {
        let columns = [
            Column::Whole("NAME"),
            Column::Whole("ID"),
            Column::Whole("POOL"),
            Column::Whole("STATE"),
            Column::Number("ATTEMPTS"),
            Column::Number("CPU"),
            Column::Number("MEMORY"),
            Column::Whole("HEARD"),
            Column::Text("WHY"),
        ];
        let row = |node: &Node| -> [Value; 9] {
            let why = node.quarantined.as_ref().or(node.suspended.as_ref()).cloned().unwrap_or_default();
            [
                node.name.clone().into(),
                node.id.to_string().into(),
                node.pool.clone().into(),
                state(node),
                format!("{}/{}", node.attempts, node.max_attempts).into(),
                format!("{}/{}", node.reserved.cpu.as_f64(), node.capacity.cpu.as_f64()).into(),
                format!("{}/{}", memory(node.reserved.memory.0), memory(node.capacity.memory.0)).into(),
                style.time(node.heard_time.0).into(),
                why.into(),
            ]
        };
        table::rows(style, columns, self.items.iter().map(row))
    }
}

/// The strongest of what keeps attempts away.
fn state(node: &Node) -> Value {
    match node {
        Node { quarantined: Some(_), .. } => Value::Word("quarantined", Tint::Bad),
        Node { suspended: Some(_), .. } => Value::Word("suspended", Tint::Bad),
        Node { gate: NodeGate::Draining, .. } => Value::Word("draining", Tint::Odd),
        Node { gate: NodeGate::Cordoned, .. } => Value::Word("cordoned", Tint::Odd),
        Node { available: true, .. } => Value::Word("open", Tint::Good),
        Node { .. } => Value::Word("silent", Tint::Bad),
    }
}

/// An artifact's name, ready to be a `binary_url`.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct ArtifactName(pub(crate) Artifact);

impl Output for ArtifactName {
    fn table(&self, _: &Style) -> String {
        format!("sha256:{}\n", self.0.sha256)
    }
}

/// A tree's name, ready to be an `input_path`.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct TreeName(pub(crate) Tree);

impl Output for TreeName {
    fn table(&self, _: &Style) -> String {
        format!("sha256:{}\n", self.0.sha256)
    }
}

/// Tokens without their secrets.
#[derive(Serialize)]
pub(crate) struct TokenList {
    /// Newest first.
    pub(crate) items: Vec<Token>,
}

impl Output for TokenList {
    fn table(&self, style: &Style) -> String {
        let columns = [
            Column::Whole("ID"),
            Column::Text("NAME"),
            Column::Whole("ROLE"),
            Column::Text("OWNERS"),
            Column::Whole("CREATED"),
            Column::Whole("EXPIRES"),
            Column::Whole("REVOKED"),
        ];
        let time = |time: Option<jobyard_client::json::Time>| {
            time.map_or_else(String::new, |time| style.time(time.0))
        };
        let row = |token: &Token| -> [Value; 7] {
            [
                token.id.to_string().into(),
                token.name.clone().into(),
                token.role.as_str().into(),
                token.owners.join(" ").into(),
                style.time(token.created_time.0).into(),
                time(token.expires_time).into(),
                time(token.revoked_time).into(),
            ]
        };
        table::rows(style, columns, self.items.iter().map(row))
    }
}

/// A new token: for people and scripts its secret alone.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct TokenSecret(pub(crate) TokenCreated);

impl Output for TokenSecret {
    fn table(&self, _: &Style) -> String {
        format!("{}\n", self.0.secret)
    }
}
