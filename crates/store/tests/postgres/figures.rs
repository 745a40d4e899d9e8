//! Figures, printed and never judged: `cargo test --release -p jobyard-store --test postgres -- --ignored --nocapture
//! figures`, on a quiet machine. `JOBYARD_FIGURES_WAITING` is how many jobs wait, 1,000,000 unless set.

#![expect(clippy::print_stdout, reason = "figures are printed")]

use std::sync::Arc;
use std::time::Instant;

use jobyard_model::{JobFilter, JobSpec, Priority, Resources, Status};
use jobyard_store::{JobQuery, PostgresConfig, PostgresStore, Report};

use super::conformance::World;
use super::conformance::world::{ann, exit, item, new_job, spec};
use super::{OnServer, server};

fn waiting() -> usize {
    std::env::var("JOBYARD_FIGURES_WAITING").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000)
}

fn varied(number: usize) -> JobSpec {
    JobSpec {
        owner: format!("owner-{}", number % 5),
        priority: Priority::new((number % 3 * 30 + 20) as u8).unwrap(),
        resources: Resources { cpu_milli: 100 + number as u64 % 4, ..Resources::DEFAULT },
        ..spec()
    }
}

async fn open() -> World {
    let server = server().await;
    let config = PostgresConfig { max_unended_per_owner: 2_000_000, ..server.config() };
    let store = PostgresStore::open(config).await.unwrap();
    World { store, dialect: Box::new(OnServer(server)), max_unended_per_owner: 2_000_000 }
}

/// Snapshot, claim, start and end, `cycles` times.
async fn cycles(world: &World, node: &super::conformance::world::Node, cycles: usize) {
    let (mut snapshots, mut claims, mut reports, mut jobs) = (0.0, 0.0, 0.0, 0);
    for _ in 0..cycles {
        let begun = Instant::now();
        let snapshot = world.store.place_snapshot("default", 64, 1_000).await.unwrap();
        snapshots += begun.elapsed().as_secs_f64();
        let ids: Vec<_> = snapshot.heads.iter().map(|head| head.job_id).collect();
        let begun = Instant::now();
        let claimed = world.claim(&ids, node).await;
        claims += begun.elapsed().as_secs_f64();
        let items = claimed
            .iter()
            .flat_map(|claim| [item(claim, Report::Started), item(claim, Report::Ended(exit(0)))]);
        let begun = Instant::now();
        world.report_all(items.collect()).await;
        reports += begun.elapsed().as_secs_f64();
        jobs += claimed.len();
    }
    let per = |seconds: f64| seconds * 1_000.0 / cycles as f64;
    println!(
        "  {jobs} jobs: snapshot {:.1} ms, claim {:.1} ms, report {:.1} ms a cycle; {:.0} jobs/s",
        per(snapshots),
        per(claims),
        per(reports),
        jobs as f64 / (snapshots + claims + reports)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "prints figures"]
async fn figures() {
    let world = open().await;
    let node = world.node().await;
    for waiting in [1_000, waiting()] {
        let begun = Instant::now();
        for start in (0..waiting).step_by(10_000) {
            let jobs = (start..waiting.min(start + 10_000)).map(|number| new_job(varied(number))).collect();
            world.store.submit(jobs, &ann()).await.unwrap();
        }
        let seconds = begun.elapsed().as_secs_f64();
        println!("{waiting} submitted in batches of 10,000: {:.0}/s", waiting as f64 / seconds);
        cycles(&world, &node, 1).await;
        if waiting > 1_000 {
            cycles(&world, &node, 20).await;
        }
        for statuses in [vec![], vec![Status::Waiting], vec![Status::Success], vec![Status::Running]] {
            let query =
                JobQuery { filter: JobFilter::of_statuses(statuses.clone()), limit: 50, cursor: None };
            let begun = Instant::now();
            let page = world.store.jobs(&query).await.unwrap();
            println!("  page of {statuses:?}: {} in {:.1?}", page.items.len(), begun.elapsed());
        }
        let begun = Instant::now();
        world.store.summary().await.unwrap();
        println!("  summary in {:.1?}", begun.elapsed());
    }
    let begun = Instant::now();
    let clients: Vec<_> = (0..32)
        .map(|_| {
            let store = Arc::clone(&world.store);
            tokio::spawn(async move {
                for _ in 0..200 {
                    store.submit(vec![new_job(spec())], &ann()).await.unwrap();
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    println!("single submits of 32 clients: {:.0}/s", 6_400.0 / begun.elapsed().as_secs_f64());
}
