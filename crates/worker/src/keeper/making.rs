//! From an order to an attempt directory, and to its sidecar when nothing has to be fetched. Blocks.

use std::io::{self, ErrorKind};

use jobyard_api::proto::{LaunchVerdict, ObjectUse};
use jobyard_handoff::{AttemptDirectory, ExecPlan, Fault, FaultCode};
use jobyard_model::{AttemptEnd, Exit};
use jobyard_runtime::{PrepareError, Prepared, Sidecar, cleanup};
use tokio::sync::oneshot;

use super::{LaunchAnswer, Wants};
use crate::artifacts::{Hold, Item};
use crate::facts;
use crate::inputs::Wanted;
use crate::launch::{Executable, Order};
use crate::node::Node;
use crate::relay::Word;

pub(crate) enum Made {
    /// Nothing is left of it, and the launch was answered so.
    Refused(LaunchVerdict),
    /// Accepted, and over: it can't be started as it is.
    Unrunnable(AttemptEnd),
    Attempt(Box<Ready>),
}

/// An attempt with its directory.
pub(crate) struct Ready {
    pub(crate) plan: ExecPlan,
    pub(crate) directory: AttemptDirectory,
    /// `None`: its executable, its input or its secrets must be fetched first.
    pub(crate) sidecar: Option<io::Result<Sidecar>>,
    pub(crate) artifact: Option<Hold>,
    pub(crate) wants: Wants,
    pub(crate) has_secrets: bool,
}

/// Makes the directory, answers the launch, reports the acceptance, and puts a sidecar beside that. (The sidecar of
/// an exclusive attempt waits for `Go` before it starts anything.)
pub(crate) fn make(node: &Node, order: &Order, slot: u32, answer: oneshot::Sender<LaunchAnswer>) -> Made {
    let artifact = match order.executable {
        Executable::Artifact(hash) => Some(node.artifacts.hold(Item::program(hash))),
        Executable::Object(_) | Executable::File(_) | Executable::Command => None,
    };
    let program = match &order.executable {
        Executable::Object(url) => Some(Wanted::Objects { url: url.clone(), used_as: ObjectUse::Executable }),
        Executable::Artifact(_) | Executable::File(_) | Executable::Command => None,
    };
    let wants = Wants { program, input: order.input.clone(), outputs_in_s3: order.outputs_in_s3 };
    let (plan, directory) = match make_directory(node, order, slot) {
        Ok(made) => made,
        Err(Refusal::DiskFull(why)) => {
            // Whoever asked may be gone; the next launch of this lease gets the same answer.
            let _ = answer.send(LaunchAnswer::DiskFull(why));
            return Made::Refused(LaunchVerdict::DiskFull);
        }
        Err(Refusal::Unrunnable(end)) => {
            let _ = answer.send(LaunchAnswer::Accepted);
            node.relay.say(order.attempt.lease_id, Word::Accepted);
            return Made::Unrunnable(end);
        }
    };
    let is_here = !order.has_secrets
        && wants.program.is_none()
        && wants.input.is_none()
        && artifact.as_ref().is_none_or(|artifact| node.artifacts.has(artifact.item));
    // The sidecar does its part while we talk.
    let sidecar = is_here.then(|| node.sidecars.begin(&directory));
    let _ = answer.send(LaunchAnswer::Accepted);
    node.relay.say(order.attempt.lease_id, Word::Accepted);
    let has_secrets = order.has_secrets;
    Made::Attempt(Box::new(Ready { plan, directory, sidecar, artifact, wants, has_secrets }))
}

enum Refusal {
    DiskFull(String),
    Unrunnable(AttemptEnd),
}

#[expect(clippy::result_large_err, reason = "made once an attempt, and on its way out")]
fn make_directory(node: &Node, order: &Order, slot: u32) -> Result<(ExecPlan, AttemptDirectory), Refusal> {
    let Prepared { plan, environment, .. } =
        node.prepare(order, slot).map_err(|error| of_prepare(node, error))?;
    let path = node.places.attempt(slot);
    let directory = AttemptDirectory::create(path, &plan, &environment).and_then(|directory| {
        let kept = directory.keep_launch(&order.record());
        if kept.is_err() {
            // Undecided and without a sidecar: the next start removes what can't be removed now.
            let _ = directory.remove();
        }
        kept.map(|()| directory)
    });
    match directory {
        Ok(directory) => Ok((plan, directory)),
        Err(error) => {
            if let Err(error) = cleanup(&plan) {
                tracing::warn!(error = &error as &dyn std::error::Error, slot, "an attempt's groups stay");
            }
            Err(of_directory(node, &error))
        }
    }
}

fn of_prepare(node: &Node, error: PrepareError) -> Refusal {
    match error {
        PrepareError::Fault(fault) => Refusal::Unrunnable(facts::end_of_fault(&fault, node.clock.now())),
        PrepareError::Io { source, .. } if is_full(&source) => {
            Refusal::DiskFull(format!("the attempt's directories could not be made: {source}"))
        }
        PrepareError::Io { ref source, .. } => {
            let message = format!("{error}: {source}");
            Refusal::Unrunnable(facts::launch_fault(Exit::LaunchFault, message, node.clock.now()))
        }
    }
}

fn of_directory(node: &Node, error: &io::Error) -> Refusal {
    if error.kind() == ErrorKind::ArgumentListTooLong {
        let fault = Fault {
            code: FaultCode::ArgumentsTooLong,
            message: "command and environment are too large: pass large data as a file".to_owned(),
        };
        return Refusal::Unrunnable(facts::end_of_fault(&fault, node.clock.now()));
    }
    Refusal::DiskFull(format!("the attempt directory could not be made: {error}"))
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}
