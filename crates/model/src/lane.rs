//! Priority, and the band it falls into.

use serde::{Deserialize, Serialize};

/// How urgent a job is: 0–100, more is more urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Priority(u8);

impl Priority {
    /// What a task has unless its spec says otherwise.
    pub const TASK_DEFAULT: Self = Self(50);
    /// What a service has unless its spec says otherwise.
    pub const SERVICE_DEFAULT: Self = Self(75);

    /// `None` above 100.
    #[must_use]
    pub fn new(value: u8) -> Option<Self> {
        (value <= 100).then_some(Self(value))
    }

    /// 0–100.
    #[must_use]
    pub fn value(self) -> u8 {
        self.0
    }

    /// The band this priority falls into: 0–19, 20–39, 40–59, 60–79, 80–100.
    #[must_use]
    pub fn lane(self) -> Lane {
        Lane((self.0 / 20).min(4))
    }
}

impl TryFrom<u8> for Priority {
    type Error = &'static str;

    fn try_from(value: u8) -> Result<Self, Self::Error> {
        Self::new(value).ok_or("a priority is 0 to 100")
    }
}

impl From<Priority> for u8 {
    fn from(priority: Priority) -> Self {
        priority.0
    }
}

/// One of five bands of priority, 0 the least urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane(u8);

impl Lane {
    /// Every lane, the least urgent first.
    pub const ALL: [Self; 5] = [Self(0), Self(1), Self(2), Self(3), Self(4)];

    /// 0–4.
    #[must_use]
    pub fn value(self) -> u8 {
        self.0
    }

    /// `None` above 4.
    #[must_use]
    pub fn new(value: u8) -> Option<Self> {
        (value < 5).then_some(Self(value))
    }

    /// Of 100 placements of a pass, how many are kept for this lane while it has jobs (design §3: 3/7/10/20/60).
    #[must_use]
    pub fn reserved_percent(self) -> u32 {
        [3, 7, 10, 20, 60][usize::from(self.0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_bands_of_twenty_and_the_top_one_takes_a_hundred() {
        let lanes = [0, 19, 20, 39, 40, 59, 60, 79, 80, 100].map(|p| Priority(p).lane().value());
        assert_eq!(lanes, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
        assert_eq!(Priority::new(101), None);
    }

    #[test]
    fn the_reserved_shares_add_up_to_the_whole() {
        assert_eq!(Lane::ALL.map(Lane::reserved_percent).iter().sum::<u32>(), 100);
    }
}
