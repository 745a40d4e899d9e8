//! Fetching the executable, once the acceptance is acknowledged; then the sidecar.

use std::io;
use std::time::Duration;

use jobyard_model::{AttemptEnd, Exit};
use jobyard_runtime::Sidecar;

use super::Keeper;
use crate::artifacts::FetchError;
use crate::connection::Connection;
use crate::facts::launch_fault;
use crate::relay::Word;

impl Keeper {
    /// No sidecar exists yet, so whatever ends this here has surely not started.
    pub(super) async fn stage(&mut self) -> Result<io::Result<Sidecar>, AttemptEnd> {
        self.accepted().await?;
        self.fetch().await?;
        let (node, directory) = (std::sync::Arc::clone(&self.node), self.directory.clone());
        let begun = self.node.blocking(move || node.sidecars.begin(&directory)).await;
        Ok(begun.unwrap_or_else(|| Err(io::ErrorKind::Interrupted.into())))
    }

    /// Until the report door has taken the acceptance.
    async fn accepted(&mut self) -> Result<(), AttemptEnd> {
        let hand_over = self.node.hand_over.clone();
        while !self.heard.accepted {
            tokio::select! {
                nudge = self.inbox.recv() => self.heard.note(nudge.ok_or_else(abandoned)?),
                () = hand_over.cancelled() => return Err(abandoned()),
            }
            self.still_wanted()?;
        }
        Ok(())
    }

    fn still_wanted(&self) -> Result<(), AttemptEnd> {
        if self.heard.is_unwanted() {
            return Err(AttemptEnd::NotStarted { why: "stopped before it started".to_owned() });
        }
        Ok(())
    }

    async fn fetch(&mut self) -> Result<(), AttemptEnd> {
        let Some(hold) = self.artifact.take() else { return Ok(()) };
        let cache = std::sync::Arc::clone(&self.node.artifacts);
        let patience = Duration::from_millis(self.plan.times.lease_ms);
        let lease_id = self.attempt.lease_id;
        let fetched = {
            let fetch = cache.fetch(&hold, lease_id, patience);
            tokio::pin!(fetch);
            let hand_over = self.node.hand_over.clone();
            let mut renewals = self.own_renewals();
            loop {
                tokio::select! {
                    fetched = &mut fetch => break fetched,
                    nudge = self.inbox.recv() => self.heard.note(nudge.ok_or_else(abandoned)?),
                    _ = renewals.tick() => self.say(Word::Renewed),
                    () = hand_over.cancelled() => return Err(abandoned()),
                }
                self.still_wanted()?;
            }
        };
        self.artifact = Some(hold);
        fetched.map_err(|error| self.not_fetched(&error))
    }

    fn not_fetched(&self, error: &FetchError) -> AttemptEnd {
        let exit = match error {
            FetchError::Refused(_) => Exit::Unrunnable,
            FetchError::Door(_) | FetchError::Mismatch { .. } | FetchError::Disk(_) => Exit::LaunchFault,
        };
        let source = std::error::Error::source(error).map(|source| format!(": {source}"));
        launch_fault(exit, format!("{error}{}", source.unwrap_or_default()), self.node.clock.now())
    }

    /// Takes over a sidecar that was just given the attempt, or says why there is none.
    pub(super) fn connect(&mut self, sidecar: io::Result<Sidecar>) -> Result<Connection, AttemptEnd> {
        let connection = sidecar.and_then(|Sidecar { process, connection }| {
            self.child = Some(process);
            Connection::over(connection)
        });
        connection.map_err(|error| {
            let path = self.node.settings.sidecar_path.display();
            let message = format!("the sidecar {path} could not be started: {error}");
            launch_fault(Exit::LaunchFault, message, self.node.clock.now())
        })
    }
}

fn abandoned() -> AttemptEnd {
    AttemptEnd::NotStarted { why: "the worker was stopped before it started".to_owned() }
}
