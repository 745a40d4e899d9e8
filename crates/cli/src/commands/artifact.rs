//! `artifact`: files and folders to and from the artifact store.

use std::path::{Path, PathBuf};

use jobyard_client::json::{Artifact, Tree};
use jobyard_client::{ArtifactHash, Client, JobId};

use crate::arguments::{ArtifactCommand, Pulled};
use crate::error::CommandError;
use crate::output::{self, ArtifactName, FolderProgress, Format, TreeName};

pub(super) async fn run(client: &Client, command: ArtifactCommand) -> Result<u8, CommandError> {
    match command {
        ArtifactCommand::Push { path, output } if path.is_dir() => {
            let tree = push_folder(client, &path).await?;
            output::show(&TreeName(tree), output.output)?;
        }
        ArtifactCommand::Push { path, output } => {
            let pushed = client.artifacts().push_file(&path).await?;
            if !pushed.sent {
                output::remark("it was there already");
            }
            let artifact = Artifact { sha256: pushed.hash.to_string(), size_bytes: pushed.size_bytes };
            output::show(&ArtifactName(artifact), output.output)?;
        }
        ArtifactCommand::Pull { what, path, output } => {
            let hash = match what {
                Pulled::Hash(hash) => hash,
                Pulled::OutputOf(job_id) => output_of(client, job_id).await?,
            };
            let path = path.unwrap_or_else(|| PathBuf::from(hash.to_string()));
            pull(client, hash, &path, output.output).await?;
        }
    }
    Ok(0)
}

/// Sends a folder and says what had to be sent.
pub(super) async fn push_folder(client: &Client, path: &Path) -> Result<Tree, CommandError> {
    let progress = FolderProgress::begin();
    let pushed = client.artifacts().push_folder(path, progress.watch()).await;
    progress.end();
    let pushed = pushed?;
    output::remark(&format!(
        "{}: {} files ({} bytes), sent {} ({} bytes)",
        path.display(),
        pushed.files,
        pushed.size_bytes,
        pushed.sent_files,
        pushed.sent_bytes
    ));
    Ok(Tree {
        sha256: pushed.hash.to_string(),
        files: u32::try_from(pushed.files).unwrap_or(u32::MAX),
        size_bytes: pushed.size_bytes,
    })
}

async fn output_of(client: &Client, job_id: JobId) -> Result<ArtifactHash, CommandError> {
    let job = client.jobs().get(job_id).await?;
    let output = job.result.and_then(|result| result.output);
    if let Some(place) = output.as_deref().filter(|output| output.starts_with("s3://")) {
        let why = format!(
            "the outputs of job {job_id} lie at {place}: get them there, its `_manifest.json` lists them"
        );
        return Err(CommandError::NoOutput(why));
    }
    let hash = output.as_deref().and_then(|name| name.strip_prefix("sha256:")?.parse().ok());
    hash.ok_or_else(|| {
        let why = format!(
            "job {job_id} ({}) has no output: it left nothing in JOBYARD_OUTPUT, did not succeed, or your token does \
             not act for its owner",
            job.status
        );
        CommandError::NoOutput(why)
    })
}

async fn pull(client: &Client, hash: ArtifactHash, path: &Path, format: Format) -> Result<(), CommandError> {
    let artifacts = client.artifacts();
    if !artifacts.has_tree(hash).await? {
        let size_bytes = artifacts.pull_to_file(hash, path).await.inspect_err(say_how_to_go_on)?;
        output::remark(&format!("wrote {} ({size_bytes} bytes)", path.display()));
        let artifact = Artifact { sha256: hash.to_string(), size_bytes };
        return if format == Format::Table { Ok(()) } else { output::show(&ArtifactName(artifact), format) };
    }
    let progress = FolderProgress::begin();
    let pulled = artifacts.pull_folder(hash, path, progress.watch()).await;
    progress.end();
    let pulled = pulled.inspect_err(say_how_to_go_on)?;
    output::remark(&format!(
        "wrote {}: {} files ({} bytes)",
        path.display(),
        pulled.files,
        pulled.size_bytes
    ));
    let files = u32::try_from(pulled.files).unwrap_or(u32::MAX);
    let tree = Tree { sha256: hash.to_string(), files, size_bytes: pulled.size_bytes };
    if format == Format::Table { Ok(()) } else { output::show(&TreeName(tree), format) }
}

fn say_how_to_go_on(error: &jobyard_client::Error) {
    if error.is_unreachable() {
        output::remark("what came is kept beside it: the same command goes on from there");
    }
}
