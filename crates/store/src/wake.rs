//! Wake-ups: they make it fast, polling makes it correct.

use tokio::sync::watch;

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
    /// A log grew, or is whole since its attempt ended.
    Logs,
}

impl WakeTopic {
    /// Every topic.
    pub const ALL: [Self; 5] = [Self::Placement, Self::Stops, Self::Due, Self::Events, Self::Logs];
}

/// A set of topics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Wakes(u8);

impl Wakes {
    /// Just this one.
    pub(crate) fn of(topic: WakeTopic) -> Self {
        Self(1 << topic as u8)
    }

    /// Adds a topic.
    pub(crate) fn add(&mut self, topic: WakeTopic) {
        self.0 |= Self::of(topic).0;
    }

    /// Adds all of another set.
    pub(crate) fn merge(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Whether the start or the stop of an attempt waits for one of these.
    pub(crate) fn is_urgent(self) -> bool {
        [WakeTopic::Placement, WakeTopic::Stops, WakeTopic::Due].into_iter().any(|topic| self.has(topic))
    }

    /// Whether the topic is in it.
    pub(crate) fn has(self, topic: WakeTopic) -> bool {
        self.0 & Self::of(topic).0 != 0
    }
}

/// The counters behind [`crate::Store::wakes`], one a topic.
#[derive(Debug)]
pub(crate) struct Wakers([watch::Sender<u64>; 5]);

impl Wakers {
    /// All at 0.
    pub(crate) fn new() -> Self {
        Self(WakeTopic::ALL.map(|_| watch::Sender::new(0)))
    }

    /// Follows a topic.
    pub(crate) fn subscribe(&self, topic: WakeTopic) -> watch::Receiver<u64> {
        self.0[topic as usize].subscribe()
    }

    /// Wakes who follows one of these. Call it after the commit.
    pub(crate) fn bump(&self, wakes: Wakes) {
        for topic in WakeTopic::ALL.into_iter().filter(|topic| wakes.has(*topic)) {
            self.0[topic as usize].send_modify(|count| *count = count.wrapping_add(1));
        }
    }
}
