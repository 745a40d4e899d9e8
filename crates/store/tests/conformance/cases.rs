//! Failures that others' schedulers had, by their number.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jobyard_model::{JobId, JobSpec, Status};
use jobyard_store::{Cutoffs, JobQuery};

use super::world::{World, ann, exit, new_job, spec};

/// Walks the pages of all jobs: how often each was shown.
async fn walk(world: &World, limit: u32) -> HashMap<JobId, u32> {
    let mut shown = HashMap::new();
    let mut query = JobQuery { limit, ..JobQuery::default() };
    loop {
        let page = world.store.jobs(&query).await.unwrap();
        for record in page.items {
            *shown.entry(record.job.id).or_default() += 1;
        }
        query.cursor = page.next;
        if query.cursor.is_none() {
            return shown;
        }
    }
}

/// B120: jobs that were made in one instant, pages while others come and old ones are removed, and a job of many attempts
/// beside those that have none.
pub(crate) async fn pages_show_each_job_once_while_some_come_and_some_go(world: &World) {
    let node = world.node().await;
    let often = world.submit(JobSpec { max_retries: 20, ..spec() }).await;
    for _ in 0..20 {
        let claimed = world.claim(&[often], &node).await.remove(0);
        world.end(&claimed, exit(1)).await;
        world.pass(70_000).await;
        world.store.release_due(10).await.unwrap();
    }
    assert_eq!(world.store.attempts(often).await.unwrap().len(), 20);
    let mut old = Vec::new();
    for _ in 0..100 {
        old.push(world.ended(spec(), &node).await);
    }
    world.pass(100_000).await;
    // One statement, one time of creation.
    let together = world.submit_many(1_000, &spec()).await;
    let shown = walk(world, 7).await;
    assert_eq!(shown.len(), 1_101);
    assert!(shown.values().all(|times| *times == 1), "{shown:?}");

    let now = world.store.now().await.unwrap();
    let cutoffs = Cutoffs { jobs: now, keys: now, audit: now };
    let stop = Arc::new(AtomicBool::new(false));
    let (store, stopped) = (Arc::clone(&world.store), Arc::clone(&stop));
    let others = tokio::spawn(async move {
        let (mut come, mut gone) = (0, 0);
        while !stopped.load(Ordering::Relaxed) {
            let jobs = (0..4).map(|_| new_job(spec())).collect();
            come += store.submit(jobs, &ann()).await.unwrap().len();
            gone += store.remove_old(cutoffs, 1).await.unwrap().jobs;
        }
        (come, gone)
    });
    let shown = walk(world, 7).await;
    stop.store(true, Ordering::Relaxed);
    let (come, gone) = others.await.unwrap();
    assert!(come > 0 && gone > 0, "{come} came, {gone} went");
    assert!(shown.values().all(|times| *times == 1), "one was shown twice");
    assert!(together.iter().chain([&often]).all(|job_id| shown.contains_key(job_id)), "one was left out");
    for job_id in old {
        let stays = world.store.job(job_id).await.unwrap().is_some();
        assert!(!stays || shown.contains_key(&job_id), "one that stays was left out");
    }
    assert_eq!(world.status(often).await, Status::Waiting);
}
