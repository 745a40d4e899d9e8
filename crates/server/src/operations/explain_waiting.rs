//! Why a job isn't running yet: the gates it passes one after the other, and the nodes of its pool.

use jobyard_api::json::{Time, Why, WhyGate, WhyNode};
use jobyard_model::lifecycle::RESTARTING;
use jobyard_model::{Intent, JobState, LiveAttempt, NodeState, Timestamp};
use jobyard_scheduler::{WhyWaiting, why_waiting};
use jobyard_store::JobRecord;

use super::accept_jobs::shape_of;

/// Explains a job's status. `nodes` are those of its pool.
pub(crate) fn explain_waiting(record: &JobRecord, nodes: &[NodeState], now: Timestamp) -> Why {
    let gates = gates(record, now);
    let placement = match &record.job.state {
        JobState::Waiting { since } if *since <= now => {
            Some(why_waiting(&shape_of(&record.spec), nodes, now))
        }
        _ => None,
    };
    let told = match &placement {
        Some(why) => Told::new(why.reason, why.summary.clone(), &why.remedy),
        None => tell(record, now),
    };
    Why {
        status: record.job.status(),
        reason: told.reason.to_owned(),
        summary: told.summary,
        remedy: told.remedy,
        gates,
        nodes: placement.map(nodes_of).unwrap_or_default(),
    }
}

struct Told {
    reason: &'static str,
    summary: String,
    remedy: String,
}

impl Told {
    fn new(reason: &'static str, summary: impl Into<String>, remedy: &str) -> Self {
        Self { reason, summary: summary.into(), remedy: remedy.to_owned() }
    }
}

fn tell(record: &JobRecord, now: Timestamp) -> Told {
    match &record.job.state {
        JobState::Ready { artifact_missing: true, .. } => {
            let summary = "its executable has not been uploaded yet";
            Told::new("artifact_missing", summary, "push the artifact: jobyard artifact push PATH")
        }
        JobState::Ready { .. } => Told::new("run_at", "its time has not come yet", ""),
        JobState::Waiting { .. } => Told::new(
            "backing_off",
            "its last attempt had to leave or never started; it waits a little before the next",
            "",
        ),
        JobState::Retry { .. } => {
            Told::new("backing_off", "its last attempt failed; the next one starts after the delay", "")
        }
        JobState::Running(attempt) if record.job.intent == Intent::Cancel => {
            let summary = format!("attempt {} is being stopped, since the job was cancelled", attempt.number);
            Told::new("cancelling", summary, "")
        }
        JobState::Running(attempt) if record.job.intent == Intent::Stop => {
            let summary = format!("attempt {} is being stopped, since the service was", attempt.number);
            Told::new("stopping", summary, "")
        }
        JobState::Running(attempt) if attempt.is_restarting() => tell_restart(attempt),
        JobState::Running(attempt) => {
            let summary = format!("attempt {} is `{}`", attempt.number, attempt.phase.as_str());
            Told::new("running", summary, "")
        }
        JobState::Ended(end) => {
            let reason = end.reason.map_or(end.status.as_str(), |reason| reason.as_str());
            let again = record.job.status() != jobyard_model::Status::Success;
            let remedy = if again { "start a new round: jobyard retry ID" } else { "" };
            Told::new(reason, format!("it is over: {reason}{}", after(end.finished_at, now)), remedy)
        }
    }
}

fn tell_restart(attempt: &LiveAttempt) -> Told {
    let last = attempt.service.map_or_else(String::new, |run| format!(" ({})", run.last_exit));
    let summary = format!("its task process left{last}; attempt {} starts it again", attempt.number);
    Told::new(RESTARTING, summary, "see what it said last: jobyard logs ID")
}

fn after(finished: Timestamp, now: Timestamp) -> String {
    format!(", {} s ago", now.ms_since(finished) / 1_000)
}

fn gates(record: &JobRecord, now: Timestamp) -> Vec<WhyGate> {
    let job = &record.job;
    let artifact_missing = matches!(job.state, JobState::Ready { artifact_missing: true, .. });
    let run_at = match job.state {
        JobState::Ready { due, .. } => due.filter(|due| *due > now),
        _ => None,
    };
    let backoff = match job.state {
        JobState::Retry { due } => Some(due),
        JobState::Waiting { since } => Some(since),
        _ => None,
    };
    let backoff = backoff.filter(|due| *due > now);
    let held =
        matches!(job.state, JobState::Ready { .. } | JobState::Waiting { .. } | JobState::Retry { .. });
    vec![
        gate("artifact", !artifact_missing, "the executable is in the artifact store", None),
        gate("run_at", run_at.is_none(), "the instant it is meant for has come", run_at),
        gate("backoff", backoff.is_none(), "the delay after the last attempt is over", backoff),
        gate("placement", !held, "a node was found for it", None),
    ]
}

fn gate(name: &str, open: bool, detail: &str, opens: Option<Timestamp>) -> WhyGate {
    WhyGate { gate: name.to_owned(), open, detail: detail.to_owned(), opens_time: opens.map(Time) }
}

fn nodes_of(why: WhyWaiting) -> Vec<WhyNode> {
    let node = |node: jobyard_scheduler::NodeWhy| WhyNode {
        node_id: node.node_id,
        name: node.name,
        fits: node.obstacle.is_none(),
        lasting: node.obstacle.as_ref().is_some_and(jobyard_scheduler::Obstacle::is_lasting),
        obstacle: node.obstacle.map(|obstacle| obstacle.describe()).unwrap_or_default(),
    };
    why.nodes.into_iter().map(node).collect()
}
