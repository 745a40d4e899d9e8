//! The life of one attempt on this node, in order: made, accepted, staged, watched, reported, cleared away.
//!
//! Each attempt has one keeper, a task; it alone touches the attempt's directory and sidecar. What others want of the
//! attempt, and what the report door answers, comes as a [`Nudge`].

mod finish;
mod making;
mod publish;
mod staging;
mod watch;

use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use jobyard_handoff::{AttemptDirectory, ExecPlan, StopReason};
use jobyard_model::AttemptEnd;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Duration, Instant, Interval, MissedTickBehavior, interval_at};

pub(crate) use self::finish::clear_away;
use self::making::{Made, make};
pub(crate) use self::publish::is_good;
use self::watch::Watched;
use crate::artifacts::Hold;
use crate::inputs::Wanted;
use crate::launch::{AttemptRef, Order};
use crate::node::Node;
use crate::relay::Word;
use crate::table::{Place, Rest};

/// What a keeper is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nudge {
    /// End the task. Without a grace: the attempt's own.
    Stop { reason: StopReason, grace_ms: Option<u64> },
    /// The report door took a word that was sent at this time on CLOCK_BOOTTIME: the lease is renewed.
    Renewed { sent_at_boottime_ms: u64 },
    /// The report door knew that already: the attempt is accepted, and the lease runs as it ran.
    Known,
    /// The lease is not ours any more.
    Gone,
    /// The end was answered.
    EndAnswered,
    /// All of the log is delivered.
    LogDelivered,
}

/// The answer to a launch that was let in.
#[derive(Debug)]
pub(crate) enum LaunchAnswer {
    /// The attempt has its directory.
    Accepted,
    /// It could not be made.
    DiskFull(String),
}

/// What has been heard so far.
#[derive(Debug, Default)]
struct Heard {
    stop: Option<(StopReason, Option<u64>)>,
    accepted: bool,
    gone: bool,
    end_answered: bool,
    log_delivered: bool,
}

impl Heard {
    fn note(&mut self, nudge: Nudge) {
        match nudge {
            Nudge::Stop { reason, grace_ms } => self.stop = Some((reason, grace_ms)),
            Nudge::Renewed { .. } | Nudge::Known => self.accepted = true,
            Nudge::Gone => self.gone = true,
            Nudge::EndAnswered => self.end_answered = true,
            Nudge::LogDelivered => self.log_delivered = true,
        }
    }

    fn is_unwanted(&self) -> bool {
        self.stop.is_some() || self.gone
    }
}

/// Whose sidecar it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// This worker's.
    Launched,
    /// An earlier worker's.
    Adopted,
}

/// What ended, and how long its log is when that is known.
struct Over {
    end: AttemptEnd,
    log_bytes: Option<u64>,
}

pub(crate) struct Keeper {
    node: Arc<Node>,
    attempt: AttemptRef,
    plan: ExecPlan,
    directory: AttemptDirectory,
    inbox: mpsc::UnboundedReceiver<Nudge>,
    heard: Heard,
    origin: Origin,
    /// To be reaped when it is gone.
    child: Option<Child>,
    artifact: Option<Hold>,
    wants: Wants,
    /// To be fetched before it starts.
    has_secrets: bool,
}

/// What has to be staged before it starts, and where its outputs go.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wants {
    /// The executable, when it is no artifact.
    pub(crate) program: Option<Wanted>,
    pub(crate) input: Option<Wanted>,
    pub(crate) outputs_in_s3: bool,
}

/// An attempt directory of an earlier worker.
pub(crate) struct Found {
    pub(crate) attempt: AttemptRef,
    pub(crate) plan: ExecPlan,
    pub(crate) directory: AttemptDirectory,
    pub(crate) artifact: Option<Hold>,
    pub(crate) outputs_in_s3: bool,
}

/// A launch that was let in, from its making to its end.
pub(crate) async fn launched(
    node: Arc<Node>,
    order: Order,
    place: Place,
    answer: oneshot::Sender<LaunchAnswer>,
) {
    let attempt = order.attempt;
    let lease_id = attempt.lease_id;
    let Place { slot, inbox, nudges } = place;
    node.relay.open(attempt, node.places.log(&attempt), nudges);
    let maker = Arc::clone(&node);
    let made = node.blocking(move || make(&maker, &order, slot, answer)).await;
    match made {
        None => {}
        Some(Made::Refused(verdict)) => {
            node.relay.close(lease_id);
            node.table().withdraw(lease_id, verdict);
        }
        Some(Made::Unrunnable(end)) => {
            node.table().release(lease_id);
            node.relay.end(lease_id, Some(end), Some(0));
            finish::answered(&node, inbox).await;
            node.relay.close(lease_id);
            node.table().forget(lease_id, Rest::Nothing);
        }
        Some(Made::Attempt(ready)) => {
            let making::Ready { plan, directory, sidecar, artifact, wants, has_secrets } = *ready;
            let keeper = Keeper {
                node,
                attempt,
                plan,
                directory,
                inbox,
                heard: Heard::default(),
                origin: Origin::Launched,
                child: None,
                artifact,
                wants,
                has_secrets,
            };
            keeper.begin(sidecar).await;
        }
    }
}

/// An attempt of an earlier worker, from where it stands to its end. The relay knows it already.
pub(crate) async fn adopted(node: Arc<Node>, found: Found, place: Place) {
    let Found { attempt, plan, directory, artifact, outputs_in_s3 } = found;
    let mut keeper = Keeper {
        node,
        attempt,
        plan,
        directory,
        inbox: place.inbox,
        heard: Heard::default(),
        origin: Origin::Adopted,
        child: None,
        artifact,
        // Staged before its sidecar came to be.
        wants: Wants { outputs_in_s3, ..Wants::default() },
        has_secrets: false,
    };
    let watched = match keeper.look().await {
        watch::Look::Connected(connection) => keeper.watch(connection).await,
        watch::Look::Over(over) => Watched::Over(over, None),
        watch::Look::HandedOver => Watched::HandedOver,
    };
    keeper.conclude(watched).await;
}

impl Keeper {
    /// From the directory on: staged if need be, then watched to the end.
    async fn begin(mut self, sidecar: Option<std::io::Result<jobyard_runtime::Sidecar>>) {
        let sidecar = match sidecar {
            Some(sidecar) => sidecar,
            None => match self.stage().await {
                Ok(sidecar) => sidecar,
                Err(end) => return self.finish(Over { end, log_bytes: Some(0) }, None).await,
            },
        };
        let watched = match self.connect(sidecar) {
            Ok(connection) => self.watch(connection).await,
            Err(end) => Watched::Over(Over { end, log_bytes: Some(0) }, None),
        };
        self.conclude(watched).await;
    }

    async fn conclude(self, watched: Watched) {
        match watched {
            Watched::Over(over, connection) => self.finish(over, connection).await,
            Watched::HandedOver => {
                self.node.handed_over.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn say(&self, word: Word) {
        self.node.relay.say(self.attempt.lease_id, word);
    }

    /// Ticks when the worker renews for itself.
    fn own_renewals(&self) -> Interval {
        let period = Duration::from_millis(self.plan.times.heartbeat_ms.max(1));
        let mut renewals = interval_at(Instant::now() + period, period);
        renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
        renewals
    }
}
