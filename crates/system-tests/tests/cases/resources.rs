//! What the runtime `process` bounds and hides (area 8). Secrets are in `workers`, memory in `processes`.

use jobyard_client::json::JobSubmit;
use jobyard_client::{LogStream, Outcome, Status};
use jobyard_system_tests::{Datastore, Yard, YardPlan, eventually, processes_named};

use crate::support::{accept, ended, odd_seconds, open_folder, says, seconds, shell, written};

/// B106, on nodes that can limit memory or processes: the bomb goes off in its own group, its neighbours notice nothing.
#[tokio::test]
async fn a_fork_bomb_harms_no_neighbour() {
    let yard = Yard::up().await;
    let client = yard.client();
    let harmless = ended(&client, accept(&client, shell("true")).await).await;
    let limits = harmless.result.and_then(|result| result.usage).map(|usage| usage.limits);
    if limits.is_none_or(|limits| limits == "none") {
        return;
    }
    let folder = open_folder();
    let go = folder.path().join("go");
    let script = format!("echo up; while [ ! -e {} ]; do sleep 0.1; done", go.display());
    let neighbours = [accept(&client, shell(&script)).await, accept(&client, shell(&script)).await];
    for id in neighbours {
        says(&client, id, "up").await;
    }
    let sleep = odd_seconds();
    let bomb = format!("bomb() {{ bomb | bomb & }}; bomb; exec sleep {sleep}");
    let bomb = JobSubmit { timeout: seconds(2_000), stop_grace: seconds(300), ..shell(&bomb) };
    let job = ended(&client, accept(&client, bomb).await).await;
    let result = job.result.expect("a result");
    let wanted = [Outcome::TimedOut, Outcome::OomKilled, Outcome::Failed];
    assert!(job.status == Status::FinalFailed && wanted.contains(&result.outcome), "{result:?}");
    assert_eq!(processes_named(&sleep), Vec::<u32>::new());
    assert_eq!(processes_named("bomb() {"), Vec::<u32>::new());
    std::fs::write(&go, "").expect("writable");
    for id in neighbours {
        let job = ended(&client, id).await;
        assert_eq!((job.status, job.attempt), (Status::Success, Some(1)));
    }
}

/// B110: nothing of ours needs the machine's `/tmp`, be it without programs, read-only or full; what a task leaves in
/// its working directory goes with it. (That two tasks see the same `/tmp` is what `process` is.)
#[tokio::test]
async fn scripts_run_where_the_temporary_directory_can_not_be_used() {
    for options in ["noexec", "ro", "size=4k,nr_inodes=1"] {
        let yard = YardPlan::on(Datastore::Sqlite).other_tmp(options).raise().await;
        let client = yard.client();
        let script = yard.script("script.sh", b"#!/bin/sh\ntouch left\npwd\n");
        let pushed = client.artifacts().push_file(&script).await.expect("it goes up");
        let job = JobSubmit { binary_url: Some(format!("sha256:{}", pushed.hash)), ..JobSubmit::default() };
        // Were it usable after all, it would say so behind its path.
        let inline = "touch left; pwd; if cp /bin/true /tmp/x && /tmp/x; then echo usable; fi";
        for job in [job, shell(inline)] {
            let id = accept(&client, job).await;
            let job = ended(&client, id).await;
            assert_eq!(job.status, Status::Success, "{options}: {:?}", job.result);
            let place = written(&client, id, LogStream::Stdout).await;
            let place = String::from_utf8(place).expect("a path");
            assert!(place.starts_with('/') && !place.contains("usable"), "{options}: {place}");
            let left = std::path::Path::new(place.trim()).join("left");
            eventually("it is cleared away", async || (!left.exists()).then_some(())).await;
        }
    }
}
