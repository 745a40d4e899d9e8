//! The history of changes, and how to follow it without missing one.

use std::fmt;
use std::str::FromStr;

use jobyard_model::{JobId, JobSpec, Status, Timestamp};

/// A place in the history: transaction, then number. Ordered as handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EventCursor {
    /// The transaction that appended it; 0 on SQLite, which has one writer.
    pub transaction: u64,
    /// Ascending within a transaction.
    pub number: i64,
}

impl fmt::Display for EventCursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.transaction, self.number)
    }
}

impl FromStr for EventCursor {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (transaction, number) = text.split_once('-')?;
            Some(Self { transaction: transaction.parse().ok()?, number: number.parse().ok()? })
        };
        parse().ok_or("a cursor is a transaction and a number, such as 812-4031")
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecord {
    /// Its place.
    pub cursor: EventCursor,
    /// By the datastore's clock.
    pub at: Timestamp,
    /// Which job.
    pub job_id: JobId,
    /// The attempt it belongs to.
    pub attempt: Option<u32>,
    /// A principal or one of our roles.
    pub who: String,
    /// A status or phase, or what was wanted; empty for the creation.
    pub from: String,
    /// A status or phase, or what is wanted.
    pub to: String,
    /// In plain words, or an outcome.
    pub why: String,
}

/// Which events to follow; all that are given must match.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventFilter {
    /// Of one job.
    pub job_id: Option<JobId>,
    /// Of jobs with this label.
    pub label: Option<(String, String)>,
    /// Of jobs with an origin of this kind and id.
    pub origin: Option<(String, String)>,
    /// Those that bring a job to this status.
    pub to: Option<Status>,
}

impl EventFilter {
    /// Whether everything passes, the job's id aside.
    pub(crate) fn passes_all(&self) -> bool {
        self.label.is_none() && self.origin.is_none() && self.to.is_none()
    }

    /// Whether the event passes as far as it tells by itself, its job's id aside.
    pub(crate) fn passes_event(&self, event: &EventRecord) -> bool {
        self.to.is_none_or(|to| event.to == to.as_str())
    }

    /// Whether events of a job with this spec pass, its id aside.
    pub(crate) fn matches(&self, spec: &JobSpec) -> bool {
        let label = self.label.as_ref().is_none_or(|(key, value)| spec.labels.get(key) == Some(value));
        let origin = self.origin.as_ref().is_none_or(|(kind, id)| {
            spec.origin.as_ref().is_some_and(|origin| origin.kind == *kind && origin.id == *id)
        });
        label && origin
    }
}

/// A page of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPage {
    /// In order.
    pub items: Vec<EventRecord>,
    /// Go on from here; moves on even when no event matched the filter.
    pub next: EventCursor,
    /// The asked-for cursor is older than what is kept: events may be missing, take a fresh snapshot.
    pub expired: bool,
}
