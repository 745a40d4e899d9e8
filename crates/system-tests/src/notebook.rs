//! What task processes write down themselves, so that a start nobody reported is seen too.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use jobyard_client::JobId;
use jobyard_client::json::JobSubmit;

/// More than all the tasks of a test that may ever wait at the gate.
const RELEASES: usize = 4_000;

/// A file that task processes append a line to at their start and end, and a gate that they wait at.
pub struct Notebook {
    notes: PathBuf,
    gate: PathBuf,
    /// Holds the gate open once it is.
    released: Option<File>,
}

impl Notebook {
    /// An empty one with a closed gate.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        let notebook = Self { notes: folder.join("notes"), gate: folder.join("gate"), released: None };
        fs::write(&notebook.notes, "").expect("writable");
        let made = Command::new("mkfifo").arg(&notebook.gate).status().expect("mkfifo runs");
        assert!(made.success(), "no gate");
        // Task processes have users of their own.
        for path in [&notebook.notes, &notebook.gate] {
            fs::set_permissions(path, Permissions::from_mode(0o666)).expect("its mode");
        }
        notebook
    }

    /// A job that writes `start`, does what the shell is told, and writes `end`.
    #[must_use]
    pub fn job(&self, script: &str) -> JobSubmit {
        let note = |word| self.note(word, "$JOBYARD_ATTEMPT");
        let script = format!("{}; {script}; {}", note("start"), note("end"));
        JobSubmit { command: vec!["/bin/sh".into(), "-c".into(), script], ..JobSubmit::default() }
    }

    /// The shell command that writes a word and a number down.
    #[must_use]
    pub fn note(&self, word: &str, number: &str) -> String {
        format!("echo {word} $JOBYARD_JOB_ID {number} >> {}", self.notes.display())
    }

    /// The shell command that waits at the gate.
    #[must_use]
    pub fn wait(&self) -> String {
        format!("read _ < {}", self.gate.display())
    }

    /// A job that waits at the gate.
    #[must_use]
    pub fn waiting_job(&self) -> JobSubmit {
        self.job(&self.wait())
    }

    /// Opens the gate for good.
    pub fn open_gate(&mut self) {
        // For both ways, so that opening waits for nobody.
        let mut gate = OpenOptions::new().read(true).write(true).open(&self.gate).expect("the gate");
        gate.write_all("\n".repeat(RELEASES).as_bytes()).expect("room in the pipe");
        self.released = Some(gate);
    }

    /// The attempts of a job that wrote `start`.
    #[must_use]
    pub fn starts(&self, id: JobId) -> Vec<u64> {
        self.numbers("start", id)
    }

    /// The attempts of a job that wrote `end`.
    #[must_use]
    pub fn ends(&self, id: JobId) -> Vec<u64> {
        self.numbers("end", id)
    }

    /// The numbers that a job wrote after this word.
    #[must_use]
    pub fn numbers(&self, word: &str, id: JobId) -> Vec<u64> {
        let begin = format!("{word} {id} ");
        let text = fs::read_to_string(&self.notes).expect("readable");
        let lines = text.lines().filter_map(|line| line.strip_prefix(&begin));
        lines.map(|number| number.parse().expect("a number")).collect()
    }
}
