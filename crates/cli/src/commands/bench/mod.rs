//! `bench`: somebody measures their own installation, beside what the machine does without it.
//!
//! Owns the order of a run: a raw baseline, the measured part, the baseline again. Invariant: **what a run left un-ended
//! is cancelled**, however the run ends; only a second Ctrl-C leaves it, and then says how to find it.

mod backlog;
mod baseline;
mod latency;
mod run;
mod submit;
mod throughput;

use clap::{Args, Subcommand};
use jobyard_client::Client;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::arguments::OutputFlags;
use crate::error::CommandError;
use crate::exit;
use crate::output::{self, BenchReport, Format, Machine, Measured};
use run::Run;

/// What can be measured.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// How many jobs a second go from their submit to their end, sidecar and logs included
    Throughput(ThroughputArguments),
    /// How long it takes from a submit to the first instruction of the task process, on an idle installation
    Latency(LatencyArguments),
    /// How many jobs a second are submitted durably, one a call and in batches
    Submit(SubmitArguments),
    /// What many waiting jobs cost: submits, lists, the summary, the start of an urgent job
    Backlog(BacklogArguments),
}

/// Where to measure, and how to show it.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The pool whose nodes are measured
    #[arg(long, default_value = "default", value_name = "NAME")]
    pool: String,
    /// The team that is accounted for; the token's first owner unless given
    #[arg(long)]
    owner: Option<String>,
    /// The same as -o json
    #[arg(long, conflicts_with = "output")]
    json: bool,
    #[command(flatten)]
    output: OutputFlags,
}

#[derive(Debug, Args)]
pub(crate) struct ThroughputArguments {
    /// How many jobs, each running /bin/true
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    jobs: u64,
    /// Submitted so many at a time
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    batch: u64,
    #[command(flatten)]
    run: RunArguments,
}

#[derive(Debug, Args)]
pub(crate) struct LatencyArguments {
    /// How many jobs, one after the other, each running /bin/date
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    jobs: u64,
    #[command(flatten)]
    run: RunArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The jobs ask for a node label that no node has, so that none runs, and are cancelled afterwards. They stay in the list of
jobs as cancelled ones, labelled bench=RUN.")]
pub(crate) struct SubmitArguments {
    /// How many jobs, one a call
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    jobs: u64,
    /// So many calls at a time
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    clients: u16,
    /// How many more jobs in batches
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    batched_jobs: u64,
    /// Jobs in a batch
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    batch: u64,
    #[command(flatten)]
    run: RunArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The jobs that wait ask for a node label that no node has, and are cancelled afterwards. They stay in the list of jobs as
cancelled ones, labelled bench=RUN.")]
pub(crate) struct BacklogArguments {
    /// How many jobs wait
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    jobs: u64,
    /// How many calls of each kind, and how many urgent jobs, are timed before and behind them
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    samples: u64,
    #[command(flatten)]
    run: RunArguments,
}

impl BenchCommand {
    fn name(&self) -> &'static str {
        match self {
            Self::Throughput(_) => "throughput",
            Self::Latency(_) => "latency",
            Self::Submit(_) => "submit",
            Self::Backlog(_) => "backlog",
        }
    }

    fn run(&self) -> &RunArguments {
        match self {
            Self::Throughput(arguments) => &arguments.run,
            Self::Latency(arguments) => &arguments.run,
            Self::Submit(arguments) => &arguments.run,
            Self::Backlog(arguments) => &arguments.run,
        }
    }

    /// How the report is wanted.
    pub(crate) fn format(&self) -> Format {
        let run = self.run();
        if run.json { Format::Json } else { run.output.output }
    }
}

pub(super) async fn run(client: &Client, command: &BenchCommand) -> Result<u8, CommandError> {
    let mut interrupts = signal(SignalKind::interrupt())
        .map_err(|source| CommandError::Setup { doing: "catch Ctrl-C", source })?;
    let run = Run::begin(client, command.run()).await?;
    output::remark(&format!("jobs of this run are labelled {}", run.label()));
    let measured = tokio::select! {
        measured = measure(&run, command) => measured,
        _ = interrupts.recv() => {
            let label = run.label();
            output::complain(&format!("cancelling what is left of {label}; Ctrl-C again leaves it as it is\n"));
            clear_up(&run, &mut interrupts).await?;
            return Ok(exit::INTERRUPTED);
        }
    };
    match measured {
        Ok(measured) => {
            let (benchmark, machine) = (command.name(), Machine::of_this());
            let report = BenchReport {
                benchmark,
                run: run.name.clone(),
                machine,
                server: run.server.clone(),
                measured,
            };
            output::show(&report, command.format())?;
            Ok(0)
        }
        Err(error) => {
            if let Err(left) = clear_up(&run, &mut interrupts).await {
                output::complain(&left.show(Format::Table));
            }
            Err(error)
        }
    }
}

async fn measure(run: &Run<'_>, command: &BenchCommand) -> Result<Measured, CommandError> {
    match command {
        BenchCommand::Throughput(arguments) => throughput::measure(run, arguments).await,
        BenchCommand::Latency(arguments) => latency::measure(run, arguments).await,
        BenchCommand::Submit(arguments) => submit::measure(run, arguments).await,
        BenchCommand::Backlog(arguments) => backlog::measure(run, arguments).await,
    }
}

/// Cancels what is left of a run that broke off, unless Ctrl-C says to leave it.
async fn clear_up(run: &Run<'_>, interrupts: &mut Signal) -> Result<(), CommandError> {
    let label = run.label();
    tokio::select! {
        cancelled = run.cancel_rest() => match cancelled?.count {
            0 => {}
            count => output::complain(&format!("cancelled the {count} jobs that were left\n")),
        },
        _ = interrupts.recv() => output::complain(&format!(
            "left; what is not over: jobyard ps -l {label} --status ready,waiting,running,retry\n"
        )),
    }
    Ok(())
}
