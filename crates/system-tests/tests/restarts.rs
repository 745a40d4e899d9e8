//! A worker goes and another comes while fifty tasks run: each starts once, ends once, and its result arrives.

use jobyard_client::json::Time;
use jobyard_client::{Client, JobId, Status};
use jobyard_system_tests::{Notebook, Role, Unit, Yard, ended, eventually, submit_all, until_phase};

const MANY: usize = 50;

/// How the worker goes.
#[derive(Clone, Copy)]
enum Exit {
    /// SIGTERM, as for an upgrade.
    Terminated,
    /// SIGKILL.
    Killed,
}

/// Tasks that run and wait at the gate.
struct Running {
    ids: Vec<JobId>,
    sidecars: Vec<u32>,
    leases: Vec<Time>,
}

async fn fifty_run(yard: &Yard, client: &Client, notebook: &Notebook) -> Running {
    let ids = submit_all(client, vec![notebook.waiting_job(); MANY]).await;
    for id in &ids {
        until_phase(client, *id, "running").await;
    }
    let sidecars = yard.sidecars();
    assert_eq!(sidecars.len(), MANY);
    Running { leases: leases(client, &ids).await, ids, sidecars }
}

/// Until when each of them may live on unheard.
async fn leases(client: &Client, ids: &[JobId]) -> Vec<Time> {
    let mut leases = Vec::new();
    for id in ids {
        leases.push(until_phase(client, *id, "running").await.lease_until.expect("it lives"));
    }
    leases
}

async fn none_is_lost(mut yard: Yard, exit: Exit) {
    let client = yard.client();
    let mut notebook = Notebook::in_folder(yard.dir());
    let mut running = fifty_run(&yard, &client, &notebook).await;
    let role = yard.worker_role();
    match exit {
        Exit::Terminated => yard.terminate(role),
        Exit::Killed => yard.kill(role),
    }
    assert_eq!(yard.sidecars(), running.sidecars, "nobody else went");
    yard.start(role).await;
    running.leases = leases(&client, &running.ids).await;
    all_go_on(&yard, &client, &running).await;
    notebook.open_gate();
    all_end_once(&client, &notebook, &running.ids).await;
}

/// The new worker renews for the old one's sidecars.
async fn all_go_on(yard: &Yard, client: &Client, running: &Running) {
    for (id, before) in running.ids.iter().zip(&running.leases) {
        eventually("a renewal through the new worker", async || {
            let newest = client.jobs().attempts(*id).await.ok()?.pop()?;
            (newest.lease_until?.0 > before.0).then_some(())
        })
        .await;
    }
    assert_eq!(yard.sidecars(), running.sidecars, "the same ones");
}

async fn all_end_once(client: &Client, notebook: &Notebook, ids: &[JobId]) {
    for id in ids {
        let job = ended(client, *id).await;
        assert_eq!(job.status, Status::Success, "{:?}", job.result);
        assert_eq!((job.retry_count, job.platform_failures), (0, 0));
        let started = notebook.starts(*id);
        assert_eq!(started.len(), 1, "job {id} started as {started:?}");
        assert_eq!(started, notebook.ends(*id));
        assert_eq!(job.attempt.map(u64::from), Some(started[0]), "the attempt that ran is the newest");
    }
}

#[tokio::test]
async fn a_terminated_worker_loses_none_of_fifty() {
    none_is_lost(Yard::on_postgres().await, Exit::Terminated).await;
}

#[tokio::test]
async fn a_killed_worker_loses_none_of_fifty() {
    none_is_lost(Yard::on_postgres().await, Exit::Killed).await;
}

#[tokio::test]
async fn a_terminated_up_loses_none_of_fifty() {
    none_is_lost(Yard::up().await, Exit::Terminated).await;
}

#[tokio::test]
async fn a_killed_up_loses_none_of_fifty() {
    none_is_lost(Yard::up().await, Exit::Killed).await;
}

/// What systemd does to a unit with `KillMode=process` and `Restart=always`: the main process ends, whatever else is
/// in the unit's group is left alone, and the next main process begins among it.
#[tokio::test]
async fn a_unit_with_kill_mode_process_loses_none_of_fifty() {
    let mut yard = Yard::on_postgres().await;
    let unit = Unit::make().expect("a unified hierarchy that we may write");
    yard.start_workers_in(unit);
    yard.terminate(Role::Worker);
    yard.start(Role::Worker).await;
    let client = yard.client();
    let mut notebook = Notebook::in_folder(yard.dir());
    let mut running = fifty_run(&yard, &client, &notebook).await;
    let main = yard.id(Role::Worker);
    let members = yard.unit().expect("the unit").members();
    assert!(members.contains(&main), "the worker is the unit's main process");
    assert!(running.sidecars.iter().all(|id| members.contains(id)), "its sidecars are in the unit too");
    yard.kill(Role::Worker);
    assert_eq!(yard.sidecars(), running.sidecars, "only the main process went");
    yard.start(Role::Worker).await;
    running.leases = leases(&client, &running.ids).await;
    all_go_on(&yard, &client, &running).await;
    notebook.open_gate();
    all_end_once(&client, &notebook, &running.ids).await;
}
