//! What a developer does to the repository: `cargo xtask <command>`.
#![expect(clippy::print_stdout, reason = "a command line tool")]

mod build;
mod dashboard;
mod deb;
mod demo;
mod shell;
mod test;
mod tidy;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  demo [--exit]   build Jobyard, start it on its embedded datastore, run a job and show its result;
                  goes on serving until Ctrl-C, unless --exit is given
  dashboard       build the dashboard into dashboard/dist, for the binaries that are built next; needs Node
  build           build the dashboard, where Node is, and the release binaries, the sidecar statically, into
                  target/release
  deb             build them and a Debian package of them, into target/debian; needs dpkg-deb
  test [FILTER]   check formatting, lints, tidy and the dashboard, then run all tests, and walk through the pages in a
                  browser; with FILTER only the tests that match
  tidy            compare crate dependencies with the rules and the code map with crates/; list the longest files
  help            this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["demo"] => demo::run(demo::Afterwards::Serve),
        ["demo", "--exit"] => demo::run(demo::Afterwards::Exit),
        ["dashboard"] => dashboard::run(),
        ["build"] => build::release().map(|_| ()),
        ["deb"] => deb::run(),
        ["test"] => test::run(None),
        ["test", filter] => test::run(Some(filter)),
        ["tidy"] => tidy::run(),
        [] | ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            Ok(())
        }
        _ => Err(format!("no such command: {}\n\n{HELP}", words.join(" "))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}
