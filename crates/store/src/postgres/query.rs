//! A statement with its parameters, owned, so that several can be sent at once and sent again.

use tokio_postgres::types::ToSql;

/// A value on its way to the server.
pub(super) type Parameter = Box<dyn ToSql + Sync + Send>;

/// A statement and its parameters.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) sql: &'static str,
    pub(super) parameters: Vec<Parameter>,
}

impl Query {
    /// A statement that is the same each time.
    pub(super) fn new(sql: &'static str) -> Self {
        Self { sql, parameters: Vec::new() }
    }

    /// Adds the next parameter.
    pub(super) fn bind(mut self, value: impl ToSql + Sync + Send + 'static) -> Self {
        self.parameters.push(Box::new(value));
        self
    }

    /// Adds the next parameter: one value of each item, for `unnest`.
    pub(super) fn bind_each<I, V>(self, items: &[I], value: impl Fn(&I) -> V) -> Self
    where
        Vec<V>: ToSql,
        V: Sync + Send + 'static + std::fmt::Debug,
    {
        let column: Vec<V> = items.iter().map(value).collect();
        self.bind(column)
    }
}
