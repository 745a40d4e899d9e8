//! The binary against a real server. The worker is led by hand, so that a test decides when a job writes and ends.

#[path = "../../client/tests/yard/mod.rs"]
mod yard;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};

use futures_util::TryStreamExt;
use jobyard_client::json::JobSubmit;
use jobyard_client::{JobFilter, JobId, Status};
use jobyard_model::{Exit, Intent};
use jobyard_store::LogStream;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use yard::{Yard, eventually};

/// The command line as the yard's admin, in an environment that has nothing of the developer's.
fn jobyard(yard: &Yard, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jobyard"));
    command.args(arguments).env_clear().env("TZ", "UTC").stdin(Stdio::null()).kill_on_drop(true);
    command.env("JOBYARD_URL", yard.url()).env("JOBYARD_TOKEN", &yard.secret);
    command
}

async fn run(yard: &Yard, arguments: &[&str]) -> Output {
    jobyard(yard, arguments).output().await.expect("it starts")
}

/// What a command that must go well prints.
async fn printed(yard: &Yard, arguments: &[&str]) -> String {
    let output = run(yard, arguments).await;
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn spawn(yard: &Yard, arguments: &[&str]) -> Child {
    let mut command = jobyard(yard, arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

/// The newest job, as soon as it waits.
async fn waiting_job(yard: &Yard) -> JobId {
    let jobs = yard.client().jobs();
    eventually("a job that waits", async || {
        let newest = jobs.list(&JobFilter::default()).await.ok()?.items.into_iter().next()?;
        (newest.status == Status::Waiting).then_some(newest.id)
    })
    .await
}

fn interrupt(child: &Child) {
    let id = i32::try_from(child.id().expect("it runs")).expect("an id");
    let id = rustix::process::Pid::from_raw(id).expect("an id");
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("it runs");
}

/// The body of an answer, as it came over the wire.
async fn raw(yard: &Yard, path: &str) -> Value {
    let address = yard.url().replace("http://", "");
    let mut stream = tokio::net::TcpStream::connect(&address).await.expect("it listens");
    let request = format!(
        "GET /api/v1{path} HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n\r\n",
        yard.secret
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("answered");
    let answer = text(&answer);
    json(answer.split_once("\r\n\r\n").expect("a body").1)
}

#[tokio::test(flavor = "multi_thread")]
async fn json_output_is_what_the_api_answers() {
    let yard = Yard::start().await;
    let node = yard.node("w-12").await;
    let flags = [
        "--name",
        "n",
        "--label",
        "a=b",
        "-e",
        "X=1",
        "--timeout",
        "90s",
        "--memory",
        "1GiB",
        "--",
        "x",
        "y",
    ];
    let id = printed(&yard, &[&["submit"], &flags[..]].concat()).await;
    let id = id.strip_suffix('\n').expect("a line of its own").to_owned();
    let task = node.start(id.parse().expect("an id")).await;
    task.exit(Exit::Code(3)).await;
    for (arguments, path) in [
        (vec!["get", &id], format!("/jobs/{id}")),
        (vec!["attempts", &id], format!("/jobs/{id}/attempts")),
        (vec!["ps", "--label", "a=b"], "/jobs?label=a:b".to_owned()),
        (vec!["node", "ls"], "/nodes".to_owned()),
        (vec!["token", "ls"], "/tokens".to_owned()),
    ] {
        let told = json(&printed(&yard, &[&arguments[..], &["-o", "json"]].concat()).await);
        let mut wanted = raw(&yard, &path).await;
        // Lists that always come whole are shown without the cursor they never have.
        if told.get("next_cursor").is_none() {
            wanted.as_object_mut().expect("an object").remove("next_cursor");
        }
        assert_eq!(told, wanted, "{arguments:?}");
        let yaml = printed(&yard, &[&arguments[..], &["-o", "yaml"]].concat()).await;
        let yaml: Value = serde_saphyr::from_str(&yaml).expect("YAML");
        assert_eq!(yaml, told, "{arguments:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_has_the_jobs_output_and_exit_code() {
    let yard = Yard::start().await;
    let node = yard.node("w-12").await;
    for (exit, code) in [(Exit::Code(0), 0), (Exit::Code(3), 3), (Exit::Signal(9), 137)] {
        let child = spawn(&yard, &["run", "--", "x"]);
        let id = waiting_job(&yard).await;
        let task = node.start(id).await;
        task.write(LogStream::Stdout, 0, b"out\xff\n").await;
        task.write(LogStream::Stderr, 0, b"err").await;
        task.exit(exit).await;
        let output = child.wait_with_output().await.expect("it ends");
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        assert_eq!(output.stdout, b"out\xff\n");
        assert_eq!(text(&output.stderr), "err", "nothing of ours, whatever the exit code says");
        assert_eq!(yard.client().jobs().get(id).await.expect("there").max_retries, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_an_exit_code_of_its_own_says_why() {
    let yard = Yard::start().await;
    let child = spawn(&yard, &["run", "--", "x"]);
    let id = waiting_job(&yard).await;
    yard.client().jobs().cancel(id).await.expect("cancelled");
    let output = child.wait_with_output().await.expect("it ends");
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).ends_with(&format!("job {id} cancelled\n")), "{}", text(&output.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_interrupt_of_a_run_cancels_the_job_and_waits_for_its_end() {
    let yard = Yard::start().await;
    let node = yard.node("w-12").await;
    let child = spawn(&yard, &["run", "--", "x"]);
    let id = waiting_job(&yard).await;
    let task = node.start(id).await;
    interrupt(&child);
    let jobs = yard.client().jobs();
    eventually("it is wanted", async || (jobs.get(id).await.ok()?.intent == Intent::Cancel).then_some(()))
        .await;
    task.stopped().await;
    let output = child.wait_with_output().await.expect("it ends");
    assert_eq!(output.status.code(), Some(143), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("cancelling the job"));
    assert_eq!(jobs.get(id).await.expect("there").status, Status::Cancelled);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_interrupt_of_a_run_leaves_at_once() {
    let yard = Yard::start().await;
    let node = yard.node("w-12").await;
    let child = spawn(&yard, &["run", "--", "x"]);
    let id = waiting_job(&yard).await;
    let _runs_on = node.start(id).await;
    interrupt(&child);
    let jobs = yard.client().jobs();
    eventually("it is wanted", async || (jobs.get(id).await.ok()?.intent == Intent::Cancel).then_some(()))
        .await;
    interrupt(&child);
    let output = child.wait_with_output().await.expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_outlasts_a_server_that_comes_back() {
    let mut yard = Yard::start().await;
    let node = yard.node("w-12").await;
    let child = spawn(&yard, &["run", "--", "x"]);
    let task = node.start(waiting_job(&yard).await).await;
    task.write(LogStream::Stdout, 0, b"before ").await;
    yard.kill_server().await;
    task.write(LogStream::Stdout, 7, b"between ").await;
    yard.serve().await;
    yard.stop_server().await;
    task.write(LogStream::Stdout, 15, b"after").await;
    task.exit(Exit::Code(7)).await;
    yard.serve().await;
    let output = child.wait_with_output().await.expect("it ends");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(7), "before between after".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_ends_with_the_code_of_one_job_and_with_one_for_several() {
    let yard = Yard::start().await;
    let node = yard.node("w-12").await;
    let jobs = yard.client().jobs();
    let mut ids = Vec::new();
    for code in [0, 4] {
        let wanted =
            JobSubmit { command: vec!["x".to_owned()], max_retries: Some(0), ..JobSubmit::default() };
        let id = jobs.submit(wanted).await.expect("accepted").id;
        node.start(id).await.exit(Exit::Code(code)).await;
        ids.push(id.to_string());
    }
    let waits = yard.submit(&["x"]).await.to_string();
    let unknown = "01890a5d-ac96-774b-bcce-b302099a8057";
    for (arguments, code) in [
        (vec![ids[0].as_str()], 0),
        (vec![ids[1].as_str()], 4),
        (vec![ids[0].as_str(), ids[0].as_str()], 0),
        (vec![ids[0].as_str(), ids[1].as_str()], 1),
        (vec![unknown], 1),
        (vec![unknown, ids[0].as_str()], 1),
        (vec!["--timeout", "50ms", waits.as_str()], 124),
    ] {
        let output = run(&yard, &[&["wait"], &arguments[..]].concat()).await;
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_is_uploaded_once_and_submitted_with_its_arguments() {
    let yard = Yard::start().await;
    let home = tempfile::tempdir().expect("a temporary directory");
    let script = home.path().join("count.sh");
    std::fs::write(&script, "#!/bin/sh\nwc -w \"$1\"\n").expect("written");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("executable");
    let submit = async || {
        let mut command = jobyard(&yard, &["submit", "./count.sh", "a.txt", "-v", "-o", "json"]);
        command.current_dir(home.path()).output().await.expect("it starts")
    };
    let first = submit().await;
    // What stands behind the program is its own, `-o json` too.
    let id: JobId = text(&first.stdout).trim().parse().expect("an id");
    let job = yard.client().jobs().get(id).await.expect("there");
    assert_eq!(
        (job.name.as_str(), &job.command[..]),
        ("count.sh", &["a.txt", "-v", "-o", "json"].map(str::to_owned)[..])
    );
    let url = job.binary_url.expect("uploaded");
    assert_eq!(text(&submit().await.stdout).lines().count(), 1);
    let back = home.path().join("back");
    printed(&yard, &["artifact", "pull", &url, path(&back)]).await;
    assert_eq!(std::fs::read(&back).expect("there"), std::fs::read(&script).expect("there"));
    assert_eq!(printed(&yard, &["artifact", "push", path(&script)]).await, format!("{url}\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_pushed_and_pulled_by_its_name() {
    let yard = Yard::start().await;
    let home = tempfile::tempdir().expect("a temporary directory");
    let (here, back) = (home.path().join("here"), home.path().join("back"));
    std::fs::create_dir_all(here.join("sub")).expect("made");
    std::fs::write(here.join("sub/text"), "words").expect("written");
    let pushed = run(&yard, &["artifact", "push", path(&here)]).await;
    assert_eq!(pushed.status.code(), Some(0), "{}", text(&pushed.stderr));
    assert_eq!(text(&pushed.stderr), "", "no bar and no remark where nobody sees them");
    let name = text(&pushed.stdout).trim().to_owned();
    let again = printed(&yard, &["artifact", "push", path(&here), "-o", "json"]).await;
    let hash = name.strip_prefix("sha256:").expect("a name");
    assert_eq!(json(&again), serde_json::json!({"sha256": hash, "files": 1, "size_bytes": 5}));
    assert_eq!(printed(&yard, &["artifact", "pull", &name, path(&back)]).await, "");
    assert_eq!(std::fs::read(back.join("sub/text")).expect("there"), b"words");
    assert_eq!(run(&yard, &["artifact", "pull", &name, path(&back)]).await.status.code(), Some(1));
    std::os::unix::fs::symlink("/etc", here.join("etc")).expect("linked");
    let refused = run(&yard, &["artifact", "push", path(&here)]).await;
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).starts_with("error[usage]: etc: is a link that leads out"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_without_output_has_nothing_to_pull() {
    let yard = Yard::start().await;
    let id = yard.submit(&["x"]).await.to_string();
    let output = run(&yard, &["artifact", "pull", &id]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).starts_with(&format!("error[no_output]: job {id} (waiting) has no output")));
    assert_eq!(run(&yard, &["artifact", "pull", "neither"]).await.status.code(), Some(2));
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_bytes_as_the_process_wrote_them() {
    let yard = Yard::start().await;
    let id = yard.submit(&["x"]).await;
    let task = yard.node("w-12").await.start(id).await;
    task.write(LogStream::Stdout, 0, b"a\0\xff\n").await;
    task.write(LogStream::Stderr, 0, b"b\n").await;
    let id = id.to_string();
    let following = spawn(&yard, &["logs", "-f", "--stdout", &id]);
    for (arguments, wanted) in [
        (vec!["logs", id.as_str()], &b"a\0\xff\nb\n"[..]),
        (vec!["logs", "--stderr", id.as_str()], b"b\n"),
        (vec!["logs", "--tail", "1", id.as_str()], b"b\n"),
        (vec!["logs", "--attempt", "1", "--stdout", id.as_str()], b"a\0\xff\n"),
    ] {
        assert_eq!(run(&yard, &arguments).await.stdout, wanted, "{arguments:?}");
    }
    task.write(LogStream::Stdout, 4, b"end").await;
    task.exit(Exit::Code(0)).await;
    let output = following.wait_with_output().await.expect("it ends with the job");
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"a\0\xff\nend"[..]));
    let after = run(&yard, &["logs", "-f", &id]).await;
    assert_eq!(after.stdout, b"a\0\xff\nb\nend", "of a job that is over, by arrival");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_refused_does_not_keep_the_others_from_their_turn() {
    let yard = Yard::start().await;
    let id = yard.submit(&["x"]).await;
    let unknown = "01890a5d-ac96-774b-bcce-b302099a8057";
    let output = run(&yard, &["cancel", unknown, &id.to_string()]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).starts_with("error[not_found]: "), "{}", text(&output.stderr));
    assert_eq!(yard.client().jobs().get(id).await.expect("there").status, Status::Cancelled);
    printed(&yard, &["retry", &id.to_string()]).await;
    assert_eq!(yard.client().jobs().get(id).await.expect("there").round, 2);
    let twice = run(&yard, &["retry", &id.to_string()]).await;
    assert_eq!(twice.status.code(), Some(1), "it is not over");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_refused_is_told_with_every_fault() {
    let yard = Yard::start().await;
    let home = tempfile::tempdir().expect("a temporary directory");
    let file = home.path().join("job.yaml");
    std::fs::write(&file, "command: [x]\nnam: n\nresources: {cpu: -1}\n").expect("written");
    let output = run(&yard, &["submit", "--priority", "101", "-f", path(&file)]).await;
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    for pointer in ["/nam", "/resources/cpu", "/priority"] {
        assert!(said.contains(&format!("\n  {pointer}: ")), "{said}");
    }
    assert!(yard.client().jobs().list(&JobFilter::default()).await.expect("a list").items.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_made_used_and_revoked() {
    let yard = Yard::start().await;
    let secret = printed(&yard, &["token", "create", "--name", "reader", "--role", "viewer"]).await;
    let as_reader = |arguments: &[&str]| {
        let mut command = jobyard(&yard, arguments);
        command.env("JOBYARD_TOKEN", secret.trim());
        command
    };
    let listed = as_reader(&["ps"]).output().await.expect("it starts");
    assert_eq!(listed.status.code(), Some(0), "{}", text(&listed.stderr));
    let refused = as_reader(&["submit", "--", "x"]).output().await.expect("it starts");
    assert_eq!(refused.status.code(), Some(1));
    let tokens = json(&printed(&yard, &["token", "ls", "-o", "json"]).await);
    let reader = tokens["items"].as_array().expect("a list").iter().find(|token| token["name"] == "reader");
    printed(&yard, &["token", "revoke", reader.expect("listed")["id"].as_str().expect("an id")]).await;
    let revoked = as_reader(&["ps"]).output().await.expect("it starts");
    assert_eq!(revoked.status.code(), Some(1));
    assert!(text(&revoked.stderr).contains("JOBYARD_TOKEN"), "{}", text(&revoked.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_steered_by_name() {
    let yard = Yard::start().await;
    yard.node("w-12").await;
    assert!(printed(&yard, &["node", "cordon", "w-12"]).await.contains("cordoned"));
    assert!(printed(&yard, &["node", "drain", "w-12"]).await.contains("draining"));
    printed(&yard, &["node", "uncordon", "w-12"]).await;
    let unknown = run(&yard, &["node", "cordon", "w-13"]).await;
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("the nodes are: w-12"), "{}", text(&unknown.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_can_be_asked_why_it_waits_and_what_happened_to_it() {
    let yard = Yard::start().await;
    let id = yard.submit(&["x"]).await.to_string();
    let why = printed(&yard, &["why", &id]).await;
    assert!(why.starts_with("status") && why.contains("waiting"), "{why}");
    let events = printed(&yard, &["events", &id]).await;
    assert!(events.contains("tester") && events.contains("waiting"), "{events}");
    let detail = printed(&yard, &["get", &id]).await;
    assert!(detail.contains(&id) && detail.contains("search"), "{detail}");
}

/// A server named alone still gets the token that was saved for it; another server doesn't.
#[tokio::test(flavor = "multi_thread")]
async fn a_saved_token_goes_to_the_server_it_was_saved_for_alone() {
    let yard = Yard::start().await;
    let other = Yard::start().await;
    let home = tempfile::tempdir().expect("a temporary directory");
    let file = home.path().join("jobyard/config.toml");
    std::fs::create_dir_all(file.parent().expect("a parent")).expect("made");
    std::fs::write(&file, format!("url = '{}'\ntoken = '{}'\n", yard.url(), yard.secret)).expect("written");
    let ps = async |url: Option<String>| {
        let mut command = jobyard(&yard, &["ps"]);
        command.env_remove("JOBYARD_TOKEN").env_remove("JOBYARD_URL").env("XDG_CONFIG_HOME", home.path());
        command.envs(url.map(|url| ("JOBYARD_URL", url)));
        command.output().await.expect("it starts").status.code()
    };
    assert_eq!(ps(None).await, Some(0));
    assert_eq!(ps(Some(yard.url())).await, Some(0));
    assert_eq!(ps(Some(other.url())).await, Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn submissions_are_measured_beside_raw_calls_and_leave_nothing_that_waits() {
    let yard = Yard::start().await;
    let arguments =
        ["bench", "submit", "--jobs", "60", "--clients", "8", "--batched-jobs", "250", "--batch", "100"];
    let report = json(&printed(&yard, &[&arguments[..], &["--json"]].concat()).await);
    assert_eq!((&report["benchmark"], &report["server"]["datastore"]), (&"submit".into(), &"sqlite".into()));
    assert!(report["machine"]["cores"].as_u64().expect("a number") > 0);
    let raw = &report["baselines"][0];
    for rate in [&raw["before_per_second"], &raw["after_per_second"], &report["ratios"][0]["value"]] {
        assert!(rate.as_f64().expect("a number") > 0.0, "{report}");
    }
    let figures = report["figures"].as_array().expect("figures");
    let counts: Vec<_> = figures.iter().map(|figure| (&figure["name"], &figure["count"])).collect();
    let wanted =
        [("single", 60), ("batched", 250), ("cancel", 310)].map(|(name, count)| (name.into(), count.into()));
    assert_eq!(counts, wanted.iter().map(|(name, count): &(Value, Value)| (name, count)).collect::<Vec<_>>());
    let run = report["run"].as_str().expect("a name").to_owned();
    assert_eq!(statuses_of(&yard, Some(run)).await, vec![Status::Cancelled; 310]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_measurement_cancels_what_it_submitted_and_nothing_else() {
    let yard = Yard::start().await;
    let other = yard.submit(&["x"]).await;
    let child = spawn(&yard, &["bench", "submit", "--jobs", "1000000"]);
    eventually("some are submitted", async || (statuses_of(&yard, None).await.len() > 50).then_some(()))
        .await;
    interrupt(&child);
    let output = child.wait_with_output().await.expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(output.stdout.is_empty(), "a run that broke off has no figures");
    assert!(text(&output.stderr).contains("jobs that were left"), "{}", text(&output.stderr));
    let mut statuses = statuses_of(&yard, None).await;
    statuses.retain(|status| *status != Status::Cancelled);
    assert_eq!(statuses, [Status::Waiting]);
    assert_eq!(yard.client().jobs().get(other).await.expect("there").status, Status::Waiting);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_interrupt_of_a_measurement_leaves_and_says_where_to_look() {
    let yard = Yard::start().await;
    let mut child = spawn(&yard, &["bench", "submit", "--jobs", "1000000"]);
    eventually("many are submitted", async || (statuses_of(&yard, None).await.len() > 500).then_some(()))
        .await;
    interrupt(&child);
    let mut said = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    said.read_line(&mut line).await.expect("a line");
    assert!(line.starts_with("cancelling what is left of bench="), "{line}");
    interrupt(&child);
    said.read_to_string(&mut line).await.expect("the rest");
    assert_eq!(child.wait().await.expect("it ends").code(), Some(130));
    assert!(line.contains("left; what is not over: jobyard ps -l bench="), "{line}");
    assert!(statuses_of(&yard, None).await.contains(&Status::Waiting));
}

/// Of the jobs of one run, or of all jobs.
async fn statuses_of(yard: &Yard, run: Option<String>) -> Vec<Status> {
    let labels = run.map(|run| ("bench".to_owned(), run)).into_iter().collect();
    let filter = JobFilter { labels, limit: Some(500), ..JobFilter::default() };
    let jobs = yard.client().jobs().list_all(filter);
    jobs.map_ok(|job| job.status).try_collect().await.expect("a list")
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_node_nothing_that_has_to_run_is_measured() {
    let yard = Yard::start().await;
    for benchmark in ["throughput", "latency", "backlog"] {
        let output = run(&yard, &["bench", benchmark]).await;
        assert_eq!(output.status.code(), Some(1), "{benchmark}");
        let said = text(&output.stderr);
        assert!(said.starts_with("error[failed]: no node of the pool default"), "{said}");
    }
    assert!(statuses_of(&yard, None).await.is_empty());
}
