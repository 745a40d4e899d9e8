//! Jobs: submitting, reading, steering; waiting and following in the files beside.
//!
//! Invariant: **a submission is never sent twice without a key.** One without gets one of its own, so that a broken
//! connection makes no second job.

mod changes;
mod list;
mod logs;
mod wait;

use jobyard_api::json::{Attempt, BatchAccepted, BatchSubmit, Event, Job, JobSubmit, RetryRequest, Why};
use jobyard_model::JobId;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::retry::Repeat;
use crate::transport::Call;
use crate::{Client, Error};

pub use list::JobFilter;
pub use logs::{FollowOptions, LogBytes, LogQuery, LogStream};

/// Submitting, reading and steering jobs; from [`Client::jobs`].
#[derive(Debug, Clone)]
pub struct Jobs {
    client: Client,
}

/// A list that comes whole.
#[derive(Deserialize)]
pub(crate) struct Items<T> {
    pub(crate) items: Vec<T>,
}

impl Jobs {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Submits a job, and gives it as accepted. Without an `idempotency_key` it gets one, so that the call can be
    /// repeated until it is answered without making a second job.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client) -> Result<(), jobyard_client::Error> {
    /// use jobyard_client::json::JobSubmit;
    ///
    /// let job = JobSubmit { command: vec!["echo".into(), "hello".into()], ..JobSubmit::default() };
    /// println!("{}", client.jobs().submit(job).await?.id);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Problem`] with every fault of the job; [`Error::Unreachable`].
    pub async fn submit(&self, mut job: JobSubmit) -> Result<Job, Error> {
        job.idempotency_key.get_or_insert_with(new_key);
        self.client.fetch(&Call::post(SUBMITTING, "/jobs", Repeat::Safe).json(&job)?).await
    }

    /// Submits a job that somebody wrote as a document, fields unchecked: the server names every fault in it.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client) -> Result<(), jobyard_client::Error> {
    /// let document = serde_json::json!({"command": ["sleep", "1"], "timeout": "1m30s"});
    /// let job = client.jobs().submit_document(document).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub async fn submit_document(&self, mut document: Value) -> Result<Job, Error> {
        let mut repeat = Repeat::Unsafe;
        if let Value::Object(fields) = &mut document {
            let key = fields.entry("idempotency_key").or_insert_with(|| json!(new_key()));
            if key.is_string() {
                repeat = Repeat::Safe;
            }
        }
        self.client.fetch(&Call::post(SUBMITTING, "/jobs", repeat).json(&document)?).await
    }

    /// Submits up to 10,000 jobs, all or none. Each gets a key if it has none.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client) -> Result<(), jobyard_client::Error> {
    /// use jobyard_client::json::JobSubmit;
    ///
    /// let count = |file: &str| JobSubmit { command: vec!["wc".into(), "-w".into(), file.into()], ..JobSubmit::default() };
    /// let accepted = client.jobs().submit_batch(["a.txt", "b.txt"].map(count).to_vec()).await?;
    /// assert_eq!(accepted.items.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Problem`] naming index and field of every fault; [`Error::Unreachable`].
    pub async fn submit_batch(&self, mut jobs: Vec<JobSubmit>) -> Result<BatchAccepted, Error> {
        for job in &mut jobs {
            job.idempotency_key.get_or_insert_with(new_key);
        }
        let call = Call::post("submitting a batch of jobs", "/jobs/batch", Repeat::Safe)
            .json(&BatchSubmit { jobs })?;
        self.client.fetch(&call).await
    }

    /// One job.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client, id: jobyard_client::JobId) -> Result<(), jobyard_client::Error> {
    /// let job = client.jobs().get(id).await?;
    /// println!("{} is {}", job.name, job.status);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Problem`] when there is no such job; [`Error::Unreachable`].
    pub async fn get(&self, id: JobId) -> Result<Job, Error> {
        self.client.fetch(&Call::get("reading a job", format!("/jobs/{id}"))).await
    }

    /// All attempts of a job, by number.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client, id: jobyard_client::JobId) -> Result<(), jobyard_client::Error> {
    /// for attempt in client.jobs().attempts(id).await? {
    ///     println!("{} on {}", attempt.number, attempt.node_name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn attempts(&self, id: JobId) -> Result<Vec<Attempt>, Error> {
        let call = Call::get("reading a job's attempts", format!("/jobs/{id}/attempts"));
        Ok(self.client.fetch::<Items<Attempt>>(&call).await?.items)
    }

    /// The history of a job, oldest first.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client, id: jobyard_client::JobId) -> Result<(), jobyard_client::Error> {
    /// for event in client.jobs().events(id).await? {
    ///     println!("{}: {} → {}", event.who, event.from, event.to);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn events(&self, id: JobId) -> Result<Vec<Event>, Error> {
        let path = format!("/jobs/{id}/events");
        let mut events = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let call = Call::get("reading a job's history", path.clone()).query_if("cursor", cursor.as_ref());
            let page: jobyard_api::json::Page<Event> = self.client.fetch(&call).await?;
            events.extend(page.items);
            match page.next_cursor {
                Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
                _ => return Ok(events),
            }
        }
    }

    /// Why a job isn't running yet, and what would change that.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client, id: jobyard_client::JobId) -> Result<(), jobyard_client::Error> {
    /// println!("{}", client.jobs().why(id).await?.summary);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn why(&self, id: JobId) -> Result<Why, Error> {
        self.client.fetch(&Call::get("asking why a job waits", format!("/jobs/{id}/why"))).await
    }

    /// Wants a job cancelled; gives it as it is now. One that runs ends when its task process has gone: see
    /// [`wait`](Self::wait). A job that is over stays as it is.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client, id: jobyard_client::JobId) -> Result<(), jobyard_client::Error> {
    /// client.jobs().cancel(id).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`get`](Self::get), or when the token does not act for the job's owner.
    pub async fn cancel(&self, id: JobId) -> Result<Job, Error> {
        self.client.fetch(&Call::post("cancelling a job", format!("/jobs/{id}/cancel"), Repeat::Safe)).await
    }

    /// Wants a service stopped; gives it as it is now. One that runs ends well when its task process has gone: see
    /// [`wait`](Self::wait). One that is over stays as it is.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client, id: jobyard_client::JobId) -> Result<(), jobyard_client::Error> {
    /// client.jobs().stop(id).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`cancel`](Self::cancel), or when the job is a task.
    pub async fn stop(&self, id: JobId) -> Result<Job, Error> {
        self.client.fetch(&Call::post("stopping a service", format!("/jobs/{id}/stop"), Repeat::Safe)).await
    }

    /// Starts a new round of a job that failed or was cancelled. Names the newest attempt seen, so that a repeated
    /// call starts no second round.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client, id: jobyard_client::JobId) -> Result<(), jobyard_client::Error> {
    /// let job = client.jobs().retry(id).await?;
    /// println!("round {}", job.round);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`cancel`](Self::cancel), or when the job is not over.
    pub async fn retry(&self, id: JobId) -> Result<Job, Error> {
        let seen = self.get(id).await?;
        let request = RetryRequest { after_attempt: Some(seen.attempt.unwrap_or(0)) };
        match self.retry_after(id, request).await {
            // An answer that got lost may have been the one that did it: then a newer round is there, and all is well.
            Err(Error::Problem(problem)) if problem.status == 409 => {
                let now = self.get(id).await?;
                if now.round > seen.round { Ok(now) } else { Err(Error::Problem(problem)) }
            }
            answer => answer,
        }
    }

    /// Like [`retry`](Self::retry), for a caller that has seen the job.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client, id: jobyard_client::JobId) -> Result<(), jobyard_client::Error> {
    /// use jobyard_client::json::RetryRequest;
    ///
    /// client.jobs().retry_after(id, RetryRequest { after_attempt: Some(1) }).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`retry`](Self::retry).
    pub async fn retry_after(&self, id: JobId, request: RetryRequest) -> Result<Job, Error> {
        let repeat = if request.after_attempt.is_some() { Repeat::Safe } else { Repeat::Unsafe };
        let call = Call::post("retrying a job", format!("/jobs/{id}/retry"), repeat).json(&request)?;
        self.client.fetch(&call).await
    }
}

const SUBMITTING: &str = "submitting a job";

/// Nobody else's key: 74 random bits behind the time, so that a datastore keeps it beside those of the same moment.
#[expect(clippy::disallowed_methods, reason = "a key, no id of ours")]
fn new_key() -> String {
    format!("client-{}", Uuid::now_v7().simple())
}
