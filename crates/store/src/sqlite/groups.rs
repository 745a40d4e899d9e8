//! The (lane, owner, shape) groups that have waiting jobs, read along the claim index.

use rusqlite::{OptionalExtension, Row, params};

use super::fault::Fault;
use super::scope::Scope;
use crate::groups::Group;

/// How many groups of a lane are looked at, so that a pool with absurdly many shapes stays readable.
const GROUPS_PER_LANE: usize = 4_096;
const LANES: i16 = 5;

/// The next shape of an owner. Two statements, since one that compares (owner, shape) as a pair reads all entries of
/// the group that it has just left.
pub(super) const NEXT_SHAPE: &str = "SELECT owner_id, shape_id FROM job_live INDEXED BY job_live_claim \
    WHERE status = 2 AND pool_id = ?1 AND lane = ?2 AND owner_id = ?3 AND shape_id > ?4 ORDER BY shape_id LIMIT 1";

/// The first shape of the next owner.
pub(super) const NEXT_OWNER: &str = "SELECT owner_id, shape_id FROM job_live INDEXED BY job_live_claim \
    WHERE status = 2 AND pool_id = ?1 AND lane = ?2 AND owner_id > ?3 ORDER BY owner_id, shape_id LIMIT 1";

/// The groups of each lane, the least urgent lane first. Steps from group to group along the claim index, without
/// reading the jobs between.
pub(super) fn by_lane(scope: &Scope<'_>, pool_id: i32) -> Result<Vec<Vec<Group>>, Fault> {
    (0..LANES).map(|lane| of_lane(scope, pool_id, lane)).collect()
}

fn of_lane(scope: &Scope<'_>, pool_id: i32, lane: i16) -> Result<Vec<Group>, Fault> {
    let mut next_shape = scope.statement(NEXT_SHAPE)?;
    let mut next_owner = scope.statement(NEXT_OWNER)?;
    let group = |row: &Row<'_>| Ok(Group { lane, owner_id: row.get(0)?, shape_id: row.get(1)? });
    let mut groups: Vec<Group> = Vec::new();
    while groups.len() < GROUPS_PER_LANE {
        let same_owner = match groups.last() {
            Some(last) => {
                let after = params![pool_id, lane, last.owner_id, last.shape_id];
                next_shape.query_row(after, group).optional()?
            }
            None => None,
        };
        let next = match same_owner {
            Some(next) => Some(next),
            None => {
                let owner_id = groups.last().map_or(-1, |last| last.owner_id);
                next_owner.query_row(params![pool_id, lane, owner_id], group).optional()?
            }
        };
        let Some(next) = next else { break };
        groups.push(next);
    }
    Ok(groups)
}
