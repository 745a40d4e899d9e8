//! The command line, as clap reads it.
//!
//! Owns names, flags and help texts. What is not built yet is not here (see `later`).

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use jobyard_client::json::Time;
use jobyard_client::json::units::{parse_duration_ms, parse_time};
use jobyard_client::{ArtifactHash, JobId, Role, Status, TokenId};

use crate::commands::bench::BenchCommand;
use crate::doctor::DoctorArguments;
use crate::exit;
use crate::job_flags::{JobFlags, Pair};
use crate::output::Format;
use crate::roles::RoleCommand;

/// Submit programs as jobs; Jobyard runs each on some machine, retries what fails, never loses one, and shows what happened.
#[derive(Debug, Parser)]
#[command(name = "jobyard", version, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "\
Start here:  jobyard up                        in one terminal
             jobyard run -- echo hello         in another

Commands find their server in JOBYARD_URL and JOBYARD_TOKEN, then in ~/.config/jobyard/config.toml, then in what a
running `jobyard up` left in its data directory. `jobyard help exit-codes` says what commands end with.";

#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one in a process")]
pub(crate) enum Command {
    #[command(flatten)]
    User(UserCommand),
    #[command(flatten)]
    Role(RoleCommand),
}

/// What people type.
#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Submit a job and print its id
    Submit(SubmitArguments),
    /// Submit a job, follow its log, end with its exit code
    Run(RunArguments),
    /// List jobs, newest first
    Ps(PsArguments),
    /// Show a job and its attempts
    Get(JobArguments),
    /// Show a job's attempts
    Attempts(JobArguments),
    /// Show a job's history
    Events(JobArguments),
    /// Print what a job wrote
    Logs(LogsArguments),
    /// Wait until jobs are over
    Wait(WaitArguments),
    /// Stop services; they end well
    Stop(JobsArguments),
    /// Cancel jobs
    Cancel(JobsArguments),
    /// Run jobs again that failed or were cancelled
    Retry(JobsArguments),
    /// Say why a job isn't running yet, and what would change that
    Why(JobArguments),
    /// Look after the fleet
    #[command(subcommand)]
    Node(NodeCommand),
    /// Move files and folders to and from the artifact store
    #[command(subcommand)]
    Artifact(ArtifactCommand),
    /// Look after who may
    #[command(subcommand)]
    Token(TokenCommand),
    /// Print a link that signs a browser in to the dashboard; it works once, for 15 minutes
    Dashboard,
    /// Measure an installation, beside what the machine does without it
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Say what this machine can isolate and limit, and what is missing for a worker
    Doctor(DoctorArguments),
    /// Print a completion script
    #[command(
        after_help = "For example: jobyard completion bash > ~/.local/share/bash-completion/completions/jobyard"
    )]
    Completion {
        /// For which shell
        shell: Shell,
    },
    /// What the exit codes mean
    #[command(hide = true, long_about = exit::TOPIC, help_template = "{about-with-newline}")]
    ExitCodes,
}

/// How to show what was asked for.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct OutputFlags {
    /// table for people, json as the API answers, or yaml
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT", hide_possible_values = true)]
    pub(crate) output: Format,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A program that is named by a relative path with a slash in it is a file of this machine: it is uploaded, once, and run
with its arguments. Other names are looked up on the node.

  jobyard submit -- sleep 5
  jobyard submit --memory 1GiB --timeout 30m ./report.py --month 11
  jobyard submit -f job.yaml --priority 80")]
pub(crate) struct SubmitArguments {
    #[command(flatten)]
    pub(crate) job: JobFlags,
    /// Wait for the job's end, and end with its exit code
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The job's standard output and standard error become those of this command. It is not retried unless --max-retries asks
for it. Ctrl-C cancels the job and waits for its end; a second Ctrl-C leaves at once.

  jobyard run -- sh -c 'echo hello; exit 3'
  jobyard run ./train.sh --epochs 3")]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) job: JobFlags,
}

#[derive(Debug, Args)]
pub(crate) struct PsArguments {
    /// Only these, such as waiting,running
    #[arg(long, value_delimiter = ',', value_name = "STATUS")]
    pub(crate) status: Vec<Status>,
    /// Only this owner's
    #[arg(long)]
    pub(crate) owner: Option<String>,
    /// Only with exactly this name
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Only with this label; may be repeated
    #[arg(long, short = 'l', value_name = "KEY=VALUE")]
    pub(crate) label: Vec<Pair>,
    /// Only what this made, such as schedule:nightly
    #[arg(long, value_name = "KIND:ID", value_parser = parse_origin)]
    pub(crate) origin: Option<(String, String)>,
    /// Only the job that came with this key
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    /// Only with this text in the id, the name or the command line
    #[arg(long, short, value_name = "TEXT")]
    pub(crate) query: Option<String>,
    /// Only those made at this instant or later, such as 2026-05-01T09:30:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) created_after: Option<Time>,
    /// Only those made before this instant
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) created_before: Option<Time>,
    /// At most so many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

#[derive(Debug, Args)]
pub(crate) struct JobArguments {
    /// The job's id
    pub(crate) id: JobId,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

#[derive(Debug, Args)]
pub(crate) struct JobsArguments {
    /// The jobs' ids
    #[arg(required = true)]
    pub(crate) ids: Vec<JobId>,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

#[derive(Debug, Args)]
pub(crate) struct WaitArguments {
    /// The jobs' ids
    #[arg(required = true)]
    pub(crate) ids: Vec<JobId>,
    /// Wait no longer than this, such as 10m; then end with 124
    #[arg(long, value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArguments {
    /// The job's id
    pub(crate) id: JobId,
    /// Go on until the job is over
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Of this attempt instead of the newest
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) attempt: Option<u32>,
    /// Only standard output
    #[arg(long, conflicts_with = "stderr")]
    pub(crate) stdout: bool,
    /// Only standard error
    #[arg(long)]
    pub(crate) stderr: bool,
    /// Only the last lines
    #[arg(long, value_name = "LINES", conflicts_with = "follow")]
    pub(crate) tail: Option<u64>,
    /// Only what was written at this instant or later
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "follow")]
    pub(crate) since: Option<Time>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// List the nodes
    Ls {
        #[command(flatten)]
        output: OutputFlags,
    },
    /// Let no new attempts onto nodes; those they have go on
    Cordon(NodesArguments),
    /// Let attempts onto nodes again
    Uncordon(NodesArguments),
    /// Empty nodes: their attempts move elsewhere
    Drain(NodesArguments),
}

#[derive(Debug, Args)]
pub(crate) struct NodesArguments {
    /// Ids, or names that only one node has
    #[arg(required = true, value_name = "NODE")]
    pub(crate) nodes: Vec<String>,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

const PUSH_HELP: &str = "\
Of a folder: links count as the files they lead to; links out of the folder, links to folders, devices and pipes are
refused; empty folders are left out. A push that broke off goes on where it was.";

#[derive(Debug, Subcommand)]
pub(crate) enum ArtifactCommand {
    /// Send a file or a folder, as far as it isn't there already, and print its name
    #[command(after_help = PUSH_HELP)]
    Push {
        /// Which
        path: PathBuf,
        #[command(flatten)]
        output: OutputFlags,
    },
    /// Fetch a file or a folder; one that broke off goes on where it was
    Pull {
        /// Its name: sha256:<hex>, or the hex digits alone; or a job's id: what the job left in JOBYARD_OUTPUT
        #[arg(value_name = "HASH|JOB", value_parser = pulled)]
        what: Pulled,
        /// Where to; named after the hash unless given. A folder must not be there yet, or be empty
        path: Option<PathBuf>,
        #[command(flatten)]
        output: OutputFlags,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and print its secret, this once
    Create(TokenCreateArguments),
    /// List the tokens
    Ls {
        #[command(flatten)]
        output: OutputFlags,
    },
    /// Revoke tokens; they stop working at once
    Revoke {
        /// Their ids
        #[arg(required = true)]
        ids: Vec<TokenId>,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct TokenCreateArguments {
    /// Whose it is; shown as submitted_by and in the audit trail
    #[arg(long)]
    pub(crate) name: String,
    /// What it may do: viewer, submitter, operator, admin, or node, which may only join
    #[arg(long, value_parser = role)]
    pub(crate) role: Role,
    /// Owners it acts for; may be repeated, the first is the default
    #[arg(long = "owner", value_name = "OWNER")]
    pub(crate) owners: Vec<String>,
    /// How long it lives, such as 30d; for ever unless given
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) expires_in: Option<Duration>,
    /// Straight to the datastore of this settings file: for the first token, when no server can be asked
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

impl Command {
    /// How output and errors are wanted.
    pub(crate) fn format(&self) -> Format {
        let Self::User(command) = self else { return Format::Table };
        let output = match command {
            UserCommand::Submit(arguments) => arguments.output,
            UserCommand::Ps(arguments) => arguments.output,
            UserCommand::Get(arguments)
            | UserCommand::Attempts(arguments)
            | UserCommand::Events(arguments)
            | UserCommand::Why(arguments) => arguments.output,
            UserCommand::Wait(arguments) => arguments.output,
            UserCommand::Stop(arguments) | UserCommand::Cancel(arguments) | UserCommand::Retry(arguments) => {
                arguments.output
            }
            UserCommand::Node(NodeCommand::Ls { output }) => *output,
            UserCommand::Node(
                NodeCommand::Cordon(arguments)
                | NodeCommand::Uncordon(arguments)
                | NodeCommand::Drain(arguments),
            ) => arguments.output,
            UserCommand::Artifact(
                ArtifactCommand::Push { output, .. } | ArtifactCommand::Pull { output, .. },
            ) => *output,
            UserCommand::Token(TokenCommand::Create(arguments)) => arguments.output,
            UserCommand::Token(TokenCommand::Ls { output }) => *output,
            UserCommand::Doctor(arguments) => arguments.output,
            UserCommand::Bench(command) => return command.format(),
            UserCommand::Token(TokenCommand::Revoke { .. })
            | UserCommand::Run(_)
            | UserCommand::Logs(_)
            | UserCommand::Dashboard
            | UserCommand::Completion { .. }
            | UserCommand::ExitCodes => return Format::Table,
        };
        output.output
    }
}

fn time(text: &str) -> Result<Time, String> {
    parse_time(text).map(Time)
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration_ms(text).map(Duration::from_millis)
}

fn role(text: &str) -> Result<Role, String> {
    Role::parse(text).ok_or_else(|| "the roles are viewer, submitter, operator, admin and node".to_owned())
}

/// What is to be pulled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pulled {
    /// An artifact or a tree.
    Hash(ArtifactHash),
    /// The output of a job.
    OutputOf(JobId),
}

fn pulled(text: &str) -> Result<Pulled, String> {
    if let Ok(job_id) = text.parse() {
        return Ok(Pulled::OutputOf(job_id));
    }
    let hex = text.strip_prefix("sha256:").unwrap_or(text);
    let hash = hex.parse().map(Pulled::Hash);
    hash.map_err(|error: jobyard_model::ids::InvalidId| error.to_string())
}

fn parse_origin(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((kind, id)) if !kind.is_empty() && !id.is_empty() => Ok((kind.to_owned(), id.to_owned())),
        _ => Err("expected KIND:ID, such as schedule:nightly".to_owned()),
    }
}
