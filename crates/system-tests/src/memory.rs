//! What processes take of the machine's memory, as the kernel counts it.

use std::collections::BTreeMap;
use std::fs;

/// The peaks of some processes since a moment of quiet.
pub struct Peaks {
    /// Resident at that moment, in bytes.
    before: BTreeMap<u32, u64>,
}

impl Peaks {
    /// From now on, of these processes.
    ///
    /// # Panics
    /// One of them is gone.
    #[must_use]
    pub fn since_now(ids: &[u32]) -> Self {
        for id in ids {
            // Sets the peak to what is resident now.
            fs::write(format!("/proc/{id}/clear_refs"), "5").expect("its peak can be set back");
        }
        Self { before: ids.iter().map(|id| (*id, bytes_of(*id, "status", "VmRSS:"))).collect() }
    }

    /// By how many bytes each has been larger than it was, at most.
    ///
    /// # Panics
    /// One of them is gone.
    #[must_use]
    pub fn grown_bytes(&self) -> Vec<u64> {
        let grown = |(id, before): (&u32, &u64)| bytes_of(*id, "status", "VmHWM:").saturating_sub(*before);
        self.before.iter().map(grown).collect()
    }
}

/// What a process has for itself, and its share of what it has in common with others. 0 when it is gone.
#[must_use]
pub(crate) fn share_bytes(id: u32) -> u64 {
    bytes_of(id, "smaps_rollup", "Pss:")
}

fn bytes_of(id: u32, file: &str, field: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{id}/{file}")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}
