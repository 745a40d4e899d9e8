//! When to look at a job again: after an event, or after a while when events don't come.

use std::time::Duration;

use futures_util::stream::{BoxStream, TryStreamExt};
use jobyard_model::JobId;

use crate::events::Signal;
use crate::{Client, Error, EventFilter};

/// While the event stream stands, looking again is only a net below it.
const POLL_BESIDE_EVENTS: Duration = Duration::from_secs(30);
/// Without the event stream, looking again is all there is.
const POLL_WITHOUT_EVENTS: Duration = Duration::from_secs(1);

/// Tells when a job may have changed.
pub(super) struct Changes {
    signals: Option<BoxStream<'static, Result<Signal, Error>>>,
    stands: bool,
}

impl Changes {
    pub(super) fn of(client: &Client, job_id: JobId) -> Self {
        let filter = EventFilter { job_id: Some(job_id), ..EventFilter::default() };
        Self { signals: Some(client.events().signals(filter, None)), stands: false }
    }

    /// Returns when the job may have changed; also once the event stream stands, since what happened before that is
    /// not in it. Never fails: without events it polls.
    pub(super) async fn next(&mut self) {
        let Some(signals) = &mut self.signals else {
            tokio::time::sleep(POLL_WITHOUT_EVENTS).await;
            return;
        };
        let patience = if self.stands { POLL_BESIDE_EVENTS } else { POLL_WITHOUT_EVENTS };
        match tokio::time::timeout(patience, signals.try_next()).await {
            Ok(Ok(Some(_))) => self.stands = true,
            // Refused or given up on; the caller's next look at the job says whether that is final.
            Ok(Ok(None) | Err(_)) => self.signals = None,
            Err(_) => {}
        }
    }
}
