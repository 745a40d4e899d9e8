//! `token`: who may.

use jobyard_client::json::{Seconds, TokenCreate};

use super::Each;
use crate::arguments::{TokenCommand, TokenCreateArguments};
use crate::connect;
use crate::error::CommandError;
use crate::output::{self, Format, TokenList, TokenSecret};
use crate::roles;

pub(super) async fn run(command: TokenCommand) -> Result<u8, CommandError> {
    match command {
        TokenCommand::Create(arguments) => create(&arguments).await,
        TokenCommand::Ls { output } => {
            let items = connect::client()?.tokens().list().await?;
            output::show(&TokenList { items }, output.output)?;
            Ok(0)
        }
        TokenCommand::Revoke { ids } => {
            let client = connect::client()?;
            let mut each = Each::new(Format::Table);
            for id in ids {
                each.take(client.tokens().revoke(id).await)?;
            }
            Ok(each.exit_code())
        }
    }
}

async fn create(arguments: &TokenCreateArguments) -> Result<u8, CommandError> {
    let created = match &arguments.config {
        Some(config) => roles::token::create(config, &arguments.to_token()).await?,
        None => connect::client()?.tokens().create(&arguments.to_token()).await?,
    };
    output::show(&TokenSecret(created), arguments.output.output)?;
    output::remark("this is the only time the secret is shown");
    Ok(0)
}

impl TokenCreateArguments {
    /// The token that was asked for.
    pub(crate) fn to_token(&self) -> TokenCreate {
        let milliseconds =
            |lifetime: std::time::Duration| u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX);
        TokenCreate {
            name: self.name.clone(),
            role: self.role,
            owners: self.owners.clone(),
            expires_in: self.expires_in.map(|lifetime| Seconds { ms: milliseconds(lifetime) }),
        }
    }
}
