//! What can go wrong, a variant for each thing a caller does differently.

use std::error::Error as StdError;

use jobyard_model::JobId;
use thiserror::Error;

/// A driver's error.
pub type Source = Box<dyn StdError + Send + Sync>;

/// Why a call did not do what it was asked.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The datastore can't be reached or doesn't answer in time. Nothing was changed; try again.
    #[error("the datastore could not be reached while {doing}")]
    Unavailable {
        /// What we were doing.
        doing: &'static str,
        /// The driver's error.
        #[source]
        source: Source,
    },
    /// A look over many rows ran into its limit of time, or waited for its turn as long. Nothing else was held up.
    #[error("{doing} took longer than it may")]
    TooSlow {
        /// What we were doing.
        doing: &'static str,
    },
    /// The datastore can't be used with these settings: a wrong password, no such database, a connection string that
    /// is none. Nothing was changed, and trying again won't help.
    #[error("the datastore refused us while {doing}: check datastore.url")]
    Refused {
        /// What we were doing.
        doing: &'static str,
        /// The driver's error.
        #[source]
        source: Source,
    },
    /// The connection broke during the commit. The call may be made again.
    #[error("the commit's fate is unknown after {doing}")]
    Unknown {
        /// What we were doing.
        doing: &'static str,
        /// The driver's error.
        #[source]
        source: Source,
    },
    /// The disk or the database is full. Nothing was changed.
    #[error("the datastore is full: {doing} was refused")]
    Full {
        /// What we were doing.
        doing: &'static str,
        /// The driver's error.
        #[source]
        source: Source,
    },
    /// A row says something that our own rules forbid.
    #[error("inconsistent row in `{table}` for {id}: {what}")]
    Inconsistent {
        /// The table.
        table: &'static str,
        /// Which row.
        id: String,
        /// What is wrong with it.
        what: String,
    },
    /// The schema is older than this binary can use.
    #[error("the schema has version {found}, this binary needs {needed}: run `jobyard migrate`")]
    SchemaTooOld {
        /// The version in the datastore.
        found: i32,
        /// The version this binary needs.
        needed: i32,
    },
    /// The schema refuses binaries as old as this one.
    #[error(
        "the schema needs a binary of at least schema version {oldest}, this one has {own}: upgrade jobyard"
    )]
    BinaryTooOld {
        /// The oldest binary the schema allows.
        oldest: i32,
        /// This binary's schema version.
        own: i32,
    },
    /// Another process has the embedded datastore open.
    #[error("another process uses the datastore in {path}; stop it first, or choose another --data-dir")]
    Locked {
        /// The data directory's database.
        path: String,
    },
    /// Only a datastore that nobody has used yet takes in another one's contents. Nothing was changed.
    #[error("the datastore is in use already: there are rows in `{table}`; import into a new one")]
    NotEmpty {
        /// The first table with rows.
        table: &'static str,
    },
    /// Attempts have not ended; moved, they would be lost.
    #[error(
        "{attempts} attempts have not ended: wait for them, or drain the nodes and see `jobyard node ls`; with --running \
         they are taken along, and end as `lost` on the other side when their leases run out"
    )]
    StillRunning {
        /// How many.
        attempts: u64,
    },
    /// Whoever gave or took rows stopped before the end. Nothing was changed.
    #[error("{doing} was cut off by the other side")]
    CutOff {
        /// What we were doing.
        doing: &'static str,
    },
    /// A statement failed in a way that is a defect of ours.
    #[error("a statement failed while {doing}")]
    Statement {
        /// What we were doing.
        doing: &'static str,
        /// The driver's error.
        #[source]
        source: Source,
    },
}

/// Why a batch of jobs was not accepted; nothing of it was.
#[derive(Debug, Error)]
pub enum SubmitError {
    /// The key was used for another spec.
    #[error("the idempotency key was used for another job, {job_id}")]
    KeyConflict {
        /// Index in the batch.
        index: usize,
        /// The job the key made.
        job_id: JobId,
    },
    /// No such pool.
    #[error("there is no pool `{pool}`; the pools are {}", known.join(", "))]
    UnknownPool {
        /// Index in the batch.
        index: usize,
        /// The pool named.
        pool: String,
        /// The pools there are.
        known: Vec<String>,
    },
    /// The owner has as many un-ended jobs as the settings allow.
    #[error("owner `{owner}` already has {limit} un-ended jobs, the most allowed")]
    TooManyJobs {
        /// The owner.
        owner: String,
        /// The setting.
        limit: u64,
    },
    /// The datastore.
    #[error(transparent)]
    Store(#[from] StoreError),
}
