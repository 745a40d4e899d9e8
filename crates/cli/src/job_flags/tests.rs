use clap::Parser;
use serde_json::json;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    job: JobFlags,
}

fn draft(words: &[&str]) -> Result<Draft, CommandError> {
    let line = Line::try_parse_from([&["jobyard"], words].concat()).expect("clap takes it");
    line.job.draft()
}

fn document(words: &[&str]) -> Value {
    draft(words).expect("a draft").document.into_value()
}

fn refusal(words: &[&str]) -> String {
    Line::try_parse_from([&["jobyard"], words].concat()).expect_err("clap refuses it").to_string()
}

fn in_file(name: &str, text: &str) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join(name);
    std::fs::write(&path, text).expect("written");
    (directory, path.to_str().expect("UTF-8").to_owned())
}

#[test]
fn a_command_alone_is_all_a_job_needs() {
    assert_eq!(document(&["echo", "-n", "--", "hello"]), json!({"command": ["echo", "-n", "--", "hello"]}));
    assert_eq!(document(&["--", "sleep", "5"]), json!({"command": ["sleep", "5"]}));
}

#[test]
fn every_flag_becomes_its_field() {
    let cases = [
        (vec!["--name", "n"], json!({"name": "n"})),
        (vec!["--kind", "service"], json!({"kind": "service"})),
        (vec!["--owner", "o"], json!({"owner_id": "o"})),
        (vec!["--env", "A=1", "-e", "B=x=y", "-e", "C="], json!({"env": {"A": "1", "B": "x=y", "C": ""}})),
        (vec!["-l", "set=docs", "--label", "a=b"], json!({"labels": {"set": "docs", "a": "b"}})),
        (vec!["--node-label", "zone=a"], json!({"node_labels": {"zone": "a"}})),
        (vec!["--binary", "file:///bin/x"], json!({"binary_url": "file:///bin/x"})),
        (vec!["--idempotency-key", "k"], json!({"idempotency_key": "k"})),
        (vec!["--input", "sha256:ab"], json!({"input_path": "sha256:ab"})),
        (
            vec!["--origin", "schedule:nightly:7"],
            json!({"origin": {"kind": "schedule", "id": "nightly", "key": "7"}}),
        ),
        (vec!["--max-retries", "0"], json!({"max_retries": 0})),
        (vec!["--backoff", "1.5s"], json!({"backoff": 1.5})),
        (vec!["--no-retry-exit-codes", "2,64"], json!({"no_retry_exit_codes": [2, 64]})),
        (vec!["--run-at", "2026-05-01T11:30:00+02:00"], json!({"run_at": "2026-05-01T09:30:00.000Z"})),
        (vec!["--start-within", "1h30m"], json!({"start_within": 5400})),
        (vec!["--timeout", "90"], json!({"timeout": 90})),
        (vec!["--stop-grace", "250ms"], json!({"stop_grace": 0.25})),
        (
            vec!["--cpu", "0.5", "--memory", "256MiB"],
            json!({"resources": {"cpu": 0.5, "memory": 268_435_456}}),
        ),
        (vec!["--cpu-limit", "2"], json!({"resources": {"cpu_limit": 2}})),
        (vec!["--io-class", "io"], json!({"io_class": "io"})),
        (vec!["--priority", "80"], json!({"priority": 80})),
        (vec!["--preemptible"], json!({"preemptible": true})),
        (vec!["--exclusive"], json!({"exclusive": true})),
        (vec!["--pool", "gpu"], json!({"pool": "gpu"})),
    ];
    for (flags, fields) in cases {
        let mut wanted = json!({"command": ["x"]});
        wanted.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        assert_eq!(document(&[flags.as_slice(), &["--", "x"]].concat()), wanted, "{flags:?}");
    }
}

#[test]
fn what_can_not_be_written_down_is_refused_before_anything_is_sent() {
    for (words, why) in [
        (["--timeout", "soon"], "1h30m"),
        (["--kind", "daemon"], "task and service"),
        (["--memory", "1e99"], "256MiB"),
        (["--cpu", "-1"], "cores"),
        (["--run-at", "2026-05-01T09:30:00"], "offset"),
        (["--env", "JOBYARD_TEST_NOT_SET"], "not set here"),
        (["--env", "=x"], "KEY=VALUE"),
        (["--secret-env", "TOKEN=x"], "seen by everybody"),
        (["--secret-env", "JOBYARD_TEST_NOT_SET"], "not set here"),
        (["--secret-env-file", "TOKEN"], "NAME=PATH"),
        (["--secret-env-file", "TOKEN=/no/such/file"], "/no/such/file could not be read"),
        (["--label", "x"], "KEY=VALUE"),
        (["--io-class", "disk"], "mixed"),
        (["--origin", "nightly"], "KIND:ID:KEY"),
        (["--priority", "300"], "255"),
        (["--max-retries", "-1"], "invalid"),
        (["--no-retry-exit-codes", "2,x"], "invalid digit"),
    ] {
        let refusal = refusal(&[&words[..], &["--", "x"]].concat());
        assert!(refusal.contains(why), "{words:?}: {refusal}");
    }
}

#[test]
fn secrets_come_from_a_file_or_from_here_and_are_not_printed() {
    let (_directory, path) = in_file("token", "hunter2\n\n");
    // PATH is set wherever a test runs.
    let words = ["--secret-env-file", &format!("TOKEN={path}"), "--secret-env", "PATH", "-e", "A=1", "x"];
    let secrets = document(&words)["secret_env"].clone();
    assert_eq!(secrets["TOKEN"], "hunter2\n", "one line end goes");
    assert_eq!(secrets["PATH"], std::env::var("PATH").expect("it is set"));
    let line = Line::try_parse_from([&["jobyard"], &words[..]].concat()).expect("clap takes it");
    let shown = format!("{line:?} {:?}", line.job.to_job());
    assert!(shown.contains("TOKEN") && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn a_program_by_a_relative_path_is_uploaded_and_the_rest_are_its_arguments() {
    for (program, name) in [("./count.sh", "count.sh"), ("bin/count", "count"), ("../count.py", "count.py")] {
        let draft = draft(&[program, "a", "-b"]).expect("a draft");
        assert_eq!(draft.upload, Some(PathBuf::from(program)));
        assert_eq!(draft.document.into_value(), json!({"name": name, "command": ["a", "-b"]}));
    }
    let alone = draft(&["--name", "mine", "./count.sh"]).expect("a draft");
    assert_eq!(alone.document.into_value(), json!({"name": "mine"}));
}

#[test]
fn other_programs_are_looked_up_on_the_node() {
    for words in [vec!["count.sh"], vec!["/bin/true"], vec!["--binary", "file:///x", "./argument"]] {
        assert_eq!(draft(&words).expect("a draft").upload, None, "{words:?}");
    }
    assert_eq!(draft(&["--upload", "/tmp/x"]).expect("a draft").upload, Some(PathBuf::from("/tmp/x")));
}

#[test]
fn a_job_without_anything_to_run_is_refused() {
    assert!(draft(&["--name", "n"]).expect_err("nothing to run").to_string().contains("what is to be run"));
}

#[test]
fn flags_go_before_the_file_and_maps_are_joined() {
    let text =
        "command: [sh, -c, 'echo hi']\npriority: 10\nenv: {A: '1', B: no}\nresources:\n  memory: 1GiB\n";
    let (_directory, path) = in_file("job.yaml", text);
    assert_eq!(
        document(&["-f", &path, "--priority", "90", "-e", "A=2", "--cpu", "2"]),
        json!({
            "command": ["sh", "-c", "echo hi"],
            "priority": 90,
            "env": {"A": "2", "B": "no"},
            "resources": {"memory": "1GiB", "cpu": 2},
        })
    );
}

#[test]
fn json_is_taken_as_it_stands_and_unknown_fields_are_the_servers_to_refuse() {
    let text = "{\n\t\"command\": [\"x\"],\n\t\"name\": \"\\u5de5\\ud83e\\udd80\",\n\t\"no_such\": 1\n}";
    let (_directory, path) = in_file("job.json", text);
    assert_eq!(document(&["-f", &path]), json!({"command": ["x"], "name": "工🦀", "no_such": 1}));
}

#[test]
fn files_that_are_no_jobs_are_refused_with_the_place() {
    for (name, text, why) in [
        ("list.yaml", "- a\n- b\n", "command: [echo, hello]"),
        ("empty.yaml", "", "is not a job"),
        ("double.yaml", "command: [x]\nname: a\nname: b\n", "line 3"),
        ("double.json", "{\"name\": 1,\n\"name\": 2}", "line 2"),
        ("broken.json", "{\"command\": [", "is not a job"),
        ("tab.yaml", "env:\n\tA: 1\n", "line 2"),
    ] {
        let (_directory, path) = in_file(name, text);
        let refusal = draft(&["-f", &path]).expect_err(name).to_string();
        assert!(refusal.contains(why), "{name}: {refusal}");
    }
    let missing = draft(&["-f", "/no/such/job.yaml"]).expect_err("no such file").to_string();
    assert!(missing.contains("/no/such/job.yaml"), "{missing}");
}

#[test]
fn no_error_and_no_draft_shows_a_secret() {
    for text in [
        "command: [x]\nsecret_env:\n  TOKEN: hunter2\nname: a\nname: b\n",
        "command: [x]\nsecret_env:\n  TOKEN: hunter2\n\tbroken: yes\n",
        "command: [x]\nsecret_env: {TOKEN: 'hunter2\n",
        "secret_env: hunter2: hunter2\n",
        "{\"secret_env\": {\"TOKEN\": \"hunter2\"}, \"a\": 1, \"a\": 2}",
        "{\"secret_env\": {\"TOKEN\": \"hunter2\"",
        "{\"secret_env\": {\"TOKEN\": \"hunter2\" oops}}",
        "hunter2",
        "- hunter2\n",
    ] {
        let (_directory, path) = in_file("job", text);
        let refusal = draft(&["-f", &path]).expect_err(text);
        let said = format!("{refusal} {refusal:?}");
        assert!(!said.contains("hunter2"), "{text}: {said}");
    }
    let (_directory, path) = in_file("job.yaml", "command: [x]\nsecret_env: {TOKEN: hunter2}\n");
    let (_other, secret) = in_file("secret", "hunter2\n");
    let draft = draft(&["-f", &path, "--secret-env-file", &format!("OTHER={secret}")]).expect("a draft");
    let printed = format!("{draft:?}");
    assert!(!printed.contains("hunter2") && printed.contains("OTHER"), "{printed}");
    let sent = draft.document.into_value();
    assert_eq!(sent["secret_env"], json!({"TOKEN": "hunter2", "OTHER": "hunter2"}));
}

#[test]
fn an_input_of_this_machine_has_to_go_up() {
    for name in ["texts", "./texts/a.txt", "/data"] {
        let draft = draft(&["--input", name, "wc"]).expect("a draft");
        assert_eq!(draft.input, Some(PathBuf::from(name)));
        assert_eq!(draft.document.into_value().get("input_path"), None);
    }
    assert_eq!(draft(&["--input", "s3://b/k", "wc"]).expect("a draft").input, None);
}
