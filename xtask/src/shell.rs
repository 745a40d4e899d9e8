//! Running other programs.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a command to its end; an error names it.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let words = describe(command);
    let status = command.status().map_err(|error| format!("could not run `{words}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{words}` ended with {status}")) }
}

/// `cargo` with arguments, in the repository's root.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

fn describe(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|argument| argument.to_string_lossy().into_owned()));
    words.join(" ")
}
