//! Services that can't stay up (area 13). Rolling updates (B137) are not built.

use std::collections::BTreeMap;

use jobyard_client::json::JobSubmit;
use jobyard_client::{JobKind, Status};
use jobyard_system_tests::{Yard, eventually};

use crate::support::{accept, ended, seconds, shell};

/// B134: each restart is further away than the one before, and when it comes is told. (That the delays begin anew after
/// ten calm minutes: sidecar `delays_double_to_the_longest_and_begin_anew_after_a_calm_time`.)
#[tokio::test]
async fn a_crash_loop_slows_down_and_says_when_it_goes_on() {
    let yard = Yard::up().await;
    let client = yard.client();
    let job = JobSubmit {
        kind: Some(JobKind::Service),
        max_retries: None,
        backoff: seconds(1_000),
        ..shell("exit 1")
    };
    let id = accept(&client, job).await;
    let mut delays = BTreeMap::new();
    for restarts in 0..3 {
        let job = eventually("it waits for its next start", async || {
            let job = client.jobs().get(id).await.ok()?;
            (job.restarts == restarts && job.next_start.is_some()).then_some(job)
        })
        .await;
        assert_eq!((job.status, job.reason.as_str()), (Status::Running, "restarting"));
        let last = job.last_exit.expect("it left");
        assert_eq!(last.exit_code, Some(1));
        delays.insert(restarts, job.next_start.expect("a time").0.0 - last.time.0.0);
    }
    assert_eq!(delays.into_values().collect::<Vec<_>>(), [1_000, 2_000, 4_000], "milliseconds");
    client.jobs().stop(id).await.expect("it may");
    let job = ended(&client, id).await;
    assert_eq!((job.status, job.attempt, job.retry_count), (Status::Success, Some(1), 0));
}
