//! The schema's versions. `jobyard migrate` brings them up; a store only looks whether it can work with what it finds.
//!
//! Invariant: one migrator at a time, each in one transaction with the version it makes; five started at once wait
//! for each other and four of them find nothing to do.

use std::error::Error as _;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

use super::config::PostgresConfig;
use super::fault::{Fault, Shared, Stage};
use crate::StoreError;

/// One step of the schema.
struct Migration {
    /// Ascending from 1.
    version: i32,
    /// Binaries that know less than this version must not use the schema after it.
    oldest_binary: i32,
    sql: &'static str,
}

const MIGRATIONS: [Migration; 14] = [
    Migration { version: 1, oldest_binary: 1, sql: include_str!("migrations/0001_spine.sql") },
    Migration { version: 2, oldest_binary: 1, sql: include_str!("migrations/0002_followers.sql") },
    Migration { version: 3, oldest_binary: 1, sql: include_str!("migrations/0003_trees.sql") },
    // An older binary would not note what its jobs need.
    Migration { version: 4, oldest_binary: 4, sql: include_str!("migrations/0004_artifact_use.sql") },
    Migration { version: 5, oldest_binary: 4, sql: include_str!("migrations/0005_services.sql") },
    // An older binary would start jobs without their secrets.
    Migration { version: 6, oldest_binary: 6, sql: include_str!("migrations/0006_secrets.sql") },
    // An older binary would not know what jobs name in S3.
    Migration { version: 7, oldest_binary: 7, sql: include_str!("migrations/0007_s3.sql") },
    // Whoever imports events that this matters for raises `oldest_binary` to 8.
    Migration { version: 8, oldest_binary: 7, sql: include_str!("migrations/0008_moved_events.sql") },
    Migration { version: 9, oldest_binary: 7, sql: include_str!("migrations/0009_log_arrival.sql") },
    Migration { version: 10, oldest_binary: 7, sql: include_str!("migrations/0010_beginnings.sql") },
    Migration { version: 11, oldest_binary: 7, sql: include_str!("migrations/0011_sessions.sql") },
    // An older binary would not note its jobs' labels.
    Migration { version: 12, oldest_binary: 12, sql: include_str!("migrations/0012_listing.sql") },
    Migration { version: 13, oldest_binary: 12, sql: include_str!("migrations/0013_minutes.sql") },
    Migration { version: 14, oldest_binary: 12, sql: include_str!("migrations/0014_bulk_and_views.sql") },
];

/// Of the advisory lock; "jobyard" in ASCII.
const LOCK: &str = "SELECT pg_advisory_xact_lock(30025958418838116)";

const MIGRATING: &str = "migrating the schema";

/// The schema version this binary works with.
pub(crate) fn own_version() -> i32 {
    MIGRATIONS.last().map_or(0, |newest| newest.version)
}

/// Brings the schema to this binary's version.
///
/// # Errors
/// [`StoreError::BinaryTooOld`] when the schema refuses this binary; nothing is changed then.
pub(super) async fn migrate(config: &PostgresConfig) -> Result<(), StoreError> {
    let mut client = connect(config, MIGRATING).await?;
    let failed = |stage| move |error| Fault::new(error, stage).during(MIGRATING);
    let before = Stage::BeforeCommit;
    // Waiting for another migrator is no fault, and a step over large tables takes its time.
    client.batch_execute("SET statement_timeout = 0").await.map_err(failed(before))?;
    let transaction = client.transaction().await.map_err(failed(before))?;
    transaction.batch_execute(LOCK).await.map_err(failed(before))?;
    transaction
        .batch_execute(
            "CREATE TABLE IF NOT EXISTS schema_version (version int NOT NULL, oldest_binary int NOT NULL)",
        )
        .await
        .map_err(failed(before))?;
    let (found, oldest) = version(transaction.client()).await.map_err(failed(before))?;
    if oldest > own_version() {
        return Err(StoreError::BinaryTooOld { oldest, own: own_version() });
    }
    for step in MIGRATIONS.iter().filter(|step| step.version > found) {
        let (version, oldest) = (step.version, step.oldest_binary);
        let sql = format!(
            "{}; DELETE FROM schema_version; INSERT INTO schema_version VALUES ({version}, {oldest})",
            step.sql
        );
        transaction.batch_execute(&sql).await.map_err(failed(before))?;
    }
    transaction.commit().await.map_err(failed(Stage::Commit))
}

/// Whether this binary can work with the schema as it is.
///
/// # Errors
/// [`StoreError::SchemaTooOld`], [`StoreError::BinaryTooOld`], or that the server can't be reached.
pub(super) async fn check(config: &PostgresConfig) -> Result<(), StoreError> {
    const DOING: &str = "looking at the schema's version";
    let client = connect(config, DOING).await?;
    let own = own_version();
    match version(&client).await {
        Ok((_, oldest)) if oldest > own => Err(StoreError::BinaryTooOld { oldest, own }),
        Ok((found, _)) if found < own => Err(StoreError::SchemaTooOld { found, needed: own }),
        Ok(_) => Ok(()),
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => {
            Err(StoreError::SchemaTooOld { found: 0, needed: own })
        }
        Err(error) => Err(Fault::new(error, Stage::BeforeCommit).during(DOING)),
    }
}

/// A connection outside the pools.
pub(super) async fn connect(config: &PostgresConfig, doing: &'static str) -> Result<Client, StoreError> {
    let connecting = config.driver_config()?;
    let connected = tokio::time::timeout(config.connect_timeout, connecting.connect(NoTls)).await;
    let (client, connection) = match connected {
        Ok(connected) => connected.map_err(|error| not_connected(error, doing))?,
        Err(_) => {
            return Err(Fault::Unavailable(Shared::new("the server did not answer in time")).during(doing));
        }
    };
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::warn!(%error, "the connection that looked at the schema broke");
        }
    });
    Ok(client)
}

/// Whether a server that is away may come, or one that is there will never let us in.
fn not_connected(error: tokio_postgres::Error, doing: &'static str) -> StoreError {
    let refused = match error.code() {
        Some(code) => *code == SqlState::INVALID_CATALOG_NAME || code.code().starts_with("28"),
        // Neither server nor network: the driver can't do what the settings ask for.
        None => !error.is_closed() && error.source().is_none_or(|source| !source.is::<std::io::Error>()),
    };
    let source = Box::new(error);
    if refused { StoreError::Refused { doing, source } } else { StoreError::Unavailable { doing, source } }
}

async fn version(client: &Client) -> Result<(i32, i32), tokio_postgres::Error> {
    let row = client.query_opt("SELECT version, oldest_binary FROM schema_version", &[]).await?;
    Ok(row.map_or((0, 0), |row| (row.get(0), row.get(1))))
}
