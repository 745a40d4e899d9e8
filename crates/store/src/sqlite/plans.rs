//! The planner's choices for statements that must stay fast with a million jobs.

use jobyard_model::{Status, Timestamp};
use rusqlite::Connection;
use uuid::Uuid;

use crate::filter::Source;

use super::{due, groups, listing, logs, migrate, placement, retention, summary};

/// How SQLite means to execute the statement, one step a line.
fn plan(connection: &Connection, sql: &str) -> String {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let steps = statement.raw_query().mapped(|row| row.get::<_, String>(3));
    steps.collect::<Result<Vec<_>, _>>().unwrap().join("\n")
}

fn source(source: &Source) -> String {
    listing::source_sql(source, Uuid::max()).0
}

fn word() -> String {
    "x".to_owned()
}

#[test]
fn hot_statements_search_their_index_and_never_sort() {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate::migrate(&mut connection, Timestamp(1)).unwrap();
    let cases = [
        (groups::NEXT_SHAPE.to_owned(), "(pool_id=? AND lane=? AND owner_id=? AND shape_id>?)"),
        (groups::NEXT_OWNER.to_owned(), "(pool_id=? AND lane=? AND owner_id>?)"),
        (placement::HEADS.to_owned(), "job_live_claim (pool_id=? AND lane=? AND owner_id=? AND shape_id=?)"),
        (placement::PENDING_STOPS.to_owned(), "SCAN job_live USING INDEX job_live_stop"),
        (due::DUE_RUN_AT.to_owned(), "job_live_due (status=? AND due_ms<?)"),
        (due::DUE_RETRIES.to_owned(), "job_live_due (status=? AND due_ms<?)"),
        (due::FAR_RETRIES.to_owned(), "job_live_due (status=? AND due_ms>?)"),
        (due::EXPIRED.to_owned(), "job_live_start_deadline (start_deadline_ms>? AND start_deadline_ms<?)"),
        (source(&Source::All), "(id<?)"),
        (source(&Source::Owner(word())), "job_owner (owner_id=? AND id<?)"),
        (source(&Source::Key(word())), "job_key (idempotency_key=? AND id<?)"),
        (source(&Source::Name(word())), "job_name (name=? AND id<?)"),
        (source(&Source::Label(word(), word())), "PRIMARY KEY (key=? AND value=? AND job_id<?)"),
        (source(&Source::Hot), "PRIMARY KEY (id<?)"),
        (source(&Source::Troubled), "attempt_troubled (job_id<?)"),
        (source(&Source::Status(Status::Running)), "PRIMARY KEY (job_id<?)"),
        (source(&Source::Status(Status::Retry)), "job_live_outstanding (status=? AND id<?)"),
        (source(&Source::Status(Status::Success)), "job_end_listed (status=? AND job_id<?)"),
        (listing::NEXT_NAME.to_owned(), "COVERING INDEX job_name (name>?)"),
        (listing::NEXT_KEY.to_owned(), "PRIMARY KEY (key>?)"),
        (listing::NEXT_VALUE.to_owned(), "PRIMARY KEY (key=? AND value>?)"),
        (logs::chunks_sql(false, true), "(job_id=? AND attempt=? AND seq>? AND seq<?)"),
        (
            logs::chunks_sql(true, false),
            "log_chunk_stream_end (job_id=? AND attempt=? AND stream=? AND to_offset>?)",
        ),
        (
            logs::chunks_sql(true, true),
            "log_chunk_stream_end (job_id=? AND attempt=? AND stream=? AND to_offset>?)",
        ),
        (retention::OLD_JOBS.to_owned(), "job_end_finished (status=? AND finished_ms<?)"),
        (summary::count_sql(Status::Waiting), "INDEX job_live_claim"),
        (summary::count_sql(Status::Ready), "job_live_"),
        (summary::count_sql(Status::Success), "job_end_finished (status=? AND finished_ms>?)"),
    ];
    for (sql, wanted) in cases {
        let plan = plan(&connection, &sql);
        assert!(plan.contains(wanted), "{sql}\n{plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{sql}\n{plan}");
    }
}

/// A plan that looks right can still read every entry of the group it leaves.
#[test]
fn a_step_to_the_next_group_costs_the_same_however_many_jobs_wait() {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate::migrate(&mut connection, Timestamp(1)).unwrap();
    let waiting = "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 5000) \
        INSERT INTO job_live (id, status, kind, pool_id, shape_id, owner_id, lane, priority, wait_since_ms, \
        artifact_missing, attempt, intent, round, retry_count, platform_failures, unpaid_in_row, evictions, \
        max_retries, backoff_ms, exclusive) \
        SELECT randomblob(16), 2, 0, 1, 1, 1, 2, 50, n, 0, 0, 0, 1, 0, 0, 0, 0, 3, 1000, 0 FROM number";
    assert_eq!(connection.execute(waiting, []).unwrap(), 5_000);
    for (sql, after) in [(groups::NEXT_SHAPE, &[1, 2, 1, 1][..]), (groups::NEXT_OWNER, &[1, 2, 1][..])] {
        let mut statement = connection.prepare(sql).unwrap();
        assert!(!statement.exists(rusqlite::params_from_iter(after)).unwrap());
        let steps = statement.get_status(rusqlite::StatementStatus::VmStep);
        assert!(steps < 100, "{steps} steps: {sql}");
    }
}
