//! Who goes first, and who is never left behind (area 12).

use jobyard_client::json::{Cores, JobSubmit, ResourcesSubmit};
use jobyard_client::{Client, JobFilter, JobId, Status};
use jobyard_system_tests::{Notebook, Yard, eventually, submit_all, until_phase};

use crate::support::{accept, ended, open_file, open_folder, shell, whole_node};

/// A job of one of the node's eight cores.
fn one_core(job: JobSubmit) -> JobSubmit {
    let resources = ResourcesSubmit { cpu: Some(Cores { milli: 1_000 }), ..ResourcesSubmit::default() };
    JobSubmit { resources: Some(resources), ..job }
}

async fn waiting(client: &Client) -> Vec<JobId> {
    let filter = JobFilter { statuses: vec![Status::Waiting], limit: Some(500), ..JobFilter::default() };
    let page = client.jobs().list(&filter).await.expect("a page");
    page.items.into_iter().map(|job| job.id).collect()
}

/// B130: small jobs of low priority could always fill the gap that the large one waits for.
#[tokio::test]
async fn a_large_job_gets_its_turn_among_small_ones_without_end() {
    let yard = Yard::up().await;
    let client = yard.client();
    let small = JobSubmit { priority: Some(1), ..one_core(shell("sleep 0.7")) };
    let first = submit_all(&client, vec![small; 400]).await[0];
    until_phase(&client, first, "running").await;
    let large = JobSubmit { priority: Some(100), ..whole_node(shell("true")) };
    let large = accept(&client, large).await;
    assert_eq!(ended(&client, large).await.status, Status::Success);
    let passed = waiting(&client).await;
    assert!(!passed.is_empty(), "it only ran because nobody else was left");
    for id in passed.iter().rev().take(16) {
        assert_eq!(ended(&client, *id).await.status, Status::Success, "the small ones go on");
    }
}

/// B131: 30 of the lowest priority, then 10 of a high one, then 10 in between, while the only place is taken.
#[tokio::test]
async fn the_order_is_by_priority_and_then_by_age() {
    let yard = Yard::up().await;
    let client = yard.client();
    let mut notebook = Notebook::in_folder(yard.dir());
    let folder = open_folder();
    let order = open_file(&folder, "order");
    let holds = accept(&client, whole_node(notebook.waiting_job())).await;
    eventually("the place is taken", async || (!notebook.starts(holds).is_empty()).then_some(())).await;
    let note = whole_node(shell(&format!("echo $JOBYARD_JOB_ID >> {}", order.display())));
    let of = |priority, count| vec![JobSubmit { priority: Some(priority), ..note.clone() }; count];
    let low = submit_all(&client, of(1, 30)).await;
    let high = submit_all(&client, of(9, 10)).await;
    let middle = submit_all(&client, of(5, 10)).await;
    notebook.open_gate();
    let wanted: Vec<JobId> = [high, middle, low].concat();
    for id in &wanted {
        assert_eq!(ended(&client, *id).await.status, Status::Success);
    }
    let order = std::fs::read_to_string(&order).expect("readable");
    let order: Vec<JobId> = order.lines().map(|id| id.parse().expect("an id")).collect();
    assert_eq!(order, wanted);
}
