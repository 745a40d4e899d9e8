//! What a yard is made of, before it stands.

use std::path::{Path, PathBuf};

use jobyard_test_s3::S3Server;

use crate::yard::{Role, Yard};

/// Where the truth lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Datastore {
    /// `jobyard up` on its embedded datastore.
    Sqlite,
    /// A process a role, on a PostgreSQL cluster of the test's own.
    Postgres,
}

/// How an installation is to be made. Leases are short unless said otherwise: 2 s to accept, 6 s to live, a heartbeat
/// each 2 s.
#[derive(Debug, Clone)]
pub struct YardPlan {
    pub(crate) datastore: Datastore,
    pub(crate) small_disks: Vec<(&'static str, &'static str)>,
    /// What the roles have instead of the machine's `/tmp`.
    pub(crate) other_tmp: Option<&'static str>,
    claim_lease_seconds: u32,
    lease_seconds: u32,
    heartbeat_seconds: u32,
    in_pairs: bool,
    worker: String,
    tables: String,
    artifact_url: Option<&'static str>,
    pub(crate) environment: Vec<(String, String)>,
    /// What the roles have instead of the machine's `/etc/hosts`.
    pub(crate) hosts: Option<String>,
    pub(crate) moved: Option<Moved>,
}

/// What was another yard's.
#[derive(Debug, Clone)]
pub(crate) struct Moved {
    /// What `jobyard export` wrote.
    pub(crate) file: PathBuf,
    /// The data directory of its `up`.
    pub(crate) data_dir: PathBuf,
}

impl YardPlan {
    /// The usual one.
    #[must_use]
    pub fn on(datastore: Datastore) -> Self {
        Self {
            datastore,
            small_disks: Vec::new(),
            other_tmp: None,
            claim_lease_seconds: 2,
            lease_seconds: 6,
            heartbeat_seconds: 2,
            in_pairs: false,
            worker: String::new(),
            tables: String::new(),
            artifact_url: None,
            environment: Vec::new(),
            hosts: None,
            moved: None,
        }
    }

    /// How long a worker may take to accept.
    #[must_use]
    pub fn claim_lease_seconds(self, claim_lease_seconds: u32) -> Self {
        Self { claim_lease_seconds, ..self }
    }

    /// How long a silent attempt lives; a heartbeat comes in a third of that.
    #[must_use]
    pub fn lease_seconds(self, lease_seconds: u32) -> Self {
        Self { lease_seconds, heartbeat_seconds: lease_seconds / 3, ..self }
    }

    /// The worker's state directory on a disk of its own, with these mount options. Needs root.
    #[must_use]
    pub fn state_on_disk(mut self, options: &'static str) -> Self {
        self.small_disks.push(("state", options));
        self
    }

    /// The worker's data directory on a disk of its own, with these mount options. Needs root.
    #[must_use]
    pub fn data_on_disk(mut self, options: &'static str) -> Self {
        let folder = match self.datastore {
            Datastore::Sqlite => "data/worker",
            Datastore::Postgres => "worker",
        };
        self.small_disks.push((folder, options));
        self
    }

    /// What the roles and their tasks see as `/tmp` is a tmpfs with these mount options; the yard lies in `/var/tmp`.
    /// Needs root.
    #[must_use]
    pub fn other_tmp(self, options: &'static str) -> Self {
        Self { other_tmp: Some(options), ..self }
    }

    /// One more line of the worker's settings.
    #[must_use]
    pub fn worker_setting(mut self, line: &str) -> Self {
        self.worker = format!("{}{line}\n", self.worker);
        self
    }

    /// With all that another yard's `up` had: what it exported, its artifacts and its key, under its admin token.
    #[must_use]
    pub fn moved_from(self, file: &Path, data_dir: &Path) -> Self {
        assert_eq!(self.datastore, Datastore::Postgres, "`up` would need a file of its own");
        Self { moved: Some(Moved { file: file.to_owned(), data_dir: data_dir.to_owned() }), ..self }
    }

    /// Two of each role, on PostgreSQL.
    #[must_use]
    pub fn in_pairs(self) -> Self {
        assert_eq!(self.datastore, Datastore::Postgres, "`up` is alone");
        Self { in_pairs: true, ..self }
    }

    /// One more table of the settings, whole.
    #[must_use]
    pub fn table(mut self, table: &str) -> Self {
        self.tables = format!("{}{table}\n", self.tables);
        self
    }

    /// Artifacts and log segments lie in this bucket instead of a directory.
    #[must_use]
    pub fn artifacts_in(self, url: &'static str, s3: &S3Server) -> Self {
        self.table(&s3.settings()).artifact_url(url)
    }

    /// As [`YardPlan::artifacts_in`], of a bucket that [`YardPlan::table`] tells how to reach.
    #[must_use]
    pub fn artifact_url(self, url: &'static str) -> Self {
        Self { artifact_url: Some(url), ..self }
    }

    /// One more variable of the roles' environment.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// What the roles see as `/etc/hosts`. Needs root.
    #[must_use]
    pub fn hosts(self, text: &str) -> Self {
        Self { hosts: Some(text.to_owned()), ..self }
    }

    /// Makes and starts it.
    pub async fn raise(self) -> Yard {
        Yard::raise(self).await
    }

    pub(crate) fn roles(&self) -> Vec<Role> {
        match self.datastore {
            Datastore::Sqlite => vec![Role::Up],
            Datastore::Postgres if self.in_pairs => vec![
                Role::Server,
                Role::OtherServer,
                Role::Informer,
                Role::OtherInformer,
                Role::Worker,
                Role::OtherWorker,
            ],
            Datastore::Postgres => vec![Role::Server, Role::Informer, Role::Worker],
        }
    }

    /// The settings file of a role. The other server and the other worker share one, with addresses and directories
    /// of their own; artifacts are shared by all.
    pub(crate) fn settings(&self, dir: &Path, port: u16, database: Option<&str>, role: Role) -> String {
        let dir = dir.display();
        let own = if role.is_other() { "other-" } else { "" };
        let other_report =
            if self.in_pairs { format!(", \"{dir}/other-doors/report.sock\"") } else { String::new() };
        let datastore = database.map_or(String::new(), |url| format!("[datastore]\nurl = \"{url}\"\n"));
        // `up` makes a key of its own.
        let secret_key =
            database.map_or(String::new(), |_| format!("secret_key_file = \"{dir}/secret.key\"\n"));
        let artifacts = match self.artifact_url {
            Some(url) => format!("artifact_url = \"{url}\""),
            None => format!("artifact_dir = \"{dir}/artifacts\""),
        };
        let Self { claim_lease_seconds, lease_seconds, heartbeat_seconds, worker, tables, .. } = self;
        format!(
            "{datastore}\
             [leases]\nclaim_lease_seconds = {claim_lease_seconds}\nlease_seconds = {lease_seconds}\n\
             heartbeat_seconds = {heartbeat_seconds}\n\
             [server]\nlisten = \"127.0.0.1:{port}\"\nreport_socket = \"{dir}/{own}doors/report.sock\"\n\
             {artifacts}\n{secret_key}\
             [worker]\nname = \"{own}node\"\ndata_dir = \"{dir}/{own}worker\"\nstate_dir = \"{dir}/{own}state\"\n\
             task_dir = \"{dir}/{own}task\"\ndoor_socket = \"{dir}/{own}doors/worker.sock\"\n\
             report_sockets = [\"{dir}/doors/report.sock\"{other_report}]\ncpu = 8.0\nmemory_bytes = 8589934592\n{worker}{tables}"
        )
    }
}
