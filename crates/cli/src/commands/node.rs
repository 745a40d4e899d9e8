//! `node`: the fleet.

use jobyard_client::json::Node;
use jobyard_client::{Client, NodeId};

use super::Each;
use crate::arguments::{NodeCommand, NodesArguments};
use crate::error::CommandError;
use crate::output::{self, NodeList};

/// What is done to a node.
#[derive(Debug, Clone, Copy)]
enum Gate {
    Cordon,
    Uncordon,
    Drain,
}

pub(super) async fn run(client: &Client, command: NodeCommand) -> Result<u8, CommandError> {
    match command {
        NodeCommand::Ls { output } => {
            let items = client.nodes().list().await?;
            output::show(&NodeList { items }, output.output)?;
            Ok(0)
        }
        NodeCommand::Cordon(arguments) => set_gate(client, &arguments, Gate::Cordon).await,
        NodeCommand::Uncordon(arguments) => set_gate(client, &arguments, Gate::Uncordon).await,
        NodeCommand::Drain(arguments) => set_gate(client, &arguments, Gate::Drain).await,
    }
}

/// Finds all nodes before it changes one.
async fn set_gate(client: &Client, arguments: &NodesArguments, gate: Gate) -> Result<u8, CommandError> {
    let known = client.nodes().list().await?;
    let ids: Vec<NodeId> =
        arguments.nodes.iter().map(|wanted| find(&known, wanted)).collect::<Result<_, _>>()?;
    let mut each = Each::new(arguments.output.output);
    let mut items = Vec::new();
    for id in ids {
        let answer = match gate {
            Gate::Cordon => client.nodes().cordon(id).await,
            Gate::Uncordon => client.nodes().uncordon(id).await,
            Gate::Drain => client.nodes().drain(id).await,
        };
        items.extend(each.take(answer)?);
    }
    if !items.is_empty() {
        output::show(&NodeList { items }, arguments.output.output)?;
    }
    Ok(each.exit_code())
}

/// By id, or by a name that only one node has.
fn find(known: &[Node], wanted: &str) -> Result<NodeId, CommandError> {
    if let Ok(id) = wanted.parse() {
        return Ok(id);
    }
    let named: Vec<&Node> = known.iter().filter(|node| node.name == wanted).collect();
    match named.as_slice() {
        [node] => Ok(node.id),
        [] => {
            let names: Vec<&str> = known.iter().map(|node| node.name.as_str()).collect();
            Err(CommandError::Usage(format!(
                "no node is called {wanted}; the nodes are: {}",
                names.join(", ")
            )))
        }
        several => {
            let ids: Vec<String> = several.iter().map(|node| node.id.to_string()).collect();
            Err(CommandError::Usage(format!(
                "several nodes are called {wanted}; name one by its id: {}",
                ids.join(", ")
            )))
        }
    }
}
