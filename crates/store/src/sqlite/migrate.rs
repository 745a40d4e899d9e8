//! The schema's versions. Opening migrates; there is nobody else to do it.

use jobyard_model::Timestamp;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::fault::Fault;
use crate::StoreError;

/// One step of the schema.
struct Migration {
    /// Ascending from 1.
    version: i32,
    /// Binaries that know less than this version must not use the schema after it.
    oldest_binary: i32,
    sql: &'static str,
}

const MIGRATIONS: [Migration; 6] = [
    Migration { version: 1, oldest_binary: 1, sql: include_str!("migrations/0001_spine.sql") },
    Migration { version: 2, oldest_binary: 1, sql: include_str!("migrations/0002_followers.sql") },
    Migration { version: 3, oldest_binary: 1, sql: include_str!("migrations/0003_trees.sql") },
    // An older binary would not note what its jobs need.
    Migration { version: 4, oldest_binary: 4, sql: include_str!("migrations/0004_artifact_use.sql") },
    Migration { version: 5, oldest_binary: 4, sql: include_str!("migrations/0005_services.sql") },
    // An older binary would start jobs without their secrets.
    Migration { version: 6, oldest_binary: 6, sql: include_str!("migrations/0006_secrets.sql") },
];
const MIGRATING: &str = "migrating the schema";

/// Brings the schema to this binary's version, in one transaction.
///
/// # Errors
/// [`StoreError::BinaryTooOld`] when the schema refuses this binary; nothing is changed then.
pub(super) fn migrate(connection: &mut Connection, now: Timestamp) -> Result<(), StoreError> {
    step_up(connection, now).map_err(|fault| fault.during(MIGRATING))
}

/// Whether this binary can work with the schema as it is, or after it has stepped it up.
///
/// # Errors
/// [`StoreError::BinaryTooOld`]; [`StoreError::Unavailable`] when it is no schema of ours.
pub(super) fn check(connection: &Connection) -> Result<(), StoreError> {
    const DOING: &str = "looking at the schema's version";
    let own = own_version();
    match connection.query_row("SELECT oldest_binary FROM schema_version", [], |row| row.get::<_, i32>(0)) {
        Ok(oldest) if oldest > own => Err(StoreError::BinaryTooOld { oldest, own }),
        Ok(_) => Ok(()),
        Err(source) => Err(StoreError::Unavailable { doing: DOING, source: Box::new(source) }),
    }
}

fn own_version() -> i32 {
    MIGRATIONS.last().map_or(0, |newest| newest.version)
}

fn step_up(connection: &mut Connection, now: Timestamp) -> Result<(), Fault> {
    let own = own_version();
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(
        "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL, oldest_binary INTEGER NOT NULL) STRICT",
    )?;
    let found = transaction
        .query_row("SELECT version, oldest_binary FROM schema_version", [], |row| {
            Ok((row.get::<_, i32>(0)?, row.get::<_, i32>(1)?))
        })
        .optional()?;
    let (version, oldest) = found.unwrap_or((0, 0));
    if oldest > own {
        return Err(StoreError::BinaryTooOld { oldest, own }.into());
    }
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > version) {
        transaction.execute_batch(migration.sql)?;
        transaction.execute("DELETE FROM schema_version", [])?;
        transaction.execute(
            "INSERT INTO schema_version VALUES (?1, ?2)",
            params![migration.version, migration.oldest_binary],
        )?;
    }
    transaction.execute(
        "INSERT INTO pool (name, created_ms) VALUES ('default', ?1) ON CONFLICT DO NOTHING",
        [now.0],
    )?;
    Ok(transaction.commit()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_migration_changes_nothing_and_a_newer_schema_refuses_us() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, Timestamp(1)).unwrap();
        migrate(&mut connection, Timestamp(2)).unwrap();
        let made: i64 = connection.query_row("SELECT created_ms FROM pool", [], |row| row.get(0)).unwrap();
        assert_eq!(made, 1);

        connection.execute("UPDATE schema_version SET version = 99, oldest_binary = 98", []).unwrap();
        assert!(matches!(check(&connection), Err(StoreError::BinaryTooOld { oldest: 98, .. })));
        let refused = migrate(&mut connection, Timestamp(3)).unwrap_err();
        assert!(matches!(refused, StoreError::BinaryTooOld { oldest: 98, .. }), "{refused}");
        connection.execute("UPDATE schema_version SET oldest_binary = 1", []).unwrap();
        check(&connection).unwrap();
        migrate(&mut connection, Timestamp(4)).unwrap();
    }
}
