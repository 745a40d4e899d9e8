//! Everything that must hold before a change lands.

use crate::{build, dashboard, shell, tidy};

/// Formatting, lints, tidy, the dashboard's own checks, every test, then the pages in a browser; with a filter only the
/// tests whose name contains it.
pub(crate) fn run(filter: Option<&str>) -> Result<(), String> {
    if filter.is_none() {
        shell::run(&mut shell::cargo(&["fmt", "--all", "--check"]))?;
        tidy::run()?;
        let lints = ["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"];
        shell::run(&mut shell::cargo(&lints))?;
        dashboard::check()?;
        dashboard::run()?;
    }
    // System tests and the worker's tests start the real binaries from the target directory.
    shell::run(&mut shell::cargo(&["build", "--workspace", "--bins", "--examples"]))?;
    build::sidecar(&build::target_dir().join("debug/jobyard-sidecar"))?;
    let mut tests = shell::cargo(&["nextest", "run", "--workspace", "--profile", profile()]);
    tests.args(filter);
    shell::run(&mut tests)?;
    if filter.is_none() { dashboard::try_out() } else { Ok(()) }
}

/// nextest's profile: in CI a test is not given a second chance.
fn profile() -> &'static str {
    if std::env::var_os("CI").is_some() { "ci" } else { "default" }
}
