//! `get`, `attempts`, `events`, `why`: one job, looked at from four sides.

use jobyard_client::Client;

use crate::arguments::JobArguments;
use crate::error::CommandError;
use crate::output::{self, AttemptList, EventList, Format, JobDetail};

pub(super) async fn get(client: &Client, arguments: &JobArguments) -> Result<u8, CommandError> {
    let job = client.jobs().get(arguments.id).await?;
    let attempts = match arguments.output.output {
        Format::Table if job.attempt.is_some() => client.jobs().attempts(arguments.id).await?,
        _ => Vec::new(),
    };
    output::show(&JobDetail { job, attempts }, arguments.output.output)?;
    Ok(0)
}

pub(super) async fn attempts(client: &Client, arguments: &JobArguments) -> Result<u8, CommandError> {
    let items = client.jobs().attempts(arguments.id).await?;
    output::show(&AttemptList { items }, arguments.output.output)?;
    Ok(0)
}

pub(super) async fn events(client: &Client, arguments: &JobArguments) -> Result<u8, CommandError> {
    let items = client.jobs().events(arguments.id).await?;
    output::show(&EventList { items }, arguments.output.output)?;
    Ok(0)
}

pub(super) async fn why(client: &Client, arguments: &JobArguments) -> Result<u8, CommandError> {
    let why = client.jobs().why(arguments.id).await?;
    output::show(&why, arguments.output.output)?;
    Ok(0)
}
