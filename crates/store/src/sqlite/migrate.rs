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

const MIGRATIONS: [Migration; 13] = [
    Migration { version: 1, oldest_binary: 1, sql: include_str!("migrations/0001_spine.sql") },
    Migration { version: 2, oldest_binary: 1, sql: include_str!("migrations/0002_followers.sql") },
    Migration { version: 3, oldest_binary: 1, sql: include_str!("migrations/0003_trees.sql") },
    // An older binary would not note what its jobs need.
    Migration { version: 4, oldest_binary: 4, sql: include_str!("migrations/0004_artifact_use.sql") },
    Migration { version: 5, oldest_binary: 4, sql: include_str!("migrations/0005_services.sql") },
    // An older binary would start jobs without their secrets.
    Migration { version: 6, oldest_binary: 6, sql: include_str!("migrations/0006_secrets.sql") },
    Migration { version: 7, oldest_binary: 6, sql: include_str!("migrations/0007_plain_checks.sql") },
    // An older binary would not know what jobs name in S3.
    Migration { version: 8, oldest_binary: 8, sql: include_str!("migrations/0008_s3.sql") },
    Migration { version: 9, oldest_binary: 8, sql: include_str!("migrations/0009_log_arrival.sql") },
    Migration { version: 10, oldest_binary: 8, sql: include_str!("migrations/0010_sessions.sql") },
    // An older binary would not note its jobs' labels.
    Migration { version: 11, oldest_binary: 11, sql: include_str!("migrations/0011_listing.sql") },
    Migration { version: 12, oldest_binary: 11, sql: include_str!("migrations/0012_minutes.sql") },
    Migration { version: 13, oldest_binary: 11, sql: include_str!("migrations/0013_bulk_and_views.sql") },
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

    #[test]
    fn no_check_of_a_hot_table_builds_a_list_for_each_row() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, Timestamp(1)).unwrap();
        for table in ["job_live", "attempt_live", "job_end"] {
            let select = format!("EXPLAIN INSERT INTO {table} SELECT * FROM {table} WHERE false");
            let mut explain = connection.prepare(&select).unwrap();
            let steps = explain.query_map([], |row| row.get::<_, String>(1)).unwrap();
            let steps: Vec<String> = steps.collect::<rusqlite::Result<_>>().unwrap();
            // One for what is read from the table itself.
            let lists = steps.iter().filter(|step| *step == "OpenEphemeral").count();
            assert_eq!(lists, 1, "{table}: {steps:?}");
        }
    }

    #[test]
    fn rows_that_break_our_rules_are_refused_by_the_schema() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, Timestamp(1)).unwrap();
        connection
            .execute_batch(
                "INSERT INTO job_live (id, status, kind, pool_id, shape_id, owner_id, lane, priority, wait_since_ms,
                   artifact_missing, attempt, intent, round, retry_count, platform_failures, unpaid_in_row, evictions,
                   max_retries, backoff_ms, exclusive)
                   VALUES (x'00', 2, 0, 1, 1, 1, 2, 50, 1, 0, 0, 0, 1, 0, 0, 0, 0, 3, 1000, 0);
                 INSERT INTO attempt_live (job_id, number, lease_id, node_id, session, phase, placed_ms, lease_until_ms,
                   heard_ms, cpu_milli, memory_bytes) VALUES (x'00', 1, x'01', x'02', x'03', 0, 1, 1, 1, 1, 1);
                 INSERT INTO job_end (job_id, round, status, intent, current, attempt, retry_count, platform_failures,
                   unpaid_in_row, evictions, finished_ms, reason)
                   VALUES (x'00', 1, 6, 0, 1, 1, 0, 0, 0, 0, 1, 'expired');",
            )
            .unwrap();
        for (table, change, check) in [
            ("job_live", "status = 0", "job_live_status"),
            ("job_live", "status = 5", "job_live_status"),
            ("job_live", "intent = 4", "job_live_intent"),
            ("attempt_live", "phase = 4", "attempt_live_phase"),
            ("job_end", "status = 8", "job_end_status"),
            ("job_end", "reason = 'tired'", "job_end_reasons"),
        ] {
            let refused = connection.execute(&format!("UPDATE {table} SET {change}"), []).unwrap_err();
            assert!(refused.to_string().contains(check), "{table}, {change}: {refused}");
        }
    }

    /// As version 3 left them: a job with executable, input and outputs, one with the same input that left nothing, one
    /// with files of its node, one that was lost.
    const JOBS_OF_VERSION_3: &str = r#"
        INSERT INTO job SELECT unhex(printf('%032d', number)), 1, 1, 1, 'old', 1, 'ann', 7, NULL, spec FROM
          (SELECT 1 AS number, '{"binary":{"artifact":"' || replace(hex(zeroblob(32)), '0', 'a') ||
                  '"},"input_path":"sha256:' || replace(hex(zeroblob(32)), '0', 'b') || '"}' AS spec
           UNION ALL
           SELECT 2, '{"binary":null,"input_path":"sha256:' || replace(hex(zeroblob(32)), '0', 'b') || '"}'
           UNION ALL SELECT 3, '{"binary":{"file":"/bin/true"}}'
           UNION ALL SELECT 4, '{"binary":null}');
        INSERT INTO attempt SELECT unhex(printf('%032d', number)), 1, 1, 3, 0, 0, x'01', x'01', x'01', 'node', 1, NULL, NULL,
            1, 1, 0, said FROM
          (SELECT 1 AS number, '{"Exited":{"outputs":{"kept":"' || replace(hex(zeroblob(32)), '0', 'c') || '"}}}' AS said
           UNION ALL SELECT 2, '{"Exited":{"outputs":"none"}}'
           UNION ALL SELECT 3, '{"Exited":{}}'
           UNION ALL SELECT 4, '"Silent"');
        INSERT INTO artifact VALUES (unhex(replace(hex(zeroblob(32)), '0', 'a')), 3, 5);
    "#;

    #[test]
    fn the_step_to_version_4_notes_what_the_jobs_of_before_need() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
        connection
            .execute_batch(
                "CREATE TABLE schema_version (version INTEGER NOT NULL, oldest_binary INTEGER NOT NULL) STRICT;
                 INSERT INTO schema_version VALUES (3, 1)",
            )
            .unwrap();
        for old in &MIGRATIONS[..3] {
            connection.execute_batch(old.sql).unwrap();
        }
        connection.execute_batch(JOBS_OF_VERSION_3).unwrap();
        migrate(&mut connection, Timestamp(9)).unwrap();
        let mut statement = connection
            .prepare("SELECT lower(substr(hex(hash), 1, 2)) || hex(substr(job_id, 16)) FROM job_artifact ORDER BY 1")
            .unwrap();
        let needed: Vec<String> =
            statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert_eq!(needed, ["aa01", "bb01", "bb02", "cc01"]);
        let used = "SELECT used_ms FROM artifact WHERE doomed_ms IS NULL";
        assert_eq!(connection.query_row(used, [], |row| row.get::<_, i64>(0)).unwrap(), 5);
    }
}
