//! `ps`: the list of jobs.

use jobyard_client::json::{Job, Page};
use jobyard_client::{Client, Error, JobFilter};

use crate::arguments::PsArguments;
use crate::error::CommandError;
use crate::output::{self, JobList};

/// The most jobs the server puts into a page.
const LARGEST_PAGE: u32 = 500;

pub(super) async fn run(client: &Client, arguments: PsArguments) -> Result<u8, CommandError> {
    let format = arguments.output.output;
    let limit = arguments.limit;
    let page = collect(client, filter(arguments), limit).await?;
    let more = page.next_cursor.is_some();
    output::show(&JobList(page), format)?;
    if more {
        output::remark(&format!("there may be more than these {limit}; see --limit"));
    }
    Ok(0)
}

fn filter(arguments: PsArguments) -> JobFilter {
    JobFilter {
        statuses: arguments.status,
        owner: arguments.owner,
        name: arguments.name,
        labels: arguments.label.into_iter().map(|label| (label.key, label.value)).collect(),
        origin: arguments.origin,
        idempotency_key: arguments.idempotency_key,
        text: arguments.query,
        created_after: arguments.created_after,
        created_before: arguments.created_before,
        limit: None,
        cursor: None,
    }
}

/// As many pages as it takes, as one.
async fn collect(client: &Client, mut filter: JobFilter, limit: u32) -> Result<Page<Job>, Error> {
    let mut items = Vec::new();
    loop {
        let left = limit.saturating_sub(u32::try_from(items.len()).unwrap_or(u32::MAX));
        filter.limit = Some(left.min(LARGEST_PAGE));
        let page = client.jobs().list(&filter).await?;
        items.extend(page.items);
        if page.next_cursor.is_none() || items.len() >= limit as usize {
            return Ok(Page { items, next_cursor: page.next_cursor });
        }
        filter.cursor = page.next_cursor;
    }
}
