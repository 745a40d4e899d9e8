//! From before a submit is sent to the first instruction of the task process, one job at a time.
//!
//! `/bin/date` says when it began, by its node's clock: on another machine the figure is as good as both clocks agree.

use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use jobyard_client::json::JobSubmit;
use jobyard_client::{JobId, LogQuery, Status};

use super::LatencyArguments;
use super::baseline::Raw;
use super::run::{Run, ended_badly, wall_ms};
use crate::error::CommandError;
use crate::output::{self, Figure, Measured, Ratio, Times};

/// Runs before those that count: connections stand then, and sidecars are warm.
const WARM_UP: u64 = 5;

/// Milliseconds since the submit was sent, a list a moment.
#[derive(Debug, Default)]
pub(super) struct Moments {
    /// The answer to the submit was here.
    answered: Vec<f64>,
    /// The claim began, by the datastore's clock, which counts milliseconds.
    claimed: Vec<f64>,
    /// The task process began, by its node's clock.
    pub(super) started: Vec<f64>,
    /// The end was seen here.
    ended: Vec<f64>,
}

pub(super) async fn measure(run: &Run<'_>, arguments: &LatencyArguments) -> Result<Measured, CommandError> {
    run.needs_a_node()?;
    let raw = Raw::ProcessStarts { at_once: 1 }.take(run.client).await?;
    let moments = one_by_one(run, &run.job(&[]), arguments.jobs).await?;
    let raw = raw.again(run.client).await?;
    let start = Times::of(moments.started);
    let ratio =
        Ratio::new("start", "p50 of the start to a raw process start", start.p50_ms * raw.mean() / 1e3);
    Ok(Measured {
        baselines: vec![raw],
        figures: vec![
            Figure::times("answer", "submit to its answer", Times::of(moments.answered)),
            Figure::times("claim", "submit to the claim (the datastore's clock)", Times::of(moments.claimed)),
            Figure::times("start", "submit to the task's first instruction (its node's clock)", start),
            Figure::times("end", "submit to its end seen by who waits", Times::of(moments.ended)),
        ],
        ratios: vec![ratio],
    })
}

/// Submits jobs like `job` one after the other, each when the one before is over.
pub(super) async fn one_by_one(run: &Run<'_>, job: &JobSubmit, count: u64) -> Result<Moments, CommandError> {
    let command = ["/bin/date", "+%s.%N"].map(str::to_owned).to_vec();
    let job = JobSubmit { command, ..job.clone() };
    let bar = output::progress("one at a time", count);
    for _ in 0..WARM_UP {
        one(run, &job, &mut Moments::default()).await?;
    }
    let mut moments = Moments::default();
    for _ in 0..count {
        one(run, &job, &mut moments).await?;
        bar.inc(1);
    }
    Ok(moments)
}

async fn one(run: &Run<'_>, job: &JobSubmit, moments: &mut Moments) -> Result<(), CommandError> {
    let jobs = run.client.jobs();
    let (sent, sent_at) = (wall_ms(), Instant::now());
    let since = || milliseconds(sent_at.elapsed());
    let id = jobs.submit(job.clone()).await?.id;
    moments.answered.push(since());
    let ended = jobs.wait(id).await?;
    moments.ended.push(since());
    if ended.status != Status::Success {
        return Err(ended_badly(&ended));
    }
    moments.started.push(first_line(run, id).await? - sent);
    let attempts = jobs.attempts(id).await?;
    moments.claimed.extend(attempts.first().map(|attempt| attempt.placed_time.0.0 as f64 - sent));
    Ok(())
}

/// When the task process began, in milliseconds, as it wrote it.
async fn first_line(run: &Run<'_>, id: JobId) -> Result<f64, CommandError> {
    let log = run.client.jobs().logs(id, &LogQuery::default()).await?;
    let log: Vec<u8> = log.map_ok(|piece| piece.to_vec()).try_concat().await?;
    let text = String::from_utf8_lossy(&log);
    let seconds = text.trim().parse::<f64>();
    seconds.map(|seconds| seconds * 1e3).map_err(|_| {
        CommandError::NoFigure(format!(
            "/bin/date +%s.%N of job {id} wrote `{}`, which is no time",
            text.trim()
        ))
    })
}

pub(super) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
