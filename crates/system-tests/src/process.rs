//! One of our processes, with what it says in a file.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};

/// A running process; killed when dropped.
pub(crate) struct Process {
    child: Child,
    output: PathBuf,
}

/// A binary of the workspace, from the directory that the test itself lies in.
#[must_use]
pub fn bin(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("own path");
    let path = test.parent().and_then(Path::parent).expect("target directory").join(name);
    assert!(path.exists(), "{} is missing: `cargo xtask test` builds it first", path.display());
    path
}

impl Process {
    pub(crate) fn start(name: &str, dir: &Path, command: &mut Command) -> Self {
        let output = dir.join(format!("{name}.out"));
        let file = File::options().create(true).append(true).open(&output).expect("an output file");
        let errors = file.try_clone().expect("a second descriptor");
        let child =
            command.stdin(Stdio::null()).stdout(file).stderr(errors).spawn().expect("the process starts");
        Self { child, output }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// All it has said, in all its lives.
    pub(crate) fn said(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.output).expect("its output")).into_owned()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a pid")).expect("a pid");
        kill_process(pid, signal).expect("it is there");
    }

    /// Until a SIGSTOP has taken hold.
    pub(crate) fn wait_until_stopped(&self) {
        let until = Instant::now() + Duration::from_secs(10);
        let stat = || fs::read_to_string(format!("/proc/{}/stat", self.id())).expect("it is there");
        while !stat().rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T')) {
            assert!(Instant::now() < until, "it does not stop");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits for its end; the exit code, or `None` for a signal.
    pub(crate) fn wait(&mut self, limit: Duration) -> Option<i32> {
        let until = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait().expect("waitable") {
                return status.code();
            }
            assert!(Instant::now() < until, "it did not end; it said:\n{}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("waitable").is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_alive() {
            self.child.kill().expect("killable");
            self.child.wait().expect("waitable");
        }
        if std::thread::panicking() {
            eprintln!("---- {} ----\n{}", self.output.display(), self.said());
        }
    }
}
