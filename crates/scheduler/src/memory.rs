//! What one pass leaves to the next: whose turn it is.
//!
//! Advisory: an informer that starts without it is fair again within a pass. Nothing of it is stored.

use std::collections::HashMap;

use jobyard_model::Lane;

/// Virtual time that one placement costs a lane with a share of 1 per cent. A multiple of every share.
const STRIDE: u64 = 420;

/// Whose turn it is, among lanes and among owners.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlanMemory {
    /// Stride scheduling: the lane with the least virtual time goes next.
    lane_time: [u64; 5],
    /// When each owner was last served, in placements; absent: never.
    owner_turn: HashMap<i32, u64>,
    turns: u64,
}

impl PlanMemory {
    /// Of the lanes that have candidates, the one to go next; the more urgent one on a tie.
    pub(crate) fn next_lane(&self, has_candidates: impl Fn(Lane) -> bool) -> Option<Lane> {
        Lane::ALL
            .into_iter()
            .rev()
            .filter(|lane| has_candidates(*lane))
            .min_by_key(|lane| self.lane_time[usize::from(lane.value())])
    }

    /// Keeps an idle lane from saving up a claim on the next passes: it can't fall behind the busy ones.
    pub(crate) fn start_pass(&mut self, has_candidates: impl Fn(Lane) -> bool) {
        let busy = |lane: &Lane| has_candidates(*lane);
        let times = |lane: Lane| self.lane_time[usize::from(lane.value())];
        let Some(now) = Lane::ALL.into_iter().filter(busy).map(times).min() else { return };
        for time in &mut self.lane_time {
            // Rebased to stay small for ever.
            *time = time.saturating_sub(now);
        }
        if self.turns > u64::from(u32::MAX) || self.owner_turn.len() > 100_000 {
            self.owner_turn.clear();
            self.turns = 0;
        }
    }

    /// When the owner was last served; 0 for never.
    pub(crate) fn turn_of(&self, owner_id: i32) -> u64 {
        self.owner_turn.get(&owner_id).copied().unwrap_or(0)
    }

    /// Notes a placement.
    pub(crate) fn served(&mut self, lane: Lane, owner_id: i32) {
        self.lane_time[usize::from(lane.value())] += STRIDE / u64::from(lane.reserved_percent());
        self.turns += 1;
        self.owner_turn.insert(owner_id, self.turns);
    }
}
