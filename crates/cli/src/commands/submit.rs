//! `submit`: hands a job in, and says its id.

use jobyard_client::Client;
use jobyard_client::json::Job;

use super::artifact;
use crate::arguments::SubmitArguments;
use crate::error::CommandError;
use crate::exit;
use crate::job_flags::Draft;
use crate::output::{self, Format, JobOutcomes};

pub(super) async fn run(client: &Client, arguments: &SubmitArguments) -> Result<u8, CommandError> {
    let job = submit(client, arguments.job.draft()?).await?;
    let id = job.id;
    match arguments.output.output {
        Format::Table => output::print(format!("{id}\n").as_bytes())?,
        format if !arguments.wait => output::show(&JobOutcomes(vec![job]), format)?,
        Format::Json | Format::Yaml => {}
    }
    if !arguments.wait {
        return Ok(0);
    }
    let job = client.jobs().wait(id).await?;
    let code = exit::of_job(&job);
    match arguments.output.output {
        Format::Table => output::remark(&format!("{} {}", job.status, output::ended_with(&job))),
        format => output::show(&JobOutcomes(vec![job]), format)?,
    }
    Ok(code)
}

/// Uploads what has to go up, and submits. Tells the server's warnings.
pub(super) async fn submit(client: &Client, draft: Draft) -> Result<Job, CommandError> {
    let Draft { mut document, upload, input } = draft;
    if let Some(program) = upload {
        let pushed = client.artifacts().push_file(&program).await?;
        if pushed.sent {
            output::remark(&format!("uploaded {} ({} bytes)", program.display(), pushed.size_bytes));
        }
        document.insert("binary_url", format!("sha256:{}", pushed.hash));
    }
    if let Some(input) = input {
        let hash = match input.is_dir() {
            true => artifact::push_folder(client, &input).await?.sha256,
            false => client.artifacts().push_file(&input).await?.hash.to_string(),
        };
        document.insert("input_path", format!("sha256:{hash}"));
    }
    let job = client.jobs().submit_document(document.into_value()).await?;
    for warning in &job.warnings {
        output::complain(&format!("warning: {}\n", output::escape(warning)));
    }
    Ok(job)
}
