//! The `jobyard` binary: every role and every user's command.
//!
//! Owns the command line: its words, its output, its exit codes. Users' commands go through `jobyard-client` and know
//! nothing of the server's inside; roles are wired up in `roles`.

mod arguments;
mod commands;
mod connect;
mod data_dir;
mod doctor;
mod error;
mod exit;
mod job_document;
mod job_flags;
mod later;
mod output;
mod roles;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Cli, Command};
use crate::error::CommandError;
use crate::output::Format;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let format = cli.command.format();
    match dispatch(cli.command) {
        Ok(code) => code,
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error.show(format));
            ExitCode::from(error.exit_code())
        }
    }
}

fn dispatch(command: Command) -> Result<ExitCode, CommandError> {
    match command {
        Command::User(command) => commands::run(command).map(ExitCode::from),
        Command::Role(command) => {
            roles::run(command)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// A command line that clap refused, or a request for help.
fn refuse(error: &clap::Error) -> ExitCode {
    let first_word = std::env::args().nth(1);
    if let Some(planned) = later::planned(error, first_word.as_deref()) {
        let error = CommandError::NotAvailableYet(planned);
        output::complain(&error.show(Format::Table));
        return ExitCode::from(error.exit_code());
    }
    // Nobody left to read it: nothing to be done.
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { exit::USAGE } else { 0 })
}
