//! What happened by the minute: each event counted once, whoever rolls up and whatever dies in between.

use std::collections::BTreeMap;
use std::sync::Arc;

use jobyard_model::{JobSpec, Outcome, Status, Timestamp};
use jobyard_store::minutes::MINUTE_MS;
use jobyard_store::{MinuteCounts, MinutePage, MinuteQuery, RolledUp};

use super::world::{World, ann, exit, spec};

const FOREVER: Timestamp = Timestamp(0);

async fn roll_up_all(world: &World) -> u64 {
    let mut events = 0;
    loop {
        let RolledUp { events: more_events, more } = world.store.roll_up(3, FOREVER).await.unwrap();
        events += more_events;
        if !more {
            return events;
        }
    }
}

async fn spans(world: &World, from_ms: i64, to_ms: i64, step_minutes: u32) -> MinutePage {
    let query = MinuteQuery { from: Timestamp(from_ms), to: Timestamp(to_ms), step_minutes };
    world.store.minutes(&query).await.unwrap()
}

/// Everything there is, as one span.
async fn in_all(world: &World) -> MinuteCounts {
    let now = world.store.now().await.unwrap();
    let day_ms = 24 * 60 * MINUTE_MS;
    spans(world, now.0 - day_ms, now.0 + day_ms, 3 * 24 * 60).await.spans.remove(0).1
}

async fn happenings(world: &World) {
    let node = world.node().await;
    world.ended(spec(), &node).await;
    let failing = world.running(JobSpec { max_retries: 0, ..spec() }, &node).await;
    world.end(&failing, exit(3)).await;
    let retried = world.running(spec(), &node).await;
    world.end(&retried, exit(3)).await;
    let cancelled = world.submit(spec()).await;
    world.store.cancel(cancelled, &ann()).await.unwrap();
    let waited = world.submit(spec()).await;
    world.pass(30_000).await;
    world.claim(&[waited], &node).await;
}

pub(crate) async fn what_happened_is_counted_by_the_minute(world: &World) {
    happenings(world).await;
    assert_eq!(
        roll_up_all(world).await,
        world.store.events_after(Default::default(), &Default::default(), 100).await.unwrap().items.len()
            as u64
    );
    let counts = in_all(world).await;
    assert_eq!((counts.submitted, counts.started), (5, 3));
    let ended = BTreeMap::from([(Status::Success, 1), (Status::FinalFailed, 1), (Status::Cancelled, 1)]);
    assert_eq!(counts.ended, ended);
    assert_eq!(counts.outcomes, BTreeMap::from([(Outcome::Succeeded, 1), (Outcome::Failed, 2)]));
    assert_eq!(counts.waits.count(), 4);
    let longest = counts.waits.percentile_ms(100).unwrap();
    assert!((30_000..60_000).contains(&longest), "{longest}");
    assert!(counts.waits.percentile_ms(50).unwrap() < 10_000);
    // Nothing is counted again.
    assert_eq!(roll_up_all(world).await, 0);
    assert_eq!(in_all(world).await, counts);
}

pub(crate) async fn spans_of_minutes_have_their_own(world: &World) {
    world.submit(spec()).await;
    let first = world.store.now().await.unwrap();
    world.pass(2 * MINUTE_MS).await;
    world.submit_many(2, &spec()).await;
    roll_up_all(world).await;
    let begin = first.0.div_euclid(MINUTE_MS) * MINUTE_MS;
    let page = spans(world, begin, begin + 4 * MINUTE_MS, 1).await;
    let submitted: Vec<u64> = page.spans.iter().map(|(_, counts)| counts.submitted).collect();
    // The clock may have come to the next minute between the two.
    assert!(submitted == [1, 0, 2, 0] || submitted == [1, 0, 0, 2], "{submitted:?}");
    assert_eq!(page.spans[3].0, Timestamp(begin + 3 * MINUTE_MS));
    assert!(page.complete_until.0 >= first.0 + 2 * MINUTE_MS, "{page:?}");
    let page = spans(world, begin, begin + 4 * MINUTE_MS, 4).await;
    assert_eq!(page.spans.iter().map(|(_, counts)| counts.submitted).collect::<Vec<_>>(), [3]);
    let before = spans(world, begin - 10 * MINUTE_MS, begin, 5).await;
    assert_eq!(before.spans.iter().map(|(_, counts)| counts.submitted).collect::<Vec<_>>(), [0, 0]);
}

pub(crate) async fn several_that_roll_up_count_each_event_once(world: &World) {
    let other = world.dialect.another().await;
    let submitting = async {
        for _ in 0..40 {
            world.submit_many(5, &spec()).await;
        }
    };
    let rolling = async |store: Arc<dyn jobyard_store::Store>| {
        for _ in 0..60 {
            store.roll_up(7, FOREVER).await.unwrap();
        }
    };
    tokio::join!(submitting, rolling(Arc::clone(&world.store)), rolling(Arc::clone(&other)), rolling(other));
    roll_up_all(world).await;
    assert_eq!(in_all(world).await.submitted, 200);
}

pub(crate) async fn old_minutes_go(world: &World) {
    world.submit(spec()).await;
    roll_up_all(world).await;
    world.pass(3 * 60 * MINUTE_MS).await;
    world.submit(spec()).await;
    let now = world.store.now().await.unwrap();
    world.store.roll_up(100, Timestamp(now.0 - 60 * MINUTE_MS)).await.unwrap();
    assert_eq!(in_all(world).await.submitted, 1);
}

pub(crate) async fn a_quiet_datastore_is_left_alone(world: &World) {
    world.submit(spec()).await;
    roll_up_all(world).await;
    let touched = async || {
        let touched = world.dialect.ask("SELECT cast(touched_ms AS text) FROM minute_cursor").await;
        touched[0].parse::<i64>().unwrap()
    };
    let first = touched().await;
    world.pass(5_000).await;
    roll_up_all(world).await;
    assert_eq!(touched().await, first);
    world.pass(15_000).await;
    roll_up_all(world).await;
    assert!(touched().await >= first + 20_000);
}
