//! One run: its jobs, submitted, waited for, cancelled.
//!
//! Owns the label that marks them. Never touches a job without it.

use std::future::ready;
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt, TryStreamExt};
use jobyard_client::json::{Job, JobSubmit, Summary};
use jobyard_client::{Client, Error, JobFilter, JobId, Status};
use rustix::time::{ClockId, clock_gettime};

use super::RunArguments;
use crate::error::CommandError;
use crate::output::{self, BenchServer, Rate};

/// What an un-ended job can be.
const OPEN: [Status; 4] = [Status::Ready, Status::Waiting, Status::Running, Status::Retry];
/// Cancelled so many at a time.
const CANCELS_AT_ONCE: usize = 16;
/// The most jobs the server puts into a page.
const LARGEST_PAGE: u32 = 500;

/// With more jobs left than this, the end is not near.
const NEAR_THE_END: u64 = 500;
/// How often the summary is asked far from the end, and near it: what is asked is paid for by what is measured.
const FAR_PAUSE: Duration = Duration::from_millis(200);
const NEAR_PAUSE: Duration = Duration::from_millis(10);
/// The summary also counts the jobs of others: how long it may mislead.
const LONGEST_WITHOUT_LOOK: Duration = Duration::from_secs(1);

/// A run and the installation it measures.
pub(super) struct Run<'a> {
    pub(super) client: &'a Client,
    pub(super) name: String,
    pub(super) server: BenchServer,
    pool: String,
    owner: Option<String>,
    /// Jobs of others that were not over when it began.
    others: u64,
}

impl<'a> Run<'a> {
    /// Looks whether there is something to measure.
    pub(super) async fn begin(client: &'a Client, arguments: &RunArguments) -> Result<Self, CommandError> {
        let summary = client.summary().await?;
        let nodes = client.nodes().list().await?;
        let nodes: Vec<_> =
            nodes.iter().filter(|node| node.available && node.pool == arguments.pool).collect();
        let server = BenchServer {
            url: client.url().to_owned(),
            version: summary.version.clone(),
            datastore: summary.datastore.clone(),
            nodes: nodes.len(),
            node_cores: nodes.iter().map(|node| node.capacity.cpu.as_f64()).sum(),
        };
        Ok(Self {
            client,
            name: format!("{:x}-{}", wall_ms() as u64, std::process::id()),
            server,
            pool: arguments.pool.clone(),
            owner: arguments.owner.clone(),
            others: unended(&summary),
        })
    }

    /// The mark of its jobs, as flags take it.
    pub(super) fn label(&self) -> String {
        format!("bench={}", self.name)
    }

    /// Jobs can only run where a node takes them.
    pub(super) fn needs_a_node(&self) -> Result<(), CommandError> {
        if self.server.nodes > 0 {
            return Ok(());
        }
        let pool = &self.pool;
        Err(CommandError::NoFigure(format!(
            "no node of the pool {pool} takes jobs now: start a worker, see `jobyard node ls`"
        )))
    }

    /// A job of this run.
    pub(super) fn job(&self, command: &[&str]) -> JobSubmit {
        JobSubmit {
            owner_id: self.owner.clone(),
            name: Some("bench".to_owned()),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            max_retries: Some(0),
            pool: Some(self.pool.clone()),
            labels: [("bench".to_owned(), self.name.clone())].into(),
            ..JobSubmit::default()
        }
    }

    /// A job that no node takes: it waits until it is cancelled.
    pub(super) fn waiting_job(&self) -> JobSubmit {
        let node_labels = [("jobyard-bench".to_owned(), self.name.clone())].into();
        JobSubmit { node_labels, ..self.job(&["/bin/true"]) }
    }

    /// Submits `count` copies in batches, so many batches at a time.
    pub(super) async fn submit_batches(
        &self,
        job: &JobSubmit,
        count: u64,
        batch: u64,
        at_once: usize,
    ) -> Result<Rate, CommandError> {
        let bar = output::progress("submitting", count);
        let sizes = (0..count).step_by(batch.try_into().unwrap_or(usize::MAX));
        let started = Instant::now();
        stream::iter(sizes.map(|at| batch.min(count - at)))
            .map(|size| {
                let jobs = vec![job.clone(); usize::try_from(size).unwrap_or(usize::MAX)];
                let bar = &bar;
                async move {
                    self.client.jobs().submit_batch(jobs).await?;
                    bar.inc(size);
                    Ok::<_, Error>(())
                }
            })
            .buffer_unordered(at_once)
            .try_for_each(|()| ready(Ok(())))
            .await?;
        Ok(Rate { count, seconds: started.elapsed().as_secs_f64() })
    }

    /// Until all `count` jobs of the run are over; they must have succeeded.
    pub(super) async fn until_over(&self, count: u64) -> Result<(), CommandError> {
        let bar = output::progress("running", count);
        let mut looked = Instant::now();
        loop {
            let left = unended(&self.client.summary().await?).saturating_sub(self.others);
            bar.set_position(count.saturating_sub(left));
            if left == 0 || looked.elapsed() > LONGEST_WITHOUT_LOOK {
                looked = Instant::now();
                if self.first_of(&OPEN).await?.is_none() {
                    return Ok(());
                }
            }
            tokio::time::sleep(if left > NEAR_THE_END { FAR_PAUSE } else { NEAR_PAUSE }).await;
        }
    }

    /// Fails when a job of the run ended badly: then what was measured is something else.
    pub(super) async fn all_succeeded(&self) -> Result<(), CommandError> {
        match self.first_of(&[Status::FinalFailed, Status::Cancelled]).await? {
            None => Ok(()),
            Some(job) => Err(ended_badly(&job)),
        }
    }

    async fn first_of(&self, statuses: &[Status]) -> Result<Option<Job>, Error> {
        self.client.jobs().list_all(self.filter(statuses, 1)).try_next().await
    }

    fn filter(&self, statuses: &[Status], limit: u32) -> JobFilter {
        JobFilter {
            statuses: statuses.to_vec(),
            labels: vec![("bench".to_owned(), self.name.clone())],
            limit: Some(limit),
            ..JobFilter::default()
        }
    }

    /// Cancels all jobs of the run that are not over.
    pub(super) async fn cancel_rest(&self) -> Result<Rate, CommandError> {
        let bar = output::progress_without_end("cancelling");
        let started = Instant::now();
        let mut count = 0;
        loop {
            let cancelled = self.cancel_listed(&bar).await?;
            count += cancelled;
            // A submit that was on its way when the run broke off may have come in after the list was read.
            if cancelled == 0 {
                return Ok(Rate { count, seconds: started.elapsed().as_secs_f64() });
            }
        }
    }

    async fn cancel_listed(&self, bar: &indicatif::ProgressBar) -> Result<u64, Error> {
        let jobs = self.client.jobs();
        let wanted = |job: &Job| (job.intent < jobyard_model::Intent::Cancel).then_some(job.id);
        jobs.list_all(self.filter(&OPEN, LARGEST_PAGE))
            .try_filter_map(|job| ready(Ok(wanted(&job))))
            .map_ok(|id: JobId| {
                let jobs = jobs.clone();
                async move { jobs.cancel(id).await }
            })
            .try_buffer_unordered(CANCELS_AT_ONCE)
            .inspect_ok(|_| bar.inc(1))
            .try_fold(0, |count, _| ready(Ok(count + 1)))
            .await
    }
}

pub(super) fn ended_badly(job: &Job) -> CommandError {
    let message = job.result.as_ref().map_or("", |result| result.message.as_str());
    CommandError::NoFigure(format!("job {} ended as {}: {} {message}", job.id, job.status, job.reason))
}

/// Jobs of the installation that are not over; counting stops at a bound.
fn unended(summary: &Summary) -> u64 {
    summary.jobs.iter().filter(|count| OPEN.contains(&count.status)).map(|count| count.count).sum()
}

/// The wall clock in milliseconds, finer than any of our timestamps: to be compared with what a task process read.
pub(super) fn wall_ms() -> f64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}
