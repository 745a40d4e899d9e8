//! Between a good exit and its report: the outputs go up, so that both are published at once.

use std::sync::Arc;
use std::time::Duration;

use jobyard_handoff::StopReason;
use jobyard_model::{AttemptEnd, EndedBy, Exit, ExitFacts, Outputs};
use tokio::time::timeout;

use super::{Keeper, Nudge, Over};
use crate::outputs::{self, Output, UploadError, upload};
use crate::relay::Word;

/// How an upload came to its end.
enum Uploaded {
    Done(Outputs, String),
    /// The job was cancelled meanwhile, or the lease is not ours any more.
    Unwanted,
}

impl Keeper {
    /// The end with what became of the outputs. `None`: the next worker goes on.
    pub(super) async fn publish(&mut self, over: Over) -> Option<Over> {
        let facts = match &over.end {
            AttemptEnd::Exited(facts) if is_good(facts) => facts.clone(),
            _ => return Some(over),
        };
        let Some(output) = self.output().await else { return Some(over) };
        if let Some(bytes) = over.log_bytes {
            self.node.relay.log_grew(self.attempt.lease_id, bytes);
        }
        self.say(Word::Finishing);
        let facts = match self.upload(output).await? {
            Uploaded::Done(outputs, message) => {
                ExitFacts { outputs, message: joined(facts.message, message), ..facts }
            }
            Uploaded::Unwanted => {
                let message = joined(facts.message, "stopped while its outputs went up".to_owned());
                ExitFacts { ended_by: EndedBy::Stop, message, ..facts }
            }
        };
        Some(Over { end: AttemptEnd::Exited(facts), ..over })
    }

    /// What there is to be sent.
    async fn output(&self) -> Option<Output> {
        let output = Output {
            lease_id: self.attempt.lease_id,
            folder: self.plan.scratch.as_ref()?.join("output"),
            owner: self.plan.user.map(|user| user.uid),
            most_bytes: self.node.settings.output_limit_bytes,
            in_s3: self.wants.outputs_in_s3,
        };
        let looked_at = output.clone();
        let is_empty = self.node.blocking(move || outputs::is_empty(&looked_at)).await?;
        (!is_empty).then_some(output)
    }

    async fn upload(&mut self, output: Output) -> Option<Uploaded> {
        let limit = Duration::from_millis(self.node.settings.times.upload_ms);
        let upload = timeout(limit, upload(Arc::clone(&self.node.door), output));
        tokio::pin!(upload);
        let hand_over = self.node.hand_over.clone();
        let mut renewals = self.own_renewals();
        loop {
            tokio::select! {
                done = &mut upload => return Some(done.map_or_else(|_| late(limit), outcome)),
                nudge = self.inbox.recv() => {
                    let nudge = nudge?;
                    self.heard.note(nudge);
                    // A stop that was pushed (those have a grace) does not say why; the answer to a renewal does.
                    if matches!(nudge, Nudge::Stop { grace_ms: Some(_), .. }) {
                        self.say(Word::Renewed);
                    }
                }
                _ = renewals.tick() => self.say(Word::Renewed),
                () = hand_over.cancelled() => return None,
            }
            match self.heard.stop {
                _ if self.heard.gone => return Some(Uploaded::Unwanted),
                Some((StopReason::Cancel, _)) => return Some(Uploaded::Unwanted),
                _ => {}
            }
        }
    }
}

/// Only then outputs are published.
pub(crate) fn is_good(facts: &ExitFacts) -> bool {
    facts.ended_by == EndedBy::Itself && facts.exit == Exit::Code(0)
}

fn outcome(uploaded: Result<Option<jobyard_model::ArtifactHash>, UploadError>) -> Uploaded {
    match uploaded {
        Ok(None) => Uploaded::Done(Outputs::None, String::new()),
        Ok(Some(hash)) => Uploaded::Done(Outputs::Kept(hash), String::new()),
        Err(error @ UploadError::Refused(_)) => Uploaded::Done(Outputs::Refused, error.to_string()),
        Err(error @ (UploadError::Door(_) | UploadError::Disk(_))) => {
            let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
            Uploaded::Done(Outputs::Late, format!("{error}{}", source.unwrap_or_default()))
        }
    }
}

fn late(limit: Duration) -> Uploaded {
    let message = format!("its outputs were not up after {} s", limit.as_secs());
    Uploaded::Done(Outputs::Late, message)
}

fn joined(first: String, second: String) -> String {
    match (first.is_empty(), second.is_empty()) {
        (true, _) => second,
        (false, true) => first,
        (false, false) => format!("{first}; {second}"),
    }
}
