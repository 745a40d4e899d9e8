//! Tells somebody outside of each job that failed for good, at least once and in order.
//!
//! The place is the datastore's; one informer at a time has it in hand. What can't be told is told later, and keeps back
//! only what comes after it, nothing else.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jobyard_api::json::Time;
use jobyard_model::{JobId, Outcome, SessionId, Status};
use jobyard_store::{EventCursor, EventFilter, EventRecord, JobRecord, Store, StoreError};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::LoopBoard;
use crate::pace::{Ran, RunOnce};
use crate::webhook::{TellError, Webhook};

pub(crate) const NAME: &str = "tell_failures";
/// Its name in the datastore.
const FOLLOWER: &str = "webhook";
/// Others keep away this long from a follower that was taken in hand; then its holder is taken for dead.
const HOLD_MS: u64 = 15_000;
/// No call begins later than this after that. One that nobody answers takes 10 s.
const TELL_FOR: Duration = Duration::from_secs(4);
const BATCH: u32 = 100;
const LAST_MOMENT: Duration = Duration::from_secs(1);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

pub(crate) struct TellFailuresLoop {
    store: Arc<dyn Store>,
    webhook: Webhook,
    /// Which informer this is.
    holder: SessionId,
    board: LoopBoard,
    shutdown: CancellationToken,
    /// Everything up to here was told.
    settled: Option<EventCursor>,
    /// Calls in a row that failed, and when the next is due.
    failures: u32,
    not_before: Option<Instant>,
}

/// The body of a call.
#[derive(Debug, Serialize)]
struct Told<'a> {
    /// The same each time this event is told.
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    time: Time,
    job_id: JobId,
    attempt: Option<u32>,
    /// Why it is over.
    why: &'a str,
    /// Absent when it was removed meanwhile.
    job: Option<ToldJob>,
}

#[derive(Debug, Serialize)]
struct ToldJob {
    name: String,
    owner_id: String,
    submitted_by: String,
    labels: BTreeMap<String, String>,
    outcome: Option<Outcome>,
}

impl TellFailuresLoop {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        (webhook, holder): (Webhook, SessionId),
        board: LoopBoard,
        shutdown: CancellationToken,
    ) -> Self {
        Self { store, webhook, holder, board, shutdown, settled: None, failures: 0, not_before: None }
    }

    /// Tells what there is; how many were told, and whether that was all.
    async fn tell_page(&mut self, from: EventCursor) -> Result<(u64, Option<EventCursor>), StoreError> {
        let filter = EventFilter { to: Some(Status::FinalFailed), ..EventFilter::default() };
        let page = self.store.events_after(from, &filter, BATCH).await?;
        if page.expired {
            tracing::warn!(
                follower = FOLLOWER,
                "events were removed before they were told; some failures may be untold"
            );
        }
        let (mut told, until) = (0, Instant::now() + TELL_FOR);
        for event in &page.items {
            if Instant::now() > until || self.shutdown.is_cancelled() || !self.tell(event).await? {
                return Ok((told, None));
            }
            told += 1;
            if !self.move_to(event.cursor).await? {
                return Ok((told, None));
            }
        }
        let is_whole = page.next <= from || self.move_to(page.next).await?;
        Ok((told, is_whole.then_some(page.next)))
    }

    async fn hold(&self, hold_ms: u64, head: EventCursor) -> Result<Option<EventCursor>, StoreError> {
        self.store.hold_follower(FOLLOWER, self.holder, hold_ms, head).await
    }

    async fn move_to(&self, place: EventCursor) -> Result<bool, StoreError> {
        self.store.move_follower(FOLLOWER, self.holder, place).await
    }

    /// Whether it was heard.
    async fn tell(&mut self, event: &EventRecord) -> Result<bool, StoreError> {
        let job = self.store.job(event.job_id).await?;
        let told = Told {
            id: event.cursor.to_string(),
            kind: "job.final_failed",
            time: Time(event.at),
            job_id: event.job_id,
            attempt: event.attempt,
            why: &event.why,
            job: job.map(ToldJob::of),
        };
        let now = self.store.now().await?;
        // Strings and numbers always have a JSON form.
        let body = serde_json::to_string(&told).unwrap_or_default();
        let heard = tokio::select! {
            heard = self.webhook.tell(&told.id, body, now) => heard,
            // It may have been heard; the next informer tells it again.
            () = self.last_moment() => return Ok(false),
        };
        match heard {
            Ok(()) => self.failures = 0,
            Err(error) => self.put_off(event, &error),
        }
        Ok(self.failures == 0)
    }

    /// An answer that is on its way when the informer ends is worth a moment.
    async fn last_moment(&self) {
        self.shutdown.cancelled().await;
        tokio::time::sleep(LAST_MOMENT).await;
    }

    fn put_off(&mut self, event: &EventRecord, error: &TellError) {
        let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(self.failures)).min(LONGEST_PAUSE);
        tracing::warn!(job_id = %event.job_id, error = error as &dyn Error, "the webhook did not hear of a failed job; again in {pause:?}");
        self.failures = self.failures.saturating_add(1);
        self.not_before = Some(Instant::now() + pause);
        self.board.note_error(NAME);
    }
}

impl RunOnce for TellFailuresLoop {
    async fn run_once(&mut self) -> Result<Ran, StoreError> {
        if self.not_before.is_some_and(|at| Instant::now() < at) {
            return Ok(Ran::default());
        }
        let head = self.store.event_head().await?;
        if self.settled == Some(head) {
            return Ok(Ran::default());
        }
        let Some(from) = self.hold(HOLD_MS, head).await? else { return Ok(Ran::default()) };
        let (told, reached) = self.tell_page(from).await?;
        self.settled = reached;
        // Whoever comes next, perhaps after us, need not wait for the hold to run out.
        self.hold(0, head).await?;
        Ok(Ran { changed: told, more: reached.is_some_and(|reached| reached < head), gather: false })
    }
}

impl ToldJob {
    fn of(job: JobRecord) -> Self {
        Self {
            name: job.spec.name,
            owner_id: job.spec.owner,
            submitted_by: job.submitted_by,
            labels: job.spec.labels,
            outcome: job.last_end.map(|(_, outcome, _)| outcome),
        }
    }
}
