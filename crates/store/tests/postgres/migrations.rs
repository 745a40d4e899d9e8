//! The schema's versions.

use jobyard_store::{PostgresConfig, PostgresStore, Store, StoreError};
use jobyard_test_postgres::Cluster;

use super::{Server, server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_migrations_at_once_make_one_schema() {
    let server = Server::new(Cluster::start_new().unwrap());
    let narrow = || PostgresConfig { pool_size: 1, read_pool_size: 1, ..server.config() };
    let migrating: Vec<_> = (0..5)
        .map(|_| {
            let config = narrow();
            tokio::spawn(async move { PostgresStore::migrate(&config).await })
        })
        .collect();
    for migration in migrating {
        migration.await.unwrap().unwrap();
    }
    assert_eq!(server.sql("SELECT count(*) FROM schema_version").await, ["1"]);
    assert_eq!(server.sql("SELECT count(*) FROM pool").await, ["1"]);
    let store = PostgresStore::open(narrow()).await.unwrap();
    assert_eq!(store.pools().await.unwrap()[0].name, "default");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_says_what_is_wrong_with_the_schema() {
    let server = Server::new(Cluster::start_new().unwrap());
    let refused = PostgresStore::open(server.config()).await.map(drop).unwrap_err();
    assert!(matches!(refused, StoreError::SchemaTooOld { found: 0, .. }), "{refused}");
    let looked = PostgresStore::check(&server.config()).await.unwrap_err();
    assert_eq!(looked.to_string(), refused.to_string());
    assert!(refused.to_string().contains("run `jobyard migrate`"), "{refused}");

    PostgresStore::migrate(&server.config()).await.unwrap();
    PostgresStore::check(&server.config()).await.unwrap();
    server.sql("UPDATE schema_version SET version = 90, oldest_binary = 1").await;
    PostgresStore::open(server.config()).await.map(drop).unwrap();
    PostgresStore::migrate(&server.config()).await.unwrap();
    assert_eq!(server.sql("SELECT version FROM schema_version").await, ["90"]);

    server.sql("UPDATE schema_version SET oldest_binary = 90").await;
    let refused = PostgresStore::open(server.config()).await.map(drop).unwrap_err();
    assert!(matches!(refused, StoreError::BinaryTooOld { oldest: 90, .. }), "{refused}");
    let refused = PostgresStore::migrate(&server.config()).await.unwrap_err();
    assert!(matches!(refused, StoreError::BinaryTooOld { oldest: 90, .. }), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_not_there_is_unavailable() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("host={} user=postgres dbname=postgres", folder.path().display());
    let refused = PostgresStore::open(PostgresConfig::new(url)).await.map(drop).unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable { .. }), "{refused}");
    let refused = PostgresStore::open(PostgresConfig::new("host='")).await.map(drop).unwrap_err();
    assert!(refused.to_string().contains("connection string"), "{refused}");
}

const TO_VERSION_3: [&str; 3] = [
    include_str!("../../src/postgres/migrations/0001_spine.sql"),
    include_str!("../../src/postgres/migrations/0002_followers.sql"),
    include_str!("../../src/postgres/migrations/0003_trees.sql"),
];

/// As version 3 left them: a job with executable, input and outputs, one with the same input that left nothing, one
/// with files of its node, one that was lost.
const JOBS_OF_VERSION_3: &str = r#"
    CREATE TABLE schema_version (version int NOT NULL, oldest_binary int NOT NULL);
    INSERT INTO schema_version VALUES (3, 1);
    INSERT INTO job SELECT lpad(number::text, 32, '0')::uuid, 1, 1, 1, 'old', 1, 'ann', 7, NULL, spec::json FROM (VALUES
      (1, '{"binary":{"artifact":"' || repeat('a', 64) || '"},"input_path":"sha256:' || repeat('b', 64) || '"}'),
      (2, '{"binary":null,"input_path":"sha256:' || repeat('b', 64) || '"}'),
      (3, '{"binary":{"file":"/bin/true"}}'),
      (4, '{"binary":null,"labels":{"team":"ml"},"priority":90}')) AS old(number, spec);
    INSERT INTO attempt SELECT id, 1, 1, 3, 0, false, id, id, id, 'node', 1, NULL, NULL, 1, 1, 0, said FROM (VALUES
      (1, '{"Exited":{"outputs":{"kept":"' || repeat('c', 64) || '"}}}'),
      (2, '{"Exited":{"outputs":"none"}}'),
      (3, '{"Exited":{}}'),
      (4, '"Silent"')) AS old(number, said), LATERAL (SELECT lpad(number::text, 32, '0')::uuid) AS job(id);
    INSERT INTO artifact VALUES (decode(repeat('a', 64), 'hex'), 3, 5);
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_step_to_version_4_notes_what_the_jobs_of_before_need() {
    let server = Server::new(Cluster::start_new().unwrap());
    for sql in TO_VERSION_3.into_iter().chain([JOBS_OF_VERSION_3]) {
        server.sql(sql).await;
    }
    PostgresStore::migrate(&server.config()).await.unwrap();
    let needed = "SELECT left(encode(hash, 'hex'), 2) || right(job_id::text, 2) FROM job_artifact ORDER BY 1";
    assert_eq!(server.sql(needed).await, ["aa01", "bb01", "bb02", "cc01"]);
    assert_eq!(server.sql("SELECT used_ms FROM artifact WHERE doomed_ms IS NULL").await, ["5"]);
    let labelled = "SELECT key || ':' || value || right(job_id::text, 2) FROM job_label";
    assert_eq!(server.sql(labelled).await, ["team:ml04"], "so does the step to version 12");
    PostgresStore::check(&server.config()).await.unwrap();
}

/// Restarts of what never ran.
const STARTING_SERVICE: &str = "INSERT INTO attempt_live
    (job_id, number, phase, lease_id, node_id, session, placed_ms, accepted_ms, lease_until_ms, heard_ms, cpu_milli,
     memory_bytes, service)
  SELECT id, 1, 1, id, id, id, 1, 1, 1, 1, 1, 1, '{}' FROM job_live";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rows_that_break_our_rules_are_refused_by_the_schema() {
    let server = server().await;
    let store = PostgresStore::open(server.config()).await.unwrap();
    let job = super::conformance::world::new_job(super::conformance::world::spec());
    store.submit(vec![job], &super::conformance::world::ann()).await.unwrap();
    for (broken, constraint) in [
        ("UPDATE job_live SET status = 9", "job_live_status"),
        ("UPDATE job_live SET status = 3", "job_live_running"),
        ("UPDATE job_live SET wait_since_ms = NULL", "job_live_waiting"),
        ("UPDATE job_live SET status = 4, wait_since_ms = NULL", "job_live_retry"),
        ("UPDATE job_live SET status = 1, wait_since_ms = NULL", "job_live_ready"),
        ("UPDATE job_live SET due_ms = 1", "job_live_due"),
        ("UPDATE job_live SET lane = 4", "job_live_lane"),
        ("UPDATE job_live SET intent = 3", "job_live_wanted"),
        (STARTING_SERVICE, "attempt_live_service"),
    ] {
        let refused = server.try_sql(broken).await.unwrap_err();
        let named = refused.as_db_error().unwrap().constraint().unwrap_or_default().to_owned();
        assert_eq!(named, constraint, "{broken}");
    }
}
