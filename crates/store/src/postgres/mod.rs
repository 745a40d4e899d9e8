//! The datastore on PostgreSQL: many processes write, transactions are short, locks are taken in one order.
//!
//! Owns the pools, the wake-ups between processes and every statement of this dialect, one file a table or a call.
//! READ COMMITTED throughout: what a decision rests on is locked when it is read, and guarded and counted when it is
//! written.
//!
//! Invariants: job, then attempt, then node, each by ascending id, is the order of locks; whoever finds rows another
//! way skips those that are locked. A connection goes back to its pool with no transaction open. Lease time is the
//! server's clock, read after the locks are held.

mod artifact_use;
mod artifacts;
mod audit;
mod bulk;
mod config;
mod control;
mod dashboard;
mod database;
mod due;
mod events;
mod fault;
mod followers;
mod gather;
mod grants;
mod interned;
mod jobs;
mod listing;
mod load;
mod logs;
mod looks;
mod migrate;
mod minutes;
mod node_attempts;
mod nodes;
mod pacing;
mod placement;
mod pools;
mod query;
mod queues;
mod reports;
mod reservations;
mod retention;
mod secrets;
mod session;
mod sessions;
mod store;
mod submission;
mod submit;
mod summary;
mod tokens;
mod transfer;
mod views;
mod wake;
mod writes;

use std::sync::{Arc, Mutex};

use jobyard_model::{JobId, LeaseSettings};

#[cfg(test)]
pub(crate) use migrate::own_version;

pub use config::{DEFAULT_MAX_UNENDED_PER_OWNER, PostgresConfig, WakeOn};

use self::database::Database;
use self::fault::Fault;
use self::gather::Gather;
use self::grants::Grants;
use self::interned::Interned;
use self::looks::Looks;
use self::pacing::Pacing;
use self::queues::KnownQueues;
use self::reservations::KnownAttempts;
use self::session::Session;
use self::wake::WakeUps;
use crate::StoreError;
use crate::ledger::Ledger;

/// Jobs that may be accepted by one transaction, unless one call brings more.
const JOBS_PER_COMMIT: usize = 2_000;
/// Reports that may be carried out by one transaction, unless one call brings more.
const REPORTS_PER_COMMIT: usize = 2_000;
/// Transactions that may be on their way at once, of each kind: while one waits for the disk the next is prepared.
const LANES: usize = 2;
/// Jobs, or tokens, that are read by one statement.
const READ_TOGETHER: usize = 64;

/// The datastore on PostgreSQL.
pub struct PostgresStore {
    config: PostgresConfig,
    core: Arc<Core>,
    submits: Arc<Gather<submission::Call, submission::Answer>>,
    reports: Arc<Gather<reports::Call, reports::Outcome>>,
    jobs: Arc<Gather<JobId, jobs::Found>>,
    tokens: Arc<Gather<[u8; 32], tokens::Found>>,
    sessions: Arc<Gather<[u8; 32], sessions::Found>>,
}

/// What every call works with.
struct Core {
    database: Database,
    /// For lists and dashboards, where the settings say.
    looks: Looks,
    /// The same on the server that is written to: what rests on it must not be behind.
    own_looks: Looks,
    wakes: WakeUps,
    interned: Interned,
    grants: Grants,
    queues: KnownQueues,
    attempts: KnownAttempts,
    /// Of looking for silent attempts.
    silence: Mutex<Pacing>,
    quick_walk_us: i64,
    leases: LeaseSettings,
}

impl PostgresStore {
    /// Brings the schema to this binary's version. Safe to be called by several processes at once.
    ///
    /// # Errors
    /// [`StoreError::BinaryTooOld`] when the schema refuses this binary; nothing is changed then.
    pub async fn migrate(config: &PostgresConfig) -> Result<(), StoreError> {
        migrate::migrate(config).await
    }

    /// Whether this binary can work with the schema as it is. Changes nothing.
    ///
    /// # Errors
    /// [`StoreError::SchemaTooOld`], [`StoreError::BinaryTooOld`], [`StoreError::Refused`], or that the server can't be
    /// reached.
    pub async fn check(config: &PostgresConfig) -> Result<(), StoreError> {
        migrate::check(config).await
    }

    /// Opens the datastore, once its schema is known to fit. Connects again by itself whenever that is needed.
    ///
    /// # Errors
    /// [`StoreError::SchemaTooOld`], [`StoreError::BinaryTooOld`], [`StoreError::Refused`], or that the server can't be
    /// reached.
    pub async fn open(config: PostgresConfig) -> Result<Arc<Self>, StoreError> {
        migrate::check(&config).await?;
        let core = Core {
            database: Database::new(&config)?,
            looks: Looks::new(&config)?,
            own_looks: Looks::new(&own(&config))?,
            wakes: WakeUps::start(&config)?,
            interned: Interned::default(),
            grants: Grants::new(config.max_unended_per_owner),
            queues: KnownQueues::new(),
            attempts: KnownAttempts::default(),
            silence: Mutex::default(),
            quick_walk_us: i64::try_from(config.quick_walk.as_micros()).unwrap_or(i64::MAX),
            leases: config.lease,
        };
        Ok(Arc::new(Self {
            config,
            core: Arc::new(core),
            submits: Gather::new(LANES, JOBS_PER_COMMIT),
            reports: Gather::new(LANES, REPORTS_PER_COMMIT),
            jobs: Gather::new(LANES, READ_TOGETHER),
            tokens: Gather::new(LANES, READ_TOGETHER),
            sessions: Gather::new(LANES, READ_TOGETHER),
        }))
    }
}

/// The settings of the few looks that must not be behind.
fn own(config: &PostgresConfig) -> PostgresConfig {
    PostgresConfig { dashboard_url: None, dashboard_pool_size: 2, ..config.clone() }
}

/// Writes what became of the ledger's jobs, commits, and wakes; with nothing changed it only lets go of the locks.
async fn finish(core: &Core, session: Session, ledger: Ledger) -> Result<(), Fault> {
    let (queries, wakes) = writes::of(ledger)?;
    if queries.is_empty() {
        return session.roll_back().await;
    }
    session.commit(queries).await?;
    core.wakes.bump(wakes);
    Ok(())
}
