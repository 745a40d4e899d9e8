//! Fetching the executable, the input and the secrets, once the acceptance is acknowledged; then the sidecar.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use jobyard_model::{AttemptEnd, Exit};
use jobyard_runtime::Sidecar;

use super::{Keeper, Wants};
use crate::artifacts::{FetchError, Source};
use crate::connection::Connection;
use crate::facts::launch_fault;
use crate::inputs::{self, Input, Wanted};
use crate::places::PROGRAM_FOLDER;
use crate::relay::Word;
use crate::secrets::{self, SecretsError};

impl Keeper {
    /// No sidecar exists yet, so whatever ends this here has surely not started.
    pub(super) async fn stage(&mut self) -> Result<io::Result<Sidecar>, AttemptEnd> {
        self.accepted().await?;
        self.fetch().await?;
        let Wants { program, input, .. } = self.wants.clone();
        self.stage_folder(program, PROGRAM_FOLDER, "the executable").await?;
        self.stage_folder(input, "input", "the input").await?;
        self.fetch_secrets().await?;
        let (node, directory) = (Arc::clone(&self.node), self.directory.clone());
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

    #[expect(clippy::result_large_err, reason = "made once an attempt, and on its way out")]
    fn still_wanted(&self) -> Result<(), AttemptEnd> {
        if self.heard.is_unwanted() {
            return Err(AttemptEnd::NotStarted { why: "stopped before it started".to_owned() });
        }
        Ok(())
    }

    async fn fetch(&mut self) -> Result<(), AttemptEnd> {
        let Some(hold) = self.artifact.take() else { return Ok(()) };
        let cache = Arc::clone(&self.node.artifacts);
        let patience = Duration::from_millis(self.plan.times.lease_ms);
        let source = Source { lease_id: self.attempt.lease_id, object: None };
        let fetched = self.while_wanted(cache.fetch(&hold, &source, patience)).await?;
        self.artifact = Some(hold);
        fetched.map_err(|error| self.not_fetched("the executable", &error))
    }

    async fn stage_folder(
        &mut self,
        what: Option<Wanted>,
        name: &str,
        called: &str,
    ) -> Result<(), AttemptEnd> {
        let (Some(what), Some(scratch)) = (what, &self.plan.scratch) else { return Ok(()) };
        let input = Input {
            what,
            lease_id: self.attempt.lease_id,
            folder: scratch.join(name),
            may_share: self.plan.user.is_some_and(|user| user.private),
            patience: Duration::from_millis(self.plan.times.lease_ms),
        };
        let cache = Arc::clone(&self.node.artifacts);
        let staged = self.while_wanted(inputs::stage(&cache, &input)).await?;
        staged.map_err(|error| self.not_fetched(called, &error))
    }

    /// Last, so that they lie in the directory for as short as can be.
    async fn fetch_secrets(&mut self) -> Result<(), AttemptEnd> {
        if !self.has_secrets {
            return Ok(());
        }
        let patience = Duration::from_millis(self.plan.times.lease_ms);
        let (door, lease_id) = (Arc::clone(&self.node.door), self.attempt.lease_id);
        let fetched = self.while_wanted(secrets::fetch(&*door, lease_id, patience)).await?;
        let directory = self.directory.clone();
        let kept = match fetched {
            Ok(secrets) => {
                let add = move || directory.add_secrets(secrets).map_err(SecretsError::Disk);
                self.node.blocking(add).await.ok_or_else(abandoned)?
            }
            Err(error) => Err(error),
        };
        // Whatever it is, it is not the job's fault.
        kept.map_err(|error| {
            let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
            let message = format!("{error}{}", source.unwrap_or_default());
            launch_fault(Exit::LaunchFault, message, self.node.clock.now())
        })
    }

    /// Renews the lease while something goes on, and drops that when the attempt is not wanted any more.
    async fn while_wanted<T>(&mut self, work: impl Future<Output = T>) -> Result<T, AttemptEnd> {
        tokio::pin!(work);
        let hand_over = self.node.hand_over.clone();
        let mut renewals = self.own_renewals();
        loop {
            tokio::select! {
                done = &mut work => return Ok(done),
                nudge = self.inbox.recv() => self.heard.note(nudge.ok_or_else(abandoned)?),
                _ = renewals.tick() => self.say(Word::Renewed),
                () = hand_over.cancelled() => return Err(abandoned()),
            }
            self.still_wanted()?;
        }
    }

    fn not_fetched(&self, what: &str, error: &FetchError) -> AttemptEnd {
        let exit = match error {
            FetchError::Refused(_) => Exit::Unrunnable,
            FetchError::Door(_) | FetchError::Mismatch { .. } | FetchError::Disk(_) => Exit::LaunchFault,
        };
        let source = std::error::Error::source(error).map(|source| format!(": {source}"));
        let message = format!("{what} {error}{}", source.unwrap_or_default());
        launch_fault(exit, message, self.node.clock.now())
    }

    /// Takes over a sidecar that was just given the attempt, or says why there is none.
    #[expect(clippy::result_large_err, reason = "made once an attempt, and on its way out")]
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
