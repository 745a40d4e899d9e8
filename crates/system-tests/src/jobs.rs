//! Questions that stories ask of a job.

use std::time::Duration;

use jobyard_client::json::{Attempt, Job, JobSubmit};
use jobyard_client::{Client, JobId, Outcome};

use crate::wait::{DEADLINE, eventually};

/// Submits each and gives their ids in order.
pub async fn submit_all(client: &Client, jobs: Vec<JobSubmit>) -> Vec<JobId> {
    let accepted = client.jobs().submit_batch(jobs).await.expect("accepted");
    accepted.items.iter().map(|item| item.id).collect()
}

/// Submits one.
pub async fn submit(client: &Client, job: JobSubmit) -> JobId {
    client.jobs().submit(job).await.expect("accepted").id
}

/// Until the newest attempt is in this phase, and gives that attempt.
pub async fn until_phase(client: &Client, id: JobId, phase: &str) -> Attempt {
    eventually(&format!("job {id} is {phase}"), async || {
        let newest = client.jobs().attempts(id).await.ok()?.pop()?;
        newest.phase.is_some_and(|is| is.as_str() == phase).then_some(newest)
    })
    .await
}

/// Until the attempt of this number has ended, and gives it.
pub async fn until_over(client: &Client, id: JobId, number: u32) -> Attempt {
    eventually(&format!("attempt {number} of job {id} is over"), async || {
        let attempts = client.jobs().attempts(id).await.ok()?;
        attempts.into_iter().find(|attempt| attempt.number == number && attempt.outcome.is_some())
    })
    .await
}

/// Until the job is over.
pub async fn ended(client: &Client, id: JobId) -> Job {
    client.jobs().wait_for(id, DEADLINE).await.expect("an end")
}

/// How each attempt ended, oldest first.
pub async fn outcomes(client: &Client, id: JobId) -> Vec<Option<Outcome>> {
    let attempts = client.jobs().attempts(id).await.expect("attempts");
    attempts.iter().map(|attempt| attempt.outcome).collect()
}

/// Lets real time pass where the time itself is what happens: a lease that runs out while nobody is there to ask.
pub async fn time_passes(duration: Duration) {
    tokio::time::sleep(duration).await;
}
