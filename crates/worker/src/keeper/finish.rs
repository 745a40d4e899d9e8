//! From the end of an attempt to the moment when nothing of it is left: acknowledged, reported, delivered, removed.

use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jobyard_handoff::{AttemptDirectory, ExecPlan, FromSidecar, ToSidecar};
use jobyard_runtime::{NodeRuntime, Sidecar};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::{Heard, Keeper, Nudge, Over};
use crate::connection::Connection;
use crate::node::Node;
use crate::relay::{Word, remove_log, remove_part};
use crate::table::Rest;

/// How long a sidecar may take to let go of its attempt once the outcome is acknowledged.
const LEAVE_PATIENCE: Duration = Duration::from_secs(5);
const LOCK_LOOKS: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(1);

impl Keeper {
    pub(super) async fn finish(mut self, over: Over, mut connection: Option<Connection>) {
        let lease_id = self.attempt.lease_id;
        self.node.table().release(lease_id);
        // In its file the record survives this worker, so the sidecar need not wait for the report door. (A read of
        // a page of memory.)
        let is_safe = matches!(self.directory.exit_record(), Ok(Some(_)));
        if let Some(connection) = connection.as_mut().filter(|_| is_safe) {
            connection.say(&ToSidecar::AckOutcome).await;
        }
        let Some(over) = self.publish(over).await else {
            self.node.handed_over.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let end = (!self.heard.gone).then_some(over.end);
        self.node.relay.end(lease_id, end, over.log_bytes);
        let mut renewals = self.own_renewals();
        while !(self.heard.log_delivered && (self.heard.end_answered || self.heard.gone)) {
            tokio::select! {
                nudge = self.inbox.recv() => match nudge {
                    Some(nudge) => self.heard.note(nudge),
                    None => return,
                },
                _ = renewals.tick(), if !self.heard.end_answered && !self.heard.gone => {
                    self.say(Word::Renewed);
                }
                leaving = leaving(connection.as_mut()), if is_safe && connection.is_some() => {
                    self.part(connection.take(), leaving);
                }
            }
        }
        self.node.relay.close(lease_id);
        if let Some(connection) = connection.as_mut().filter(|_| !is_safe) {
            connection.say(&ToSidecar::AckOutcome).await;
        }
        match timeout(LEAVE_PATIENCE, leaving(connection.as_mut())).await {
            Ok(leaving) => self.part(connection, leaving),
            Err(_) => tracing::warn!(%lease_id, is_safe, "an acknowledged sidecar stays"),
        }
        let Self { node, plan, directory, child, .. } = self;
        let clearing = Arc::clone(&node);
        let rest = node.blocking(move || clear_away(&clearing.runtime, &plan, &directory, child)).await;
        node.table().forget(lease_id, rest.unwrap_or(Rest::Something));
    }

    /// Keeps an idle sidecar of ours for another attempt. Any other leaves as its connection closes.
    fn part(&mut self, connection: Option<Connection>, leaving: Leaving) {
        if leaving == Leaving::Gone {
            return;
        }
        let (Some(connection), Some(process)) = (connection, self.child.take()) else { return };
        self.child = match connection.into_inner() {
            Ok(connection) => self.node.sidecars.give_back(Sidecar { process, connection }),
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "an idle sidecar is let go");
                Some(process)
            }
        };
    }
}

/// What an acknowledged sidecar did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    /// It let go of the attempt and can have another.
    Idle,
    /// It ended.
    Gone,
}

/// Nothing is lost when the future is dropped.
async fn leaving(connection: Option<&mut Connection>) -> Leaving {
    let Some(connection) = connection else { return Leaving::Gone };
    loop {
        match connection.next().await {
            Some(FromSidecar::Idle) => return Leaving::Idle,
            Some(_) => {}
            None => return Leaving::Gone,
        }
    }
}

/// For an attempt without a directory: until its end is answered.
pub(super) async fn answered(node: &Arc<Node>, mut inbox: mpsc::UnboundedReceiver<Nudge>) {
    let mut heard = Heard::default();
    let abort = node.abort.clone();
    while !heard.end_answered && !heard.gone {
        tokio::select! {
            nudge = inbox.recv() => match nudge {
                Some(nudge) => heard.note(nudge),
                None => return,
            },
            () = abort.cancelled() => return,
        }
    }
}

/// A sidecar closes its connection and its lock in one go, in whatever order.
fn is_left(directory: &AttemptDirectory) -> bool {
    for _ in 0..LOCK_LOOKS {
        if matches!(directory.is_held(), Ok(false)) {
            return true;
        }
        std::thread::sleep(LOCK_PAUSE);
    }
    false
}

/// Removes what the attempt had on this machine, but for what the next one in its slot can use. What stays is found by
/// the next start. Blocks.
pub(crate) fn clear_away(
    runtime: &NodeRuntime,
    plan: &ExecPlan,
    directory: &AttemptDirectory,
    child: Option<Child>,
) -> Rest {
    if !is_left(directory) {
        return Rest::Something;
    }
    if let Some(mut child) = child {
        // Its lock is free, so it is on its last instructions.
        if let Err(error) = child.wait() {
            tracing::warn!(error = &error as &dyn std::error::Error, "a sidecar could not be reaped");
        }
    }
    let removed = runtime.retire(plan).and_then(|()| {
        match plan.restart {
            Some(_) => remove_log(&plan.log.path),
            None => remove_part(&plan.log.path),
        }
        directory.remove()
    });
    match removed {
        Ok(()) => Rest::Nothing,
        Err(error) => {
            let path = directory.path().display();
            tracing::warn!(%path, error = &error as &dyn std::error::Error, "something of an attempt stays");
            Rest::Something
        }
    }
}
