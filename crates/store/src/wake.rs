//! Wake-ups: they make it fast, polling makes it correct.

/// What somebody may be waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WakeTopic {
    /// A job waits, or capacity came free.
    Placement,
    /// An attempt is wanted to stop.
    Stops,
    /// A due time was set: a retry's delay, a `run_at`, a back-off.
    Due,
    /// An event was appended.
    Events,
    /// A log grew.
    Logs,
}

impl WakeTopic {
    /// Every topic.
    pub const ALL: [Self; 5] = [Self::Placement, Self::Stops, Self::Due, Self::Events, Self::Logs];
}
