//! Server, informer, PostgreSQL and the whole control plane go, at bad moments; what runs goes on, and what was
//! acknowledged ends once.

use std::time::Duration;

use jobyard_client::json::JobSubmit;
use jobyard_client::{Client, JobFilter, JobId, Outcome, Status};
use jobyard_system_tests::{
    Datastore, Notebook, Role, Yard, YardPlan, ended, eventually, outcomes, submit, submit_all, time_passes,
    until_over, until_phase,
};

/// Longer than a claim lease or a lease of these yards.
const CLAIM_LEASE_IS_OVER: Duration = Duration::from_millis(2_500);
const LEASE_IS_OVER: Duration = Duration::from_millis(7_000);

/// The job succeeded and nobody paid for what happened.
async fn succeeds_unpaid(client: &Client, id: JobId) {
    let job = ended(client, id).await;
    assert_eq!(job.status, Status::Success, "{:?}", job.result);
    assert_eq!((job.retry_count, job.platform_failures), (0, 0), "nobody pays");
}

/// The informer commits a claim, its push gets no answer, and it dies. Worker and push die with it.
#[tokio::test]
async fn the_informer_dies_between_commit_and_push() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    yard.freeze(Role::Worker);
    let id = submit(&client, notebook.job("true")).await;
    until_phase(&client, id, "placed").await;
    yard.kill(Role::Informer);
    yard.kill(Role::Worker);
    yard.start(Role::Informer).await;
    let first = until_over(&client, id, 1).await;
    assert_eq!((first.outcome, first.accepted_time), (Some(Outcome::NotStarted), None));
    yard.start(Role::Worker).await;
    succeeds_unpaid(&client, id).await;
    let attempt = client.jobs().get(id).await.expect("the job").attempt.expect("one");
    assert_eq!(notebook.starts(id), [u64::from(attempt)], "only the last one started");
}

/// The informer's push is cut in the middle, by the death of the worker. It is repeated, and the worker that came after
/// says that it was not meant.
#[tokio::test]
async fn a_push_that_is_cut_is_repeated_until_it_is_answered() {
    let mut yard = YardPlan::on(Datastore::Postgres).claim_lease_seconds(60).raise().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    yard.freeze(Role::Worker);
    let id = submit(&client, notebook.job("true")).await;
    until_phase(&client, id, "placed").await;
    yard.kill(Role::Worker);
    yard.start(Role::Worker).await;
    let first = until_over(&client, id, 1).await;
    assert_eq!(first.outcome, Some(Outcome::NotStarted));
    assert_eq!(first.message, "the worker was restarted", "answered, long before the claim lease ends");
    succeeds_unpaid(&client, id).await;
    assert_eq!(notebook.starts(id), [2]);
}

/// A push that waits for its answer starts one attempt, once.
#[tokio::test]
async fn a_push_to_a_worker_that_sleeps_a_while_starts_once() {
    let yard = YardPlan::on(Datastore::Postgres).claim_lease_seconds(60).raise().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    yard.freeze(Role::Worker);
    let ids = submit_all(&client, vec![notebook.job("true"); 5]).await;
    for id in &ids {
        until_phase(&client, *id, "placed").await;
    }
    yard.wake(Role::Worker);
    for id in ids {
        succeeds_unpaid(&client, id).await;
        assert_eq!(notebook.starts(id), [1]);
    }
}

/// The informer is killed again and again while jobs flow.
#[tokio::test]
async fn an_informer_killed_at_any_moment_loses_and_doubles_nothing() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.extend(submit_all(&client, vec![notebook.job("true"); 10]).await);
        // At whatever it does now.
        yard.kill(Role::Informer);
        yard.start(Role::Informer).await;
    }
    for id in ids {
        succeeds_unpaid(&client, id).await;
        assert_eq!(notebook.ends(id).len(), 1, "job {id} ran once");
    }
}

/// One informer freezes with a claim in hand; the other one gives that up and places anew; the first wakes up and its
/// push, as far as it had got, comes to nothing.
#[tokio::test]
async fn a_frozen_informer_wakes_to_find_its_claim_gone() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    let mut notebook = Notebook::in_folder(yard.dir());
    yard.freeze(Role::Worker);
    let id = submit(&client, notebook.waiting_job()).await;
    until_phase(&client, id, "placed").await;
    yard.freeze(Role::Informer);
    yard.start(Role::OtherInformer).await;
    let first = until_over(&client, id, 1).await;
    assert_eq!((first.outcome, first.accepted_time), (Some(Outcome::NotStarted), None));
    // It finds the pushes of both, of which one at most is still wanted.
    yard.wake(Role::Worker);
    yard.wake(Role::Informer);
    until_phase(&client, id, "running").await;
    eventually("late starts are stopped", async || (yard.sidecars().len() == 1).then_some(())).await;
    notebook.open_gate();
    succeeds_unpaid(&client, id).await;
    let attempt = client.jobs().get(id).await.expect("the job").attempt.expect("one");
    assert_eq!(notebook.ends(id), [u64::from(attempt)], "the accepted one alone got to its end");
    let told = outcomes(&client, id).await;
    assert_eq!(told.iter().filter(|outcome| **outcome == Some(Outcome::Succeeded)).count(), 1, "{told:?}");
}

/// Frozen over the claim lease in the middle of many claims, and the only one there is.
#[tokio::test]
async fn an_informer_frozen_over_the_claim_lease_starts_nothing_twice() {
    let yard = Yard::on_postgres().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let mut ids = submit_all(&client, vec![notebook.job("true"); 20]).await;
    yard.freeze(Role::Informer);
    ids.extend(submit_all(&client, vec![notebook.job("true"); 20]).await);
    time_passes(CLAIM_LEASE_IS_OVER).await;
    yard.wake(Role::Informer);
    for id in ids {
        succeeds_unpaid(&client, id).await;
        assert_eq!(notebook.ends(id).len(), 1, "job {id} ran once");
    }
}

/// Outcomes that nobody is there to hear wait with the worker.
#[tokio::test]
async fn outcomes_wait_for_a_killed_server() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    let mut notebook = Notebook::in_folder(yard.dir());
    let ids = submit_all(&client, vec![notebook.waiting_job(); 5]).await;
    for id in &ids {
        until_phase(&client, *id, "running").await;
    }
    yard.kill(Role::Server);
    notebook.open_gate();
    eventually("all ended unheard", async || yard.sidecars().is_empty().then_some(())).await;
    yard.start(Role::Server).await;
    for id in ids {
        succeeds_unpaid(&client, id).await;
        assert_eq!(outcomes(&client, id).await, [Some(Outcome::Succeeded)], "the first attempt's own");
    }
}

/// Server and worker are killed while outcomes wait: they lie on disk.
#[tokio::test]
async fn outcomes_survive_server_and_worker() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    let mut notebook = Notebook::in_folder(yard.dir());
    let id = submit(&client, notebook.waiting_job()).await;
    until_phase(&client, id, "running").await;
    yard.kill(Role::Server);
    notebook.open_gate();
    eventually("it ended unheard", async || yard.sidecars().is_empty().then_some(())).await;
    yard.kill(Role::Worker);
    yard.start(Role::Worker).await;
    yard.start(Role::Server).await;
    succeeds_unpaid(&client, id).await;
    assert_eq!(outcomes(&client, id).await, [Some(Outcome::Succeeded)]);
}

/// All of it is away for longer than the lease. Silence that nobody listened to proves nothing: the task is heard
/// again before it is judged.
async fn an_outage_loses_nothing(mut yard: Yard) {
    let client = yard.client();
    let mut notebook = Notebook::in_folder(yard.dir());
    let id = submit(&client, notebook.waiting_job()).await;
    until_phase(&client, id, "running").await;
    for role in yard.roles().to_vec() {
        yard.kill(role);
    }
    time_passes(LEASE_IS_OVER).await;
    // Whoever could give up on it comes first.
    let mut roles = yard.roles().to_vec();
    roles.sort_by_key(|role| *role != Role::Informer);
    for role in roles {
        yard.start(role).await;
    }
    let before = until_phase(&client, id, "running").await.lease_until.expect("it lives");
    eventually("a renewal after the outage", async || {
        let newest = client.jobs().attempts(id).await.ok()?.pop()?;
        (newest.lease_until?.0 > before.0).then_some(())
    })
    .await;
    notebook.open_gate();
    succeeds_unpaid(&client, id).await;
    assert_eq!(outcomes(&client, id).await, [Some(Outcome::Succeeded)]);
    assert_eq!(notebook.starts(id), [1]);
}

#[tokio::test]
async fn an_outage_longer_than_the_lease_loses_nothing_on_sqlite() {
    an_outage_loses_nothing(Yard::up().await).await;
}

#[tokio::test]
async fn an_outage_longer_than_the_lease_loses_nothing_on_postgres() {
    an_outage_loses_nothing(Yard::on_postgres().await).await;
}

/// The servers alone are away for longer than the lease, with the informer looking on all the while.
#[tokio::test]
async fn deaf_servers_lose_nothing() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    let mut notebook = Notebook::in_folder(yard.dir());
    let id = submit(&client, notebook.waiting_job()).await;
    until_phase(&client, id, "running").await;
    yard.kill(Role::Server);
    time_passes(LEASE_IS_OVER).await;
    eventually("the informer says why it waits", async || {
        yard.said(Role::Informer).contains("silent attempts are not given up on yet").then_some(())
    })
    .await;
    yard.start(Role::Server).await;
    notebook.open_gate();
    succeeds_unpaid(&client, id).await;
    assert_eq!(outcomes(&client, id).await, [Some(Outcome::Succeeded)]);
}

/// PostgreSQL crashes while a hundred quick jobs are submitted, one at a time.
#[tokio::test]
async fn a_crash_of_postgres_under_load_loses_and_doubles_nothing() {
    let mut yard = Yard::on_postgres().await;
    let client = yard.client();
    let notebook = Notebook::in_folder(yard.dir());
    let load = tokio::spawn(submit_one_by_one(client.clone(), vec![notebook.job("true"); 100]));
    let successes = JobFilter { statuses: vec![Status::Success], ..JobFilter::default() };
    eventually("some have ended", async || {
        let page = client.jobs().list(&successes).await.ok()?;
        (page.items.len() >= 10).then_some(())
    })
    .await;
    assert!(!load.is_finished(), "the crash comes in the middle");
    yard.restart_datastore();
    let ids = load.await.expect("all were acknowledged");
    assert_eq!(ids.len(), 100);
    for id in ids {
        let job = ended(&client, id).await;
        assert_eq!(job.status, Status::Success, "{:?}", job.result);
        let events = client.jobs().events(id).await.expect("its history");
        assert_eq!(events.iter().filter(|event| event.to == "success").count(), 1, "{events:?}");
        assert_eq!(notebook.ends(id).len(), 1, "job {id} ran once");
    }
}

async fn submit_one_by_one(client: Client, jobs: Vec<JobSubmit>) -> Vec<JobId> {
    let mut ids = Vec::new();
    for job in jobs {
        ids.push(submit(&client, job).await);
    }
    ids
}
