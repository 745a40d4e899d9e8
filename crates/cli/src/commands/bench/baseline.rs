//! What the machine does without Jobyard.

use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt, TryStreamExt};
use jobyard_client::Client;

use crate::error::CommandError;
use crate::output::{self, Baseline};

/// How long each is taken.
const WINDOW: Duration = Duration::from_secs(1);

/// A baseline before the measured part; [`Taken::again`] after it.
pub(super) struct Taken {
    raw: Raw,
    before: f64,
}

/// What is done as often as it goes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Raw {
    /// `/bin/true` started and reaped, so many at a time.
    ProcessStarts {
        /// How many threads.
        at_once: usize,
    },
    /// `GET /healthz`: there and back over HTTP, without token and datastore.
    Http {
        /// How many calls.
        at_once: usize,
    },
}

impl Raw {
    /// One start a core at a time.
    pub(super) fn process_starts_on_all_cores() -> Self {
        Self::ProcessStarts { at_once: std::thread::available_parallelism().map_or(1, usize::from) }
    }

    /// Takes it for the first time.
    pub(super) async fn take(self, client: &Client) -> Result<Taken, CommandError> {
        Ok(Taken { raw: self, before: self.rate(client).await? })
    }

    fn name(self) -> &'static str {
        match self {
            Self::ProcessStarts { .. } => "process_starts",
            Self::Http { .. } => "http",
        }
    }

    fn what(self) -> String {
        match self {
            Self::ProcessStarts { at_once } => {
                format!("/bin/true started and reaped on this machine, {at_once} at a time")
            }
            Self::Http { at_once } => {
                format!("GET /healthz, which asks no datastore, {at_once} at a time")
            }
        }
    }

    async fn rate(self, client: &Client) -> Result<f64, CommandError> {
        output::remark(&format!("baseline: {}", self.what()));
        match self {
            Self::ProcessStarts { at_once } => {
                let started = tokio::task::spawn_blocking(move || process_starts(at_once)).await;
                let started = started.unwrap_or_else(|error| Err(io::Error::other(error)));
                started.map_err(|source| CommandError::Setup { doing: "start /bin/true", source })
            }
            Self::Http { at_once } => Ok(calls(client, at_once).await?),
        }
    }
}

impl Taken {
    /// Takes it again, after the measured part.
    pub(super) async fn again(self, client: &Client) -> Result<Baseline, CommandError> {
        let Self { raw, before } = self;
        let after = raw.rate(client).await?;
        Ok(Baseline { name: raw.name(), what: raw.what(), before, after })
    }
}

/// Starts a second.
fn process_starts(at_once: usize) -> io::Result<f64> {
    let started = Instant::now();
    let counts = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..at_once).map(|_| scope.spawn(start_for_a_while)).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, io::Result<u64>>| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread broke off")))
        };
        threads.into_iter().map(join).sum::<io::Result<u64>>()
    })?;
    Ok(counts as f64 / started.elapsed().as_secs_f64())
}

fn start_for_a_while() -> io::Result<u64> {
    let (started, mut count) = (Instant::now(), 0);
    while started.elapsed() < WINDOW {
        let status = Command::new("/bin/true").stdin(Stdio::null()).status()?;
        if !status.success() {
            return Err(io::Error::other(format!("it ended with {status}")));
        }
        count += 1;
    }
    Ok(count)
}

/// Calls a second.
async fn calls(client: &Client, at_once: usize) -> Result<f64, jobyard_client::Error> {
    let started = Instant::now();
    let count = stream::repeat_with(|| client.alive())
        .take_until(tokio::time::sleep(WINDOW))
        .buffer_unordered(at_once)
        .try_fold(0_u64, |count, ()| std::future::ready(Ok(count + 1)))
        .await?;
    Ok(count as f64 / started.elapsed().as_secs_f64())
}
