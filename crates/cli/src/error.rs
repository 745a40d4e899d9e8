//! Why a command ended badly, how that is shown, and with which exit code.

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

use jobyard_client::{ConnectionError, Error as ClientError};
use serde_json::json;
use thiserror::Error;

use crate::exit;
use crate::output::{Format, escape};
use crate::roles::RoleError;

/// Why a command ended badly.
#[derive(Debug, Error)]
pub(crate) enum CommandError {
    /// The server refused, was not there, or said something odd.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// What was asked for makes no sense.
    #[error("{0}")]
    Usage(String),
    /// A job left nothing that could be fetched.
    #[error("{0}")]
    NoOutput(String),
    /// Something that is planned, but not built.
    #[error("`jobyard {0}` is not available yet")]
    NotAvailableYet(String),
    /// What was to be measured can't be, or something else would be measured.
    #[error("{0}")]
    NoFigure(String),
    /// A file that was named can't be used.
    #[error("could not read {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Nothing can be written to standard output. A closed pipe is the reader's right and ends the command quietly.
    #[error("could not write the output")]
    Output(#[source] io::Error),
    /// A role could not be started, or ended badly.
    #[error(transparent)]
    Role(#[from] RoleError),
    /// One of our own parts can't be set up.
    #[error("could not {doing}")]
    Setup {
        /// What we were doing.
        doing: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl From<ConnectionError> for CommandError {
    fn from(error: ConnectionError) -> Self {
        Self::Client(ClientError::Connection(error))
    }
}

impl CommandError {
    /// The reader of our output has gone, which is no error.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(source) if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// With which code the command ends.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Client(error) => match error {
                ClientError::Unreachable { .. } => exit::UNREACHABLE,
                ClientError::Connection(_)
                | ClientError::File { doing: "read", .. }
                | ClientError::Folder(_) => exit::USAGE,
                ClientError::StillRunning { .. } => exit::TIME_OVER,
                _ => exit::FAILED,
            },
            Self::Usage(_) | Self::NotAvailableYet(_) | Self::File { .. } => exit::USAGE,
            Self::Role(RoleError::Config(_) | RoleError::Refused(_)) => exit::USAGE,
            Self::NoOutput(_) | Self::NoFigure(_) | Self::Output(_) | Self::Setup { .. } | Self::Role(_) => {
                exit::FAILED
            }
        }
    }

    /// The stable word for programs.
    fn code(&self) -> &str {
        match self {
            Self::Client(error) => match error {
                ClientError::Problem(problem) => &problem.code,
                ClientError::Unreachable { .. } => "unreachable",
                ClientError::WrongHash { .. } => "wrong_hash",
                ClientError::StillRunning { .. } => "still_running",
                ClientError::Connection(_) | ClientError::File { .. } | ClientError::Folder(_) => "usage",
                _ => "failed",
            },
            Self::Usage(_) | Self::File { .. } => "usage",
            Self::NoOutput(_) => "no_output",
            Self::NotAvailableYet(_) => "not_available_yet",
            Self::NoFigure(_) | Self::Output(_) | Self::Setup { .. } | Self::Role(_) => "failed",
        }
    }

    /// What goes to standard error: words for people, JSON for those who asked for it. Ends with a line feed.
    pub(crate) fn show(&self, format: Format) -> String {
        match format {
            Format::Json => self.as_json(),
            Format::Table | Format::Yaml => self.as_words(),
        }
    }

    fn as_json(&self) -> String {
        let document = match self {
            Self::Client(ClientError::Problem(problem)) => serde_json::to_string(problem),
            _ => serde_json::to_string(&json!({ "code": self.code(), "detail": chain(self) })),
        };
        // Strings and numbers always have a JSON form.
        format!("{}\n", document.unwrap_or_default())
    }

    fn as_words(&self) -> String {
        let mut text = String::new();
        // A server's words may hold anything.
        for (index, line) in chain(self).lines().enumerate() {
            let lead = if index == 0 { format!("error[{}]: ", self.code()) } else { String::new() };
            // Writing to a String can't fail.
            let _ = writeln!(text, "{lead}{}", escape(line));
        }
        if let Some(advice) = self.advice() {
            let _ = writeln!(text, "  {advice}");
        }
        text
    }

    fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Client(ClientError::Unreachable { .. }) => {
                Some("Start a server with `jobyard up`, or name one in JOBYARD_URL.")
            }
            Self::Client(ClientError::Problem(problem)) if problem.status == 401 => Some(
                "Set JOBYARD_TOKEN, or save url and token in ~/.config/jobyard/config.toml; \
                 `jobyard up` leaves a token in its data directory (admin.token).",
            ),
            Self::NotAvailableYet(_) => Some("`jobyard help` lists what there is."),
            _ => None,
        }
    }
}

/// The error and what is behind it, outermost first.
fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut behind = error.source();
    while let Some(source) = behind {
        let said = source.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        behind = source.source();
    }
    text
}
