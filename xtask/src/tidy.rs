//! Rules about the repository that no compiler checks.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::shell;

/// What each crate may use of ours (ARCHITECTURE.md, "Who may use whom"). `jobyard` is `crates/cli`.
const ALLOWED: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("handoff", &[]),
    ("scheduler", &["model"]),
    ("store", &["model"]),
    ("api", &["model"]),
    ("tree", &["model"]),
    ("runtime", &["handoff"]),
    ("sidecar", &["handoff"]),
    ("dashboard", &[]),
    ("server", &["dashboard", "model", "scheduler", "store", "api", "tree"]),
    ("informer", &["model", "scheduler", "store", "api"]),
    ("worker", &["model", "api", "runtime", "handoff", "tree"]),
    ("client", &["model", "api", "tree"]),
    ("cli", &["model", "api", "client", "informer", "runtime", "server", "store", "worker"]),
    ("test-postgres", &[]),
    ("test-s3", &[]),
    ("system-tests", &["client", "test-postgres", "test-s3"]),
];

/// Pure rooms: no async, no I/O, no clock, no randomness.
const PURE: &[&str] = &["model", "scheduler"];
const IMPURE_DEPENDENCIES: &[&str] =
    &["tokio", "async-trait", "rand", "jiff", "rustix", "futures-util", "tracing"];

/// How many of the longest files are listed.
const LEDGER_LENGTH: usize = 12;

pub(crate) fn run() -> Result<(), String> {
    let mut faults = Vec::new();
    let crates = crate_names()?;
    for name in &crates {
        check_dependencies(name, &mut faults)?;
    }
    check_code_map(&crates, &mut faults)?;
    print_ledger()?;
    if faults.is_empty() { Ok(()) } else { Err(format!("tidy found:\n  {}", faults.join("\n  "))) }
}

fn crate_names() -> Result<BTreeSet<String>, String> {
    let entries =
        fs::read_dir(shell::root().join("crates")).map_err(|error| format!("reading crates/: {error}"))?;
    let mut names = BTreeSet::new();
    for entry in entries {
        let entry = entry.map_err(|error| format!("reading crates/: {error}"))?;
        names.insert(entry.file_name().to_string_lossy().into_owned());
    }
    Ok(names)
}

fn check_dependencies(name: &str, faults: &mut Vec<String>) -> Result<(), String> {
    let Some((_, allowed)) = ALLOWED.iter().find(|(krate, _)| *krate == name) else {
        faults.push(format!("crates/{name} has no line in xtask/src/tidy.rs and ARCHITECTURE.md"));
        return Ok(());
    };
    for dependency in dependencies(name)? {
        if PURE.contains(&name) && IMPURE_DEPENDENCIES.contains(&dependency.as_str()) {
            faults.push(format!("crates/{name} is a pure room and uses {dependency}"));
        }
        let Some(ours) = dependency.strip_prefix("jobyard-") else { continue };
        if !allowed.contains(&ours) {
            faults.push(format!("crates/{name} must not use crates/{ours}"));
        }
    }
    Ok(())
}

/// The names under `[dependencies]`: what tests use is not judged.
fn dependencies(name: &str) -> Result<Vec<String>, String> {
    let path = shell::root().join("crates").join(name).join("Cargo.toml");
    let text = fs::read_to_string(&path).map_err(|error| format!("reading {}: {error}", path.display()))?;
    let manifest: toml::Table = text.parse().map_err(|error| format!("{}: {error}", path.display()))?;
    let table = manifest.get("dependencies").and_then(toml::Value::as_table);
    Ok(table.map(|table| table.keys().cloned().collect()).unwrap_or_default())
}

fn check_code_map(crates: &BTreeSet<String>, faults: &mut Vec<String>) -> Result<(), String> {
    let page = fs::read_to_string(shell::root().join("ARCHITECTURE.md"))
        .map_err(|error| format!("reading ARCHITECTURE.md: {error}"))?;
    let mapped: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `crates/")?.split_once('`'))
        .map(|(name, _)| name.trim_end_matches('/').to_owned())
        .collect();
    for name in crates.difference(&mapped) {
        faults.push(format!("ARCHITECTURE.md's code map lacks crates/{name}"));
    }
    for name in mapped.difference(crates) {
        faults.push(format!("ARCHITECTURE.md's code map names crates/{name}, which is not there"));
    }
    Ok(())
}

/// Prints the longest files: something to look at, not a gate.
fn print_ledger() -> Result<(), String> {
    let mut files = Vec::new();
    for folder in ["crates", "xtask"] {
        rust_files(&shell::root().join(folder), &mut files)?;
    }
    let mut lengths = Vec::new();
    for file in files {
        let text =
            fs::read_to_string(&file).map_err(|error| format!("reading {}: {error}", file.display()))?;
        lengths.push((text.lines().count(), file));
    }
    lengths.sort_by(|left, right| right.cmp(left));
    println!("longest files:");
    for (length, file) in lengths.iter().take(LEDGER_LENGTH) {
        println!("  {length:>5} {}", file.strip_prefix(shell::root()).unwrap_or(file).display());
    }
    Ok(())
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("reading {}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| format!("reading {}: {error}", folder.display()))?.path();
        if path.is_dir() {
            rust_files(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
