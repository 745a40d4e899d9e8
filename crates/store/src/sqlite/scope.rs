//! What a piece of work inside a transaction has at hand.

use std::cell::Cell;

use jobyard_model::Timestamp;
use rusqlite::{CachedStatement, Connection, Params};

use crate::ledger::Terms;
use crate::wake::{WakeTopic, Wakes};

/// One call's view of the database.
pub(super) struct Scope<'a> {
    connection: &'a Connection,
    /// The clock, read once for this call, and the lease times.
    pub(super) terms: Terms,
    /// How many un-ended jobs an owner may have.
    pub(super) max_unended_per_owner: u64,
    wakes: Cell<Wakes>,
}

impl<'a> Scope<'a> {
    /// A view that has woken nobody yet.
    pub(super) fn new(connection: &'a Connection, terms: Terms, max_unended_per_owner: u64) -> Self {
        Self { connection, terms, max_unended_per_owner, wakes: Cell::default() }
    }

    /// When this call happens.
    pub(super) fn now(&self) -> Timestamp {
        self.terms.now
    }

    /// A prepared statement; prepared once a connection.
    pub(super) fn statement(&self, sql: &str) -> rusqlite::Result<CachedStatement<'a>> {
        self.connection.prepare_cached(sql)
    }

    /// Executes a statement and counts the rows it changed.
    pub(super) fn execute(&self, sql: &str, params: impl Params) -> rusqlite::Result<usize> {
        self.statement(sql)?.execute(params)
    }

    /// Wakes followers of the topic once the call is committed.
    pub(super) fn wake(&self, topic: WakeTopic) {
        self.wake_all(Wakes::of(topic));
    }

    /// As [`Self::wake`], for a set.
    pub(super) fn wake_all(&self, more: Wakes) {
        let mut wakes = self.wakes.get();
        wakes.merge(more);
        self.wakes.set(wakes);
    }

    /// Whom to wake.
    pub(super) fn wakes(&self) -> Wakes {
        self.wakes.get()
    }
}
