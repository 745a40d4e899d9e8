//! The cluster of a yard.

use jobyard_test_postgres::Cluster;

/// A PostgreSQL cluster with a database for one yard.
pub(crate) struct Database {
    cluster: Cluster,
}

impl Database {
    pub(crate) fn start() -> Self {
        Self { cluster: Cluster::start_new().expect("PostgreSQL starts") }
    }

    pub(crate) fn url(&self) -> String {
        self.cluster.url("postgres")
    }

    pub(crate) fn restart_immediate(&mut self) {
        self.cluster.stop_immediate().expect("it stops");
        self.cluster.start().expect("it starts");
    }
}
