//! What happens to a service inside one attempt: its task process leaves and is started again.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{EndedBy, Exit, Timestamp};

/// How a service's task process left last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LastExit {
    /// The code or the signal.
    pub exit: Exit,
    /// `memory` when it was its memory limit, else `itself`.
    pub by: EndedBy,
    /// By the node's clock; shown, never compared.
    pub at: Timestamp,
}

impl fmt::Display for LastExit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.exit {
            Exit::Code(code) => write!(formatter, "exit {code}")?,
            Exit::Signal(signal) => write!(formatter, "signal {signal}")?,
            Exit::Unrunnable | Exit::LaunchFault => formatter.write_str("not started")?,
        }
        if self.by == EndedBy::Memory {
            formatter.write_str(", over its memory limit")?;
        }
        Ok(())
    }
}

/// A service's attempt after its task process left for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ServiceRun {
    /// How often the task process was started again in this attempt.
    pub restarts: u32,
    /// How it left last.
    pub last_exit: LastExit,
    /// When it is started again, by the node's clock; shown, never compared. `None` while it runs.
    pub next_start: Option<Timestamp>,
}

impl ServiceRun {
    /// Whether it waits for its next start.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.next_start.is_some()
    }

    /// Whether this happened after `known`. An exit comes before the restart that follows it.
    #[must_use]
    pub fn is_after(&self, known: Option<&Self>) -> bool {
        let place = |run: &Self| (run.restarts, run.is_waiting());
        known.is_none_or(|known| place(self) > place(known))
    }

    /// What happened, in plain words.
    #[must_use]
    pub fn describe(&self) -> String {
        match self.next_start {
            Some(_) => format!("{}; restart {} follows", self.last_exit, self.restarts.saturating_add(1)),
            None => format!("restart {}", self.restarts),
        }
    }
}
