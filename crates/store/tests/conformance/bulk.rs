//! Actions on every job that a filter passes.

use jobyard_model::bulk::acted_on;
use jobyard_model::{Any, BulkAction, JobFilter, JobSpec, Status, Timestamp};
use jobyard_store::{Actor, BulkRecord, BulkStatus, NewBulk};
use uuid::Uuid;

use super::world::{World, ann, exit, spec, unique};

fn new(action: BulkAction, owners: Option<&[&str]>) -> NewBulk {
    NewBulk {
        id: Uuid::from_u128(u128::from(unique())),
        filter: "name=count".to_owned(),
        action,
        owners: owners.map(|owners| owners.iter().map(|owner| (*owner).to_owned()).collect()),
        idempotency_key: None,
    }
}

async fn begin(world: &World, bulk: &NewBulk) -> BulkRecord {
    let (record, created) = world.store.start_bulk(bulk, &ann()).await.unwrap();
    assert!(created);
    record
}

/// Its filter, as whoever carries it out reads it.
fn narrowed(bulk: &BulkRecord) -> Option<JobFilter> {
    acted_on(&JobFilter::default(), bulk.action, bulk.owners.as_deref(), bulk.created_at)
}

async fn step(world: &World, bulk: &BulkRecord, limit: u32) -> BulkRecord {
    world.store.step_bulk(bulk, narrowed(bulk).as_ref(), limit).await.unwrap()
}

async fn finish(world: &World, mut bulk: BulkRecord, limit: u32) -> BulkRecord {
    while bulk.status == BulkStatus::Running {
        bulk = step(world, &bulk, limit).await;
    }
    bulk
}

pub(crate) async fn everything_that_matches_is_cancelled_once(world: &World) {
    let node = world.node().await;
    let mut matching = world.submit_many(5, &spec()).await;
    matching.push(world.running(spec(), &node).await.job_id);
    let over = world.ended(spec(), &node).await;
    world.pass(1_000).await;
    let bulk = begin(world, &new(BulkAction::Cancel, None)).await;
    world.pass(1_000).await;
    let later = world.submit(spec()).await;
    let seen = world.store.bulk(bulk.id).await.unwrap().unwrap();
    assert_eq!(seen, bulk);
    let first = step(world, &bulk, 4).await;
    assert_eq!((first.status, first.changed, first.unchanged), (BulkStatus::Running, 4, 0));
    // Somebody else, or the same one after it was cut off, has not seen that it moved on.
    assert_eq!(step(world, &bulk, 4).await, first);
    let done = finish(world, first, 4).await;
    assert_eq!((done.changed, done.unchanged, done.finished_at.is_some()), (6, 0, true));
    for job_id in &matching[..5] {
        assert_eq!(world.status(*job_id).await, Status::Cancelled);
    }
    assert_eq!(world.job(matching[5]).await.job.intent, jobyard_model::Intent::Cancel);
    assert_eq!((world.status(over).await, world.status(later).await), (Status::Success, Status::Waiting));
    // It is noted once, whoever it is said to have been done by.
    let audit = world.store.audit(None, 100).await.unwrap();
    let noted: Vec<_> = audit.iter().filter(|row| row.action.starts_with("bulk")).collect();
    assert_eq!(noted.len(), 1);
    assert_eq!((noted[0].who.as_str(), noted[0].detail.as_str()), ("ann", "name=count"));
    assert!(audit.iter().all(|row| row.action != "job.cancel"));
    let events = world.store.events_after(Default::default(), &Default::default(), 100).await.unwrap();
    assert!(events.items.iter().any(|event| event.to == "cancelled" && event.who == "ann"));
    // Again: there is nothing left to do.
    world.store.cancel(later, &ann()).await.unwrap();
    let again = begin(world, &new(BulkAction::Cancel, None)).await;
    let again = finish(world, again, 10).await;
    assert_eq!((again.status, again.changed, again.unchanged), (BulkStatus::Done, 0, 1));
}

pub(crate) async fn what_failed_or_was_cancelled_is_retried_once(world: &World) {
    let node = world.node().await;
    let failing = JobSpec { max_retries: 0, ..spec() };
    let mut failed = Vec::new();
    for _ in 0..3 {
        let claimed = world.running(failing.clone(), &node).await;
        world.end(&claimed, exit(1)).await;
        failed.push(claimed.job_id);
    }
    let cancelled = world.submit(spec()).await;
    world.store.cancel(cancelled, &ann()).await.unwrap();
    let over = world.ended(spec(), &node).await;
    world.pass(1_000).await;
    let bulk = begin(world, &new(BulkAction::Retry, None)).await;
    let first = step(world, &bulk, 2).await;
    assert_eq!((first.changed, first.unchanged), (2, 0));
    // What it retried fails again before it is done: its turn is over.
    let newest = world.claim(&[failed[2]], &node).await.remove(0);
    world.end(&newest, exit(1)).await;
    assert_eq!(world.status(failed[2]).await, Status::FinalFailed);
    let done = finish(world, first, 2).await;
    assert_eq!((done.status, done.changed), (BulkStatus::Done, 4));
    assert_eq!(world.job(failed[2]).await.job.round, 2);
    for job_id in [failed[0], failed[1], cancelled] {
        let job = world.job(job_id).await.job;
        assert_eq!((job.status(), job.round), (Status::Waiting, 2));
    }
    assert_eq!(world.status(over).await, Status::Success);
}

pub(crate) async fn an_action_keeps_to_its_owners(world: &World) {
    let own = world.submit(spec()).await;
    let foreign = world.submit(JobSpec { owner: "others".to_owned(), ..spec() }).await;
    world.pass(1_000).await;
    let bulk = begin(world, &new(BulkAction::Cancel, Some(&["team", "nobody"]))).await;
    assert_eq!(finish(world, bulk, 10).await.changed, 1);
    assert_eq!((world.status(own).await, world.status(foreign).await), (Status::Cancelled, Status::Waiting));
    let nobody = begin(world, &new(BulkAction::Cancel, Some(&[]))).await;
    let nobody = finish(world, nobody, 10).await;
    assert_eq!(
        (nobody.status, nobody.changed, world.status(foreign).await),
        (BulkStatus::Done, 0, Status::Waiting)
    );
}

pub(crate) async fn a_key_begins_one_action(world: &World) {
    let keyed = || NewBulk { idempotency_key: Some("k".to_owned()), ..new(BulkAction::Cancel, None) };
    let first = begin(world, &keyed()).await;
    assert_eq!(world.store.start_bulk(&keyed(), &ann()).await.unwrap(), (first.clone(), false));
    let bob = Actor { name: "bob".to_owned(), ..ann() };
    assert!(world.store.start_bulk(&keyed(), &bob).await.unwrap().1);
    // The same one, sent again after its commit's fate was not known.
    let unkeyed = new(BulkAction::Retry, None);
    begin(world, &unkeyed).await;
    assert!(!world.store.start_bulk(&unkeyed, &ann()).await.unwrap().1);
    world.pass(10).await;
    let newest = begin(world, &new(BulkAction::Cancel, None)).await;
    let listed = world.store.bulks(false, 10).await.unwrap();
    assert_eq!((listed.len(), listed[0].id), (4, newest.id));
    assert_eq!(world.store.bulks(true, 1).await.unwrap()[0].status, BulkStatus::Running);
}

pub(crate) async fn a_stopped_action_does_nothing_more(world: &World) {
    world.submit_many(6, &spec()).await;
    world.pass(1_000).await;
    let bulk = begin(world, &new(BulkAction::Cancel, None)).await;
    let first = step(world, &bulk, 2).await;
    let stopped = world.store.stop_bulk(bulk.id, &ann()).await.unwrap().unwrap();
    assert_eq!((stopped.status, stopped.changed), (BulkStatus::Stopped, 2));
    assert_eq!(step(world, &first, 2).await, stopped);
    assert_eq!(world.store.stop_bulk(bulk.id, &ann()).await.unwrap().unwrap(), stopped);
    assert_eq!(world.store.stop_bulk(Uuid::nil(), &ann()).await.unwrap(), None);
    let waiting = JobFilter { statuses: Any::of([Status::Waiting]), ..JobFilter::default() };
    assert_eq!(world.store.count_jobs(&waiting).await.unwrap().count, 4);
    assert!(world.store.bulks(true, 10).await.unwrap().is_empty());
    // A month later nobody asks about it.
    world.pass(31 * 24 * 3_600_000).await;
    begin(world, &new(BulkAction::Cancel, None)).await;
    assert_eq!(world.store.bulk(bulk.id).await.unwrap(), None);
}

pub(crate) async fn several_that_carry_it_out_act_once(world: &World) {
    world.submit_many(40, &spec()).await;
    world.pass(1_000).await;
    let bulk = begin(world, &new(BulkAction::Cancel, None)).await;
    let other = world.dialect.another().await;
    let carry_out = async |store: &std::sync::Arc<dyn jobyard_store::Store>| {
        let mut bulk = bulk.clone();
        while bulk.status == BulkStatus::Running {
            bulk = store.step_bulk(&bulk, narrowed(&bulk).as_ref(), 3).await.unwrap();
        }
    };
    tokio::join!(carry_out(&world.store), carry_out(&other), carry_out(&world.store));
    let done = world.store.bulk(bulk.id).await.unwrap().unwrap();
    assert_eq!((done.status, done.changed, done.unchanged), (BulkStatus::Done, 40, 0));
    let page = world.store.events_after(Default::default(), &Default::default(), 1_000).await.unwrap();
    assert_eq!(page.items.iter().filter(|event| event.to == "cancelled").count(), 40);
}

/// It has to be before whatever is acted on.
pub(crate) async fn what_comes_with_the_action_is_not_touched(world: &World) {
    let bulk = begin(world, &new(BulkAction::Cancel, None)).await;
    world.pass(1).await;
    let job_id = world.submit(spec()).await;
    assert!(narrowed(&bulk).unwrap().created_before.unwrap() <= Timestamp(bulk.created_at.0));
    assert_eq!(finish(world, bulk, 10).await.changed, 0);
    assert_eq!(world.status(job_id).await, Status::Waiting);
}
