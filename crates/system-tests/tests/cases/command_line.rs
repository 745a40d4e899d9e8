//! What commands end with, for real jobs.

use jobyard_client::{JobFilter, Status};
use jobyard_system_tests::{Yard, bin};

/// Command lines, and the exit code of each.
const COMMANDS: &[(&[&str], i32)] = &[
    (&["run", "--", "true"], 0),
    (&["submit", "--wait", "--", "true"], 0),
    (&["run", "--", "sh", "-c", "exit 7"], 7),
    (&["run", "--", "sh", "-c", "exit 255"], 255),
    (&["submit", "--max-retries", "0", "--wait", "--", "sh", "-c", "exit 9"], 9),
    (&["run", "--", "sh", "-c", "kill -9 $$"], 137),
    (&["run", "--", "sh", "-c", "kill -SEGV $$"], 139),
    (&["run", "--timeout", "500ms", "--", "sleep", "60"], 143),
    (&["run", "--", "no-such-program"], 125),
    (&["run", "--start-within", "500ms", "--node-label", "nobody=has", "--", "true"], 125),
    // Refused by the server.
    (&["submit", "--priority", "101", "--", "true"], 1),
    (&["get", "01890a5d-ac96-774b-bcce-b302099a8057"], 1),
    // Refused by the command line.
    (&["submit", "--memory", "much", "--", "true"], 2),
    (&["get", "nonsense"], 2),
    (&["submit", "-f", "/no/such/file.yaml"], 2),
];

/// B062 as the command line tells it, and the rest of the table.
#[tokio::test]
async fn each_exit_code_means_what_the_help_says() {
    let yard = Yard::up().await;
    for (arguments, wanted) in COMMANDS {
        let output = yard.command(arguments).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(*wanted), "{arguments:?}: {said}");
        // A code of the job's own says it all.
        assert!(![1, 2, 125].contains(wanted) || !said.is_empty(), "{arguments:?} says nothing");
    }
    let failed = JobFilter { statuses: vec![Status::FinalFailed], ..JobFilter::default() };
    let failed = yard.client().jobs().list(&failed).await.expect("a list").items;
    assert_eq!(failed.len(), 8, "one for each that ran and failed");
    let ids: Vec<String> = failed.iter().take(2).map(|job| job.id.to_string()).collect();
    let several = yard.command(&["wait", &ids[0], &ids[1]]).output().expect("it starts");
    assert_eq!(several.status.code(), Some(1));
}

#[tokio::test]
async fn a_wrong_token_and_a_missing_server_are_told_apart() {
    let yard = Yard::up().await;
    let refused = yard.command(&["ps"]).env("JOBYARD_TOKEN", "jy_wrong").output().expect("it starts");
    assert_eq!(refused.status.code(), Some(1));
    let nowhere =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port");
    let url = format!("http://{nowhere}");
    let missing = std::process::Command::new(bin("jobyard"))
        .arg("ps")
        .env("JOBYARD_URL", url)
        .env("JOBYARD_TOKEN", "jy_any")
        .output()
        .expect("it starts");
    assert_eq!(missing.status.code(), Some(3), "{}", String::from_utf8_lossy(&missing.stderr));
}
