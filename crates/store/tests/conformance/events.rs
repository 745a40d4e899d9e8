//! The history of changes, and following it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jobyard_model::{JobSpec, Origin};
use jobyard_store::{Cutoffs, EventCursor, EventFilter, EventRecord, Store, WakeTopic};

use super::world::{World, ann, exit, new_job, new_job_id, spec};

async fn all(world: &World, filter: &EventFilter) -> Vec<EventRecord> {
    let page = world.store.events_after(EventCursor::default(), filter, 1_000).await.unwrap();
    page.items
}

pub(crate) async fn a_life_as_events(world: &World) {
    let node = world.node().await;
    let job_id = world.ended(spec(), &node).await;
    let other = world.submit(spec()).await;
    world.store.cancel(other, &ann()).await.unwrap();
    let of_job = EventFilter { job_id: Some(job_id), ..EventFilter::default() };
    let events = all(world, &of_job).await;
    let moves: Vec<_> = events
        .iter()
        .map(|event| (event.from.as_str(), event.to.as_str(), event.attempt, event.who.as_str()))
        .collect();
    assert_eq!(
        moves,
        [
            ("", "waiting", None, "ann"),
            ("waiting", "running", Some(1), "informer"),
            ("placed", "running", Some(1), "worker"),
            ("running", "success", Some(1), "worker"),
        ]
    );
    assert_eq!(events[3].why, "succeeded");
    assert!(events.is_sorted_by(|left, right| left.cursor < right.cursor && left.at <= right.at));
    let all = all(world, &EventFilter::default()).await;
    assert_eq!(all.len(), 6);
    assert_eq!(all.last().unwrap().cursor, world.store.event_head().await.unwrap());
    // Page by page it is the same.
    let mut paged = Vec::new();
    let mut cursor = EventCursor::default();
    while paged.len() < 6 {
        let page = world.store.events_after(cursor, &EventFilter::default(), 2).await.unwrap();
        assert!(!page.expired && page.next > cursor);
        cursor = page.next;
        paged.extend(page.items);
    }
    assert_eq!(paged, all);
    let page = world.store.events_after(cursor, &EventFilter::default(), 2).await.unwrap();
    assert_eq!((page.items, page.next), (Vec::new(), cursor));
}

pub(crate) async fn filters_of_events(world: &World) {
    let mut labelled = spec();
    labelled.labels.insert("run".to_owned(), "7".to_owned());
    let origin = Origin { kind: "schedule".to_owned(), id: "s1".to_owned(), key: "1".to_owned() };
    let scheduled = JobSpec { origin: Some(origin), ..spec() };
    let labelled = world.submit(labelled).await;
    world.submit_many(20, &spec()).await;
    let scheduled = world.submit(scheduled).await;
    let pair = |key: &str, value: &str| Some((key.to_owned(), value.to_owned()));
    for (filter, wanted) in [
        (EventFilter { label: pair("run", "7"), ..EventFilter::default() }, vec![labelled]),
        (EventFilter { label: pair("run", "8"), ..EventFilter::default() }, vec![]),
        (EventFilter { origin: pair("schedule", "s1"), ..EventFilter::default() }, vec![scheduled]),
        (
            EventFilter { origin: pair("schedule", "s1"), label: pair("run", "7"), ..EventFilter::default() },
            vec![],
        ),
        (EventFilter { job_id: Some(new_job_id()), ..EventFilter::default() }, vec![]),
    ] {
        let page = world.store.events_after(EventCursor::default(), &filter, 10).await.unwrap();
        let found: Vec<_> = page.items.iter().map(|event| event.job_id).collect();
        assert_eq!(found, wanted, "{filter:?}");
        // The cursor moves on even when no event matched.
        assert_eq!(page.next, world.store.event_head().await.unwrap(), "{filter:?}");
    }
}

pub(crate) async fn a_cursor_never_misses_under_concurrent_writers(world: &World) {
    const WRITERS: usize = 6;
    const EACH: usize = 40;
    let mut writers = Vec::new();
    for number in 0..WRITERS {
        let store = if number % 2 == 0 { Arc::clone(&world.store) } else { world.dialect.another().await };
        writers.push(tokio::spawn(async move {
            let mut submitted = Vec::new();
            for size in 0..EACH {
                let batch = (0..=size % 5).map(|_| new_job(spec())).collect();
                submitted.extend(store.submit(batch, &ann()).await.unwrap());
            }
            submitted
        }));
    }
    let reader = Arc::clone(&world.store);
    let (done, mut finished) = tokio::sync::oneshot::channel::<()>();
    let follower = tokio::spawn(async move {
        let mut seen = Vec::new();
        let mut cursor = EventCursor::default();
        let mut last_round = false;
        loop {
            let page = reader.events_after(cursor, &EventFilter::default(), 50).await.unwrap();
            cursor = page.next;
            let empty = page.items.is_empty();
            seen.extend(page.items);
            if empty && last_round && cursor >= reader.event_head().await.unwrap() {
                return seen;
            }
            last_round = last_round || finished.try_recv().is_ok();
        }
    });
    let mut submitted = HashSet::new();
    for writer in writers {
        submitted.extend(writer.await.unwrap().into_iter().map(|submitted| submitted.id));
    }
    done.send(()).unwrap();
    let seen = follower.await.unwrap();
    assert!(seen.is_sorted_by(|left, right| left.cursor < right.cursor));
    assert_eq!(seen.len(), submitted.len());
    assert_eq!(seen.into_iter().map(|event| event.job_id).collect::<HashSet<_>>(), submitted);
}

pub(crate) async fn old_events_expire_a_cursor(world: &World) {
    let node = world.node().await;
    let old = world.ended(spec(), &node).await;
    let before = world.store.event_head().await.unwrap();
    world.pass(10_000).await;
    let kept = world.submit(spec()).await;
    let now = world.store.now().await.unwrap();
    let cutoffs = Cutoffs { jobs: jobyard_model::Timestamp(now.0 - 5_000), keys: now, audit: now };
    assert_eq!(world.store.remove_old(cutoffs, 100).await.unwrap().jobs, 1);
    let page = world.store.events_after(EventCursor::default(), &EventFilter::default(), 9).await.unwrap();
    assert!(page.expired);
    let page = world.store.events_after(before, &EventFilter::default(), 9).await.unwrap();
    assert!(!page.expired);
    assert_eq!(page.items[0].job_id, kept);
    // A job's own events are kept as long as the job.
    let of_kept = EventFilter { job_id: Some(kept), ..EventFilter::default() };
    let page = world.store.events_after(EventCursor::default(), &of_kept, 9).await.unwrap();
    assert!(!page.expired && page.items.len() == 1);
    assert!(world.store.job(old).await.unwrap().is_none());
    // One beyond the newest event is another datastore's.
    let newest = world.store.event_head().await.unwrap();
    for beyond in [
        EventCursor { number: newest.number + 1_000_000, ..newest },
        EventCursor { transaction: newest.transaction + 1_000_000, number: 0 },
    ] {
        for filter in [&EventFilter::default(), &of_kept] {
            let page = world.store.events_after(beyond, filter, 9).await.unwrap();
            assert!(page.expired && page.items.is_empty() && page.next < beyond, "{beyond}");
        }
    }
}

pub(crate) async fn wake_ups_follow_commits(world: &World) {
    let node = world.node().await;
    let store = &world.store;
    let job_id = woken(store, WakeTopic::Placement, world.submit(spec())).await;
    let claimed = woken(store, WakeTopic::Events, world.claim(&[job_id], &node)).await.remove(0);
    woken(store, WakeTopic::Stops, store.cancel(job_id, &ann())).await.unwrap();
    woken(store, WakeTopic::Placement, world.end(&claimed, exit(0))).await;
    let now = store.now().await.unwrap();
    let later = JobSpec { run_at: Some(now.plus_ms(60_000)), ..spec() };
    woken(store, WakeTopic::Due, world.submit(later)).await;
    woken(store, WakeTopic::Placement, world.node()).await;
}

/// Does something, and waits until followers of the topic hear of it.
async fn woken<T>(store: &Arc<dyn Store>, topic: WakeTopic, act: impl Future<Output = T>) -> T {
    let mut wakes = store.wakes(topic);
    wakes.borrow_and_update();
    let value = act.await;
    let heard = tokio::time::timeout(Duration::from_secs(20), wakes.changed()).await;
    heard.unwrap_or_else(|_| panic!("nobody was woken for {topic:?}")).unwrap();
    value
}
