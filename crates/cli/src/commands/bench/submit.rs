//! Durable submissions over HTTP: one a call from many clients, then in batches. None of the jobs runs.

use std::future::ready;
use std::time::Instant;

use futures_util::stream::{self, StreamExt, TryStreamExt};

use super::SubmitArguments;
use super::baseline::Raw;
use super::run::Run;
use crate::error::CommandError;
use crate::output::{self, Figure, Measured, Rate, Ratio};

/// Batches at a time: what the server takes in hand.
pub(super) const BATCHES_AT_ONCE: usize = 4;

pub(super) async fn measure(run: &Run<'_>, arguments: &SubmitArguments) -> Result<Measured, CommandError> {
    let at_once = usize::from(arguments.clients);
    let raw = Raw::Http { at_once }.take(run.client).await?;
    let single = one_a_call(run, arguments.jobs, at_once).await?;
    let SubmitArguments { batched_jobs, batch, .. } = *arguments;
    let batched = run.submit_batches(&run.waiting_job(), batched_jobs, batch, BATCHES_AT_ONCE).await?;
    let cancelled = run.cancel_rest().await?;
    let raw = raw.again(run.client).await?;
    let ratios = vec![
        Ratio::new("single", "jobs one a call to raw calls", single.per_second() / raw.mean()),
        Ratio::new("batched", "jobs in batches to raw calls", batched.per_second() / raw.mean()),
    ];
    Ok(Measured {
        baselines: vec![raw],
        figures: vec![
            Figure::rate("single", format!("jobs submitted, one a call, {at_once} calls at a time"), single),
            Figure::rate("batched", format!("jobs submitted, {batch} in a batch"), batched),
            Figure::rate("cancel", "jobs cancelled, one a call", cancelled),
        ],
        ratios,
    })
}

async fn one_a_call(run: &Run<'_>, count: u64, at_once: usize) -> Result<Rate, CommandError> {
    let bar = output::progress("submitting one a call", count);
    let (job, jobs) = (run.waiting_job(), run.client.jobs());
    let started = Instant::now();
    stream::iter(0..count)
        .map(|_| jobs.submit(job.clone()))
        .buffer_unordered(at_once)
        .try_for_each(|_| {
            bar.inc(1);
            ready(Ok(()))
        })
        .await?;
    Ok(Rate { count, seconds: started.elapsed().as_secs_f64() })
}
