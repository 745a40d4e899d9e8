//! How commands show what they got: one trait, three renderings.
//!
//! Owns standard output. Invariant: **nothing that came from outside reaches a table unescaped**, and `json` is the
//! API's own document.

mod bench;
mod doctor;
mod escape;
mod jobs;
mod others;
mod progress;
mod table;
mod times;

use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use jiff::tz::TimeZone;
use jobyard_client::Timestamp;
use serde::Serialize;

use crate::error::CommandError;

pub(crate) use bench::{Baseline, BenchReport, BenchServer, Figure, Machine, Measured, Rate, Ratio, Times};
pub(crate) use doctor::{Answer, Check, Diagnosis};
pub(crate) use escape::escape;
pub(crate) use jobs::memory as bytes;
pub(crate) use jobs::{AttemptList, EventList, JobDetail, JobList, JobOutcomes, ended_with};
pub(crate) use others::{ArtifactName, NodeList, TokenList, TokenSecret, TreeName};
pub(crate) use progress::FolderProgress;

/// How to show something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Table,
    /// The API's document.
    Json,
    /// The same document as YAML.
    Yaml,
}

/// What a command can show. Its `Serialize` is the API's document.
pub(crate) trait Output: Serialize {
    /// Rendered for people; ends with a line feed unless empty.
    fn table(&self, style: &Style) -> String;
}

/// What a table looks like here and now.
#[derive(Debug, Clone)]
pub(crate) struct Style {
    /// Whether colours are wanted.
    pub(crate) colour: Colour,
    /// Columns of the terminal; `None` when it is none, and nothing is shortened.
    pub(crate) width: Option<u16>,
    /// Times are shown in this zone.
    pub(crate) zone: TimeZone,
}

/// Whether colours are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    /// A terminal, and nobody minds.
    Wanted,
    /// Not a terminal, or `NO_COLOR`.
    Plain,
}

impl Style {
    /// For standard output as it is.
    pub(crate) fn of_stdout() -> Self {
        let stdout = io::stdout();
        let plain = !stdout.is_terminal()
            || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        let size = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout).ok()).flatten();
        Self {
            colour: if plain { Colour::Plain } else { Colour::Wanted },
            width: size.map(|size| size.ws_col).filter(|columns| *columns > 0),
            zone: TimeZone::system(),
        }
    }

    /// An instant in the style's zone.
    pub(crate) fn time(&self, time: Timestamp) -> String {
        times::local(time, &self.zone)
    }
}

/// Shows something on standard output.
pub(crate) fn show(value: &impl Output, format: Format) -> Result<(), CommandError> {
    let text = match format {
        Format::Table => value.table(&Style::of_stdout()),
        Format::Json => {
            let mut text = serde_json::to_string_pretty(value)
                .map_err(io::Error::other)
                .map_err(CommandError::Output)?;
            text.push('\n');
            text
        }
        Format::Yaml => {
            serde_saphyr::to_string(value).map_err(io::Error::other).map_err(CommandError::Output)?
        }
    };
    print(text.as_bytes())
}

/// Writes to standard output.
pub(crate) fn print(bytes: &[u8]) -> Result<(), CommandError> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(CommandError::Output)
}

/// Writes to standard error, where messages go.
pub(crate) fn complain(text: &str) {
    // When even that is closed there is nobody to tell.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// A note for somebody who watches; nothing when nobody does.
pub(crate) fn remark(text: &str) {
    if io::stderr().is_terminal() {
        complain(&format!("• {}\n", escape(text)));
    }
}

/// How far something long is, for somebody who watches; nothing when nobody does. Gone when it is dropped.
pub(crate) fn progress(what: &'static str, of: u64) -> ProgressBar {
    shown(ProgressBar::new(of), what, "{msg} {wide_bar} {human_pos}/{human_len} {eta}")
}

/// Like [`progress`], of something that says how much it was when it is over.
pub(crate) fn progress_without_end(what: &'static str) -> ProgressBar {
    shown(ProgressBar::no_length(), what, "{msg} {human_pos}")
}

fn shown(bar: ProgressBar, what: &'static str, template: &str) -> ProgressBar {
    let bar = bar.with_message(what).with_finish(ProgressFinish::AndClear);
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests;
