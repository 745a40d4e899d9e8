//! The users of attempts: one a slot, from a range that is this node's alone, so that whatever runs under such a user
//! belongs to that attempt.

use std::fs;

use jobyard_handoff::UserIds;
use jobyard_model::NodeId;

use crate::table::MAX_SLOTS;

/// Below this are the users of people and services.
const FIRST_USER: u32 = 200_000;
/// As many ranges as fit below 2^31. Several workers may share a machine; their node ids choose different ones.
const RANGES: u32 = 500_000;

/// A range of user ids with the same group ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Users {
    first: u32,
}

impl Users {
    /// The node's range: what is set, else by its id. `None`: this process can't assume those users (it is in a user
    /// namespace without them).
    pub(crate) fn of(node_id: NodeId, first: Option<u32>) -> Option<Self> {
        let users = Self { first: first.unwrap_or_else(|| by_node(node_id)) };
        let is_mapped = ["/proc/self/uid_map", "/proc/self/gid_map"]
            .iter()
            .all(|map| fs::read_to_string(map).is_ok_and(|map| users.are_in(&map)));
        if !is_mapped {
            tracing::warn!(
                first = users.first,
                "users of their own can't be assumed here; tasks run as this user"
            );
        }
        is_mapped.then_some(users)
    }

    pub(crate) fn in_slot(self, slot: u32) -> UserIds {
        let id = self.first + slot;
        UserIds { uid: id, gid: id, private: true }
    }

    /// Whether the lines `inside outside count` of a map have all of the range in one.
    fn are_in(self, map: &str) -> bool {
        let (first, end) = (u64::from(self.first), u64::from(self.first) + u64::from(MAX_SLOTS));
        map.lines().any(|line| {
            let mut numbers = line.split_whitespace().map(str::parse::<u64>);
            match (numbers.next(), numbers.next(), numbers.next()) {
                (Some(Ok(inside)), Some(Ok(_)), Some(Ok(count))) => inside <= first && end <= inside + count,
                _ => false,
            }
        })
    }
}

fn by_node(node_id: NodeId) -> u32 {
    let (high, low) = node_id.0.as_u64_pair();
    // The bits of a random id that are not its version.
    let chance = u32::try_from((high ^ low) >> 32).unwrap_or(0);
    FIRST_USER + (chance % RANGES) * MAX_SLOTS
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn nodes_have_ranges_of_their_own_below_the_sign_bit() {
        let range = |number| by_node(NodeId(Uuid::from_u128(number)));
        let ranges = [range(1 << 32), range(2 << 32), range(u128::MAX), range(0x1234_5678_9abc_def0 << 40)];
        for (at, first) in ranges.iter().enumerate() {
            assert_eq!((first - FIRST_USER) % MAX_SLOTS, 0);
            assert!(i32::try_from(first + MAX_SLOTS).is_ok());
            assert!(!ranges[..at].contains(first));
        }
    }

    #[test]
    fn a_range_must_be_mapped_whole() {
        let users = Users { first: 200_000 };
        assert!(users.are_in("         0          0 4294967295\n"));
        assert!(users.are_in("0 0 1\n200000 7 4096\n"));
        assert!(!users.are_in("0 100000 65536\n"));
        assert!(!users.are_in("200000 0 4095\n"));
        assert!(!users.are_in(""));
    }
}
