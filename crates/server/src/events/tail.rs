//! What is new, read once for all who follow. Works only while somebody does.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jobyard_store::{EventCursor, EventFilter, EventRecord, Store, WakeTopic};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// How many batches a slow follower may be behind before it has to read by itself.
const KEPT_BATCHES: usize = 256;
const BATCH_EVENTS: u32 = 1_000;
/// A wake-up may come before its events can be handed out, so the first look after one is repeated soon.
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
/// Lost wake-ups are made good within this time.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Consecutive events: all there are after `from`, up to `to`.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) from: EventCursor,
    pub(crate) to: EventCursor,
    pub(crate) items: Vec<EventRecord>,
}

/// See the module.
#[derive(Clone)]
pub(crate) struct EventTail {
    store: Arc<dyn Store>,
    shutdown: CancellationToken,
    sender: broadcast::Sender<Arc<Batch>>,
    reads: Arc<Mutex<bool>>,
}

impl EventTail {
    pub(crate) fn new(store: Arc<dyn Store>, shutdown: CancellationToken) -> Self {
        let (sender, _) = broadcast::channel(KEPT_BATCHES);
        Self { store, shutdown, sender, reads: Arc::default() }
    }

    /// What comes from now on. The first follower sets the tail going.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Arc<Batch>> {
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        let receiver = self.sender.subscribe();
        if !*reads {
            *reads = true;
            tokio::spawn(self.clone().run());
        }
        receiver
    }

    async fn run(self) {
        let mut wakes = self.store.wakes(WakeTopic::Events);
        let mut cursor = None;
        let mut pause = SHORTEST_PAUSE;
        while !self.is_done() {
            pause = if self.read_new(&mut cursor).await {
                SHORTEST_PAUSE
            } else {
                (pause * 2).min(LONGEST_PAUSE)
            };
            tokio::select! {
                () = self.shutdown.cancelled() => {}
                () = tokio::time::sleep(pause) => {}
                changed = wakes.changed() => match changed {
                    Ok(()) => pause = SHORTEST_PAUSE,
                    // Nobody will ever wake us: poll.
                    Err(_) => tokio::time::sleep(pause).await,
                },
            }
        }
    }

    /// Whether nobody follows any more; then the next one to subscribe starts the tail anew.
    fn is_done(&self) -> bool {
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        let done = self.shutdown.is_cancelled() || self.sender.receiver_count() == 0;
        if done {
            *reads = false;
        }
        done
    }

    /// Hands out what is new; whether there was any. A failure is only late: the cursor stays.
    async fn read_new(&self, cursor: &mut Option<EventCursor>) -> bool {
        match self.try_read_new(cursor).await {
            Ok(any) => any,
            Err(error) => {
                tracing::warn!(error = crate::error::chain(&error), "could not read new events");
                false
            }
        }
    }

    /// Where the tail begins. Said to all who follow already: what came between their last look and this place is
    /// theirs to read.
    async fn begin(&self) -> Result<EventCursor, jobyard_store::StoreError> {
        let head = self.store.event_head().await?;
        // Nobody listening is no fault: the loop ends soon.
        let _ = self.sender.send(Arc::new(Batch { from: head, to: head, items: Vec::new() }));
        Ok(head)
    }

    async fn try_read_new(
        &self,
        cursor: &mut Option<EventCursor>,
    ) -> Result<bool, jobyard_store::StoreError> {
        let mut from = match *cursor {
            Some(from) => from,
            None => self.begin().await?,
        };
        let mut any = false;
        loop {
            let page = self.store.events_after(from, &EventFilter::default(), BATCH_EVENTS).await?;
            let to = page.next;
            *cursor = Some(to);
            if page.items.is_empty() {
                return Ok(any);
            }
            any = true;
            // Nobody listening is no fault: the loop ends soon.
            let _ = self.sender.send(Arc::new(Batch { from, to, items: page.items }));
            from = to;
        }
    }
}
