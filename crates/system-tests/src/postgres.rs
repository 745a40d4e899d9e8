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
        self.stop_immediate();
        self.start_again();
    }

    pub(crate) fn stop_immediate(&mut self) {
        self.cluster.stop_immediate().expect("it stops");
    }

    pub(crate) fn start_again(&mut self) {
        self.cluster.start().expect("it starts");
    }

    pub(crate) fn dump(&self) -> Vec<u8> {
        let done = self.cluster.command("pg_dump").arg("postgres").output().expect("pg_dump runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        done.stdout
    }

    pub(crate) fn sql(&self, statement: &str) -> String {
        let mut psql = self.cluster.command("psql");
        let done = psql.args(["-AtX", "-v", "ON_ERROR_STOP=1", "-c", statement, "postgres"]).output();
        let done = done.expect("psql runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }
}
