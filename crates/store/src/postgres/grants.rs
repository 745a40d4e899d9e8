//! How many more un-ended jobs an owner may have, without counting millions for each submit.
//!
//! Owns a number for each owner: what it may still add before it has to be counted again. A count gives a quarter of
//! what is left (all of a small rest), so several servers can overshoot by their grants together and no more.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::fault::Fault;
use super::load::Columns;
use super::query::Query;
use super::session::Session;
use crate::encoding::{amount, column};

const COUNT: &str = "SELECT jobyard_unended($1, $2)";

/// A rest up to this is granted whole.
const SMALL_REST: u64 = 1_000;

/// Owners and their grants.
#[derive(Debug)]
pub(super) struct Grants {
    limit: u64,
    left: Mutex<HashMap<i32, u64>>,
}

impl Grants {
    /// Nobody was counted yet.
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, left: Mutex::new(HashMap::new()) }
    }

    /// The setting.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Takes `more` from the owner's grant; counts when it is used up. `false`: so many are not allowed.
    pub(super) async fn take(&self, session: &mut Session, owner_id: i32, more: u64) -> Result<bool, Fault> {
        if self.take_granted(owner_id, more) {
            return Ok(true);
        }
        let count = Query::new(COUNT).bind(owner_id).bind(column(self.limit));
        let [rows] = session.query([count]).await?;
        let unended = match rows.first() {
            Some(row) => amount(Columns::of(row).take()?),
            None => 0,
        };
        let rest = self.limit.saturating_sub(unended);
        if rest < more {
            return Ok(false);
        }
        let granted = (rest / 4).max(rest.min(SMALL_REST)).max(more);
        self.left().insert(owner_id, granted - more);
        Ok(true)
    }

    fn take_granted(&self, owner_id: i32, more: u64) -> bool {
        let mut left = self.left();
        let Some(rest) = left.get(&owner_id).and_then(|granted| granted.checked_sub(more)) else {
            return false;
        };
        left.insert(owner_id, rest);
        true
    }

    fn left(&self) -> MutexGuard<'_, HashMap<i32, u64>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
