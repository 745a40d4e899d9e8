//! What a job asks for and a node offers.

use serde::{Deserialize, Serialize};

/// A vector of amounts. Placement adds these up and never overcommits memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Resources {
    /// Thousandths of a core. Compressible: a weight between neighbours, not a cap.
    pub cpu_milli: u64,
    /// Bytes. Not compressible: enforced where the node's containment can.
    pub memory_bytes: u64,
}

impl Resources {
    /// What a job gets when it asks for nothing: 0.1 cores and 128 MiB.
    pub const DEFAULT: Self = Self { cpu_milli: 100, memory_bytes: 128 << 20 };

    /// Whether all amounts of `wanted` are at most those of `self`.
    #[must_use]
    pub fn hold(self, wanted: Self) -> bool {
        wanted.cpu_milli <= self.cpu_milli && wanted.memory_bytes <= self.memory_bytes
    }

    /// The sum, amount by amount.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            cpu_milli: self.cpu_milli.saturating_add(other.cpu_milli),
            memory_bytes: self.memory_bytes.saturating_add(other.memory_bytes),
        }
    }

    /// What is left of each amount; 0 where more is taken than there is.
    #[must_use]
    pub fn minus(self, taken: Self) -> Self {
        Self {
            cpu_milli: self.cpu_milli.saturating_sub(taken.cpu_milli),
            memory_bytes: self.memory_bytes.saturating_sub(taken.memory_bytes),
        }
    }
}
