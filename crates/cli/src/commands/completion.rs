//! `completion`: scripts for shells.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::arguments::Cli;
use crate::error::CommandError;
use crate::output;

pub(super) fn run(shell: Shell) -> Result<u8, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "jobyard", &mut script);
    output::print(&script)?;
    Ok(0)
}
