//! One connection that follows events, as server-sent events.

use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use jobyard_api::json::StreamStart;
use jobyard_store::{EventCursor, EventFilter, EventPage, EventRecord, StoreError};
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::broadcast;
use tokio::time::Instant;

use super::tail::Batch;
use crate::authentication::Right;
use crate::doors::Pass;
use crate::error::ApiError;
use crate::http::jobs::view;
use crate::server::Server;

const PAGE_EVENTS: u32 = 500;

/// See the module.
pub(crate) struct Follower {
    server: Server,
    filter: EventFilter,
    cursor: EventCursor,
    /// The datastore may have events that were not handed out.
    behind: bool,
    batches: broadcast::Receiver<Arc<Batch>>,
    text: String,
    /// Whoever follows has it, or had when it was last looked at.
    right: Right,
    looked_at: Instant,
    _open: Open,
}

/// Counts as an open stream while it lives, and holds its place at the door.
pub(crate) struct Open {
    gauge: Gauge,
    _pass: Pass,
}

impl Open {
    pub(crate) fn new(server: &Server, pass: Pass) -> Self {
        let gauge = server.metrics().streams_open.clone();
        gauge.inc();
        Self { gauge, _pass: pass }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.gauge.dec();
    }
}

impl Follower {
    /// Starts after `cursor`, or now. Refuses a cursor older than what is kept, or beyond the newest event.
    pub(crate) async fn start(
        server: Server,
        filter: EventFilter,
        cursor: Option<EventCursor>,
        (pass, right): (Pass, Right),
    ) -> Result<Self, ApiError> {
        // First the subscription, then the place to start from: nothing falls in between.
        let batches = server.tail().subscribe();
        let open = Open::new(&server, pass);
        let start = match cursor {
            Some(cursor) => cursor,
            None => server.store().event_head().await?,
        };
        let mut follower = Self {
            server,
            filter,
            cursor: start,
            behind: true,
            batches,
            text: String::new(),
            right,
            looked_at: Instant::now(),
            _open: open,
        };
        follower.say_start();
        if cursor.is_some() {
            let page = follower.page().await?;
            if page.expired {
                return Err(ApiError::CursorExpired);
            }
            follower.take_page(&page);
        }
        Ok(follower)
    }

    /// The next piece of the stream; `None` ends it. Whoever follows comes back with the last id it saw.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            self.check_right().await?;
            if !self.text.is_empty() {
                return Some(Bytes::from(std::mem::take(&mut self.text)));
            }
            if self.behind {
                self.catch_up().await?;
                continue;
            }
            let shutdown = self.server.shutdown().clone();
            tokio::select! {
                () = shutdown.cancelled() => return None,
                batch = self.batches.recv() => self.take_batch(batch)?,
                () = tokio::time::sleep(self.server.settings().stream_heartbeat) => {
                    self.say_place();
                    // The tail only makes it fast; looking makes it correct.
                    self.behind = true;
                }
            }
        }
    }

    /// `None` when whoever follows may not any more. Looks as often as the stream says that it lives.
    async fn check_right(&mut self) -> Option<()> {
        if self.looked_at.elapsed() < self.server.settings().stream_heartbeat {
            return Some(());
        }
        self.looked_at = Instant::now();
        match self.right.holds(&self.server).await {
            Ok(holds) => holds.then_some(()),
            Err(error) => {
                tracing::warn!(error = crate::error::chain(&error), "an event stream ends");
                None
            }
        }
    }

    async fn page(&self) -> Result<EventPage, StoreError> {
        self.server.store().events_after(self.cursor, &self.filter, PAGE_EVENTS).await
    }

    async fn catch_up(&mut self) -> Option<()> {
        match self.page().await {
            Ok(page) if page.expired => None,
            Ok(page) => {
                self.take_page(&page);
                Some(())
            }
            Err(error) => {
                tracing::warn!(error = crate::error::chain(&error), "an event stream ends");
                None
            }
        }
    }

    fn take_page(&mut self, page: &EventPage) {
        for event in &page.items {
            self.say(event);
        }
        // A page may be short and still not the last one.
        self.behind = page.next > self.cursor;
        self.cursor = self.cursor.max(page.next);
    }

    fn take_batch(&mut self, batch: Result<Arc<Batch>, broadcast::error::RecvError>) -> Option<()> {
        let batch = match batch {
            Ok(batch) => batch,
            Err(broadcast::error::RecvError::Lagged(_)) => {
                self.behind = true;
                return Some(());
            }
            Err(broadcast::error::RecvError::Closed) => return None,
        };
        if batch.to <= self.cursor {
            return Some(());
        }
        // Labels and origins are not part of an event: the datastore has to look.
        if batch.from > self.cursor || self.filter.label.is_some() || self.filter.origin.is_some() {
            self.behind = true;
            return Some(());
        }
        let ours = |event: &&EventRecord| self.filter.job_id.is_none_or(|job_id| job_id == event.job_id);
        let fresh = |event: &&EventRecord| event.cursor > self.cursor;
        let events: Vec<_> = batch.items.iter().filter(fresh).filter(ours).cloned().collect();
        for event in &events {
            self.say(event);
        }
        self.cursor = batch.to;
        Some(())
    }

    fn say_start(&mut self) {
        let start = StreamStart { cursor: self.cursor.to_string() };
        self.write("start", self.cursor, &serde_json::to_string(&start));
    }

    fn say(&mut self, event: &EventRecord) {
        self.write("change", event.cursor, &serde_json::to_string(&view::event(event)));
    }

    fn write(&mut self, kind: &str, cursor: EventCursor, data: &Result<String, serde_json::Error>) {
        match data {
            // Writing to a String can't fail.
            Ok(data) => {
                let _ = write!(self.text, "event: {kind}\nid: {cursor}\ndata: {data}\n\n");
            }
            Err(error) => tracing::error!(%error, "an event could not be written as JSON"),
        }
    }

    /// A comment that keeps the connection alive, with the place reached, so that a filter that seldom matches does
    /// not leave its follower with a cursor that expires.
    fn say_place(&mut self) {
        let _ = write!(self.text, ": alive\nid: {}\n\n", self.cursor);
    }
}
