//! How much a job may say. Each limit is one that a kernel, a database or a reader has anyway.

use crate::json::units::{parse_bytes, parse_cores_milli, parse_duration_ms};
use crate::strict::{Amount, Range};

/// The most jobs of a batch.
pub const MAX_BATCH: usize = 10_000;
/// The longest name.
pub const MAX_NAME_CHARS: usize = 200;
/// The longest argument, or environment entry with its name and `=`: Linux takes 128 KiB with the final NUL.
pub const MAX_TEXT_BYTES: usize = 128 * 1024 - 1;
/// All arguments and environment together, each with its NUL and pointer: half of what Linux takes by default.
pub const MAX_ENVIRONMENT_BYTES: usize = 1024 * 1024;
/// What the kernel counts for an argument or entry besides its bytes: a NUL and a pointer.
pub(super) const TEXT_OVERHEAD_BYTES: usize = 9;
/// The most labels, and the most node labels.
pub const MAX_LABELS: usize = 64;
/// The most environment entries; the bytes limit is reached long before.
pub(super) const MAX_ENV_ENTRIES: usize = 20_000;
/// The most arguments.
pub(super) const MAX_ARGUMENTS: usize = 100_000;
/// The longest key of a label.
pub(super) const MAX_LABEL_KEY_CHARS: usize = 100;
/// The longest value of a label.
pub(super) const MAX_LABEL_VALUE_CHARS: usize = 200;
/// How the names begin that are ours in every task process, whatever `env` says.
pub(super) const RESERVED_ENV: &str = "JOBYARD_";

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

const fn duration(least: u64, most: u64, bounds: &'static str) -> Amount {
    Amount { least, most, bounds, parts: 1_000, parse: parse_duration_ms }
}

pub(super) const TIMEOUT: Amount = duration(1, 3_650 * DAY_MS, "from 1 ms to 10 years");
pub(super) const START_WITHIN: Amount = duration(1, 3_650 * DAY_MS, "from 1 ms to 10 years");
pub(super) const STOP_GRACE: Amount = duration(0, DAY_MS, "from 0 to 1 day");
pub(super) const BACKOFF: Amount =
    duration(1, 60_000, "from 1 ms to 60 s: it doubles with each retry and is capped at 60 s");
pub(super) const CPU: Amount = Amount {
    least: 1,
    most: 100_000_000,
    bounds: "from 0.001 to 100000 cores, in steps of 0.001",
    parts: 1_000,
    parse: parse_cores_milli,
};
pub(super) const MEMORY: Amount = Amount {
    least: 1 << 20,
    most: 1 << 50,
    bounds: "a whole number of bytes from 1 MiB to 1 PiB; write \"256MiB\" for mebibytes",
    parts: 1,
    parse: parse_bytes,
};
pub(super) const MAX_RETRIES: Range = Range { of: 0..=1_000, what: "max_retries" };
pub(super) const PRIORITY: Range = Range { of: 0..=100, what: "a priority" };
pub(super) const EXIT_CODE: Range = Range { of: 1..=255, what: "an exit code that means failure" };
