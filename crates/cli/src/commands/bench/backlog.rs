//! What many waiting jobs cost those who come after them: the same calls and the same urgent job, before and behind.

use std::time::Instant;

use jobyard_client::json::JobSubmit;
use jobyard_client::{Error, JobFilter, Status};

use super::BacklogArguments;
use super::baseline::Raw;
use super::latency::{milliseconds, one_by_one};
use super::run::Run;
use super::submit::BATCHES_AT_ONCE;
use crate::error::CommandError;
use crate::output::{self, Figure, Measured, Ratio, Times};

const BATCH: u64 = 1_000;
const MOST_URGENT: u8 = 100;

/// What is timed twice.
struct Sample {
    submit: Times,
    list: Times,
    summary: Times,
    urgent: Times,
}

pub(super) async fn measure(run: &Run<'_>, arguments: &BacklogArguments) -> Result<Measured, CommandError> {
    run.needs_a_node()?;
    let raw = Raw::Http { at_once: 1 }.take(run.client).await?;
    let before = sample(run, arguments.samples).await?;
    let filled = run.submit_batches(&run.waiting_job(), arguments.jobs, BATCH, BATCHES_AT_ONCE).await?;
    let behind = sample(run, arguments.samples).await?;
    let cancelled = run.cancel_rest().await?;
    let raw = raw.again(run.client).await?;
    let ratios = [
        ("submit", "p50 of a submit, behind to before", &behind.submit, &before.submit),
        ("list", "p50 of a page of waiting jobs, behind to before", &behind.list, &before.list),
        ("summary", "p50 of the summary, behind to before", &behind.summary, &before.summary),
        ("urgent", "p50 of an urgent job's start, behind to before", &behind.urgent, &before.urgent),
    ];
    let ratios =
        ratios.map(|(name, what, behind, before)| Ratio::new(name, what, behind.p50_ms / before.p50_ms));
    let mut figures = vec![Figure::rate("fill", format!("jobs submitted, {BATCH} in a batch"), filled)];
    figures.extend(
        before.figures(["submit_before", "list_before", "summary_before", "urgent_before"], "before"),
    );
    figures.extend(
        behind.figures(["submit_behind", "list_behind", "summary_behind", "urgent_behind"], "behind"),
    );
    figures.push(Figure::rate("cancel", "jobs cancelled, one a call", cancelled));
    Ok(Measured { baselines: vec![raw], figures, ratios: ratios.into() })
}

async fn sample(run: &Run<'_>, count: u64) -> Result<Sample, CommandError> {
    let (client, jobs, job) = (run.client, run.client.jobs(), run.waiting_job());
    let page = JobFilter { statuses: vec![Status::Waiting], limit: Some(50), ..JobFilter::default() };
    let submit = timed("timing submits", count, async || jobs.submit(job.clone()).await.map(drop)).await?;
    let list = timed("timing lists", count, async || jobs.list(&page).await.map(drop)).await?;
    let summary = timed("timing the summary", count, async || client.summary().await.map(drop)).await?;
    let urgent = JobSubmit { priority: Some(MOST_URGENT), ..run.job(&[]) };
    let urgent = Times::of(one_by_one(run, &urgent, count).await?.started);
    Ok(Sample { submit, list, summary, urgent })
}

/// One call after the other.
async fn timed(
    what: &'static str,
    count: u64,
    call: impl AsyncFn() -> Result<(), Error>,
) -> Result<Times, CommandError> {
    let bar = output::progress(what, count);
    let mut times = Vec::new();
    for _ in 0..count {
        let sent = Instant::now();
        call().await?;
        times.push(milliseconds(sent.elapsed()));
        bar.inc(1);
    }
    Ok(Times::of(times))
}

impl Sample {
    fn figures(self, names: [&'static str; 4], when: &str) -> [Figure; 4] {
        let [submit, list, summary, urgent] = names;
        [
            Figure::times(submit, format!("{when}: a submit and its answer"), self.submit),
            Figure::times(list, format!("{when}: a page of 50 waiting jobs"), self.list),
            Figure::times(summary, format!("{when}: the summary"), self.summary),
            Figure::times(
                urgent,
                format!("{when}: submit to an urgent task's first instruction"),
                self.urgent,
            ),
        ]
    }
}
