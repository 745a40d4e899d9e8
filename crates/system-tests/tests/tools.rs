//! The operator's tools against real installations: what `bench` says adds up and nothing of it stays; `doctor` sees
//! what the roles see.

use jobyard_client::{JobFilter, Status};
use jobyard_system_tests::{Role, Yard};
use serde_json::Value;

async fn reports(yard: &Yard, datastore: &str) {
    for (arguments, figures, over) in [
        ("throughput --jobs 60 --batch 25", &["submit", "end_to_end"][..], (60, 0)),
        // Five more to warm up.
        ("latency --jobs 4", &["answer", "claim", "start", "end"], (9, 0)),
        (
            "backlog --jobs 120 --samples 3",
            &[
                "fill",
                "submit_before",
                "list_before",
                "summary_before",
                "urgent_before",
                "submit_behind",
                "list_behind",
                "summary_behind",
                "urgent_behind",
                "cancel",
            ],
            // The urgent ones ran, before and behind.
            (16, 126),
        ),
    ] {
        let words: Vec<&str> = ["bench"].into_iter().chain(arguments.split(' ')).chain(["--json"]).collect();
        let output = yard.command(&words).output().expect("it starts");
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(
            (&report["server"]["datastore"], &report["server"]["nodes"]),
            (&datastore.into(), &1.into())
        );
        let named: Vec<_> =
            report["figures"].as_array().expect("figures").iter().map(|one| &one["name"]).collect();
        assert_eq!(named, figures, "{arguments}");
        for one in report["figures"]
            .as_array()
            .expect("figures")
            .iter()
            .chain(report["ratios"].as_array().expect("ratios"))
        {
            let value =
                [&one["per_second"], &one["p50_ms"], &one["value"]].into_iter().find_map(Value::as_f64);
            assert!(value.expect("a number") > 0.0, "{arguments}: {one}");
        }
        assert_eq!(ended(yard, &report).await, over, "{arguments}: succeeded and cancelled");
    }
}

/// How many jobs of the run succeeded and were cancelled; there are no others.
async fn ended(yard: &Yard, report: &Value) -> (usize, usize) {
    let run = report["run"].as_str().expect("a name").to_owned();
    let labels = vec![("bench".to_owned(), run)];
    let filter = JobFilter { labels, limit: Some(500), ..JobFilter::default() };
    let page = yard.client().jobs().list(&filter).await.expect("a list");
    let count = |status| page.items.iter().filter(|job| job.status == status).count();
    let counts = (count(Status::Success), count(Status::Cancelled));
    assert_eq!(counts.0 + counts.1, page.items.len());
    counts
}

#[tokio::test]
async fn an_installation_is_measured_on_sqlite() {
    reports(&Yard::up().await, "sqlite").await;
}

#[tokio::test]
async fn an_installation_is_measured_on_postgres() {
    reports(&Yard::on_postgres().await, "postgres").await;
}

#[tokio::test]
async fn a_doctor_sees_a_datastore_come_and_go() {
    let mut yard = Yard::on_postgres().await;
    let diagnosis = |yard: &Yard| -> (Option<i32>, Value, Value) {
        let server = yard.role_command(Role::Server);
        let settings = server.get_args().last().expect("its settings");
        let mut doctor = yard.command(&["doctor", "-o", "json", "--config"]);
        let output = doctor.arg(settings).output().expect("it starts");
        let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let items = told["items"].as_array().expect("a list");
        let datastore = items.iter().find(|check| check["name"] == "datastore").expect("it is looked at");
        (output.status.code(), datastore["answer"].clone(), datastore["fix"].clone())
    };
    let (code, answer, fix) = diagnosis(&yard);
    assert_eq!((code, answer, fix), (Some(0), "yes".into(), Value::Null));
    yard.sql("UPDATE schema_version SET version = 0");
    let (code, answer, fix) = diagnosis(&yard);
    assert_eq!((code, answer), (Some(1), "no".into()));
    assert!(fix.as_str().expect("words").contains("jobyard migrate"), "{fix}");
    yard.stop_datastore();
    let (code, answer, _) = diagnosis(&yard);
    assert_eq!((code, answer), (Some(1), "no".into()));
    yard.start_datastore();
}
