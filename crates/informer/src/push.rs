//! Pushing claimed attempts to one worker, until it has answered or their claim lease is over.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jobyard_api::doors::{DoorError, WorkerDoor};
use jobyard_api::proto::{self, LaunchVerdict};
use jobyard_model::SessionId;
use jobyard_store::{Claimed, NotStarted, Store};

use crate::launch::launch_message;

/// Pause before an unanswered push is repeated.
const REPEAT_PAUSE: Duration = Duration::from_millis(200);

/// Attempts for one node and session.
pub(crate) struct Push {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) door: Arc<dyn WorkerDoor>,
    pub(crate) session: SessionId,
    pub(crate) attempts: Vec<Claimed>,
    /// When their claim was durable.
    pub(crate) claimed_at: Instant,
}

impl Push {
    /// Repeats the push until it is answered. What surely did not start is ended; what was not answered within the
    /// claim lease is left to it.
    ///
    /// An informer that froze after the commit finds its time over and pushes nothing.
    pub(crate) async fn run(self) {
        let settings = self.store.lease_settings();
        let give_up_at = self.claimed_at + Duration::from_millis(settings.claim_lease_ms);
        let request = proto::LaunchRequest {
            session: self.session.0.as_bytes().to_vec().into(),
            launches: self.attempts.iter().map(launch_message).collect(),
            lease_ms: settings.lease_ms,
            heartbeat_ms: settings.heartbeat_ms,
        };
        while Instant::now() < give_up_at {
            match self.door.launch(request.clone()).await {
                Ok(reply) => return self.end_refused(&reply).await,
                Err(error @ (DoorError::NotSent { .. } | DoorError::Refused { .. })) => {
                    return self.end(self.attempts.iter().collect(), &error.to_string()).await;
                }
                Err(error @ DoorError::Unknown { .. }) => {
                    tracing::info!(error = &error as &dyn std::error::Error, "push not answered, repeating");
                    tokio::time::sleep(REPEAT_PAUSE).await;
                }
            }
        }
        tracing::warn!(attempts = self.attempts.len(), "push never answered; the claim lease decides");
    }

    async fn end_refused(&self, reply: &proto::LaunchReply) {
        let mut refused: Vec<NotStarted> = Vec::new();
        for (claimed, answer) in self.attempts.iter().zip(&reply.answers) {
            let verdict = answer.verdict();
            // A verdict that this version doesn't know proves nothing: the claim lease decides.
            if !matches!(verdict, LaunchVerdict::Accepted | LaunchVerdict::Unspecified) {
                refused.push(not_started(claimed, &refusal_words(verdict, &answer.message)));
            }
        }
        self.record(refused).await;
    }

    async fn end(&self, attempts: Vec<&Claimed>, why: &str) {
        self.record(attempts.into_iter().map(|claimed| not_started(claimed, why)).collect()).await;
    }

    async fn record(&self, refused: Vec<NotStarted>) {
        if refused.is_empty() {
            return;
        }
        if let Err(error) = self.store.end_not_started(refused).await {
            // Their claim leases end them, a little later.
            tracing::warn!(error = &error as &dyn std::error::Error, "refused attempts could not be ended");
        }
    }
}

fn not_started(claimed: &Claimed, why: &str) -> NotStarted {
    NotStarted { job_id: claimed.job_id, lease_id: claimed.lease_id, why: why.to_owned() }
}

fn refusal_words(verdict: LaunchVerdict, message: &str) -> String {
    let word = match verdict {
        LaunchVerdict::WrongSession => "the worker was restarted",
        LaunchVerdict::Full => "full",
        LaunchVerdict::Draining => "draining",
        LaunchVerdict::DiskFull => "disk_full",
        LaunchVerdict::Stopped => "stopped before it started",
        LaunchVerdict::Unsupported => "unsupported",
        LaunchVerdict::Accepted | LaunchVerdict::Unspecified => "",
    };
    if message.is_empty() { word.to_owned() } else { format!("{word}: {message}") }
}
