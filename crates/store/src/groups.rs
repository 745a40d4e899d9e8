//! The (lane, owner, shape) groups that have waiting jobs, and which of them a snapshot shows when they are too many.

/// A (lane, owner, shape) that has waiting jobs, some of which may still back off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Group {
    pub(crate) lane: i16,
    pub(crate) owner_id: i32,
    pub(crate) shape_id: i32,
}

/// At most `limit` of the groups, in order. Each lane keeps a share, since each has its share of the placements; what
/// a lane doesn't need goes to the most urgent one that does. Where a lane's groups are too many, `turn` says at
/// which of them to begin, so that over time all are shown.
pub(crate) fn chosen(lanes: &[Vec<Group>], limit: usize, turn: u64) -> Vec<Group> {
    let share = limit / lanes.len().max(1);
    let mut allotted: Vec<usize> = lanes.iter().map(|groups| groups.len().min(share)).collect();
    let mut left = limit.saturating_sub(allotted.iter().sum());
    for (groups, allotted) in lanes.iter().zip(&mut allotted).rev() {
        let more = (groups.len() - *allotted).min(left);
        *allotted += more;
        left -= more;
    }
    let mut chosen = Vec::new();
    for (groups, count) in lanes.iter().zip(allotted) {
        chosen.extend(window(groups, count, turn));
    }
    chosen
}

/// `count` of the groups from the `turn`-th window on, around the end, but in order.
fn window(groups: &[Group], count: usize, turn: u64) -> Vec<Group> {
    if groups.is_empty() {
        return Vec::new();
    }
    let begin = (turn.wrapping_mul(count as u64) % groups.len() as u64) as usize;
    let after_end = (begin + count).saturating_sub(groups.len());
    [&groups[..after_end], &groups[begin..(begin + count).min(groups.len())]].concat()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn lanes(counts: [usize; 5]) -> Vec<Vec<Group>> {
        let group = |lane: usize, owner: usize| Group {
            lane: i16::try_from(lane).unwrap(),
            owner_id: i32::try_from(owner).unwrap(),
            shape_id: 1,
        };
        let lane = |(lane, count)| (0..count).map(|owner| group(lane, owner)).collect();
        counts.into_iter().enumerate().map(lane).collect()
    }

    fn counted(chosen: &[Group]) -> [usize; 5] {
        [0, 1, 2, 3, 4].map(|lane| chosen.iter().filter(|group| group.lane == lane).count())
    }

    #[test]
    fn all_are_shown_where_there_is_room() {
        let lanes = lanes([3, 0, 5, 1, 2]);
        assert_eq!(chosen(&lanes, 11, 7), lanes.concat());
    }

    #[test]
    fn each_lane_keeps_a_share_and_the_urgent_ones_get_the_rest() {
        assert_eq!(counted(&chosen(&lanes([100, 100, 100, 100, 100]), 50, 0)), [10; 5]);
        assert_eq!(counted(&chosen(&lanes([100, 0, 100, 2, 100]), 50, 0)), [10, 0, 10, 2, 28]);
        assert_eq!(counted(&chosen(&lanes([100, 0, 0, 0, 1]), 3, 0)), [2, 0, 0, 0, 1]);
    }

    #[test]
    fn over_time_every_group_is_shown() {
        let lanes = lanes([0, 7, 53, 0, 11]);
        let mut seen = HashSet::new();
        for turn in 0..53 {
            let chosen = chosen(&lanes, 10, turn);
            assert_eq!(chosen.len(), 10);
            assert!(chosen.is_sorted_by_key(|group| (group.lane, group.owner_id)));
            seen.extend(chosen.iter().map(|group| (group.lane, group.owner_id)));
        }
        assert_eq!(seen.len(), 71);
    }
}
