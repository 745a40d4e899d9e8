//! What statements read: along an index, and no more than they need.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use jobyard_model::{Any, JobFilter, JobSpec, LabelCondition, Outcome, Resources, Status, TextMatch};
use jobyard_store::{JobQuery, PostgresStore, Report};

use super::conformance::World;
use super::conformance::world::{ann, exit, item, new_job, spec};
use super::{OnServer, Server, server};

const WAITING: usize = 20_000;

/// Rows and index entries of the hot tables that were read since the statistics were last reset.
async fn read_of_job_live(server: &Server) -> (u64, u64) {
    // Sessions hand in what they counted when they end.
    server.wait_until("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'jobyard'", "0").await;
    let rows = server
        .sql(
            "SELECT (SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'job_live') || ' ' ||
            (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'job_live')",
        )
        .await;
    let numbers: Vec<u64> = rows[0].split(' ').map(|number| number.parse().unwrap()).collect();
    (numbers[0], numbers[1])
}

async fn open(server: &Arc<Server>) -> World {
    let store = PostgresStore::open(server.config()).await.unwrap();
    World {
        store,
        dialect: Box::new(OnServer(Arc::clone(server))),
        max_unended_per_owner: super::MAX_UNENDED,
    }
}

/// Carries something out on a store of its own, and says what it read.
async fn cost<F: Future<Output = ()>>(server: &Arc<Server>, act: impl FnOnce(World) -> F) -> u64 {
    let (scans_before, before) = read_of_job_live(server).await;
    let world = open(server).await;
    let store = Arc::clone(&world.store);
    act(world).await;
    store.close().await;
    drop(store);
    let (scans_after, after) = read_of_job_live(server).await;
    assert_eq!(scans_before, scans_after, "the hot table was read whole");
    after - before
}

/// Statistics say what autovacuum finds again and again: hot tables that have pages and no rows.
async fn vacuumed_while_empty(server: &Arc<Server>) {
    let world = open(server).await;
    let node = world.node().await;
    let jobs = world.submit_many(300, &spec()).await;
    for claimed in world.claim(&jobs, &node).await {
        world.end(&claimed, exit(0)).await;
    }
    world.store.close().await;
    server.sql("VACUUM ANALYZE").await;
    let counted =
        "SELECT relpages > 0 AND reltuples = 0 FROM pg_class WHERE relname IN ('job_live', 'attempt_live')";
    assert_eq!(server.sql(counted).await, ["t", "t"]);
}

async fn fill(world: &World, jobs: usize) {
    let varied = |number: usize| JobSpec {
        owner: format!("owner-{}", number % 3),
        resources: Resources { cpu_milli: 100 + number as u64 % 4, ..Resources::DEFAULT },
        ..spec()
    };
    for start in (0..jobs).step_by(5_000) {
        let jobs = (start..start + 5_000).map(|number| new_job(varied(number))).collect();
        world.store.submit(jobs, &ann()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_compares_each_with_each() {
    const JOBS: usize = 600;
    let server = server().await;
    vacuumed_while_empty(&server).await;
    server.sql("ALTER SYSTEM SET session_preload_libraries = 'auto_explain'").await;
    server.sql("ALTER DATABASE postgres SET auto_explain.log_min_duration = 0").await;
    server.sql("ALTER DATABASE postgres SET auto_explain.log_analyze = on").await;
    server.sql("SELECT pg_reload_conf()").await;
    let world = open(&server).await;
    fill(&world, 5_000).await;
    let node = world.node().await;
    let heads = world.store.place_snapshot("default", 100, JOBS as u32).await.unwrap().heads;
    let claimed = world.claim(&heads.iter().map(|head| head.job_id).collect::<Vec<_>>(), &node).await;
    assert_eq!(claimed.len(), JOBS);
    for report in [Report::Started, Report::Renewed, Report::Ended(exit(1)), Report::Ended(exit(1))] {
        world.report_all(claimed.iter().map(|claim| item(claim, report.clone())).collect()).await;
    }
    world.pass(3_000).await;
    assert_eq!(world.store.release_due(JOBS as u32).await.unwrap() as usize, JOBS);
    world.store.jobs(&JobQuery { limit: 500, ..JobQuery::default() }).await.unwrap();
    world.store.close().await;
    let log = server.log();
    let removed = log.lines().filter_map(|line| {
        let (_, count) = line.split_once("Rows Removed by ")?.1.split_once("Filter: ")?;
        count.trim().parse::<usize>().ok()
    });
    assert!(log.contains("Query Text: WITH changed AS"), "no plans in the log");
    assert!(removed.max().unwrap_or(0) < 2 * JOBS, "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_call_reads_does_not_grow_with_what_waits() {
    let server = server().await;
    vacuumed_while_empty(&server).await;
    let world = open(&server).await;
    fill(&world, WAITING).await;
    let node = world.node().await;
    world.store.close().await;
    drop(world);

    let snapshot = cost(&server, |world| async move {
        let snapshot = world.store.place_snapshot("default", 8, 1_000).await.unwrap();
        assert_eq!(snapshot.heads.len(), 12 * 8);
    });
    let snapshot = snapshot.await;
    let life = cost(&server, |world| async move {
        let snapshot = world.store.place_snapshot("default", 2, 10).await.unwrap();
        let jobs: Vec<_> = snapshot.heads.iter().map(|head| head.job_id).collect();
        for claimed in world.claim(&jobs, &node).await {
            world.report(&claimed, Report::Started).await;
            world.end(&claimed, exit(0)).await;
        }
    });
    let life = life.await;
    let loops = cost(&server, |world| async move {
        world.store.release_due(100).await.unwrap();
        world.store.expire_silent(100).await.unwrap();
        world.store.pending_stops(100).await.unwrap();
    });
    let loops = loops.await;
    let listing = cost(&server, |world| async move {
        let query = JobQuery {
            filter: JobFilter::of_statuses([Status::Running, Status::Retry]),
            limit: 50,
            cursor: None,
        };
        world.store.jobs(&query).await.unwrap();
        let filter = JobFilter { owners: Any::of(["owner-1".to_owned()]), ..JobFilter::default() };
        let owned = JobQuery { filter, limit: 50, cursor: None };
        assert_eq!(world.store.jobs(&owned).await.unwrap().items.len(), 50);
    });
    let listing = listing.await;
    let read = (snapshot, life, loops, listing);
    assert!(snapshot < 500 && life < 500 && loops < 50 && listing < 500, "index entries read: {read:?}");
}

/// Index entries of all tables that were read, and tables that were read whole.
async fn read_of_all(server: &Server) -> (u64, u64) {
    server.wait_until("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'jobyard'", "0").await;
    let rows = server
        .sql(
            "SELECT (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname IN ('job', 'job_label', 'job_end', 'attempt'))
            || ' ' || (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes)",
        )
        .await;
    let numbers: Vec<u64> = rows[0].split(' ').map(|number| number.parse().unwrap()).collect();
    (numbers[0], numbers[1])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_reads_little_more_than_it_shows() {
    let server = server().await;
    vacuumed_while_empty(&server).await;
    let world = open(&server).await;
    let varied = |number: usize| JobSpec {
        owner: format!("owner-{}", number % 3),
        name: format!("name-{}", number % 101),
        labels: [("team".to_owned(), format!("team-{}", number % 7))].into(),
        ..spec()
    };
    for start in (0..WAITING).step_by(5_000) {
        let jobs = (start..start + 5_000).map(|number| new_job(varied(number))).collect();
        world.store.submit(jobs, &ann()).await.unwrap();
    }
    world.store.close().await;
    drop(world);
    let is = |text: &str| Any::of([TextMatch::Is(text.to_owned())]);
    let team = |value: &str| vec![LabelCondition { key: "team".to_owned(), value: is(value) }];
    let none = JobFilter::default;
    let cases = [
        (none(), 50),
        (JobFilter { names: is("name-7"), ..none() }, 50),
        (JobFilter { labels: team("team-2"), ..none() }, 50),
        (JobFilter { labels: team("nothing"), ..none() }, 0),
        // Of two sources that of the name is the narrower, and what is left is looked at.
        (JobFilter { labels: team("team-2"), names: is("name-7"), ..none() }, 28),
        (JobFilter { outcomes: Any::of([Outcome::Failed]), ..none() }, 0),
        (
            JobFilter {
                owners: Any::of(["owner-1".to_owned()]),
                ..JobFilter::of_statuses([Status::Running])
            },
            0,
        ),
    ];
    for (filter, shown) in cases {
        let (whole_before, before) = read_of_all(&server).await;
        let world = open(&server).await;
        let query = JobQuery { filter, limit: 50, cursor: None };
        let page = world.store.job_rows(&query).await.unwrap();
        assert_eq!(page.items.len(), shown, "{query:?}");
        world.store.close().await;
        drop(world);
        let (whole, after) = read_of_all(&server).await;
        assert_eq!(whole, whole_before, "a table was read whole: {query:?}");
        assert!(after - before < 5_000, "{} index entries: {query:?}", after - before);
    }
}
