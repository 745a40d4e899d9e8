//! A running installation.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use jobyard_client::{Client, JobFilter, Token};
use tempfile::TempDir;

use crate::disk::SmallDisk;
use crate::groups::{self, Unit};
use crate::plan::{Datastore, Moved, YardPlan};
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
    /// A second one, on addresses of its own.
    OtherServer,
    /// The loops.
    Informer,
    /// A second one.
    OtherInformer,
    /// The node.
    Worker,
    /// A second one, on directories of its own.
    OtherWorker,
}

impl Role {
    fn word(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Server | Self::OtherServer => "server",
            Self::Informer | Self::OtherInformer => "informer",
            Self::Worker | Self::OtherWorker => "worker",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::OtherServer => "other-server",
            Self::OtherInformer => "other-informer",
            Self::OtherWorker => "other-worker",
            Self::Up | Self::Server | Self::Informer | Self::Worker => self.word(),
        }
    }

    /// Whether its settings are those of the second of a pair.
    pub(crate) fn is_other(self) -> bool {
        matches!(self, Self::OtherServer | Self::OtherWorker)
    }
}

/// A running installation in a temporary folder; see [`YardPlan`] for its leases.
pub struct Yard {
    dir: TempDir,
    /// Of the server, and of the other one if there is one.
    ports: [u16; 2],
    roles: Vec<Role>,
    processes: BTreeMap<Role, Process>,
    database: Option<Database>,
    disks: Vec<SmallDisk>,
    /// Where a service manager would put the worker.
    unit: Option<Unit>,
    /// What the roles mount for themselves before they start.
    mounts: Vec<String>,
    environment: Vec<(String, String)>,
    /// The admin token's secret; on SQLite it lies in the data directory.
    secret: Option<String>,
}

impl Yard {
    /// `jobyard up` on SQLite.
    pub async fn up() -> Self {
        YardPlan::on(Datastore::Sqlite).raise().await
    }

    /// Server, informer and worker as processes of their own, on a PostgreSQL cluster of the test's own.
    pub async fn on_postgres() -> Self {
        YardPlan::on(Datastore::Postgres).raise().await
    }

    pub(crate) async fn raise(plan: YardPlan) -> Self {
        let dir = match plan.other_tmp {
            Some(_) => TempDir::with_prefix_in("yard-", "/var/tmp"),
            None => TempDir::with_prefix("yard-"),
        };
        let dir = dir.expect("a temporary folder");
        // Task processes have users of their own, and pass through here.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711)).expect("its mode");
        let free = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
        let ports = free.each_ref().map(|free| free.local_addr().expect("its address").port());
        drop(free);
        let disks = plan.small_disks.iter();
        let disks = disks.map(|(folder, options)| SmallDisk::mount(&dir.path().join(folder), options));
        let hosts = dir.path().join("hosts");
        if let Some(text) = &plan.hosts {
            fs::write(&hosts, text).expect("writable");
        }
        let tmp = plan.other_tmp.map(|options| format!("mount -t tmpfs -o {options} tmpfs /tmp"));
        let hosts = plan.hosts.as_ref().map(|_| format!("mount --bind {} /etc/hosts", hosts.display()));
        let mut yard = Self {
            ports,
            roles: plan.roles(),
            processes: BTreeMap::new(),
            database: (plan.datastore == Datastore::Postgres).then(Database::start),
            disks: disks.collect(),
            unit: None,
            mounts: tmp.into_iter().chain(hosts).collect(),
            environment: plan.environment.clone(),
            secret: None,
            dir,
        };
        yard.write_settings(&plan);
        yard.write_secret_keys(&["5e"]);
        if yard.database.is_some() {
            yard.run("migrate", &[]);
            let secret = match &plan.moved {
                Some(moved) => yard.move_in(moved),
                None => yard
                    .run("token", &["create", "--name", "tester", "--role", "admin", "--owner", "default"]),
            };
            yard.secret = Some(secret.trim().to_owned());
        }
        for role in yard.roles.clone() {
            yard.start(role).await;
        }
        yard.until_available("node").await;
        yard
    }

    /// Until the node of this name gets attempts.
    pub async fn until_available(&self, name: &str) {
        let client = self.client();
        eventually("the node is available", async || {
            let nodes = client.nodes().list().await.ok()?;
            nodes.iter().any(|node| node.name == name && node.available).then_some(())
        })
        .await;
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
        self.client_of(self.server_role())
    }

    /// As [`client`](Self::client), of the process that holds this server.
    #[must_use]
    pub fn client_of(&self, server: Role) -> Client {
        let token = Token::new(&self.secret()).expect("a token");
        let url = format!("http://127.0.0.1:{}", self.ports[usize::from(server.is_other())]);
        Client::builder().url(&url).expect("a url").token(token).build().expect("a client")
    }

    /// The admin token's secret.
    #[must_use]
    pub fn secret(&self) -> String {
        match &self.secret {
            Some(secret) => secret.clone(),
            None => {
                fs::read_to_string(self.dir().join("data/admin.token")).expect("a token").trim().to_owned()
            }
        }
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
        self.start_with(role, &[]).await;
    }

    /// Like [`start`](Self::start), with these variables in the role's environment.
    pub async fn start_with(&mut self, role: Role, environment: &[(&str, &str)]) {
        let before = self.times_up(role);
        self.launch_with(role, environment);
        match role {
            Role::Up | Role::Server | Role::OtherServer => self.wait_until_serving(role).await,
            // From then on a signal ends it well.
            _ => eventually("it runs", async || (self.times_up(role) > before).then_some(())).await,
        }
    }

    /// Like [`start_with`](Self::start_with), and waits for nothing.
    pub fn launch_with(&mut self, role: Role, environment: &[(&str, &str)]) {
        let mut command = self.role_command(role);
        command.env("JOBYARD_LOG", "info");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.envs(environment.iter().copied());
        self.processes.insert(role, Process::start(role.name(), self.dir.path(), &mut command));
    }

    fn times_up(&self, role: Role) -> usize {
        self.said(role).matches(&format!("{} runs", role.word())).count()
    }

    /// How a role is started.
    #[must_use]
    pub fn role_command(&self, role: Role) -> Command {
        let mut command = match &self.unit {
            _ if !self.mounts.is_empty() => {
                let mut unshare = Command::new("unshare");
                let mount = format!("{} && exec \"$0\" \"$@\"", self.mounts.join(" && "));
                unshare.args(["--mount", "/bin/sh", "-c", &mount]).arg(bin("jobyard"));
                unshare
            }
            // As a service manager does: into the unit's group, then the program.
            Some(unit) if role == Role::Worker => {
                let mut shell = Command::new("/bin/sh");
                shell.args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\""]).arg(unit.path());
                shell.arg(bin("jobyard"));
                shell
            }
            _ => Command::new(bin("jobyard")),
        };
        command.arg(role.word()).arg("--config").arg(self.config_of(role));
        if role == Role::Up {
            command.arg("--data-dir").arg(self.dir().join("data"));
        }
        command
    }

    /// Workers started from now on begin in this group.
    pub fn start_workers_in(&mut self, unit: Unit) {
        self.unit = Some(unit);
    }

    /// The group that workers begin in.
    #[must_use]
    pub fn unit(&self) -> Option<&Unit> {
        self.unit.as_ref()
    }

    /// Changes the size of a disk that the plan asked for.
    pub fn resize_disk(&self, folder: &str, options: &str) {
        let path = self.dir().join(folder);
        self.disks.iter().find(|disk| disk.is_at(&path)).expect("a disk there").remount(options);
    }

    /// SIGSTOP: no process of the role does anything any more when this returns.
    pub fn freeze(&self, role: Role) {
        self.signal(role, Signal::STOP);
        self.processes[&role].wait_until_stopped();
    }

    /// SIGCONT.
    pub fn wake(&self, role: Role) {
        self.signal(role, Signal::CONT);
    }

    /// The process ids of the sidecars that have an attempt: their working directory is its directory.
    #[must_use]
    pub fn sidecars(&self) -> Vec<u32> {
        let mut ids = processes_named("jobyard-sidecar");
        let is_sidecar = |id: &u32| {
            let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
            name.trim() == "jobyard-sidecar"
        };
        let is_here =
            |id: &u32| fs::read_link(format!("/proc/{id}/cwd")).is_ok_and(|cwd| cwd.starts_with(self.dir()));
        ids.retain(|id| is_sidecar(id) && is_here(id));
        ids.sort_unstable();
        ids
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
        let said = fs::read(self.dir().join(format!("{}.out", role.name()))).unwrap_or_default();
        String::from_utf8_lossy(&said).into_owned()
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

    /// Stops PostgreSQL without a shutdown checkpoint.
    pub fn stop_datastore(&mut self) {
        self.database.as_mut().expect("a yard on PostgreSQL").stop_immediate();
    }

    /// Starts the stopped PostgreSQL again.
    pub fn start_datastore(&mut self) {
        self.database.as_mut().expect("a yard on PostgreSQL").start_again();
    }

    /// Writes the servers' keys for secrets: 32 times this byte each. Servers that are started afterwards use them.
    pub fn write_secret_keys(&self, bytes: &[&str]) {
        let path = self.dir().join("secret.key");
        let lines: Vec<String> = bytes.iter().map(|byte| byte.repeat(32)).collect();
        fs::write(&path, lines.join("\n")).expect("writable");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("its mode");
    }

    /// All that PostgreSQL would give a backup, as text; on SQLite nothing: its file lies in the yard.
    #[must_use]
    pub fn dump(&self) -> Vec<u8> {
        self.database.as_ref().map(Database::dump).unwrap_or_default()
    }

    /// How PostgreSQL is reached.
    #[must_use]
    pub fn database_url(&self) -> String {
        self.database.as_ref().expect("a yard on PostgreSQL").url()
    }

    /// What a statement at a `psql` prompt prints, unaligned and without headings.
    pub fn sql(&self, statement: &str) -> String {
        self.database.as_ref().expect("a yard on PostgreSQL").sql(statement)
    }

    /// A file in the yard with the executable bit.
    #[must_use]
    pub fn script(&self, name: &str, text: &[u8]) -> PathBuf {
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
        let client = self.client_of(role);
        let filter = JobFilter { limit: Some(1), ..JobFilter::default() };
        eventually("the server answers", async || client.jobs().list(&filter).await.ok()).await;
        assert!(self.process(role).is_alive(), "{role:?} ended");
    }

    fn config(&self) -> PathBuf {
        self.config_of(Role::Server)
    }

    fn config_of(&self, role: Role) -> PathBuf {
        self.dir().join(if role.is_other() { "other.toml" } else { "jobyard.toml" })
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

    /// Gives the token of before.
    fn move_in(&self, moved: &Moved) -> String {
        let (artifacts, key) = (moved.data_dir.join("artifacts"), moved.data_dir.join("secret.key"));
        // Those in a bucket stay where they are.
        let artifacts = Some(artifacts).filter(|artifacts| artifacts.exists());
        let copied = Command::new("cp").arg("-a").args(artifacts).arg(key).arg(self.dir()).status();
        assert!(copied.expect("cp runs").success());
        self.run("import", &[&moved.file.display().to_string()]);
        fs::read_to_string(moved.data_dir.join("admin.token")).expect("a token")
    }

    fn write_settings(&self, plan: &YardPlan) {
        let url = self.database.as_ref().map(Database::url);
        for (role, port) in [Role::Server, Role::OtherServer].into_iter().zip(self.ports) {
            let text = plan.settings(self.dir(), port, url.as_deref(), role);
            fs::write(self.config_of(role), text).expect("writable");
        }
    }

    /// The names of the groups that this yard's workers made.
    fn group_names(&self) -> Vec<String> {
        let ids =
            ["worker", "data/worker", "other-worker"].map(|folder| self.dir().join(folder).join("node-id"));
        let ids = ids.iter().filter_map(|path| fs::read_to_string(path).ok());
        ids.map(|id| format!("jobyard-{}", &id.replace('-', "")[..12])).collect()
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        self.processes.clear();
        // Sidecars outlive their worker by design; those of this yard are in its folder.
        for id in processes_named(&format!("{}/", self.dir().display())).into_iter().chain(self.sidecars()) {
            if let Some(pid) = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw) {
                // It may have ended since it was listed.
                let _gone = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
        self.group_names().iter().for_each(|name| groups::remove_named(name));
        self.unit = None;
        self.disks.clear();
    }
}
