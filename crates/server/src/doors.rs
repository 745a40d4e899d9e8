//! Bounded doors: so many calls in hand, so many waiting, and a quick 429 beyond.
//!
//! Invariant: no call waits without a bound on how many wait, so overload is answered, not hidden.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;
use crate::metrics::{DoorName, Metrics};
use crate::settings::{DoorLimit, DoorSettings};

/// One door a kind of call.
#[derive(Debug)]
pub(crate) struct Doors {
    pub(crate) submit: Door,
    pub(crate) batch: Door,
    pub(crate) change: Door,
    pub(crate) read: Door,
    pub(crate) look: Door,
    pub(crate) artifact: Door,
    pub(crate) artifact_batch: Door,
    pub(crate) stream: Door,
}

impl Doors {
    pub(crate) fn new(settings: &DoorSettings, metrics: &Metrics) -> Self {
        let door = |calls: &'static str, limit| {
            let name = DoorName { door: calls.replace(' ', "_") };
            Door::new(calls, limit, metrics.calls_in_hand.get_or_create(&name).clone())
        };
        Self {
            submit: door("submissions", settings.submit),
            batch: door("batches", settings.batch),
            change: door("changing calls", settings.change),
            read: door("reads", settings.read),
            look: door("looks over many jobs", settings.look),
            artifact: door("artifact transfers", settings.artifact),
            artifact_batch: door("artifact batches", settings.artifact_batch),
            stream: door("open streams", settings.stream),
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Door {
    calls: &'static str,
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
    limit: DoorLimit,
    in_hand: Gauge,
}

/// A place behind a door; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Pass {
    _permit: OwnedSemaphorePermit,
    in_hand: Gauge,
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.in_hand.dec();
    }
}

/// One more waits while this lives.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Door {
    fn new(calls: &'static str, limit: DoorLimit, in_hand: Gauge) -> Self {
        Self {
            calls,
            places: Arc::new(Semaphore::new(limit.at_once)),
            waiting: AtomicUsize::new(0),
            limit,
            in_hand,
        }
    }

    /// Takes a place, at once or after waiting for one.
    pub(crate) async fn enter(&self) -> Result<Pass, ApiError> {
        let busy = || ApiError::Busy { calls: self.calls };
        if let Ok(pass) = Arc::clone(&self.places).try_acquire_owned() {
            return Ok(self.pass(pass));
        }
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        if before >= self.limit.queued {
            return Err(busy());
        }
        let permit = Arc::clone(&self.places).acquire_owned().await.map_err(|_| busy())?;
        Ok(self.pass(permit))
    }

    fn pass(&self, permit: OwnedSemaphorePermit) -> Pass {
        self.in_hand.inc();
        Pass { _permit: permit, in_hand: self.in_hand.clone() }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[tokio::test]
    async fn beyond_its_places_and_its_queue_a_door_refuses_at_once() {
        let door = Door::new("tries", DoorLimit { at_once: 1, queued: 1 }, Gauge::default());
        let inside = door.enter().await.unwrap();
        let mut waiting = pin!(door.enter());
        let mut context = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        assert!(matches!(door.enter().await, Err(ApiError::Busy { calls: "tries" })));
        drop(inside);
        drop(waiting.await.unwrap());
        // A place that was waited for in vain is given back too.
        let inside = door.enter().await.unwrap();
        {
            let mut given_up = pin!(door.enter());
            assert!(given_up.as_mut().poll(&mut context).is_pending());
        }
        let mut waiting = pin!(door.enter());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        drop(inside);
    }
}
