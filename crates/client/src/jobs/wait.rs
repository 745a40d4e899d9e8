//! Waiting for a job's end.

use std::time::Duration;

use jobyard_api::json::Job;
use jobyard_model::JobId;

use super::Jobs;
use super::changes::Changes;
use crate::Error;
use crate::outage::Outage;

impl Jobs {
    /// Waits until a job is over, for as long as that takes, and gives it as it ended: woken by the event stream,
    /// polling where that is not to be had. Outlasts outages of the server for
    /// [`RetryPolicy::outage_for`](crate::RetryPolicy::outage_for).
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client, id: jobyard_client::JobId) -> Result<(), jobyard_client::Error> {
    /// let job = client.jobs().wait(id).await?;
    /// println!("{}: {:?}", job.status, job.result.and_then(|result| result.exit_code));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Problem`] when there is no such job; [`Error::Unreachable`] after an outage that lasted too long.
    pub async fn wait(&self, id: JobId) -> Result<Job, Error> {
        let mut changes = Changes::of(&self.client, id);
        loop {
            let job = self.get_through_outage(id).await?;
            if job.status.is_end() {
                return Ok(job);
            }
            changes.next().await;
        }
    }

    /// Like [`wait`](Self::wait), but no longer than `limit`.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client, id: jobyard_client::JobId) -> Result<(), jobyard_client::Error> {
    /// use std::time::Duration;
    /// use jobyard_client::Error;
    ///
    /// match client.jobs().wait_for(id, Duration::from_secs(60)).await {
    ///     Err(Error::StillRunning { .. }) => println!("not yet"),
    ///     other => println!("{}", other?.status),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`wait`](Self::wait), and [`Error::StillRunning`] when the time is over.
    pub async fn wait_for(&self, id: JobId, limit: Duration) -> Result<Job, Error> {
        tokio::time::timeout(limit, self.wait(id)).await.unwrap_or(Err(Error::StillRunning { job_id: id }))
    }

    /// Reads a job, through an outage that is not longer than the policy bears.
    pub(super) async fn get_through_outage(&self, id: JobId) -> Result<Job, Error> {
        let mut outage = Outage::default();
        loop {
            match self.get(id).await {
                Ok(job) => return Ok(job),
                Err(error) => outage.bear(&self.client.inner().retry_policy, error).await?,
            }
        }
    }
}
