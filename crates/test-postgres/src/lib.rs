//! A PostgreSQL cluster of a test's own: real, durable, and gone when the test is.
//!
//! Owns the cluster's folder and its server process. Listens on a unix socket in that folder and nowhere else. Only a
//! dev-dependency; no room of the product uses it.
//!
//! Invariant: the server never outlives the process that started it. A small shell watches a pipe that only that
//! process holds, and stops the server when the pipe closes, even after a SIGKILL.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long the server may take to accept connections, recovery after a crash included.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Stops the server (`-m immediate`) when its stdin closes; ends when the server does. What is left of a starter that
/// was killed is removed.
const WATCH: &str = r##"exec 3<&0
"$@" 3<&- >>server.log 2>&1 & server=$!
(cat <&3 >/dev/null; kill -QUIT $server) 2>/dev/null & watch=$!
wait $server; kill $watch 2>/dev/null
[ -d /proc/$PPID ] || rm -rf "$PWD""##;

/// A running, or stopped, cluster.
#[derive(Debug)]
pub struct Cluster {
    folder: TempDir,
    binaries: PathBuf,
    account: Option<Account>,
    server: Option<Child>,
}

/// Whom the server runs as: it refuses root.
#[derive(Debug, Clone, Copy)]
struct Account {
    user_id: u32,
    group_id: u32,
}

impl Cluster {
    /// Makes and starts a cluster with `fsync` on.
    ///
    /// # Errors
    /// When PostgreSQL isn't installed, or doesn't start; then the server's own words are in the error.
    pub fn start_new() -> io::Result<Self> {
        let binaries = find_binaries()?;
        let folder = tempfile::Builder::new().prefix("jobyard-pg-").tempdir()?;
        let account = unprivileged_account(folder.path())?;
        if let Some(account) = account {
            chown(folder.path(), Some(account.user_id), Some(account.group_id))?;
        }
        let mut cluster = Self { folder, binaries, account, server: None };
        cluster.copy_template()?;
        cluster.start()?;
        Ok(cluster)
    }

    /// Starts the stopped server again, and returns when it accepts connections.
    ///
    /// # Errors
    /// When it doesn't.
    pub fn start(&mut self) -> io::Result<()> {
        let mut shell = self.command_at(Path::new("/bin/sh"));
        shell.args(["-c", WATCH, "sh"]).arg(self.binaries.join("postgres")).args(["-D", "data"]);
        shell.arg("-c").arg(format!("unix_socket_directories={}", self.folder.path().display()));
        for setting in [
            "listen_addresses=",
            "fsync=on",
            "shared_buffers=128MB",
            "max_connections=100",
            "log_lock_waits=on",
            "shared_memory_type=mmap",
            "timezone=UTC",
        ] {
            shell.args(["-c", setting]);
        }
        let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let deadline = Instant::now() + READY_WITHIN;
        while !self.is_ready() {
            if shell.try_wait()?.is_some() || Instant::now() > deadline {
                return Err(io::Error::other(format!("the server did not start:\n{}", self.log())));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.server = Some(shell);
        Ok(())
    }

    /// Stops the server as a crash would (`-m immediate`), and returns when it is gone.
    ///
    /// # Errors
    /// When the server's end can't be waited for.
    pub fn stop_immediate(&mut self) -> io::Result<()> {
        let Some(mut server) = self.server.take() else { return Ok(()) };
        drop(server.stdin.take());
        server.wait()?;
        Ok(())
    }

    /// A connection string for a database of this cluster; `postgres` exists from the start.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        let host = self.folder.path().display();
        format!("host={host} user=postgres dbname={database}")
    }

    /// The folder: data directory, socket and log.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What the server wrote to its log.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("server.log")).unwrap_or_default()
    }

    /// One of PostgreSQL's own programs (`psql`, `pg_dump`, …), to be run in the cluster's folder by its account.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        self.command_at(&self.binaries.join(program))
    }

    /// `initdb` takes seconds, copying what it made does not: the first cluster on a machine leaves its empty data
    /// directory to all others, under a name of its own in the folder for temporary files.
    fn copy_template(&self) -> io::Result<()> {
        let name = self.binaries.to_string_lossy().replace('/', "-");
        let account = self.account.map_or(String::from("own"), |account| account.user_id.to_string());
        let template = std::env::temp_dir().join(format!("jobyard-test-postgres{name}-{account}"));
        if !template.exists() {
            let mut initdb = self.command("initdb");
            initdb.args(["--pgdata=data", "--auth=trust", "--username=postgres", "--no-sync"]);
            initdb.args(["--no-instructions", "--encoding=UTF8", "--locale=C.UTF-8"]);
            succeed(&mut initdb)?;
            // Whoever comes second finds the name taken, and keeps what it made for itself.
            if std::fs::rename(self.folder.path().join("data"), &template).is_err() {
                return Ok(());
            }
        }
        succeed(self.command_at(Path::new("/bin/cp")).args(["-a", "--"]).arg(template).arg("data"))
    }

    fn command_at(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path()).env("PGHOST", self.folder.path()).env("PGUSER", "postgres");
        if let Some(account) = self.account {
            command.uid(account.user_id).gid(account.group_id);
        }
        command
    }

    /// The server writes its state into the last line of its pid file.
    fn is_ready(&self) -> bool {
        let pid_file = self.folder.path().join("data/postmaster.pid");
        std::fs::read_to_string(pid_file)
            .is_ok_and(|text| text.lines().nth(7).is_some_and(|state| state.trim() == "ready"))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The folder goes next; a server that could not be waited for finds it gone and ends.
        let _ = self.stop_immediate();
    }
}

fn succeed(command: &mut Command) -> io::Result<()> {
    let done = command.output()?;
    match done.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(String::from_utf8_lossy(&done.stderr).into_owned())),
    }
}

/// The newest installed server, by PATH or where Debian puts it.
fn find_binaries() -> io::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path)
        .filter_map(|folder| folder.join("postgres").canonicalize().ok()?.parent().map(Path::to_owned));
    let mut packaged: Vec<_> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    packaged.sort_by_key(|folder| {
        let version = folder.parent().and_then(Path::file_name).and_then(OsStr::to_str);
        std::cmp::Reverse(version.and_then(|version| version.parse::<u32>().ok()))
    });
    on_path
        .chain(packaged)
        .find(|folder| folder.join("initdb").exists() && folder.join("postgres").exists())
        .ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, "PostgreSQL is not installed (initdb, postgres)")
        })
}

/// For root: the account `postgres`, else `nobody`. For anybody else: themselves.
fn unprivileged_account(own: &Path) -> io::Result<Option<Account>> {
    if std::fs::metadata(own)?.uid() != 0 {
        return Ok(None);
    }
    let accounts = std::fs::read_to_string("/etc/passwd")?;
    let find = |wanted: &str| {
        accounts.lines().find_map(|line| {
            let fields: Vec<_> = line.split(':').collect();
            let [name, _, user_id, group_id, ..] = fields[..] else { return None };
            let account = Account { user_id: user_id.parse().ok()?, group_id: group_id.parse().ok()? };
            (name == wanted).then_some(account)
        })
    };
    let account = find("postgres").or_else(|| find("nobody"));
    account.map(Some).ok_or_else(|| io::Error::other("no account to run PostgreSQL as: it refuses root"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_survives_an_immediate_stop_and_leaves_nothing_behind() {
        let mut cluster = Cluster::start_new().unwrap();
        let folder = cluster.folder().to_owned();
        let psql = |cluster: &Cluster, sql: &str| {
            let done = cluster.command("psql").args(["-Atc", sql, "postgres"]).output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            String::from_utf8(done.stdout).unwrap().trim().to_owned()
        };
        psql(&cluster, "CREATE TABLE kept AS SELECT 7 AS value");
        cluster.stop_immediate().unwrap();
        assert!(!cluster.is_ready());
        cluster.start().unwrap();
        assert_eq!(psql(&cluster, "SELECT value FROM kept"), "7");
        let server_id = std::fs::read_to_string(folder.join("data/postmaster.pid")).unwrap();
        let server_id = server_id.lines().next().unwrap().to_owned();
        drop(cluster);
        assert!(!folder.exists());
        assert!(!Path::new("/proc").join(server_id).exists());
    }
}
