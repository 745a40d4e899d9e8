//! Commands that are planned but not built: refused by name, and nowhere in the help.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The words that come before the planned one, and the planned one.
const PLANNED: [(&str, &str); 6] =
    [("", "cron"), ("", "dag"), ("", "ca"), ("", "login"), ("", "bulk"), ("node", "remove")];

/// The planned command that a refused command line asked for, as it is written.
pub(crate) fn planned(error: &clap::Error, first_word: Option<&str>) -> Option<String> {
    let asked = match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::InvalidSubcommand, Some(ContextValue::String(asked))) => asked.as_str(),
        _ => return None,
    };
    let before = first_word.filter(|word| *word != asked).unwrap_or("");
    PLANNED.contains(&(before, asked)).then(|| format!("{before} {asked}").trim().to_owned())
}
