//! `artifact`: files to and from the artifact store.

use std::path::PathBuf;

use jobyard_client::Client;
use jobyard_client::json::Artifact;

use crate::arguments::ArtifactCommand;
use crate::error::CommandError;
use crate::output::{self, ArtifactName, Format};

pub(super) async fn run(client: &Client, command: ArtifactCommand) -> Result<u8, CommandError> {
    match command {
        ArtifactCommand::Push { path, output } => {
            let pushed = client.artifacts().push_file(&path).await?;
            if !pushed.sent {
                output::remark("it was there already");
            }
            let artifact = Artifact { sha256: pushed.hash.to_string(), size_bytes: pushed.size_bytes };
            output::show(&ArtifactName(artifact), output.output)?;
        }
        ArtifactCommand::Pull { hash, path, output } => {
            let path = path.unwrap_or_else(|| PathBuf::from(hash.to_string()));
            let size_bytes = client.artifacts().pull_to_file(hash, &path).await?;
            output::remark(&format!("wrote {} ({size_bytes} bytes)", path.display()));
            if output.output != Format::Table {
                let artifact = Artifact { sha256: hash.to_string(), size_bytes };
                output::show(&ArtifactName(artifact), output.output)?;
            }
        }
    }
    Ok(0)
}
