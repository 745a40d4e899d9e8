//! Beside a live sidecar: its frames become words, what is wanted becomes frames, its death becomes evidence.

use std::time::Duration;

use jobyard_handoff::{ExitRecord, FromSidecar, Hello, Situation, StopReason, ToSidecar};
use jobyard_model::{AttemptEnd, Exit};
use jobyard_runtime::clear_tree;
use tokio::time::{Instant, sleep};

use super::{Keeper, Nudge, Origin, Over};
use crate::connection::Connection;
use crate::facts::{end_of, launch_fault, service_run};
use crate::relay::Word;

/// Between two looks at a sidecar that lives and can't be connected to.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Rounds of clearing up after a dead sidecar before the node gives up on what is left.
const CLEAR_ROUNDS: u32 = 6;
/// A heartbeat this soon after the start says nothing new.
const STARTED_RENEWS: Duration = Duration::from_secs(1);

/// How watching came to its end.
#[expect(clippy::large_enum_variant, reason = "made once an attempt and taken apart at once")]
pub(super) enum Watched {
    /// It is over; the connection is there when the sidecar waits for the acknowledgement.
    Over(Over, Option<Connection>),
    /// The next worker goes on.
    HandedOver,
}

/// What there is.
pub(super) enum Look {
    Connected(Connection),
    Over(Over),
    HandedOver,
}

/// Where the watched attempt is.
struct Watch {
    connection: Connection,
    started_at: Option<Instant>,
    go_is_sent: bool,
}

impl Watch {
    fn over(connection: Connection) -> Self {
        Self { connection, started_at: None, go_is_sent: false }
    }
}

impl Keeper {
    pub(super) async fn watch(&mut self, connection: Connection) -> Watched {
        let mut watch = Watch::over(connection);
        self.repeat_stop(&mut watch).await;
        let hand_over = self.node.hand_over.clone();
        let mut renewals = self.own_renewals();
        loop {
            tokio::select! {
                frame = watch.connection.next() => match frame {
                    Some(FromSidecar::Ended(record)) => {
                        return Watched::Over(over_by(&record), Some(watch.connection));
                    }
                    Some(frame) => self.hear(frame, &mut watch),
                    None => match self.look().await {
                        Look::Connected(connection) => {
                            watch = Watch { started_at: watch.started_at, ..Watch::over(connection) };
                            self.repeat_stop(&mut watch).await;
                        }
                        Look::Over(over) => return Watched::Over(over, None),
                        Look::HandedOver => return Watched::HandedOver,
                    },
                },
                Some(nudge) = self.inbox.recv() => self.obey(nudge, &mut watch).await,
                // Once it runs, only its sidecar renews it.
                _ = renewals.tick(), if watch.started_at.is_none() => self.say(Word::Renewed),
                () = hand_over.cancelled() => return Watched::HandedOver,
            }
        }
    }

    fn hear(&mut self, frame: FromSidecar, watch: &mut Watch) {
        match frame {
            FromSidecar::Hello(hello) => self.greet(&hello, watch),
            FromSidecar::Started { .. } => {
                watch.started_at = Some(Instant::now());
                self.say(Word::Started);
                self.node.sidecar_taken.notify_one();
            }
            FromSidecar::Heartbeat { .. } => {
                let just_started =
                    watch.started_at.is_some_and(|started_at| started_at.elapsed() < STARTED_RENEWS);
                if !just_started {
                    self.say(Word::Renewed);
                }
            }
            FromSidecar::LogGrew { file_bytes } => {
                self.node.relay.log_grew(self.attempt.lease_id, file_bytes);
            }
            FromSidecar::Service(state) => self.say(Word::Service(service_run(&state))),
            // The one is taken by the caller; the other comes after an acknowledgement.
            FromSidecar::Ended(_) | FromSidecar::Idle => {}
        }
    }

    /// An adopted sidecar says how far things are; what the last worker said of it may not have arrived.
    fn greet(&mut self, hello: &Hello, watch: &mut Watch) {
        self.node.relay.log_grew(self.attempt.lease_id, hello.log_file_bytes);
        if self.origin == Origin::Adopted {
            self.say(if hello.started_at_ms.is_some() { Word::Started } else { Word::Accepted });
        }
        if hello.started_at_ms.is_some() && watch.started_at.is_none() {
            // Long enough ago for the next heartbeat to count.
            watch.started_at = Instant::now().checked_sub(STARTED_RENEWS);
        }
    }

    async fn obey(&mut self, nudge: Nudge, watch: &mut Watch) {
        self.heard.note(nudge);
        match nudge {
            Nudge::Stop { .. } | Nudge::Gone => self.repeat_stop(watch).await,
            Nudge::Renewed { sent_at_boottime_ms } if self.plan.exclusive => {
                if !watch.go_is_sent {
                    watch.go_is_sent = true;
                    watch.connection.say(&ToSidecar::Go { sent_at_boottime_ms }).await;
                }
                watch.connection.say(&ToSidecar::Renewed { sent_at_boottime_ms }).await;
            }
            // What was said before starts no lease that could be counted from now.
            Nudge::Known if self.plan.exclusive && !watch.go_is_sent => self.say(Word::Renewed),
            Nudge::Known | Nudge::Renewed { .. } | Nudge::EndAnswered | Nudge::LogDelivered => {}
        }
    }

    /// Passes on what was wanted so far.
    async fn repeat_stop(&mut self, watch: &mut Watch) {
        let stop = match self.heard.stop {
            _ if self.heard.gone => Some((StopReason::Stale, None)),
            stop => stop,
        };
        if let Some((reason, grace_ms)) = stop {
            let grace_ms = grace_ms.unwrap_or(self.plan.times.stop_grace_ms);
            watch.connection.say(&ToSidecar::Stop { reason, grace_ms }).await;
        }
    }

    /// Finds out what there is, when there is no connection (any more).
    pub(super) async fn look(&mut self) -> Look {
        loop {
            let (directory, plan) = (self.directory.clone(), self.plan.clone());
            let boot_id = self.node.runtime.boot_id().to_owned();
            let found = self
                .node
                .blocking(move || {
                    let situation = match directory.situation(&plan, &boot_id) {
                        // Somebody took it away under us.
                        Err(_) if !directory.path().exists() => Situation::Died,
                        found => found?,
                    };
                    let stream = matches!(situation, Situation::Alive).then(|| directory.connect());
                    std::io::Result::Ok((situation, stream))
                })
                .await;
            match found {
                None => return Look::HandedOver,
                Some(Ok((Situation::Alive, Some(Ok(stream))))) => match Connection::over(stream) {
                    Ok(connection) => return Look::Connected(connection),
                    Err(error) => self.note_trouble(&error),
                },
                // About to end, or about to listen.
                Some(Ok((Situation::Alive, _))) => {}
                Some(Ok((Situation::Ended(record), _))) => return Look::Over(over_by(&record)),
                Some(Ok((Situation::NotStarted, _))) => return Look::Over(self.never_started()),
                Some(Ok((Situation::Died | Situation::OtherBoot, _))) => {
                    return Look::Over(self.cleared_up().await);
                }
                Some(Err(error)) => self.note_trouble(&error),
            }
            tokio::select! {
                () = sleep(LOOK_AGAIN) => {}
                () = self.node.hand_over.cancelled() => return Look::HandedOver,
            }
        }
    }

    fn note_trouble(&self, error: &std::io::Error) {
        let lease_id = self.attempt.lease_id;
        tracing::warn!(%lease_id, error = error as &dyn std::error::Error, "an attempt can't be looked at");
    }

    /// Nobody has started it, and nobody can any more.
    fn never_started(&self) -> Over {
        let end = match self.origin {
            Origin::Launched => {
                let message = "the sidecar died before it started the task".to_owned();
                launch_fault(Exit::LaunchFault, message, self.node.clock.now())
            }
            Origin::Adopted => {
                AttemptEnd::NotStarted { why: "the worker was restarted before it started".to_owned() }
            }
        };
        Over { end, log_bytes: Some(0) }
    }

    /// The sidecar is dead and left no record: nothing of the task may live when that is told.
    async fn cleared_up(&mut self) -> Over {
        let mut survivors = 0;
        for _ in 0..CLEAR_ROUNDS {
            let plan = self.plan.clone();
            match self.node.blocking(move || clear_tree(&plan)).await {
                Some(Ok(cleared)) => survivors = cleared.survivors,
                Some(Err(error)) => {
                    survivors = survivors.max(1);
                    self.note_trouble(&error);
                    sleep(LOOK_AGAIN).await;
                }
                None => break,
            }
            if survivors == 0 {
                break;
            }
        }
        let mut why = "the sidecar died".to_owned();
        if survivors > 0 {
            why += &format!("; {survivors} of the task's processes could not be killed");
            tracing::error!(lease_id = %self.attempt.lease_id, survivors, "processes of an attempt survive it");
        }
        Over { end: AttemptEnd::Vanished { why }, log_bytes: None }
    }
}

fn over_by(record: &ExitRecord) -> Over {
    Over { end: end_of(record), log_bytes: Some(record.usage.log_file_bytes) }
}
