//! `stop`, `cancel` and `retry`.

use jobyard_client::Client;

use super::Each;
use crate::arguments::JobsArguments;
use crate::error::CommandError;
use crate::output::{self, JobOutcomes};

pub(super) async fn stop(client: &Client, arguments: &JobsArguments) -> Result<u8, CommandError> {
    let mut each = Each::new(arguments.output.output);
    let mut jobs = Vec::new();
    for &id in &arguments.ids {
        jobs.extend(each.take(client.jobs().stop(id).await)?);
    }
    finish(jobs, arguments, &each)
}

pub(super) async fn cancel(client: &Client, arguments: &JobsArguments) -> Result<u8, CommandError> {
    let mut each = Each::new(arguments.output.output);
    let mut jobs = Vec::new();
    for &id in &arguments.ids {
        jobs.extend(each.take(client.jobs().cancel(id).await)?);
    }
    finish(jobs, arguments, &each)
}

pub(super) async fn retry(client: &Client, arguments: &JobsArguments) -> Result<u8, CommandError> {
    let mut each = Each::new(arguments.output.output);
    let mut jobs = Vec::new();
    for &id in &arguments.ids {
        jobs.extend(each.take(client.jobs().retry(id).await)?);
    }
    finish(jobs, arguments, &each)
}

fn finish(
    jobs: Vec<jobyard_client::json::Job>,
    arguments: &JobsArguments,
    each: &Each,
) -> Result<u8, CommandError> {
    if !jobs.is_empty() {
        output::show(&JobOutcomes(jobs), arguments.output.output)?;
    }
    Ok(each.exit_code())
}
