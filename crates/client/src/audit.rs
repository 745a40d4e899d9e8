//! Who did what.

use jobyard_api::json::{Audit as AuditEntry, Page};

use crate::transport::Call;
use crate::{Client, Error};

/// Who did what; from [`Client::audit`].
#[derive(Debug, Clone)]
pub struct Audit {
    client: Client,
}

impl Audit {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// A page of the audit trail, newest first; `cursor` is the `next_cursor` of the page before.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client) -> Result<(), jobyard_client::Error> {
    /// for entry in client.audit().list(None).await?.items {
    ///     println!("{} {} {}", entry.who, entry.action, entry.target);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Problem`] when the token may not; [`Error::Unreachable`].
    pub async fn list(&self, cursor: Option<&str>) -> Result<Page<AuditEntry>, Error> {
        self.client.fetch(&Call::get("reading the audit trail", "/audit").query_if("cursor", cursor)).await
    }
}
