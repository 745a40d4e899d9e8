//! Somebody outside who is told of every event.

use jobyard_model::{SessionId, Status};
use jobyard_store::{EventCursor, EventFilter};
use uuid::Uuid;

use super::world::{World, ann, spec};

const HOLD_MS: u64 = 60_000;

fn holder(number: u128) -> SessionId {
    SessionId(Uuid::from_u128(number))
}

async fn hold(world: &World, number: u128, begin: EventCursor) -> Option<EventCursor> {
    world.store.hold_follower("webhook", holder(number), HOLD_MS, begin).await.unwrap()
}

pub(crate) async fn a_follower_is_in_one_hand_at_a_time(world: &World) {
    let begin = world.store.event_head().await.unwrap();
    assert_eq!(hold(world, 1, begin).await, Some(begin));
    assert_eq!(hold(world, 2, begin).await, None);
    assert_eq!(hold(world, 1, EventCursor::default()).await, Some(begin), "the same hand, and where it was");
    world.dialect.pass(i64::try_from(HOLD_MS).unwrap() - 5_000).await;
    assert_eq!(hold(world, 2, begin).await, None);
    assert_eq!(hold(world, 1, begin).await, Some(begin), "held on to");
    world.dialect.pass(i64::try_from(HOLD_MS).unwrap() + 1_000).await;
    assert_eq!(hold(world, 2, begin).await, Some(begin));
    let other = world.store.hold_follower("another", holder(1), HOLD_MS, begin).await.unwrap();
    assert_eq!(other, Some(begin));
}

pub(crate) async fn a_follower_moves_on_in_its_holder_s_hand_only(world: &World) {
    let begin = world.store.event_head().await.unwrap();
    world.submit(spec()).await;
    let told = world.store.event_head().await.unwrap();
    assert!(told > begin);
    assert!(!world.store.move_follower("webhook", holder(1), told).await.unwrap(), "there is none yet");
    hold(world, 1, begin).await;
    assert!(!world.store.move_follower("webhook", holder(2), told).await.unwrap());
    assert!(world.store.move_follower("webhook", holder(1), told).await.unwrap());
    assert_eq!(hold(world, 1, begin).await, Some(told));
    world.dialect.pass(i64::try_from(HOLD_MS).unwrap() + 1_000).await;
    assert_eq!(hold(world, 2, begin).await, Some(told), "it goes on where the other was");
    assert!(!world.store.move_follower("webhook", holder(1), told).await.unwrap());
}

pub(crate) async fn a_step_back_of_the_clock_lets_go_of_a_follower(world: &World) {
    let begin = world.store.event_head().await.unwrap();
    hold(world, 1, begin).await;
    world.dialect.pass(-3_600_000).await;
    assert_eq!(hold(world, 2, begin).await, Some(begin));
}

pub(crate) async fn events_can_be_followed_by_where_they_lead(world: &World) {
    let begin = world.store.event_head().await.unwrap();
    let cancelled = world.submit(spec()).await;
    world.submit(spec()).await;
    world.store.cancel(cancelled, &ann()).await.unwrap();
    let to = |status| EventFilter { to: Some(status), ..EventFilter::default() };
    let page = world.store.events_after(begin, &to(Status::Cancelled), 10).await.unwrap();
    let found: Vec<_> = page.items.iter().map(|event| (event.job_id, event.to.as_str())).collect();
    assert_eq!(found, [(cancelled, "cancelled")]);
    let page = world.store.events_after(begin, &to(Status::FinalFailed), 10).await.unwrap();
    assert_eq!((page.items.len(), page.next), (0, world.store.event_head().await.unwrap()));
}
