//! `wait`: until jobs are over.

use std::time::Duration;

use jobyard_client::json::Job;
use jobyard_client::{Client, Error, JobId, Status};
use tokio::time::Instant;

use super::Each;
use crate::arguments::WaitArguments;
use crate::error::CommandError;
use crate::exit;
use crate::output::{self, JobOutcomes};

/// Longer than anybody waits, and no instant is out of range.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

pub(super) async fn run(client: &Client, arguments: &WaitArguments) -> Result<u8, CommandError> {
    let limit = arguments.timeout.unwrap_or(FOR_EVER).min(FOR_EVER);
    let deadline = Instant::now() + limit;
    let mut each = Each::new(arguments.output.output);
    let mut jobs = Vec::new();
    // All have to be over, so one after the other takes no longer than all at once.
    for &id in &arguments.ids {
        jobs.extend(each.take(wait_until(client, id, deadline).await)?);
    }
    let code = exit_code(&jobs, arguments.ids.len(), &each);
    output::show(&JobOutcomes(jobs), arguments.output.output)?;
    Ok(code)
}

async fn wait_until(client: &Client, id: JobId, deadline: Instant) -> Result<Job, Error> {
    client.jobs().wait_for(id, deadline.saturating_duration_since(Instant::now())).await
}

fn exit_code(jobs: &[Job], asked: usize, each: &Each) -> u8 {
    match jobs {
        [job] if asked == 1 => exit::of_job(job),
        _ if jobs.iter().all(|job| job.status == Status::Success) => each.exit_code(),
        _ => exit::FAILED,
    }
}
