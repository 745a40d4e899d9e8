//! Lists of jobs, page by page or as a stream.

use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use jobyard_api::filter::escape;
use jobyard_api::json::{Job, Page, Time};
use jobyard_model::Status;

use super::Jobs;
use crate::Error;
use crate::transport::Call;

/// Which jobs to list; all that are set must match.
///
/// ```
/// use jobyard_client::{JobFilter, Status};
///
/// let failing = JobFilter { statuses: vec![Status::Retry, Status::FinalFailed], ..JobFilter::default() };
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobFilter {
    /// Any of these; all when empty.
    pub statuses: Vec<Status>,
    /// The owner.
    pub owner: Option<String>,
    /// The exact name.
    pub name: Option<String>,
    /// All of these labels.
    pub labels: Vec<(String, String)>,
    /// The origin's kind and id.
    pub origin: Option<(String, String)>,
    /// The key it came with.
    pub idempotency_key: Option<String>,
    /// Part of the id, the name or the command line.
    pub text: Option<String>,
    /// Created at or after.
    pub created_after: Option<Time>,
    /// Created before.
    pub created_before: Option<Time>,
    /// The most jobs in a page, 1–500; the server's default when not set.
    pub limit: Option<u32>,
    /// The `next_cursor` of the page before.
    pub cursor: Option<String>,
}

impl JobFilter {
    fn call(&self) -> Call {
        let pair = |(name, value): &(String, String)| format!("{name}:{value}");
        let time = |time: Time| jobyard_api::json::units::format_time(time.0);
        let statuses: Vec<_> = self.statuses.iter().map(|status| status.as_str()).collect();
        let call = Call::get("listing jobs", "/jobs")
            .query_if("status", (!statuses.is_empty()).then(|| statuses.join(",")))
            .query_if("owner", self.owner.as_deref().map(escape))
            .query_if("name", self.name.as_deref().map(escape))
            .query_if("origin", self.origin.as_ref().map(pair))
            .query_if("idempotency_key", self.idempotency_key.as_ref())
            .query_if("q", self.text.as_ref())
            .query_if("created_after", self.created_after.map(time))
            .query_if("created_before", self.created_before.map(time))
            .query_if("limit", self.limit)
            .query_if("cursor", self.cursor.as_ref());
        let label = |(key, value): &(String, String)| format!("{}:{}", escape(key), escape(value));
        self.labels.iter().map(label).fold(call, |call, label| call.query("label", label))
    }
}

impl Jobs {
    /// One page of the jobs that match, newest first. A page may be short and still have a next one.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client) -> Result<(), jobyard_client::Error> {
    /// use jobyard_client::JobFilter;
    ///
    /// let page = client.jobs().list(&JobFilter { owner: Some("search".into()), ..JobFilter::default() }).await?;
    /// println!("{} jobs, more: {}", page.items.len(), page.next_cursor.is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Problem`] for a filter that makes no sense; [`Error::Unreachable`].
    pub async fn list(&self, filter: &JobFilter) -> Result<Page<Job>, Error> {
        self.client.fetch(&filter.call()).await
    }

    /// All jobs that match, newest first, read page by page as they are taken.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client) -> Result<(), jobyard_client::Error> {
    /// use futures_util::TryStreamExt;
    /// use jobyard_client::JobFilter;
    ///
    /// let mut jobs = client.jobs().list_all(JobFilter::default());
    /// while let Some(job) = jobs.try_next().await? {
    ///     println!("{} {}", job.id, job.status);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn list_all(&self, filter: JobFilter) -> BoxStream<'static, Result<Job, Error>> {
        let jobs = self.clone();
        stream::try_unfold(Some(filter), move |filter| {
            let jobs = jobs.clone();
            async move {
                let Some(filter) = filter else { return Ok::<_, Error>(None) };
                let page = jobs.list(&filter).await?;
                let next = page.next_cursor.map(|cursor| JobFilter { cursor: Some(cursor), ..filter });
                Ok(Some((stream::iter(page.items.into_iter().map(Ok)), next)))
            }
        })
        .try_flatten()
        .boxed()
    }
}
