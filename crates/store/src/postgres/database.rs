//! The pools, and how a call is carried through: a connection, a transaction, a bounded number of second tries.
//!
//! Owns every connection but the two of the wake-ups. Invariant: after a sign that the server restarted or is no
//! primary any more, no connection made before it is used again.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deadpool_postgres::{Hook, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use tokio_postgres::NoTls;

use super::config::PostgresConfig;
use super::fault::{Fault, Stage};
use super::query::Query;
use super::session::{Rows, Session, exactly};
use crate::StoreError;

/// How often a call is carried out anew after another transaction got in its way.
const TRIES: u32 = 8;

/// How often a call is carried out anew on a fresh connection: an idle one may have died unnoticed.
const FRESH_CONNECTIONS: u32 = 2;

/// The connections.
#[derive(Debug)]
pub(super) struct Database {
    changes: Pool,
    reads: Pool,
    generation: Arc<AtomicU64>,
    reply_within: Duration,
}

impl Database {
    /// Makes the pools; connects to nothing yet.
    ///
    /// # Errors
    /// When the settings make no sense.
    pub(super) fn new(config: &PostgresConfig) -> Result<Self, StoreError> {
        Ok(Self {
            changes: pool(config, config.pool_size)?,
            reads: pool(config, config.read_pool_size)?,
            generation: Arc::new(AtomicU64::new(0)),
            reply_within: config.reply_within(),
        })
    }

    /// Carries out a call that changes something. `work` opens and ends its own transaction, and must come to the
    /// same when it is carried out again after a fault that changed nothing.
    ///
    /// # Errors
    /// What the last try failed with.
    pub(super) async fn change<T, F>(
        &self,
        doing: &'static str,
        work: impl Fn(Session) -> F,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        self.try_change(work).await.map_err(|fault| fault.during(doing))
    }

    /// As [`Self::change`], for callers that look at the fault.
    ///
    /// # Errors
    /// What the last try failed with.
    pub(super) async fn try_change<T, F>(&self, work: impl Fn(Session) -> F) -> Result<T, Fault>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        let mut tries = Tries::default();
        loop {
            let done = match self.session(&self.changes).await {
                Ok(session) => work(session).await,
                Err(fault) => Err(fault),
            };
            match done {
                Ok(answer) => return Ok(answer),
                Err(fault) => tries.after(self.noticed(fault)).await?,
            }
        }
    }

    /// Carries out statements that change nothing; each sees what is committed when it begins.
    ///
    /// # Errors
    /// What the last try failed with.
    pub(super) async fn read<const N: usize>(
        &self,
        queries: impl Fn() -> [Query; N],
    ) -> Result<[Rows; N], Fault> {
        let mut tries = Tries::default();
        loop {
            match self.try_read(queries()).await {
                Ok(rows) => return Ok(rows),
                Err(fault) => tries.after(self.noticed(fault)).await?,
            }
        }
    }

    async fn try_read<const N: usize>(&self, queries: [Query; N]) -> Result<[Rows; N], Fault> {
        let session = self.session(&self.reads).await?;
        let rows = session.alone(queries.into(), Stage::BeforeCommit).await?;
        exactly(rows)
    }

    /// Carries out statements that change something, each a transaction by itself. They may be carried out twice.
    ///
    /// # Errors
    /// What the last try failed with.
    pub(super) async fn change_once<const N: usize>(
        &self,
        queries: impl Fn() -> [Query; N],
    ) -> Result<[Rows; N], Fault> {
        self.try_change(|session| {
            let queries = queries();
            async move { exactly(session.alone(queries.into(), Stage::Commit).await?) }
        })
        .await
    }

    /// How often connections had to be given up; whoever remembers rows must forget them when it moves.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Lets go of every connection once it is idle, and hands out no more.
    pub(super) fn close(&self) {
        self.changes.close();
        self.reads.close();
    }

    async fn session(&self, pool: &Pool) -> Result<Session, Fault> {
        let object = pool.get().await?;
        Ok(Session::new(object, &self.generation, self.reply_within))
    }

    fn noticed(&self, fault: Fault) -> Fault {
        if fault.spoils_connections() {
            tracing::warn!(error = ?fault, "a connection to the datastore broke; all are made anew");
            self.generation.fetch_add(1, Ordering::AcqRel);
            self.changes.retain(|_, _| false);
            self.reads.retain(|_, _| false);
        }
        fault
    }
}

/// Second tries of one call.
#[derive(Debug, Default)]
struct Tries {
    again: u32,
    fresh: u32,
}

impl Tries {
    /// Returns when the call may be carried out anew, or gives the fault back.
    async fn after(&mut self, fault: Fault) -> Result<(), Fault> {
        match fault {
            Fault::Again(_) if self.again < TRIES => {
                self.again += 1;
                tokio::time::sleep(Duration::from_millis(u64::from(self.again * self.again))).await;
                Ok(())
            }
            Fault::Lost(_) if self.fresh < FRESH_CONNECTIONS => {
                self.fresh += 1;
                Ok(())
            }
            fault => Err(fault),
        }
    }
}

fn pool(config: &PostgresConfig, size: usize) -> Result<Pool, StoreError> {
    pool_of(config, config.driver_config()?, (size, config.reply_within()), None)
}

/// A pool of so many connections that are made like this, each prepared by `prepare`; whoever finds none free waits for
/// `wait`.
///
/// # Errors
/// When the settings make no sense.
pub(super) fn pool_of(
    config: &PostgresConfig,
    driver: tokio_postgres::Config,
    (size, wait): (usize, Duration),
    prepare: Option<Hook>,
) -> Result<Pool, StoreError> {
    let manager_config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(driver, NoTls, manager_config);
    let builder = Pool::builder(manager);
    let builder = match prepare {
        Some(prepare) => builder.post_create(prepare),
        None => builder,
    };
    builder
        .max_size(size.max(1))
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(wait))
        .create_timeout(Some(config.connect_timeout))
        .recycle_timeout(Some(config.connect_timeout))
        .build()
        .map_err(|error| StoreError::Unavailable {
            doing: "making the connection pool",
            source: Box::new(error),
        })
}
