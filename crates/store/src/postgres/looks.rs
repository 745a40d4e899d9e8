//! Connections for looking over many rows: their own, each statement with a limit of time, and none can change anything.
//!
//! Invariant: whatever is asked for here, no call that places, reports or submits waits for a connection of it.

use std::time::Duration;

use deadpool_postgres::{Hook, HookError, Object, Pool, PoolError, TimeoutType};
use futures_util::future::join_all;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};

use super::config::PostgresConfig;
use super::database;
use super::fault::{Fault, Shared, Stage};
use super::query::Parameter;
use super::session::Rows;
use crate::StoreError;
use crate::filter::{Text, Value};

/// How often a reading is tried anew on a fresh connection.
const FRESH_CONNECTIONS: u32 = 2;

/// A statement that is planned for its parameters and kept prepared by nobody: there are too many to keep.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) sql: String,
    parameters: Vec<(Parameter, Type)>,
}

impl Look {
    pub(super) fn new(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), parameters: Vec::new() }
    }

    /// With the parameters of a text that was put together.
    pub(super) fn of(sql: String, text: Text) -> Self {
        let parameter = |value| -> (Parameter, Type) {
            match value {
                Value::Text(text) => (Box::new(text), Type::TEXT),
                Value::Int(number) => (Box::new(number), Type::INT8),
                Value::Id(id) => (Box::new(id), Type::UUID),
            }
        };
        Self { sql, parameters: text.values.into_iter().map(parameter).collect() }
    }

    pub(super) fn bind(mut self, value: impl ToSql + Sync + Send + 'static, of: Type) -> Self {
        self.parameters.push((Box::new(value), of));
        self
    }
}

/// The connections.
#[derive(Debug)]
pub(super) struct Looks {
    pool: Pool,
    reply_within: Duration,
}

impl Looks {
    /// Makes the pool; connects to nothing yet.
    ///
    /// # Errors
    /// When the settings make no sense.
    pub(super) fn new(config: &PostgresConfig) -> Result<Self, StoreError> {
        let size = config.dashboard_pool_size;
        // Not among the session's first settings: a server that says so then is not taken for the primary.
        let harmless = Hook::async_fn(|client, _| {
            Box::pin(async move {
                let set = client.batch_execute("SET default_transaction_read_only = on").await;
                set.map_err(HookError::Backend)
            })
        });
        let driver = config.dashboard_config()?;
        let pool = database::pool_of(config, driver, (size, config.dashboard_timeout), Some(harmless))?;
        Ok(Self { pool, reply_within: config.dashboard_timeout + Duration::from_secs(5) })
    }

    /// Carries out statements at the same time on one connection; each sees what is committed when it begins.
    ///
    /// # Errors
    /// [`Fault::TooSlow`] at the limit of time, or when no connection was free as long; else as the driver says.
    pub(super) async fn look<const N: usize>(
        &self,
        looks: impl Fn() -> [Look; N],
    ) -> Result<[Rows; N], Fault> {
        let mut tried = 0;
        loop {
            match self.try_look(looks().into()).await {
                Ok(rows) => return super::session::exactly(rows),
                Err(Fault::Lost(_)) if tried < FRESH_CONNECTIONS => tried += 1,
                Err(fault) => return Err(fault),
            }
        }
    }

    async fn try_look(&self, looks: Vec<Look>) -> Result<Vec<Rows>, Fault> {
        let object = self.pool.get().await.map_err(|error| match error {
            PoolError::Timeout(TimeoutType::Wait) => Fault::TooSlow,
            error => error.into(),
        })?;
        let answers = join_all(looks.iter().map(|look| one(&object, look)));
        let Ok(answers) = tokio::time::timeout(self.reply_within, answers).await else {
            drop(Object::take(object));
            return Err(Fault::gone(Shared::new("the server did not answer in time"), Stage::BeforeCommit));
        };
        let rows: Result<Vec<Rows>, Fault> = answers.into_iter().collect();
        if matches!(rows, Err(Fault::Lost(_))) {
            drop(Object::take(object));
        }
        rows
    }

    pub(super) fn close(&self) {
        self.pool.close();
    }
}

async fn one(object: &Object, look: &Look) -> Result<Rows, Fault> {
    let parameters: Vec<(&(dyn ToSql + Sync), Type)> =
        look.parameters.iter().map(|(value, of)| (&**value as &(dyn ToSql + Sync), of.clone())).collect();
    let answer = object.query_typed(&look.sql, &parameters).await;
    answer.map_err(|error| match error.code() {
        Some(&SqlState::QUERY_CANCELED) => Fault::TooSlow,
        _ => Fault::new(error, Stage::BeforeCommit),
    })
}
