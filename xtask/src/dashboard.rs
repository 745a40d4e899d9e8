//! The dashboard's own tools: npm builds, checks and tries it out.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{build, shell};

/// Whether this machine can build the dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Node {
    /// `npm` is there.
    Here,
    /// It is not; binaries then say how to build the dashboard.
    Missing,
}

impl Node {
    pub(crate) fn find() -> Self {
        if on_path("npm").is_some() { Self::Here } else { Self::Missing }
    }
}

/// Builds the dashboard into `dashboard/dist`, for the binaries that are built next.
pub(crate) fn run() -> Result<(), String> {
    install()?;
    shell::run(&mut npm(&["run", "build"]))
}

/// Builds it where Node is; says so where it is not.
pub(crate) fn build_if_possible() -> Result<(), String> {
    match Node::find() {
        Node::Here => run(),
        Node::Missing => {
            println!("no npm here: the binary will have no dashboard, and say how to build it");
            Ok(())
        }
    }
}

/// Types, lints, catalogues, unit tests.
pub(crate) fn check() -> Result<(), String> {
    install()?;
    shell::run(&mut npm(&["run", "check"]))
}

/// Walks through the pages with a real browser, against the real binary.
pub(crate) fn try_out() -> Result<(), String> {
    let chromium = env::var_os("CHROMIUM").map(PathBuf::from).or_else(|| on_path("chromium"));
    let chromium = chromium.ok_or("no chromium: install Debian's package `chromium`, or set CHROMIUM")?;
    let jobyard = build::target_dir().join("debug/jobyard");
    shell::run(npm(&["run", "e2e"]).env("CHROMIUM", chromium).env("JOBYARD_BIN", jobyard))
}

/// Third-party code as `package-lock.json` has it, unless it is there already.
fn install() -> Result<(), String> {
    let changed = |path: &str| directory().join(path).metadata().and_then(|file| file.modified()).ok();
    let is_installed = changed("node_modules/.package-lock.json")
        .zip(changed("package-lock.json"))
        .is_some_and(|(installed, wanted)| installed >= wanted);
    if is_installed { Ok(()) } else { shell::run(&mut npm(&["ci", "--no-audit", "--no-fund"])) }
}

fn npm(arguments: &[&str]) -> Command {
    let mut command = Command::new("npm");
    command.args(arguments).current_dir(directory());
    command
}

fn directory() -> PathBuf {
    shell::root().join("dashboard")
}

fn on_path(name: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.is_file()
}
