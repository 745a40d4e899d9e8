//! Two of each role: one of a pair is always enough, and what came through one is seen through the other.

use futures_util::StreamExt as _;
use jobyard_client::json::JobSubmit;
use jobyard_client::{FollowOptions, Status};
use jobyard_system_tests::{
    Datastore, Notebook, Role, Yard, YardPlan, ended, eventually, submit, submit_all, until_phase,
};

async fn pairs() -> Yard {
    let yard = YardPlan::on(Datastore::Postgres).in_pairs().raise().await;
    yard.until_available("other-node").await;
    yard
}

/// Line by line, a log that grows is followed through each server, whichever of them the worker reports to.
#[tokio::test]
async fn a_log_is_followed_through_either_server() {
    let yard = pairs().await;
    let client = yard.client();
    let mut notebook = Notebook::in_folder(yard.dir());
    let script = format!("echo before; {}; echo after", notebook.wait());
    let id = submit(&client, notebook.job(&script)).await;
    let clients = [Role::Server, Role::OtherServer].map(|server| yard.client_of(server));
    let mut followed = clients.map(|client| client.jobs().follow(id, FollowOptions::default()));
    for log in &mut followed {
        let piece = log.next().await.expect("a piece").expect("whole");
        assert_eq!(piece.bytes, "before\n");
    }
    notebook.open_gate();
    for log in followed {
        let rest: Vec<_> = log.map(|piece| piece.expect("whole").bytes).collect().await;
        assert_eq!(rest.concat(), b"after\n");
    }
}

/// With one of every pair gone for good, jobs still run, and those of the node that went run elsewhere.
#[tokio::test]
async fn one_of_each_pair_is_enough() {
    for gone in [
        [Role::Server, Role::Informer, Role::Worker],
        [Role::OtherServer, Role::OtherInformer, Role::OtherWorker],
    ] {
        let mut yard = pairs().await;
        let notebook = Notebook::in_folder(yard.dir());
        let stays = if gone[0] == Role::Server { Role::OtherServer } else { Role::Server };
        let client = yard.client_of(stays);
        let mut ids = submit_all(&client, vec![notebook.job("sleep 1"); 20]).await;
        until_phase(&client, ids[0], "running").await;
        for role in gone {
            yard.kill(role);
        }
        ids.extend(submit_all(&client, vec![notebook.job("true"); 20]).await);
        for id in ids {
            assert_eq!(ended(&client, id).await.status, Status::Success);
        }
    }
}

/// A job that was accepted by one server is there at once through the other, with its history.
#[tokio::test]
async fn what_one_server_accepts_the_other_shows() {
    let yard = pairs().await;
    let (here, there) = (yard.client(), yard.client_of(Role::OtherServer));
    for _ in 0..20 {
        let id = submit(&here, JobSubmit { command: vec!["/bin/true".into()], ..JobSubmit::default() }).await;
        assert_eq!(there.jobs().get(id).await.expect("the job").id, id);
        assert_eq!(there.jobs().wait(id).await.expect("its end").status, Status::Success);
        let last = eventually("its history", async || here.jobs().events(id).await.ok()?.pop()).await;
        assert_eq!(last.to, "success");
    }
}
