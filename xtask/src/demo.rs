//! From nothing to a job's result in one command.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::{build, shell};

/// What happens after the result was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Afterwards {
    /// Go on serving until Ctrl-C.
    Serve,
    /// Stop.
    Exit,
}

/// Builds, starts `jobyard up` in `./jobyard-data`, runs a job and shows what became of it.
pub(crate) fn run(afterwards: Afterwards) -> Result<(), String> {
    let jobyard = build::release()?.jobyard;
    let data_dir = shell::root().join("jobyard-data");
    let mut up = Command::new(&jobyard)
        .args(["up", "--data-dir"])
        .arg(&data_dir)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("could not start {}: {error}", jobyard.display()))?;
    let shown = wait_until_ready(&mut up).and_then(|url| show_a_job(&jobyard, &data_dir, &url));
    if shown.is_err() || afterwards == Afterwards::Exit {
        let ended = stop(&mut up);
        return shown.and(ended);
    }
    println!("\nJobyard goes on serving; Ctrl-C ends it. Its data lies in {}.", data_dir.display());
    up.wait().map(|_| ()).map_err(|error| format!("waiting for jobyard up: {error}"))
}

/// Reads `ready <url>` from the standard output of `jobyard up`, and shows the link that signs a browser in.
fn wait_until_ready(up: &mut Child) -> Result<String, String> {
    let output = up.stdout.take().ok_or("no standard output of jobyard up")?;
    let mut ready = None;
    for line in BufReader::new(output).lines() {
        let line = line.map_err(|error| format!("reading from jobyard up: {error}"))?;
        println!("{line}");
        if let Some(url) = line.strip_prefix("ready ") {
            ready = Some(url.to_owned());
        }
        // The last thing it says before it serves.
        if line.starts_with("login ") {
            break;
        }
    }
    if let Some(url) = ready {
        return Ok(url);
    }
    Err("jobyard up ended before it was ready; its messages stand above".to_owned())
}

fn show_a_job(jobyard: &Path, data_dir: &Path, url: &str) -> Result<(), String> {
    let token = std::fs::read_to_string(data_dir.join("admin.token"))
        .map_err(|error| format!("reading the admin token: {error}"))?;
    let command = |arguments: &[&str]| {
        let mut command = Command::new(jobyard);
        command.args(arguments).env("JOBYARD_URL", url).env("JOBYARD_TOKEN", token.trim());
        println!("\n$ jobyard {}", arguments.join(" "));
        command
    };
    let script = "echo \"attempt $JOBYARD_ATTEMPT of job $JOBYARD_JOB_ID says hello\"";
    shell::run(&mut command(&["run", "--name", "hello", "--", "sh", "-c", script]))?;
    shell::run(&mut command(&["ps"]))
}

/// Ends `jobyard up` the way Ctrl-C does, and waits for it.
fn stop(up: &mut Child) -> Result<(), String> {
    shell::run(Command::new("kill").args(["-INT", &up.id().to_string()]))?;
    let status = up.wait().map_err(|error| format!("waiting for jobyard up: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("jobyard up ended with {status}")) }
}
