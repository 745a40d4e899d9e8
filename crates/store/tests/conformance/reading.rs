//! Lists, pages, counts, and the view for people at a prompt.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jobyard_model::{
    Any, JobFilter, JobId, JobSpec, JobState, LabelCondition, Origin, Outcome, Phase, Resources, Status,
    TextMatch,
};
use jobyard_store::{JobQuery, Report};

use super::world::{World, ann, exit, new_job, spec, with_key};

async fn page_ids(world: &World, query: &JobQuery) -> (Vec<JobId>, Option<JobId>) {
    let page = world.store.jobs(query).await.unwrap();
    (page.items.iter().map(|record| record.job.id).collect(), page.next)
}

/// Walks all pages.
async fn walk(world: &World, mut query: JobQuery) -> Vec<JobId> {
    let mut found = Vec::new();
    loop {
        let (ids, next) = page_ids(world, &query).await;
        assert!(ids.len() <= query.limit as usize);
        found.extend(ids);
        let Some(next) = next else { return found };
        assert!(query.cursor.is_none_or(|cursor| next < cursor), "a cursor that does not move on");
        query.cursor = Some(next);
    }
}

fn of(statuses: &[Status], limit: u32) -> JobQuery {
    JobQuery { filter: JobFilter::of_statuses(statuses.iter().copied()), limit, cursor: None }
}

fn first(filter: &JobFilter) -> JobQuery {
    JobQuery { filter: filter.clone(), limit: 10, cursor: None }
}

pub(crate) async fn pages_of_a_thousand_while_others_come(world: &World) {
    let mut before = world.submit_many(1_000, &spec()).await;
    let stop = Arc::new(AtomicBool::new(false));
    let (store, stopped) = (Arc::clone(&world.store), Arc::clone(&stop));
    let others = tokio::spawn(async move {
        while !stopped.load(Ordering::Relaxed) {
            store.submit(vec![new_job(spec()), new_job(spec())], &ann()).await.unwrap();
        }
    });
    let walked = walk(world, JobQuery { limit: 7, ..JobQuery::default() }).await;
    let waiting = walk(world, of(&[Status::Waiting], 7)).await;
    stop.store(true, Ordering::Relaxed);
    others.await.unwrap();
    before.sort_unstable_by(|left, right| right.cmp(left));
    for walked in [walked, waiting] {
        assert!(walked.is_sorted_by(|left, right| left > right), "not newest first, or one twice");
        let walked: HashSet<_> = walked.into_iter().collect();
        assert!(before.iter().all(|job_id| walked.contains(job_id)));
    }
}

pub(crate) async fn every_filter(world: &World) {
    let mut wanted = JobSpec { owner: "others".to_owned(), name: "Nightly Sum".to_owned(), ..spec() };
    wanted.command = vec!["sum".to_owned(), "--all".to_owned()];
    wanted.labels.insert("run".to_owned(), "7".to_owned());
    wanted.labels.insert("stage".to_owned(), "a".to_owned());
    wanted.origin = Some(Origin { kind: "schedule".to_owned(), id: "s1".to_owned(), key: "2026".to_owned() });
    world.submit_many(3, &spec()).await;
    let job_id = world.submit_all(vec![with_key(wanted, "k", 1)]).await[0].id;
    world.submit_many(3, &spec()).await;
    let base = JobFilter::default;
    let text = |text: &str| JobFilter { text: Some(text.to_owned()), ..base() };
    let one = |text: &str| Any::of([text.to_owned()]);
    let labelled = |key: &str, value: &str| LabelCondition {
        key: key.to_owned(),
        value: Any::of([TextMatch::Is(value.to_owned())]),
    };
    let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let queries = [
        JobFilter { owners: one("others"), ..base() },
        JobFilter { names: Any::of([TextMatch::Is("Nightly Sum".to_owned())]), ..base() },
        JobFilter { labels: vec![labelled("run", "7"), labelled("stage", "a")], ..base() },
        JobFilter { origin: Some(label("schedule", "s1")), ..base() },
        JobFilter { idempotency_key: Some("k".to_owned()), ..base() },
        JobFilter {
            idempotency_key: Some("k".to_owned()),
            statuses: Any::of([Status::Waiting]),
            owners: one("others"),
            ..base()
        },
        text("nightly"),
        text("SUM --ALL"),
        text(&job_id.to_string()[..23]),
    ];
    for query in queries {
        assert_eq!(page_ids(world, &first(&query)).await.0, [job_id], "{query:?}");
    }
    let nobody = [
        JobFilter { owners: one("nobody"), ..base() },
        JobFilter { labels: vec![labelled("run", "8")], ..base() },
        JobFilter { idempotency_key: Some("x".to_owned()), ..base() },
        JobFilter { idempotency_key: Some("k".to_owned()), statuses: Any::of([Status::Success]), ..base() },
        text("100%"),
    ];
    for query in nobody {
        assert_eq!(page_ids(world, &first(&query)).await, (Vec::new(), None), "{query:?}");
    }
    let created_at = world.job(job_id).await.created_at;
    let after = JobFilter { created_after: Some(created_at), ..base() };
    assert!(page_ids(world, &first(&after)).await.0.contains(&job_id));
    let before = JobFilter { created_before: Some(created_at), ..base() };
    assert!(!page_ids(world, &first(&before)).await.0.contains(&job_id));
}

pub(crate) async fn statuses_are_merged_newest_first(world: &World) {
    let node = world.node().await;
    let mut all = Vec::new();
    for _ in 0..5 {
        all.push(world.submit(spec()).await);
        all.push(world.running(spec(), &node).await.job_id);
        all.push(world.ended(spec(), &node).await);
        let retrying = world.running(spec(), &node).await;
        world.end(&retrying, exit(1)).await;
        all.push(retrying.job_id);
    }
    all.sort_unstable_by(|left, right| right.cmp(left));
    let every = [Status::Waiting, Status::Running, Status::Success, Status::Retry];
    assert_eq!(walk(world, of(&every, 3)).await, all);
    assert_eq!(walk(world, of(&[], 3)).await, all);
    for status in every {
        assert_eq!(walk(world, of(&[status], 2)).await.len(), 5);
    }
    for status in [Status::Ready, Status::Cancelled, Status::FinalFailed] {
        assert!(walk(world, of(&[status], 2)).await.is_empty());
    }
}

pub(crate) async fn a_page_may_be_short_and_go_on(world: &World) {
    let node = world.node().await;
    let needle = || JobSpec { name: "needle".to_owned(), ..spec() };
    let runs = world.running(needle(), &node).await.job_id;
    let waits = world.submit(needle()).await;
    world.submit_many(6_000, &spec()).await;
    let cases = [
        (vec![], vec![waits, runs]),
        (vec![Status::Waiting], vec![waits]),
        // One status is read further down than the other: neither twice, nor out of order.
        (vec![Status::Waiting, Status::Running], vec![waits, runs]),
    ];
    for (statuses, wanted) in cases {
        let mut query = of(&statuses, 50);
        query.filter.names = Any::of([TextMatch::Holds("eedle".to_owned())]);
        assert_eq!(walk(world, query).await, wanted, "{statuses:?}");
        // Where each one's command is read, a page looks at fewer.
        let mut query = of(&statuses, 50);
        query.filter.text = Some("NEEDLE".to_owned());
        let (_, next) = page_ids(world, &query).await;
        assert!(next.is_some(), "{statuses:?}");
        assert_eq!(walk(world, query).await, wanted, "{statuses:?}");
    }
    let later = world.store.now().await.unwrap().plus_ms(3_600_000);
    let later = JobSpec { run_at: Some(later), owner: "others".to_owned(), ..spec() };
    world.submit_many(6_000, &later).await;
    let newest = world.submit(spec()).await;
    let (page, next) = page_ids(world, &of(&[Status::Waiting], 1)).await;
    assert_eq!((page, next.is_some()), (vec![newest], true));
    let found = walk(world, of(&[Status::Waiting], 500)).await;
    assert_eq!((found.len(), found.last()), (6_002, Some(&waits)), "those far below others that don't wait");
}

pub(crate) async fn attempts_tell_the_history(world: &World) {
    let node = world.node().await;
    let first = world.running(spec(), &node).await;
    world.end(&first, exit(1)).await;
    world.pass(2_000).await;
    world.store.release_due(10).await.unwrap();
    let second = world.claim(&[first.job_id], &node).await.remove(0);
    world.report(&second, Report::Accepted).await;
    let attempts = world.store.attempts(first.job_id).await.unwrap();
    assert_eq!(attempts.iter().map(|attempt| attempt.number).collect::<Vec<_>>(), [1, 2]);
    let (ended, live) = (&attempts[0], &attempts[1]);
    assert_eq!((ended.phase, &ended.end), (None, &Some((Outcome::Failed, exit(1)))));
    assert_eq!((ended.lease_id, ended.node_id), (first.lease_id, node.id()));
    assert_eq!(ended.node_name, node.registration.name);
    assert!(ended.placed_at <= ended.accepted_at.unwrap() && ended.started_at <= ended.ended_at);
    assert_eq!((live.phase, &live.end), (Some(Phase::Starting), &None));
    assert_eq!((live.lease_id, live.ended_at), (second.lease_id, None));
    assert_eq!(live.node_name, node.registration.name);
    assert!(world.store.attempts(super::world::new_job_id()).await.unwrap().is_empty());
}

pub(crate) async fn the_summary_counts(world: &World) {
    let empty = world.store.summary().await.unwrap();
    assert_eq!((empty.oldest_waiting, empty.nodes), (None, 0));
    assert_eq!(empty.counts.len(), Status::ALL.len());
    let oldest = world.submit(JobSpec { owner: "others".to_owned(), ..spec() }).await;
    world.pass(1_000).await;
    world.submit_many(2, &JobSpec { priority: jobyard_model::Priority::new(90).unwrap(), ..spec() }).await;
    let silent = world.node().await;
    world.pass(60_000).await;
    let node = world.node().await;
    world.running(spec(), &node).await;
    world.ended(spec(), &node).await;
    let summary = world.store.summary().await.unwrap();
    let count = |status| {
        let count = summary.counts.iter().find(|count| count.status == status).unwrap();
        assert!(!count.capped);
        count.count
    };
    assert_eq!(Status::ALL.map(count), [0, 3, 1, 0, 1, 0, 0]);
    let JobState::Waiting { since } = world.job(oldest).await.job.state else { panic!() };
    assert_eq!(summary.oldest_waiting, Some(since));
    assert_eq!((summary.nodes, summary.nodes_heard), (2, 1));
    assert_eq!(summary.capacity, node.registration.capacity);
    assert_eq!(summary.reserved, Resources::DEFAULT);
    assert_ne!(silent.id(), node.id());
}

pub(crate) async fn the_classic_questions_at_a_prompt(world: &World) {
    let node = world.node().await;
    let waiting = world.submit(spec()).await;
    let silent = world.running(spec(), &node).await;
    world.pass(181_000).await;
    let heard = world.running(spec(), &node).await;
    let ended = world.ended(spec(), &node).await;
    let waits = world.dialect.ask("SELECT id FROM job_table WHERE status = 'waiting'").await;
    assert_eq!(waits, [waiting.to_string()]);
    let dead = world.dialect.ask(world.dialect.silent_for_180_seconds()).await;
    assert_eq!(dead, [silent.job_id.to_string()]);
    let rest = "SELECT owner_id FROM job_table WHERE binary_url IS NULL AND input_path IS NULL \
        AND output_path IS NULL AND created_time IS NOT NULL AND retry_count = 0 ORDER BY id";
    assert_eq!(world.dialect.ask(rest).await, ["team"; 4]);
    let mut heard_of = vec![silent.job_id.to_string(), heard.job_id.to_string()];
    heard_of.sort();
    let ask = "SELECT id FROM job_table WHERE last_heartbeat IS NOT NULL ORDER BY id";
    assert_eq!(world.dialect.ask(ask).await, heard_of);
    let ask = "SELECT id FROM job_table WHERE status = 'success'";
    assert_eq!(world.dialect.ask(ask).await, [ended.to_string()]);
}
