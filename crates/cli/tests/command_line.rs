//! The binary as people meet it without a server: help, refusals, exit codes. `INSTA_UPDATE=always` rewrites the
//! goldens.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The command line in an environment that has nothing of the developer's.
fn jobyard(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jobyard"));
    command.args(arguments).env_clear().env("HOME", home).env("COLUMNS", "100").stdin(Stdio::null());
    command
}

fn home() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn run(arguments: &[&str]) -> Output {
    let home = home();
    jobyard(home.path(), arguments).output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// An address where nobody listens.
fn nowhere() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    format!("http://{}", listener.local_addr().expect("an address"))
}

#[test]
fn help_of_every_users_command() {
    for command in [
        "submit",
        "run",
        "ps",
        "get",
        "attempts",
        "events",
        "logs",
        "wait",
        "stop",
        "cancel",
        "retry",
        "why",
        "dashboard",
        "node",
        "node ls",
        "node drain",
        "artifact push",
        "artifact pull",
        "token",
        "token create",
        "token ls",
        "token revoke",
        "bench",
        "bench throughput",
        "bench latency",
        "bench submit",
        "bench backlog",
        "doctor",
        "completion",
    ] {
        let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let output = run(&words);
        assert_eq!(output.status.code(), Some(0), "{command}");
        insta::assert_snapshot!(format!("help_{}", command.replace(' ', "_")), text(&output.stdout));
    }
}

#[test]
fn help_lists_what_there_is_and_nothing_that_is_not_built() {
    let output = run(&["--help"]);
    insta::assert_snapshot!(text(&output.stdout));
    assert_eq!(run(&["help"]).stdout, output.stdout);
}

#[test]
fn the_topic_exit_codes() {
    let topic = run(&["help", "exit-codes"]);
    insta::assert_snapshot!(text(&topic.stdout));
    assert_eq!(text(&run(&["exit-codes"]).stdout).trim(), text(&topic.stdout).trim());
}

#[test]
fn what_is_not_built_is_refused_by_name() {
    for words in ["cron ls", "dag run x", "ca init", "node remove w-12", "cron --help"] {
        let output = run(&words.split(' ').collect::<Vec<_>>());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(said.starts_with("error[not_available_yet]: `jobyard "), "{words}: {said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_wrong_command_line_ends_with_two_and_says_what_is_wrong() {
    for (words, why) in [
        ("", "Usage: jobyard"),
        ("pss", "similar subcommand"),
        ("get", "<ID>"),
        ("get 7", "not a job id"),
        ("get 01890a5d-ac96-774b-bcce-b302099a805", "not a job id"),
        ("ps --status wating", "the statuses are ready, waiting"),
        ("ps --limit 0", "1..=100000"),
        ("ps -o xml", "possible values: table, json, yaml"),
        ("ps --created-after yesterday", "2026-05-01T09:30:00Z"),
        ("wait", "<IDS>"),
        ("logs 01890a5d-ac96-774b-bcce-b302099a8057 --stdout --stderr", "cannot be used with"),
        ("artifact pull sha256:abc", "64 lower-case hex digits"),
        ("token create --name n --role king", "viewer, submitter, operator"),
        ("token revoke 1", "not a token id"),
        ("bench submit --clients 0", "1..=1000"),
        ("bench throughput --json -o yaml", "cannot be used with"),
        ("run", "what is to be run"),
        ("submit -f /no/such.yaml", "/no/such.yaml"),
    ] {
        let words: Vec<&str> = words.split(' ').filter(|word| !word.is_empty()).collect();
        let output = run(&words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(why), "{words:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_server_that_is_not_there_ends_with_three_and_advice() {
    let (home, url) = (home(), nowhere());
    let output = jobyard(home.path(), &["ps"]).env("JOBYARD_URL", &url).output().expect("it starts");
    assert_eq!(output.status.code(), Some(3));
    let said = text(&output.stderr);
    assert!(said.starts_with(&format!("error[unreachable]: no answer from {url}")), "{said}");
    assert!(said.contains("jobyard up"), "{said}");
}

#[test]
fn errors_are_json_for_those_who_asked_for_json() {
    let (home, url) = (home(), nowhere());
    let output =
        jobyard(home.path(), &["ps", "-o", "json"]).env("JOBYARD_URL", &url).output().expect("it starts");
    let error: serde_json::Value = serde_json::from_slice(&output.stderr).expect("JSON");
    assert_eq!((output.status.code(), error["code"].as_str()), (Some(3), Some("unreachable")));
    assert!(output.stdout.is_empty());
}

#[test]
fn addresses_and_tokens_that_can_not_be_ones_are_refused_before_anything_is_sent() {
    let home = home();
    for (variable, value, why) in [
        ("JOBYARD_URL", "127.0.0.1", "http://127.0.0.1:7700"),
        ("JOBYARD_URL", "https://host", "https is not available yet"),
        ("JOBYARD_TOKEN", "a b", "token"),
    ] {
        let output = jobyard(home.path(), &["ps"]).env(variable, value).output().expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{value}");
        assert!(text(&output.stderr).contains(why), "{value}: {}", text(&output.stderr));
    }
}

#[test]
fn a_broken_saved_context_is_named() {
    let home = home();
    let file = home.path().join(".config/jobyard/config.toml");
    std::fs::create_dir_all(file.parent().expect("a parent")).expect("made");
    std::fs::write(&file, "url = 'http://127.0.0.1:1'\ntokn = 'x'\n").expect("written");
    let output = jobyard(home.path(), &["ps"]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("config.toml") && said.contains("tokn"), "{said}");
}

/// Which server a command goes to, by what is set and saved. Told by whom it fails to reach.
#[test]
fn the_server_is_found_in_variables_then_the_context_then_the_data_directory() {
    let home = home();
    let [variable, context, data] = [nowhere(), nowhere(), nowhere()];
    let reached = |variable: Option<&str>| {
        let mut command = jobyard(home.path(), &["ps"]);
        command.envs(variable.map(|url| ("JOBYARD_URL", url)));
        text(&command.output().expect("it starts").stderr)
    };
    assert!(
        reached(None).contains("http://127.0.0.1:7700") || reached(None).contains("401"),
        "{}",
        reached(None)
    );
    let directory = home.path().join(".local/share/jobyard");
    std::fs::create_dir_all(&directory).expect("made");
    std::fs::write(directory.join("admin.token"), "jy_admin\n").expect("written");
    std::fs::write(directory.join("url"), &data).expect("written");
    assert!(reached(None).contains(&data), "{}", reached(None));
    let file = home.path().join(".config/jobyard/config.toml");
    std::fs::create_dir_all(file.parent().expect("a parent")).expect("made");
    std::fs::write(&file, format!("url = '{context}'\n")).expect("written");
    assert!(reached(None).contains(&context), "{}", reached(None));
    assert!(reached(Some(&variable)).contains(&variable), "{}", reached(Some(&variable)));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let home = home();
    let mut child = jobyard(home.path(), &["completion", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // Nobody reads: the pipe is closed before the first byte, or while they come.
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

#[test]
fn completions_for_the_usual_shells() {
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&["completion", shell]);
        assert_eq!(output.status.code(), Some(0));
        let script = text(&output.stdout);
        assert!(script.contains("artifact") && script.contains("exclusive"), "{shell}");
    }
}

/// What the doctor says as JSON.
fn doctor(home: &Path, arguments: &[&str]) -> (Option<i32>, serde_json::Value) {
    let words = [&["doctor", "-o", "json"], arguments].concat();
    let output = jobyard(home, &words).output().expect("it starts");
    let told = serde_json::from_slice(&output.stdout);
    (output.status.code(), told.unwrap_or_else(|_| panic!("{}", text(&output.stderr))))
}

fn answer<'a>(diagnosis: &'a serde_json::Value, name: &str) -> (&'a str, &'a str, &'a str) {
    let items = diagnosis["items"].as_array().expect("a list");
    let check = items.iter().find(|check| check["name"] == name).expect("it is looked at");
    let word = |field: &str| check[field].as_str().unwrap_or_default();
    (word("answer"), word("found"), word("fix"))
}

#[test]
fn a_doctor_tells_what_a_worker_would_find_and_leaves_nothing() {
    let home = home();
    let sidecar = home.path().join("static.toml");
    std::fs::write(&sidecar, format!("[worker]\nsidecar = '{}'\n", env!("CARGO_BIN_EXE_jobyard")))
        .expect("written");
    let (code, diagnosis) = doctor(home.path(), &["--config", sidecar.to_str().expect("UTF-8")]);
    assert_eq!((code, &diagnosis["worker_can_run"]), (Some(0), &true.into()), "{diagnosis}");
    for check in diagnosis["items"].as_array().expect("a list") {
        let is_fine = check["answer"] == "yes";
        assert_eq!(is_fine, check["fix"].is_null(), "{check}");
        assert!(!check["means"].as_str().expect("words").is_empty());
    }
    assert_eq!(answer(&diagnosis, "static sidecar").0, "warn", "our own binary is no static one");
    assert!(answer(&diagnosis, "datastore").1.contains("is not there yet"));
    assert!(answer(&diagnosis, "data directory").1.contains("can be made"));
    let left: Vec<_> = std::fs::read_dir(home.path()).expect("there").collect();
    assert_eq!(left.len(), 1, "only the settings: {left:?}");
    let groups = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    for mount in groups.lines().filter(|line| line.contains(" - cgroup")) {
        let folder = mount.split(' ').nth(4).expect("a mount point");
        let left = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let left: Vec<_> =
            left.filter(|entry| entry.file_name().to_string_lossy().starts_with("jobyard-try-")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn what_keeps_a_worker_from_running_is_named_with_what_to_do() {
    let home = home();
    let settings = home.path().join("jobyard.toml");
    for (text, name, found, fix) in [
        ("[worker]\nsidecar = '/no/such/sidecar'\n", "sidecar", "/no/such/sidecar", "worker.sidecar"),
        (
            "[datastore]\nurl = 'postgres://jobyard@127.0.0.1:1/jobyard'\n[worker]\ndata_dir = '/tmp'\n",
            "datastore",
            "could not be reached",
            "reached from here",
        ),
        (
            "[datastore]\nurl = 'postgres://jobyard@127.0.0.1:1/jobyard'\n[worker]\ndata_dir = '/proc/jobyard'\n",
            "data directory",
            "can't be written to",
            "worker.data_dir",
        ),
    ] {
        std::fs::write(&settings, text).expect("written");
        let (code, diagnosis) = doctor(home.path(), &["--config", settings.to_str().expect("UTF-8")]);
        assert_eq!((code, &diagnosis["worker_can_run"]), (Some(1), &false.into()));
        let answer = answer(&diagnosis, name);
        assert_eq!(answer.0, "no");
        assert!(answer.1.contains(found) && answer.2.contains(fix), "{answer:?}");
    }
    let words = ["doctor", "--config", "/no/such.toml"];
    assert_eq!(jobyard(home.path(), &words).output().expect("it starts").status.code(), Some(2));
}

#[test]
fn an_embedded_datastore_that_is_none_is_told() {
    let home = home();
    let database = home.path().join(".local/share/jobyard/jobyard.db");
    std::fs::create_dir_all(database.parent().expect("a parent")).expect("made");
    let notes = "this is no database, but somebody's notes\n".repeat(100);
    std::fs::write(&database, &notes).expect("written");
    let (code, diagnosis) = doctor(home.path(), &[]);
    let (word, found, _) = answer(&diagnosis, "datastore");
    assert_eq!((code, word), (Some(1), "no"), "{found}");
    assert_eq!(std::fs::read_to_string(&database).expect("untouched"), notes);
}
