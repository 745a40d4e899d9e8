//! Which attempts are here, what they hold of the machine, and which leases must never start (again). Decides on a
//! launch; does no I/O.
//!
//! Invariant: a lease is in at most one of `live`, `past`, `tombstones`; a slot belongs to at most one live attempt.

use std::collections::{BTreeSet, HashMap, HashSet};

use jobyard_api::proto::{LaunchVerdict, StopVerdict};
use jobyard_handoff::StopReason;
use jobyard_model::{LeaseId, Resources};
use tokio::sync::mpsc;

use crate::keeper::Nudge;

/// Past leases are remembered at least this long: longer than any informer that froze in the middle of a push.
pub(crate) const REMEMBER_PAST_MS: u64 = 10 * 60_000;

/// What the node offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capacity {
    pub(crate) resources: Resources,
    pub(crate) attempts: u32,
}

/// Slots of one node, and so users of its range: attempts that run, are cleared away, or left something behind.
pub(crate) const MAX_SLOTS: u32 = 4_096;

/// Whether new attempts are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// They are.
    Open,
    /// The worker is being stopped.
    Draining,
}

/// An attempt that was let in.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) slot: u32,
    pub(crate) inbox: mpsc::UnboundedReceiver<Nudge>,
    pub(crate) nudges: mpsc::UnboundedSender<Nudge>,
}

/// The answer to a launch.
#[derive(Debug)]
pub(crate) enum Admission {
    /// It is new and fits.
    Admitted(Place),
    /// It is here, or was.
    Known,
    /// It surely did not start and will not.
    Refused(LaunchVerdict, String),
}

#[derive(Debug)]
struct Live {
    nudges: mpsc::UnboundedSender<Nudge>,
    slot: u32,
    /// `None` once its task process is gone.
    reserved: Option<Resources>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Past {
    Ended,
    Refused(LaunchVerdict),
}

#[derive(Debug)]
pub(crate) struct Table {
    capacity: Capacity,
    gate: Gate,
    live: HashMap<LeaseId, Live>,
    reserved: Resources,
    reserving: u32,
    slots: Slots,
    /// The newer and the older half of what is remembered; see [`Table::age`].
    past: [HashMap<LeaseId, Past>; 2],
    /// Stopped before they were launched; kept as long as the session.
    tombstones: HashSet<LeaseId>,
}

impl Table {
    pub(crate) fn new(capacity: Capacity) -> Self {
        Self {
            capacity,
            gate: Gate::Open,
            live: HashMap::new(),
            reserved: Resources::default(),
            reserving: 0,
            slots: Slots::default(),
            past: Default::default(),
            tombstones: HashSet::new(),
        }
    }

    /// Lets a launch in, or says why not. A refusal is remembered: the same launch resent gets the same answer.
    pub(crate) fn admit(&mut self, lease_id: LeaseId, wanted: Resources) -> Admission {
        if self.live.contains_key(&lease_id) {
            return Admission::Known;
        }
        match self.past(lease_id) {
            Some(Past::Ended) => return Admission::Known,
            Some(Past::Refused(verdict)) => {
                return Admission::Refused(verdict, "refused before".to_owned());
            }
            None => {}
        }
        if self.tombstones.contains(&lease_id) {
            return Admission::Refused(LaunchVerdict::Stopped, String::new());
        }
        if let Some((verdict, why)) = self.objection(wanted) {
            self.past[0].insert(lease_id, Past::Refused(verdict));
            return Admission::Refused(verdict, why);
        }
        let slot = self.slots.take();
        Admission::Admitted(self.enter(lease_id, slot, wanted))
    }

    fn objection(&self, wanted: Resources) -> Option<(LaunchVerdict, String)> {
        if self.gate == Gate::Draining {
            return Some((LaunchVerdict::Draining, "the worker is being stopped".to_owned()));
        }
        if self.reserving >= self.capacity.attempts {
            let why = format!("{} attempts are on the node, the most it takes", self.reserving);
            return Some((LaunchVerdict::Full, why));
        }
        if self.slots.peek() >= MAX_SLOTS {
            let why = "too many attempts are still being cleared away".to_owned();
            return Some((LaunchVerdict::Full, why));
        }
        if !self.capacity.resources.hold(self.reserved.plus(wanted)) {
            let left = self.capacity.resources.minus(self.reserved);
            let why = format!(
                "{} thousandths of a core and {} bytes of memory are left",
                left.cpu_milli, left.memory_bytes
            );
            return Some((LaunchVerdict::Full, why));
        }
        None
    }

    /// An attempt found at the start keeps its slot and what it holds, whether it fits or not. `None`: its slot or
    /// lease is taken.
    pub(crate) fn adopt(&mut self, lease_id: LeaseId, slot: u32, held: Resources) -> Option<Place> {
        if self.live.contains_key(&lease_id) || !self.slots.claim(slot) {
            return None;
        }
        Some(self.enter(lease_id, slot, held))
    }

    fn enter(&mut self, lease_id: LeaseId, slot: u32, held: Resources) -> Place {
        let (nudges, inbox) = mpsc::unbounded_channel();
        let live = Live { nudges: nudges.clone(), slot, reserved: Some(held) };
        self.live.insert(lease_id, live);
        self.reserved = self.reserved.plus(held);
        self.reserving += 1;
        Place { slot, inbox, nudges }
    }

    /// Takes a slot out of use for good: something of it is left on the machine.
    pub(crate) fn condemn_slot(&mut self, slot: u32) {
        self.slots.claim(slot);
    }

    /// A slot for something that is no attempt.
    pub(crate) fn take_slot(&mut self) -> u32 {
        self.slots.take()
    }

    /// See [`Table::take_slot`].
    pub(crate) fn give_back_slot(&mut self, slot: u32) {
        self.slots.give_back(slot);
    }

    /// The attempt's processes are gone: what it held is free. Repeatable.
    pub(crate) fn release(&mut self, lease_id: LeaseId) {
        if let Some(held) = self.live.get_mut(&lease_id).and_then(|live| live.reserved.take()) {
            self.reserved = self.reserved.minus(held);
            self.reserving -= 1;
        }
    }

    /// The attempt is over and nothing of it is left.
    pub(crate) fn forget(&mut self, lease_id: LeaseId, rest: Rest) {
        self.release(lease_id);
        let Some(live) = self.live.remove(&lease_id) else { return };
        match rest {
            Rest::Nothing => self.slots.give_back(live.slot),
            Rest::Something => {}
        }
        self.past[0].insert(lease_id, Past::Ended);
    }

    /// An attempt that was let in could not be made after all.
    pub(crate) fn withdraw(&mut self, lease_id: LeaseId, verdict: LaunchVerdict) {
        self.forget(lease_id, Rest::Nothing);
        self.past[0].insert(lease_id, Past::Refused(verdict));
    }

    /// Passes a stop on; one for an unknown lease leaves a tombstone.
    pub(crate) fn stop(&mut self, lease_id: LeaseId, grace_ms: u64) -> StopVerdict {
        if let Some(live) = self.live.get(&lease_id) {
            // A keeper that is gone has ended its attempt.
            let _ = live.nudges.send(Nudge::Stop { reason: StopReason::Stop, grace_ms: Some(grace_ms) });
            return StopVerdict::Stopping;
        }
        if self.past(lease_id).is_some() {
            return StopVerdict::Stopping;
        }
        self.tombstones.insert(lease_id);
        StopVerdict::Unknown
    }

    /// Asks every attempt to leave this node.
    pub(crate) fn evict_all(&self) {
        for live in self.live.values() {
            let _ = live.nudges.send(Nudge::Stop { reason: StopReason::Evict, grace_ms: None });
        }
    }

    /// From now on nothing is taken.
    pub(crate) fn close(&mut self) {
        self.gate = Gate::Draining;
    }

    /// How many attempts are here, those that are being cleaned up included.
    pub(crate) fn count(&self) -> usize {
        self.live.len()
    }

    /// Forgets past leases of the half before the last one; call it each [`REMEMBER_PAST_MS`].
    pub(crate) fn age(&mut self) {
        self.past[1] = std::mem::take(&mut self.past[0]);
    }

    fn past(&self, lease_id: LeaseId) -> Option<Past> {
        self.past.iter().find_map(|half| half.get(&lease_id)).copied()
    }
}

/// What is left of an attempt on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    Nothing,
    /// It could not all be removed: the slot, with its user id and group, is not used again.
    Something,
}

/// Small numbers, the lowest free one first.
#[derive(Debug, Default)]
struct Slots {
    next: u32,
    free: BTreeSet<u32>,
}

impl Slots {
    fn peek(&self) -> u32 {
        self.free.first().copied().unwrap_or(self.next)
    }

    fn take(&mut self) -> u32 {
        self.free.pop_first().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    /// False: somebody has it.
    fn claim(&mut self, slot: u32) -> bool {
        if slot < self.next {
            return self.free.remove(&slot);
        }
        self.free.extend(self.next..slot);
        self.next = slot + 1;
        true
    }

    fn give_back(&mut self, slot: u32) {
        self.free.insert(slot);
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn lease(number: u128) -> LeaseId {
        LeaseId(Uuid::from_u128(number))
    }

    fn table(attempts: u32) -> Table {
        let resources = Resources { cpu_milli: 1_000, memory_bytes: 1_000 };
        Table::new(Capacity { resources, attempts })
    }

    fn wanted(memory_bytes: u64) -> Resources {
        Resources { cpu_milli: 100, memory_bytes }
    }

    fn verdict(admission: &Admission) -> Option<LaunchVerdict> {
        match admission {
            Admission::Refused(verdict, _) => Some(*verdict),
            Admission::Admitted(_) | Admission::Known => None,
        }
    }

    #[test]
    fn what_does_not_fit_beside_the_others_is_refused_and_stays_refused() {
        let mut table = table(10);
        assert!(matches!(table.admit(lease(1), wanted(600)), Admission::Admitted(_)));
        assert_eq!(verdict(&table.admit(lease(2), wanted(600))), Some(LaunchVerdict::Full));
        table.release(lease(1));
        assert_eq!(verdict(&table.admit(lease(2), wanted(600))), Some(LaunchVerdict::Full));
        assert!(matches!(table.admit(lease(3), wanted(600)), Admission::Admitted(_)));
    }

    #[test]
    fn the_number_of_attempts_is_bounded_by_those_that_hold_something() {
        let mut table = table(1);
        assert!(matches!(table.admit(lease(1), wanted(1)), Admission::Admitted(_)));
        assert_eq!(verdict(&table.admit(lease(2), wanted(1))), Some(LaunchVerdict::Full));
        table.release(lease(1));
        assert!(matches!(table.admit(lease(3), wanted(1)), Admission::Admitted(_)));
    }

    #[test]
    fn a_lease_that_is_or_was_here_is_known_and_never_let_in_again() {
        let mut table = table(10);
        assert!(matches!(table.admit(lease(1), wanted(1)), Admission::Admitted(_)));
        assert!(matches!(table.admit(lease(1), wanted(1)), Admission::Known));
        table.forget(lease(1), Rest::Nothing);
        assert!(matches!(table.admit(lease(1), wanted(1)), Admission::Known));
        assert_eq!(table.stop(lease(1), 0), StopVerdict::Stopping);
        table.age();
        assert!(matches!(table.admit(lease(1), wanted(1)), Admission::Known));
        table.age();
        assert!(matches!(table.admit(lease(1), wanted(1)), Admission::Admitted(_)));
    }

    #[test]
    fn a_stop_that_comes_first_leaves_a_tombstone_for_good() {
        let mut table = table(10);
        assert_eq!(table.stop(lease(1), 0), StopVerdict::Unknown);
        table.age();
        table.age();
        assert_eq!(verdict(&table.admit(lease(1), wanted(1))), Some(LaunchVerdict::Stopped));
    }

    #[test]
    fn slots_are_used_again_unless_something_is_left() {
        let mut table = table(10);
        let slot = |admission| match admission {
            Admission::Admitted(place) => place.slot,
            other => unreachable!("{other:?}"),
        };
        assert_eq!(table.adopt(lease(9), 1, wanted(1)).map(|place| place.slot), Some(1));
        assert!(table.adopt(lease(8), 1, wanted(1)).is_none());
        assert_eq!(slot(table.admit(lease(1), wanted(1))), 0);
        assert_eq!(slot(table.admit(lease(2), wanted(1))), 2);
        table.forget(lease(1), Rest::Nothing);
        table.forget(lease(2), Rest::Something);
        assert_eq!(slot(table.admit(lease(3), wanted(1))), 0);
        assert_eq!(slot(table.admit(lease(4), wanted(1))), 3);
    }

    #[test]
    fn a_draining_node_takes_nothing() {
        let mut table = table(10);
        table.close();
        assert_eq!(verdict(&table.admit(lease(1), wanted(1))), Some(LaunchVerdict::Draining));
    }
}
