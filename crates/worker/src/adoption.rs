//! What an earlier worker left on this machine: sidecars that live, outcomes nobody was told, logs half delivered, and
//! rubbish. Run once, before anything is launched.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jobyard_handoff::{AttemptDirectory, ExecPlan};
use jobyard_model::{AttemptEnd, LeaseId};
use jobyard_runtime::remove_tree;

use crate::artifacts::Item;
use crate::error::{StartError, failed};
use crate::facts::end_of;
use crate::keeper::{self, Found, clear_away, is_good};
use crate::launch::{AttemptRef, Kept};
use crate::node::Node;
use crate::places::attempt_of_log;
use crate::spool::Spool;
use crate::table::{Place, Rest};

/// What was found; [`LeftBehind::take_over`] puts it to work.
pub(crate) struct LeftBehind {
    adopted: Vec<(Found, Place)>,
    /// Outcomes that must be told before this session registers: a new boot ends what it finds unended.
    outcomes: Vec<(AttemptRef, AttemptEnd)>,
    /// Those whose log is all there is.
    logs: HashSet<AttemptRef>,
    /// Adopted attempts whose outcome lies on disk.
    kept: HashSet<LeaseId>,
    /// To be removed when there is time.
    rubbish: Vec<PathBuf>,
}

/// Looks at everything. Blocks.
pub(crate) fn look_around(node: &Arc<Node>, spool: &Spool) -> Result<LeftBehind, StartError> {
    let mut left = LeftBehind {
        adopted: Vec::new(),
        outcomes: spool.load().map_err(failed("read undelivered outcomes in", &node.places.spool))?,
        logs: HashSet::new(),
        kept: HashSet::new(),
        rubbish: Vec::new(),
    };
    for path in entries(&node.places.attempts)? {
        left.take_attempt(node, &path);
    }
    sweep_groups(node)?;
    let adopted: HashSet<LeaseId> = left.adopted.iter().map(|(found, _)| found.attempt.lease_id).collect();
    let is_adopted = |attempt: &AttemptRef| adopted.contains(&attempt.lease_id);
    // An adopted attempt has its outcome from its directory, word for word the same.
    left.kept = left.outcomes.iter().map(|(attempt, _)| attempt.lease_id).collect();
    left.outcomes.retain(|(attempt, _)| !is_adopted(attempt));
    let scratch: HashSet<PathBuf> =
        left.adopted.iter().filter_map(|(found, _)| found.plan.scratch.clone()).collect();
    for path in entries(&node.places.work)?.into_iter().filter(|path| !scratch.contains(path)) {
        let discarded = node.places.discard(&path).map_err(failed("put aside", &path))?;
        left.rubbish.push(discarded);
    }
    for path in entries(&node.places.logs)? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        left.logs.extend(attempt_of_log(name).filter(|attempt| !is_adopted(attempt)));
    }
    Ok(left)
}

impl LeftBehind {
    fn take_attempt(&mut self, node: &Arc<Node>, path: &Path) {
        let directory = AttemptDirectory::at(path);
        let slot = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse::<u32>().ok());
        let attempt = directory.plan().map(|plan| (AttemptRef::of(&plan.identity), plan));
        let rest = match (slot, attempt) {
            (Some(slot), Ok((Some(attempt), plan))) if plan.boot_id == node.runtime.boot_id() => {
                self.adopt(node, (attempt, plan, directory), slot)
            }
            (_, Ok((attempt, plan))) => self.bury(attempt, &plan, &directory),
            (_, Err(error)) => remove_unplanned(&directory, &error),
        };
        if let (Some(slot), Rest::Something) = (slot, rest) {
            node.table().condemn_slot(slot);
        }
    }

    fn adopt(
        &mut self,
        node: &Arc<Node>,
        (attempt, plan, directory): (AttemptRef, ExecPlan, AttemptDirectory),
        slot: u32,
    ) -> Rest {
        if attempt.job_id.0.is_nil() {
            // A proof that this node works; nobody waits for it any more.
            return clear_away(&node.runtime, &plan, &directory, None);
        }
        let kept = directory.launch().map(|record| Kept::read(&record)).unwrap_or_default();
        let Some(place) = node.table().adopt(attempt.lease_id, slot, kept.resources) else {
            let lease_id = attempt.lease_id;
            tracing::error!(%lease_id, slot, "two attempt directories of one lease or slot");
            return Rest::Something;
        };
        let artifact = kept.artifact.map(|hash| node.artifacts.hold(Item::program(hash)));
        let outputs_in_s3 = kept.outputs_in_s3;
        self.adopted.push((Found { attempt, plan, directory, artifact, outputs_in_s3 }, place));
        Rest::Nothing
    }

    /// Of another boot: nothing of it lives. What it recorded is still the truth.
    fn bury(&mut self, attempt: Option<AttemptRef>, plan: &ExecPlan, directory: &AttemptDirectory) -> Rest {
        if let (Some(attempt), Ok(Some(record))) = (attempt, directory.exit_record())
            && !self.outcomes.iter().any(|(known, _)| *known == attempt)
        {
            self.outcomes.push((attempt, end_after_boot(plan.scratch.as_deref(), end_of(&record))));
        }
        // Its log is delivered like any other without an attempt.
        let removed = jobyard_runtime::cleanup(plan).and_then(|()| directory.remove());
        rest_of(directory, removed)
    }

    /// Keepers for what lives, and words for what doesn't.
    pub(crate) fn take_over(self, node: &Arc<Node>) {
        let Self { adopted, outcomes, logs, kept, rubbish } = self;
        if !adopted.is_empty() || !outcomes.is_empty() {
            tracing::info!(attempts = adopted.len(), outcomes = outcomes.len(), "taking over");
        }
        let told: HashSet<LeaseId> = outcomes.iter().map(|(attempt, _)| attempt.lease_id).collect();
        for (attempt, end) in outcomes {
            node.relay.deliver_left_over(attempt, node.places.log(&attempt), Some(end));
        }
        for attempt in logs.into_iter().filter(|attempt| !told.contains(&attempt.lease_id)) {
            node.relay.deliver_left_over(attempt, node.places.log(&attempt), None);
        }
        for (found, place) in adopted {
            let lease_id = found.attempt.lease_id;
            node.relay.reopen(found.attempt, found.plan.log.path.clone(), place.nudges.clone());
            if kept.contains(&lease_id) {
                node.relay.is_kept(lease_id);
            }
            node.spawn_keeper(keeper::adopted(Arc::clone(node), found, place));
        }
        tokio::task::spawn_blocking(move || rubbish.iter().for_each(|path| remove_rubbish(path)));
    }
}

/// A good end whose outputs were still to be sent when the machine went down is not told: they are gone, or of a boot
/// that nobody vouches for.
fn end_after_boot(scratch: Option<&Path>, end: AttemptEnd) -> AttemptEnd {
    let is_empty = |scratch: &Path| {
        let entries = fs::read_dir(scratch.join("output"));
        entries.is_ok_and(|mut entries| entries.next().is_none())
    };
    match &end {
        AttemptEnd::Exited(facts) if is_good(facts) && !scratch.is_some_and(is_empty) => {
            AttemptEnd::Vanished { why: "the machine went down before its outputs were sent".to_owned() }
        }
        _ => end,
    }
}

/// Groups are named by slot, as attempt directories are.
fn sweep_groups(node: &Node) -> Result<(), StartError> {
    let left = entries(&node.places.attempts)?;
    let in_use: HashSet<&str> =
        left.iter().filter_map(|path| path.file_name().and_then(|name| name.to_str())).collect();
    if let Err(error) = node.runtime.sweep(|name| in_use.contains(name)) {
        tracing::warn!(error = &error as &dyn std::error::Error, "groups of an earlier worker stay");
    }
    Ok(())
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, StartError> {
    let read = || fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
    read().map_err(failed("look into", directory))
}

/// A directory that was never finished, or whose plan this release can't read.
fn remove_unplanned(directory: &AttemptDirectory, error: &io::Error) -> Rest {
    let path = directory.path().display();
    if directory.is_held().unwrap_or(true) {
        tracing::error!(%path, error = error as &dyn std::error::Error, "a sidecar lives on a plan that can't be read");
        return Rest::Something;
    }
    tracing::warn!(%path, error = error as &dyn std::error::Error, "removing an unfinished attempt directory");
    rest_of(directory, directory.remove())
}

fn rest_of(directory: &AttemptDirectory, removed: io::Result<()>) -> Rest {
    match removed {
        Ok(()) => Rest::Nothing,
        Err(error) => {
            let path = directory.path().display();
            tracing::warn!(%path, error = &error as &dyn std::error::Error, "something of an old attempt stays");
            Rest::Something
        }
    }
}

fn remove_rubbish(path: &Path) {
    if let Err(error) = remove_tree(path) {
        tracing::warn!(path = %path.display(), error = &error as &dyn std::error::Error, "rubbish stays");
    }
}

#[cfg(test)]
mod tests {
    use jobyard_model::{Exit, Timestamp};

    use super::*;
    use crate::facts::launch_fault;

    #[test]
    fn a_good_end_of_another_boot_is_told_only_when_no_outputs_are_lost_with_it() {
        let scratch = tempfile::tempdir().unwrap();
        let end = |code| launch_fault(Exit::Code(code), String::new(), Timestamp(1));
        let is_told = |code| end_after_boot(Some(scratch.path()), end(code)) == end(code);
        assert!(!is_told(0), "nobody knows what was there");
        fs::create_dir(scratch.path().join("output")).unwrap();
        assert!(is_told(0));
        fs::write(scratch.path().join("output/x"), "x").unwrap();
        assert!(!is_told(0));
        assert!(is_told(3));
    }
}
