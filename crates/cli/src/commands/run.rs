//! `run`: a job as if it were a local program. Its output is ours, and so is its exit code.

use std::pin::pin;
use std::time::Duration;

use futures_util::TryStreamExt;
use jobyard_client::json::Job;
use jobyard_client::{Client, FollowOptions, JobId, LogStream, Status};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::signal::unix::{SignalKind, signal};

use super::submit::submit;
use crate::arguments::RunArguments;
use crate::error::CommandError;
use crate::{exit, output};

/// After this long without a start, somebody who watches is told what the job waits for.
const SAY_WHY_AFTER: Duration = Duration::from_secs(2);

pub(super) async fn run(client: &Client, arguments: &RunArguments) -> Result<u8, CommandError> {
    let mut draft = arguments.job.draft()?;
    draft.document.insert_missing("max_retries", 0);
    let mut interrupts = signal(SignalKind::interrupt())
        .map_err(|source| CommandError::Setup { doing: "catch Ctrl-C", source })?;
    let id = tokio::select! {
        job = submit(client, draft) => job?.id,
        _ = interrupts.recv() => return Ok(exit::INTERRUPTED),
    };
    output::remark(&format!("job {id}"));
    let mut ended = pin!(follow(client, id));
    let mut narration = pin!(narrate(client, id));
    let mut cancelled = false;
    loop {
        tokio::select! {
            job = &mut ended => return job.map(|job| finish(&job)),
            never = &mut narration => match never {},
            _ = interrupts.recv() => {
                if std::mem::replace(&mut cancelled, true) {
                    output::complain(&format!("left; the job goes on being cancelled: jobyard get {id}\n"));
                    return Ok(exit::INTERRUPTED);
                }
                output::complain("cancelling the job; Ctrl-C again leaves at once\n");
                tokio::spawn(cancel(client.clone(), id));
            }
        }
    }
}

async fn cancel(client: Client, id: JobId) {
    if let Err(error) = client.jobs().cancel(id).await {
        output::complain(&CommandError::from(error).show(output::Format::Table));
    }
}

/// Says how it ended: to somebody who watches always, to a script only what the exit code doesn't say already.
fn finish(job: &Job) -> u8 {
    let code = exit::of_job(job);
    if job.status != Status::Success {
        let message = job.result.as_ref().map_or("", |result| result.message.as_str());
        let words = [job.reason.as_str(), &output::ended_with(job), message];
        let mut told = format!("job {} {}", job.id, job.status);
        for (index, word) in words.into_iter().filter(|word| !word.is_empty()).enumerate() {
            told.push_str(if index == 0 { ": " } else { ", " });
            told.push_str(word);
        }
        if code == exit::NO_CODE {
            output::complain(&format!("{}\n", output::escape(&told)));
        } else {
            output::remark(&told);
        }
    }
    code
}

/// Copies the job's output to ours until it is over.
async fn follow(client: &Client, id: JobId) -> Result<Job, CommandError> {
    let mut log = client.jobs().follow(id, FollowOptions::default());
    let (mut stdout, mut stderr) = (tokio::io::stdout(), tokio::io::stderr());
    while let Some(piece) = log.try_next().await? {
        match piece.stream {
            LogStream::Stdout => write(&mut stdout, &piece.bytes).await?,
            LogStream::Stderr => write(&mut stderr, &piece.bytes).await?,
        }
    }
    Ok(client.jobs().wait(id).await?)
}

/// At once: what a job says is not held back until there is more of it.
pub(super) async fn write(to: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> Result<(), CommandError> {
    to.write_all(bytes).await.map_err(CommandError::Output)?;
    to.flush().await.map_err(CommandError::Output)
}

/// Tells somebody who watches what the job waits for, when that changes. Never ends; what can't be found out is left
/// unsaid, since it is only a comfort.
async fn narrate(client: &Client, id: JobId) -> std::convert::Infallible {
    let mut said = String::new();
    loop {
        tokio::time::sleep(SAY_WHY_AFTER).await;
        let Ok(why) = client.jobs().why(id).await else { continue };
        if why.status == Status::Running || why.status.is_end() {
            std::future::pending::<()>().await;
        }
        if why.summary != said {
            output::remark(&why.summary);
            said = why.summary;
        }
    }
}
