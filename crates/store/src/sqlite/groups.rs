//! The (lane, owner, shape) groups that have waiting jobs, read along the claim index.

use rusqlite::{OptionalExtension, params};

use super::fault::Fault;
use super::scope::Scope;
use crate::groups::Group;

/// How many groups of a lane are looked at, so that a pool with absurdly many shapes stays readable.
const GROUPS_PER_LANE: usize = 4_096;
const LANES: i16 = 5;

pub(super) const NEXT_GROUP: &str = "SELECT owner_id, shape_id FROM job_live INDEXED BY job_live_claim \
    WHERE status = 2 AND pool_id = ?1 AND lane = ?2 AND (owner_id, shape_id) > (?3, ?4) \
    ORDER BY owner_id, shape_id LIMIT 1";

/// The groups of each lane, the least urgent lane first. Steps from group to group along the claim index, without
/// reading the jobs between.
pub(super) fn by_lane(scope: &Scope<'_>, pool_id: i32) -> Result<Vec<Vec<Group>>, Fault> {
    (0..LANES).map(|lane| of_lane(scope, pool_id, lane)).collect()
}

fn of_lane(scope: &Scope<'_>, pool_id: i32, lane: i16) -> Result<Vec<Group>, Fault> {
    let mut statement = scope.statement(NEXT_GROUP)?;
    let mut groups: Vec<Group> = Vec::new();
    while groups.len() < GROUPS_PER_LANE {
        let last = groups.last().map_or((-1, -1), |group| (group.owner_id, group.shape_id));
        let next = statement
            .query_row(params![pool_id, lane, last.0, last.1], |row| {
                Ok(Group { lane, owner_id: row.get(0)?, shape_id: row.get(1)? })
            })
            .optional()?;
        let Some(next) = next else { break };
        groups.push(next);
    }
    Ok(groups)
}
