//! How long something that lasts (waiting, watching, following) puts up with an unreachable server.
//!
//! Owns the count of failures in a row. Invariant: after a piece of success the patience is whole again.

use tokio::time::Instant;

use crate::{Error, RetryPolicy};

/// The failures since the last success.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    since: Option<Instant>,
    repetition: u32,
}

impl Outage {
    /// Something worked.
    pub(crate) fn over(&mut self) {
        *self = Self::default();
    }

    /// Takes a failure: pauses when it may pass, gives it back when it is final or has lasted too long.
    pub(crate) async fn bear(&mut self, policy: &RetryPolicy, error: Error) -> Result<(), Error> {
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        if !may_pass(&error) || now.duration_since(since) >= policy.outage_for {
            return Err(error);
        }
        self.pause(policy).await;
        Ok(())
    }

    /// Pauses before the next try of something that ended without an error; longer each time.
    pub(crate) async fn pause(&mut self, policy: &RetryPolicy) {
        tokio::time::sleep(policy.delay(self.repetition, rand::random())).await;
        self.repetition = self.repetition.saturating_add(1);
    }
}

/// Whether the same call may work later without anybody mending it.
pub(crate) fn may_pass(error: &Error) -> bool {
    match error {
        Error::Unreachable { .. } => true,
        Error::Problem(problem) => matches!(problem.status, 429 | 500 | 502 | 503 | 504),
        _ => false,
    }
}
