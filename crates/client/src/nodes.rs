//! The fleet.

use jobyard_api::json::Node;
use jobyard_model::NodeId;

use crate::jobs::Items;
use crate::retry::Repeat;
use crate::transport::Call;
use crate::{Client, Error};

/// The fleet; from [`Client::nodes`].
#[derive(Debug, Clone)]
pub struct Nodes {
    client: Client,
}

impl Nodes {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Every node.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client) -> Result<(), jobyard_client::Error> {
    /// for node in client.nodes().list().await? {
    ///     println!("{} has {} attempts", node.name, node.attempts);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Problem`]; [`Error::Unreachable`].
    pub async fn list(&self) -> Result<Vec<Node>, Error> {
        Ok(self.client.fetch::<Items<Node>>(&Call::get("listing the nodes", "/nodes")).await?.items)
    }

    /// Lets no new attempts onto a node; those it has go on.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client, id: jobyard_client::NodeId) -> Result<(), jobyard_client::Error> {
    /// client.nodes().cordon(id).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Problem`] when there is no such node or the token may not; [`Error::Unreachable`].
    pub async fn cordon(&self, id: NodeId) -> Result<Node, Error> {
        self.gate("cordoning a node", format!("/nodes/{id}/cordon")).await
    }

    /// Lets attempts onto a node again; also ends a drain.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client, id: jobyard_client::NodeId) -> Result<(), jobyard_client::Error> {
    /// client.nodes().uncordon(id).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`cordon`](Self::cordon).
    pub async fn uncordon(&self, id: NodeId) -> Result<Node, Error> {
        self.gate("uncordoning a node", format!("/nodes/{id}/uncordon")).await
    }

    /// Empties a node: no new attempts, and those it has move elsewhere at nobody's cost.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client, id: jobyard_client::NodeId) -> Result<(), jobyard_client::Error> {
    /// client.nodes().drain(id).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`cordon`](Self::cordon).
    pub async fn drain(&self, id: NodeId) -> Result<Node, Error> {
        self.gate("draining a node", format!("/nodes/{id}/drain")).await
    }

    async fn gate(&self, doing: &'static str, path: String) -> Result<Node, Error> {
        self.client.fetch(&Call::post(doing, path, Repeat::Safe)).await
    }
}
