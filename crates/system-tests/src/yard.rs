//! A running installation.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use jobyard_client::{Client, JobFilter, Token};
use tempfile::TempDir;

use crate::postgres::Database;
use crate::process::{Process, Signal, bin};
use crate::wait::{DEADLINE, eventually, processes_named};

/// A process of the installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// All in one.
    Up,
    /// The HTTP and report doors.
    Server,
    /// The loops.
    Informer,
    /// The node.
    Worker,
}

impl Role {
    fn word(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Server => "server",
            Self::Informer => "informer",
            Self::Worker => "worker",
        }
    }
}

/// A running installation in a temporary folder, with short leases: 2 s to accept, 6 s to live, a heartbeat each 2 s.
pub struct Yard {
    dir: TempDir,
    url: String,
    roles: Vec<Role>,
    processes: BTreeMap<Role, Process>,
    database: Option<Database>,
    /// The admin token's secret; on SQLite it lies in the data directory.
    secret: Option<String>,
}

impl Yard {
    /// `jobyard up` on SQLite.
    pub async fn up() -> Self {
        Self::new(vec![Role::Up], None).await
    }

    /// Server, informer and worker as processes of their own, on a PostgreSQL cluster of the test's own.
    pub async fn on_postgres() -> Self {
        Self::new(vec![Role::Server, Role::Informer, Role::Worker], Some(Database::start())).await
    }

    async fn new(roles: Vec<Role>, database: Option<Database>) -> Self {
        let dir = TempDir::with_prefix("yard-").expect("a temporary folder");
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
        let url = format!("http://127.0.0.1:{port}");
        let mut yard =
            Self { dir, url, roles: roles.clone(), processes: BTreeMap::new(), database, secret: None };
        yard.write_config(port);
        if yard.database.is_some() {
            yard.run("migrate", &[]);
            let secret = yard.run("token", &["create", "--name", "tester", "--role", "admin", "--owner", "default"]);
            yard.secret = Some(secret.trim().to_owned());
        }
        for role in roles {
            yard.start(role).await;
        }
        yard
    }

    /// The temporary folder; the test's own files may lie there too.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The roles that run, by design.
    #[must_use]
    pub fn roles(&self) -> &[Role] {
        &self.roles
    }

    /// The process that holds the server.
    #[must_use]
    pub fn server_role(&self) -> Role {
        self.roles[0]
    }

    /// The process that holds the worker.
    #[must_use]
    pub fn worker_role(&self) -> Role {
        *self.roles.last().expect("a role")
    }

    /// A client with an admin's token.
    #[must_use]
    pub fn client(&self) -> Client {
        let token = Token::new(&self.secret()).expect("a token");
        Client::builder().url(&self.url).expect("a url").token(token).build().expect("a client")
    }

    /// A `jobyard` user command against this installation.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let client = self.client();
        let token = self.secret();
        let mut command = Command::new(bin("jobyard"));
        command.args(arguments).env("JOBYARD_URL", client.url()).env("JOBYARD_TOKEN", token);
        command
    }

    /// Starts a role and waits until the installation answers.
    pub async fn start(&mut self, role: Role) {
        let mut command = Command::new(bin("jobyard"));
        command.arg(role.word()).arg("--config").arg(self.config()).env("JOBYARD_LOG", "info");
        if role == Role::Up {
            command.arg("--data-dir").arg(self.dir().join("data"));
        }
        self.processes.insert(role, Process::start(role.word(), self.dir.path(), &mut command));
        if matches!(role, Role::Up | Role::Server) {
            self.wait_until_serving(role).await;
        }
    }

    /// SIGKILL, and waits for the end.
    pub fn kill(&mut self, role: Role) {
        self.signal(role, Signal::KILL);
        self.process(role).wait(DEADLINE);
        self.processes.remove(&role);
    }

    /// SIGTERM, and waits for the end, which must be a good one.
    pub fn terminate(&mut self, role: Role) {
        self.signal(role, Signal::TERM);
        let process = self.process(role);
        assert_eq!(process.wait(Duration::from_secs(20)), Some(0), "{role:?} said:\n{}", process.said());
        self.processes.remove(&role);
    }

    /// Sends a signal.
    pub fn signal(&self, role: Role, signal: Signal) {
        self.processes[&role].signal(signal);
    }

    /// A role's process id.
    #[must_use]
    pub fn id(&self, role: Role) -> u32 {
        self.processes[&role].id()
    }

    /// All that a role has said, in all its lives.
    #[must_use]
    pub fn said(&self, role: Role) -> String {
        self.processes[&role].said()
    }

    /// Waits for a role to end by itself; its exit code.
    pub fn wait(&mut self, role: Role) -> Option<i32> {
        let code = self.process(role).wait(DEADLINE);
        self.processes.remove(&role);
        code
    }

    /// Stops PostgreSQL without a shutdown checkpoint and starts it again; nothing happens on SQLite.
    pub fn restart_datastore(&mut self) {
        if let Some(database) = &mut self.database {
            database.restart_immediate();
        }
    }

    /// A file in the yard with the executable bit.
    #[must_use]
    pub fn script(&self, name: &str, text: &[u8]) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.dir().join(name);
        fs::write(&path, text).expect("writable");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its mode");
        path
    }

    fn process(&mut self, role: Role) -> &mut Process {
        self.processes.get_mut(&role).expect("the role runs")
    }

    async fn wait_until_serving(&mut self, role: Role) {
        let token = self.dir().join("data/admin.token");
        if role == Role::Up {
            eventually("the admin token", async || token.exists().then_some(())).await;
        }
        let client = self.client();
        let filter = JobFilter { limit: Some(1), ..JobFilter::default() };
        eventually("the server answers", async || client.jobs().list(&filter).await.ok()).await;
        assert!(self.process(role).is_alive(), "{role:?} ended");
    }

    fn secret(&self) -> String {
        match &self.secret {
            Some(secret) => secret.clone(),
            None => {
                fs::read_to_string(self.dir().join("data/admin.token")).expect("a token").trim().to_owned()
            }
        }
    }

    fn config(&self) -> PathBuf {
        self.dir().join("jobyard.toml")
    }

    fn run(&self, command: &str, arguments: &[&str]) -> String {
        let output = Command::new(bin("jobyard"))
            .arg(command)
            .args(arguments)
            .arg("--config")
            .arg(self.config())
            .output()
            .expect("jobyard runs");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    fn write_config(&self, port: u16) {
        let dir = self.dir().display();
        let datastore = self
            .database
            .as_ref()
            .map_or(String::new(), |database| format!("[datastore]\nurl = \"{}\"\n", database.url()));
        let text = format!(
            "{datastore}\
             [leases]\nclaim_lease_seconds = 2\nlease_seconds = 6\nheartbeat_seconds = 2\n\
             [server]\nlisten = \"127.0.0.1:{port}\"\nreport_socket = \"{dir}/doors/report.sock\"\n\
             artifact_dir = \"{dir}/artifacts\"\n\
             [worker]\ndata_dir = \"{dir}/worker\"\nstate_dir = \"{dir}/state\"\n\
             door_socket = \"{dir}/doors/worker.sock\"\nreport_sockets = [\"{dir}/doors/report.sock\"]\n\
             cpu = 8.0\nmemory_bytes = 8589934592\n"
        );
        fs::write(self.config(), text).expect("writable");
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        self.processes.clear();
        // Sidecars outlive their worker by design; those of this yard name its folder.
        for id in processes_named(&self.dir().display().to_string()) {
            if let Some(pid) = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw) {
                // It may have ended since it was listed.
                let _gone = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
    }
}
