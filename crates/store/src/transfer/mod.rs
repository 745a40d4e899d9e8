//! Moving all that a datastore holds into another one, of whichever dialect.
//!
//! Owns the list of tables and columns that move, and the file they move in ([`file`]). The dialects read and write by
//! this list; interned ids travel as what they stand for. Not moved: `report_clock`, so that nothing is judged by
//! silence for a lease after a move; sessions of people in browsers, who sign in anew; what is derived from the rest,
//! `job_label` and the counts of minutes, is made anew.

pub mod file;

use uuid::Uuid;

/// What is moved, a piece at a time, in the order of the tables.
#[derive(Debug)]
pub enum Part {
    /// Rows of one table.
    Rows {
        /// Its place in the list of tables.
        table: usize,
        /// The cells in the order of its columns.
        rows: Vec<Vec<Cell>>,
    },
    /// That was all. Whoever loads keeps nothing of what doesn't end with this.
    End,
}

/// One value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// None.
    Null,
    /// A number.
    Int(i64),
    /// Yes or no.
    Flag(bool),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// An id.
    Id(Uuid),
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Int,
    Flag,
    Text,
    Bytes,
    Id,
    /// An interned id that travels as the owner's name.
    Owner,
    /// As the pool's name.
    Pool,
    /// As the shape's digest.
    Shape,
}

/// A table that moves.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [(&'static str, Kind)],
    /// How its rows are ordered: the first columns of a key.
    pub(crate) order: &'static [&'static str],
}

/// About how many bytes of rows travel together.
pub(crate) const PART_BYTES: usize = 256 << 10;

/// Gathers rows into parts.
#[derive(Default)]
pub(crate) struct Gathered {
    rows: Vec<Vec<Cell>>,
    bytes: usize,
}

impl Gathered {
    /// Takes a row; the answer is a full part.
    pub(crate) fn push(&mut self, row: Vec<Cell>) -> Option<Vec<Vec<Cell>>> {
        self.bytes += row.iter().map(Cell::bytes).sum::<usize>();
        self.rows.push(row);
        (self.bytes >= PART_BYTES).then(|| self.take())
    }

    pub(crate) fn take(&mut self) -> Vec<Vec<Cell>> {
        self.bytes = 0;
        std::mem::take(&mut self.rows)
    }
}

impl Cell {
    fn bytes(&self) -> usize {
        let more = match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Null | Self::Int(_) | Self::Flag(_) | Self::Id(_) => 0,
        };
        size_of::<Self>() + more
    }
}

use Kind::{Bytes, Flag, Id, Int, Owner, Pool, Shape, Text};

/// Places in [`TABLES`] of those that the dialects treat in a way of their own.
pub(crate) const POOL: usize = 1;
pub(crate) const EVENT_FLOOR: usize = 3;
pub(crate) const FOLLOWER: usize = 4;
pub(crate) const EVENT: usize = 5;

/// Every table that moves, those that others refer to first. `event_floor` also says above which transaction whatever
/// the datastore will append must lie (`newest`); it and the followers come before the events, whose places follow from
/// them.
pub(crate) static TABLES: [Table; 25] = [
    Table { name: "owner", columns: &[("name", Text)], order: &["name"] },
    Table { name: "pool", columns: &[("name", Text), ("created_ms", Int)], order: &["name"] },
    Table { name: "shape", columns: &[("digest", Bytes), ("spec", Text)], order: &["digest"] },
    Table {
        name: "event_floor",
        columns: &[("transaction", Int), ("number", Int), ("newest", Int)],
        order: &[],
    },
    Table {
        name: "follower",
        columns: &[
            ("name", Text),
            ("transaction", Int),
            ("number", Int),
            ("holder", Id),
            ("held_until_ms", Int),
        ],
        order: &["name"],
    },
    Table {
        name: "event",
        columns: &[
            ("transaction", Int),
            ("number", Int),
            ("at_ms", Int),
            ("job_id", Id),
            ("attempt", Int),
            ("who", Text),
            ("from_", Text),
            ("to_", Text),
            ("why", Text),
        ],
        order: &["transaction", "number"],
    },
    Table {
        name: "job",
        columns: &[
            ("id", Id),
            ("owner_id", Owner),
            ("pool_id", Pool),
            ("shape_id", Shape),
            ("name", Text),
            ("kind", Int),
            ("submitted_by", Text),
            ("created_ms", Int),
            ("idempotency_key", Text),
            ("spec", Text),
        ],
        order: &["id"],
    },
    Table {
        name: "job_secret",
        columns: &[("job_id", Id), ("key_id", Text), ("sealed", Bytes)],
        order: &["job_id"],
    },
    Table {
        name: "job_live",
        columns: &[
            ("id", Id),
            ("status", Int),
            ("kind", Int),
            ("lane", Int),
            ("priority", Int),
            ("intent", Int),
            ("artifact_missing", Flag),
            ("exclusive", Flag),
            ("owner_id", Owner),
            ("pool_id", Pool),
            ("shape_id", Shape),
            ("round", Int),
            ("attempt", Int),
            ("retry_count", Int),
            ("platform_failures", Int),
            ("unpaid_in_row", Int),
            ("evictions", Int),
            ("max_retries", Int),
            ("backoff_ms", Int),
            ("wait_since_ms", Int),
            ("due_ms", Int),
            ("start_deadline_ms", Int),
            ("start_within_ms", Int),
            ("started_ms", Int),
            ("platform_since_ms", Int),
            ("lease_id", Id),
            ("avoid_node", Id),
            ("no_retry_exit_codes", Text),
        ],
        order: &["id"],
    },
    Table {
        name: "attempt_live",
        columns: &[
            ("job_id", Id),
            ("number", Int),
            ("phase", Int),
            ("lease_id", Id),
            ("node_id", Id),
            ("session", Id),
            ("placed_ms", Int),
            ("accepted_ms", Int),
            ("started_ms", Int),
            ("lease_until_ms", Int),
            ("heard_ms", Int),
            ("cpu_milli", Int),
            ("memory_bytes", Int),
            ("service", Text),
        ],
        order: &["job_id"],
    },
    Table {
        name: "attempt",
        columns: &[
            ("job_id", Id),
            ("number", Int),
            ("round", Int),
            ("phase", Int),
            ("outcome", Int),
            ("retryable", Flag),
            ("lease_id", Id),
            ("node_id", Id),
            ("session", Id),
            ("node_name", Text),
            ("placed_ms", Int),
            ("accepted_ms", Int),
            ("started_ms", Int),
            ("lease_until_ms", Int),
            ("ended_ms", Int),
            ("fingerprint", Int),
            ("end", Text),
            ("service", Text),
        ],
        order: &["job_id", "number"],
    },
    Table {
        name: "job_end",
        columns: &[
            ("job_id", Id),
            ("round", Int),
            ("status", Int),
            ("intent", Int),
            ("current", Flag),
            ("attempt", Int),
            ("retry_count", Int),
            ("platform_failures", Int),
            ("unpaid_in_row", Int),
            ("evictions", Int),
            ("finished_ms", Int),
            ("started_ms", Int),
            ("platform_since_ms", Int),
            ("reason", Text),
        ],
        order: &["job_id", "round"],
    },
    Table {
        name: "idempotency",
        columns: &[("owner_id", Owner), ("key", Text), ("hash", Bytes), ("job_id", Id), ("created_ms", Int)],
        order: &["owner_id", "key"],
    },
    Table {
        name: "artifact",
        columns: &[
            ("hash", Bytes),
            ("size_bytes", Int),
            ("created_ms", Int),
            ("used_ms", Int),
            ("doomed_ms", Int),
        ],
        order: &["hash"],
    },
    Table { name: "artifact_leftover", columns: &[("hash", Bytes), ("since_ms", Int)], order: &["hash"] },
    Table {
        name: "tree",
        columns: &[("hash", Bytes), ("files", Int), ("size_bytes", Int)],
        order: &["hash"],
    },
    Table { name: "tree_file", columns: &[("tree", Bytes), ("file", Bytes)], order: &["tree", "file"] },
    Table {
        name: "awaited_artifact",
        columns: &[("hash", Bytes), ("job_id", Id)],
        order: &["hash", "job_id"],
    },
    Table { name: "job_artifact", columns: &[("hash", Bytes), ("job_id", Id)], order: &["hash", "job_id"] },
    Table {
        name: "node",
        columns: &[
            ("node_id", Id),
            ("session", Id),
            ("previous_session", Id),
            ("boot_id", Text),
            ("previous_boot_id", Text),
            ("name", Text),
            ("pool_id", Pool),
            ("cpu_milli", Int),
            ("memory_bytes", Int),
            ("max_attempts", Int),
            ("labels", Text),
            ("runtimes", Text),
            ("containment", Text),
            ("door", Text),
            ("version", Text),
            ("gate", Int),
            ("suspended", Text),
            ("quarantined", Text),
            ("bad_in_row", Int),
            ("heard_ms", Int),
            ("registered_ms", Int),
        ],
        order: &["node_id"],
    },
    Table {
        name: "log_chunk",
        columns: &[
            ("job_id", Id),
            ("attempt", Int),
            ("seq", Int),
            ("stream", Int),
            ("from_offset", Int),
            ("to_offset", Int),
            ("at_ms", Int),
            ("inline", Bytes),
            ("segment", Text),
            ("segment_offset", Int),
            ("arrived_ms", Int),
        ],
        order: &["job_id", "attempt", "seq"],
    },
    Table {
        name: "token",
        columns: &[
            ("id", Id),
            ("hash", Bytes),
            ("name", Text),
            ("role", Text),
            ("owners", Text),
            ("created_ms", Int),
            ("expires_ms", Int),
            ("revoked_ms", Int),
        ],
        order: &["id"],
    },
    Table {
        name: "saved_view",
        columns: &[
            ("id", Id),
            ("created_by", Text),
            ("name", Text),
            ("filter", Text),
            ("shared", Flag),
            ("created_ms", Int),
            ("changed_ms", Int),
            ("version", Int),
        ],
        order: &["id"],
    },
    Table {
        name: "bulk",
        columns: &[
            ("id", Id),
            ("filter", Text),
            ("action", Text),
            ("owners", Text),
            ("created_by", Text),
            ("idempotency_key", Text),
            ("created_ms", Int),
            ("status", Int),
            ("cursor", Id),
            ("changed", Int),
            ("unchanged", Int),
            ("finished_ms", Int),
        ],
        order: &["id"],
    },
    Table {
        name: "audit",
        columns: &[
            ("number", Int),
            ("at_ms", Int),
            ("who", Text),
            ("address", Text),
            ("action", Text),
            ("target", Text),
            ("detail", Text),
        ],
        order: &["number"],
    },
];

/// The columns of a statement, quoted: `end` and `transaction` are words of SQL.
pub(crate) fn quoted(table: &Table) -> String {
    table.columns.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}
