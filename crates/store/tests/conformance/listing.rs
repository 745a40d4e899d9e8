//! Filters as the datastore executes them, lines of a list, counts, and values to complete a filter with.

use std::collections::BTreeMap;

use jobyard_model::{
    Any, EndedBy, Exit, JobFilter, JobId, JobKind, JobSpec, LabelCondition, Lane, Outcome, Priority,
    ReasonWord, Status, TextMatch, Timestamp,
};
use jobyard_model::{Phase, retry::FailReason};
use jobyard_store::{JobQuery, JobRow, Report, ValueKey};

use super::world::{Node, World, exit, exit_with, spec};

/// Jobs that differ in everything that a filter can ask for.
struct Yard {
    node: Node,
    waits: JobId,
    runs: JobId,
    succeeded: JobId,
    failed: JobId,
    killed: JobId,
    retries: JobId,
}

fn labelled(name: &str, labels: &[(&str, &str)]) -> JobSpec {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    JobSpec { name: name.to_owned(), labels, ..spec() }
}

impl Yard {
    async fn fill(world: &World) -> Self {
        world.store.put_pool("gpu", &super::world::ann()).await.unwrap();
        let node = world.node().await;
        let urgent = Priority::new(95).unwrap();
        let waits =
            JobSpec { pool: "gpu".to_owned(), priority: urgent, ..labelled("train-a", &[("team", "ml")]) };
        let waits = world.submit(waits).await;
        let service = JobSpec {
            kind: JobKind::Service,
            owner: "web".to_owned(),
            ..labelled("serve*", &[("team", "web, all")])
        };
        let runs = world.running(service, &node).await.job_id;
        let succeeded = world.ended(labelled("train-b", &[("team", "ml"), ("tier", "1")]), &node).await;
        let other = world.node().await;
        let failing = JobSpec { max_retries: 0, ..labelled("Train", &[("tier", "")]) };
        let failed = world.running(failing.clone(), &other).await;
        world.end(&failed, exit(137)).await;
        let killed = world.running(failing.clone(), &other).await;
        world.end(&killed, exit_with(EndedBy::Itself, Exit::Signal(9), "killed")).await;
        let retries = world.running(labelled("again", &[]), &node).await;
        world.end(&retries, exit(1)).await;
        Self {
            node: other,
            waits,
            runs,
            succeeded,
            failed: failed.job_id,
            killed: killed.job_id,
            retries: retries.job_id,
        }
    }
}

async fn rows(world: &World, filter: &JobFilter) -> Vec<JobRow> {
    let query = JobQuery { filter: filter.clone(), limit: 50, cursor: None };
    let page = world.store.job_rows(&query).await.unwrap();
    assert_eq!(page.next, None);
    page.items
}

fn texts(words: &[&str]) -> Any<String> {
    Any::of(words.iter().map(|word| (*word).to_owned()))
}

fn label(key: &str, value: Any<TextMatch>) -> Vec<LabelCondition> {
    vec![LabelCondition { key: key.to_owned(), value }]
}

fn is(text: &str) -> TextMatch {
    TextMatch::Is(text.to_owned())
}

/// By what was submitted.
fn cases_of_specs(yard: &Yard) -> Vec<(JobFilter, Vec<JobId>)> {
    let Yard { waits, runs, succeeded, failed, killed, retries, .. } = yard;
    let filter = JobFilter::default;
    let begins = |text: &str| TextMatch::Begins(text.to_owned());
    let holds = |text: &str| TextMatch::Holds(text.to_owned());
    let anything = || Any { values: Vec::new(), negated: false };
    let all = vec![*retries, *killed, *failed, *succeeded, *runs, *waits];
    vec![
        (filter(), all),
        (
            JobFilter { statuses: Any::none_of([Status::FinalFailed, Status::Success]), ..filter() },
            vec![*retries, *runs, *waits],
        ),
        (JobFilter { statuses: Any::none_of(Status::ALL), ..filter() }, vec![]),
        (JobFilter { owners: texts(&["web", "nobody"]), ..filter() }, vec![*runs]),
        (JobFilter { owners: Any { negated: true, ..texts(&["team"]) }, ..filter() }, vec![*runs]),
        (JobFilter { names: Any::of([begins("train")]), ..filter() }, vec![*succeeded, *waits]),
        (
            JobFilter { names: Any::of([holds("rain")]), ..filter() },
            vec![*killed, *failed, *succeeded, *waits],
        ),
        (JobFilter { names: Any::of([is("serve*"), is("again")]), ..filter() }, vec![*retries, *runs]),
        (JobFilter { names: Any::none_of([holds("a")]), ..filter() }, vec![*runs]),
        (
            JobFilter { labels: label("team", Any::of([is("ml"), is("web, all")])), ..filter() },
            vec![*succeeded, *runs, *waits],
        ),
        (
            JobFilter { labels: label("team", Any::of([is("ml"), begins("web")])), ..filter() },
            vec![*succeeded, *runs, *waits],
        ),
        (
            JobFilter { labels: label("team", Any::none_of([is("ml")])), ..filter() },
            vec![*retries, *killed, *failed, *runs],
        ),
        (JobFilter { labels: label("tier", anything()), ..filter() }, vec![*killed, *failed, *succeeded]),
        (
            JobFilter { labels: label("tier", Any { negated: true, ..anything() }), ..filter() },
            vec![*retries, *runs, *waits],
        ),
        (JobFilter { labels: label("tier", Any::of([is("")])), ..filter() }, vec![*killed, *failed]),
        (
            JobFilter {
                labels: [label("tier", Any::of([is("1")])), label("team", Any::of([is("ml")]))].concat(),
                ..filter()
            },
            vec![*succeeded],
        ),
        // Two that each have jobs, and none together.
        (
            JobFilter { labels: label("team", Any::of([is("ml")])), owners: texts(&["web"]), ..filter() },
            vec![],
        ),
    ]
}

/// By what became of them.
fn cases_of_ends(yard: &Yard) -> Vec<(JobFilter, Vec<JobId>)> {
    let Yard { node, waits, runs, succeeded, failed, killed, retries } = yard;
    let filter = JobFilter::default;
    let all = vec![*retries, *killed, *failed, *succeeded, *runs, *waits];
    vec![
        (JobFilter { nodes: texts(&[&node.registration.name]), ..filter() }, vec![*killed, *failed]),
        (
            JobFilter { nodes: Any { negated: true, ..texts(&[&node.id().to_string()]) }, ..filter() },
            vec![*retries, *succeeded, *runs, *waits],
        ),
        (JobFilter { outcomes: Any::of([Outcome::Failed]), ..filter() }, vec![*retries, *killed, *failed]),
        (
            JobFilter { outcomes: Any::none_of([Outcome::Succeeded]), ..filter() },
            vec![*retries, *killed, *failed, *runs, *waits],
        ),
        (
            JobFilter { outcomes: Any::of([Outcome::Failed, Outcome::Succeeded]), ..filter() },
            vec![*retries, *killed, *failed, *succeeded],
        ),
        (JobFilter { exit_codes: Any::of([137]), ..filter() }, vec![*failed]),
        (JobFilter { exit_codes: Any::of([0]), ..filter() }, vec![*succeeded]),
        (JobFilter { signals: Any::of([9, 11]), ..filter() }, vec![*killed]),
        (
            JobFilter { reasons: Any::of([ReasonWord::Failed(FailReason::RetriesExhausted)]), ..filter() },
            vec![*killed, *failed],
        ),
        (
            JobFilter {
                reasons: Any::of([ReasonWord::Phase(Phase::Running), ReasonWord::BackingOff]),
                ..filter()
            },
            vec![*retries, *runs],
        ),
        (
            JobFilter {
                reasons: Any::of([ReasonWord::Restarting, ReasonWord::RunAt, ReasonWord::ArtifactMissing]),
                ..filter()
            },
            vec![],
        ),
        (JobFilter { kinds: Any::of([JobKind::Service]), ..filter() }, vec![*runs]),
        (JobFilter { pools: texts(&["gpu"]), ..filter() }, vec![*waits]),
        (JobFilter { lanes: Any::of([Lane::new(4).unwrap()]), ..filter() }, vec![*waits]),
        (JobFilter { lanes: Any::none_of([Lane::new(4).unwrap()]), ..filter() }, all[..5].to_vec()),
        (JobFilter { submitted_by: texts(&["ann"]), ..filter() }, all.clone()),
        (JobFilter { submitted_by: texts(&["bob"]), ..filter() }, vec![]),
        (
            JobFilter { text: Some("TRAIN-".to_owned()), owners: texts(&["team"]), ..filter() },
            vec![*succeeded, *waits],
        ),
    ]
}

fn cases(yard: &Yard) -> Vec<(JobFilter, Vec<JobId>)> {
    [cases_of_specs(yard), cases_of_ends(yard)].concat()
}

pub(crate) async fn filters_name_lines(world: &World) {
    let yard = Yard::fill(world).await;
    for (filter, wanted) in cases(&yard) {
        let found: Vec<JobId> = rows(world, &filter).await.into_iter().map(|row| row.id).collect();
        assert_eq!(found, wanted, "{filter:?}");
    }
}

pub(crate) async fn filters_count(world: &World) {
    let yard = Yard::fill(world).await;
    for (filter, wanted) in cases(&yard) {
        let counted = world.store.count_jobs(&filter).await.unwrap();
        assert_eq!(
            (counted.count, counted.capped, counted.complete),
            (wanted.len() as u64, false, true),
            "{filter:?}"
        );
        let by_status: u64 = counted.by_status.iter().map(|count| count.count).sum();
        assert_eq!((counted.by_status.len(), by_status), (7, counted.count), "{filter:?}");
    }
}

pub(crate) async fn counts_stop_at_a_bound(world: &World) {
    for _ in 0..3 {
        world.submit_many(3_900, &labelled("many", &[("run", "1")])).await;
    }
    let by_name = JobFilter { names: Any::of([is("many")]), ..JobFilter::default() };
    let by_part = JobFilter { names: Any::of([TextMatch::Holds("an".to_owned())]), ..JobFilter::default() };
    for filter in [JobFilter::default(), by_name, by_part] {
        let counted = world.store.count_jobs(&filter).await.unwrap();
        assert_eq!((counted.count, counted.capped, counted.complete), (10_000, true, false), "{filter:?}");
    }
    let none = JobFilter { names: Any::of([TextMatch::Holds("x".to_owned())]), ..JobFilter::default() };
    let counted = world.store.count_jobs(&none).await.unwrap();
    assert_eq!((counted.count, counted.capped, counted.complete), (0, false, true));
    let text = JobFilter { text: Some("nothing like it".to_owned()), ..JobFilter::default() };
    let counted = world.store.count_jobs(&text).await.unwrap();
    assert_eq!(
        (counted.count, counted.capped, counted.complete),
        (0, false, false),
        "not all were looked at"
    );
}

pub(crate) async fn a_line_says_where_a_job_is(world: &World) {
    let yard = Yard::fill(world).await;
    let lines: BTreeMap<JobId, JobRow> =
        rows(world, &JobFilter::default()).await.into_iter().map(|row| (row.id, row)).collect();
    assert_eq!(lines.len(), 6);
    let now = world.store.now().await.unwrap();
    for (job_id, line) in &lines {
        let record = world.job(*job_id).await;
        let node = line.node.as_ref().map(|(id, _)| *id);
        assert_eq!(line.status, record.job.status());
        assert_eq!(line.reason, record.reason(now));
        assert_eq!(
            (&line.name, &line.owner, &line.pool),
            (&record.spec.name, &record.spec.owner, &record.spec.pool)
        );
        assert_eq!((line.kind, line.priority), (record.spec.kind, record.spec.priority.value()));
        assert_eq!((&line.labels, &line.submitted_by), (&record.spec.labels, &record.submitted_by));
        assert_eq!((line.created_at, line.started_at), (record.created_at, record.started_at));
        assert_eq!((line.round, line.attempt), (record.job.round, record.job.last_attempt));
        assert_eq!((line.intent, line.retry_count), (record.job.intent, record.job.accounts.retry_count));
        assert_eq!(line.max_retries, record.spec.max_retries);
        assert_eq!(line.last_end, record.last_end);
        assert_eq!(node.is_some(), record.job.last_attempt > 0);
        assert_eq!(line.waiting_since.is_some(), line.status == Status::Waiting);
        assert_eq!(line.finished_at.is_some(), matches!(line.status, Status::Success | Status::FinalFailed));
    }
    assert_eq!(lines[&yard.failed].node, Some((yard.node.id(), yard.node.registration.name.clone())));
    let long = "x".repeat(3_000);
    let told = world.running(spec(), &yard.node).await;
    world.report(&told, Report::Ended(exit_with(EndedBy::Itself, Exit::Code(2), &long))).await;
    let newest = rows(world, &JobFilter::default()).await.remove(0);
    assert_eq!((newest.id, newest.last_end.map(|(number, ..)| number)), (told.job_id, Some(1)));
}

pub(crate) async fn values_complete_a_filter(world: &World) {
    Yard::fill(world).await;
    let values = async |key: ValueKey, prefix: &str, limit: u32| {
        let (values, more) = world.store.values(&key, prefix, limit).await.unwrap();
        (values, more)
    };
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    assert_eq!(values(ValueKey::Owner, "", 20).await, (words(&["team", "web"]), false));
    assert_eq!(values(ValueKey::Owner, "w", 20).await, (words(&["web"]), false));
    assert_eq!(values(ValueKey::Pool, "", 1).await, (words(&["default"]), true));
    assert_eq!(values(ValueKey::Node, "node-", 20).await.0.len(), 2);
    assert_eq!(
        values(ValueKey::Name, "", 20).await,
        (words(&["Train", "again", "serve*", "train-a", "train-b"]), false)
    );
    assert_eq!(values(ValueKey::Name, "train", 1).await, (words(&["train-a"]), true));
    assert_eq!(values(ValueKey::Name, "train-b", 5).await, (words(&["train-b"]), false));
    assert_eq!(values(ValueKey::Name, "z", 5).await, (words(&[]), false));
    assert_eq!(values(ValueKey::LabelKey, "t", 20).await, (words(&["team", "tier"]), false));
    let team = || ValueKey::Label("team".to_owned());
    assert_eq!(values(team(), "", 20).await, (words(&["ml", "web, all"]), false));
    assert_eq!(values(team(), "m", 20).await, (words(&["ml"]), false));
    assert_eq!(values(ValueKey::Label("none".to_owned()), "", 20).await, (words(&[]), false));
}

pub(crate) async fn failures_are_grouped_by_how_they_came(world: &World) {
    let yard = Yard::fill(world).await;
    let failing = JobSpec { max_retries: 0, ..labelled("Train", &[]) };
    let again = world.running(failing, &yard.node).await;
    world.end(&again, exit(137)).await;
    let found = world.store.failing(Timestamp(0)).await.unwrap();
    let seen: Vec<_> = found
        .groups
        .iter()
        .map(|group| (group.count, group.print.exit_code, group.print.signal, group.last_job))
        .collect();
    assert_eq!(seen, [(2, Some(137), None, again.job_id), (1, None, Some(9), yard.killed)]);
    let print = &found.groups[0].print;
    assert_eq!((print.name.as_str(), print.owner.as_str()), ("Train", "team"));
    assert_eq!((print.reason, print.outcome), (FailReason::RetriesExhausted, Some(Outcome::Failed)));
    assert!(found.complete);
    world.store.retry(yard.killed, None, &super::world::ann()).await.unwrap();
    assert_eq!(world.store.failing(Timestamp(0)).await.unwrap().groups.len(), 1);
    world.pass(10_000).await;
    let now = world.store.now().await.unwrap();
    assert!(world.store.failing(Timestamp(now.0 - 5_000)).await.unwrap().groups.is_empty());
}

pub(crate) async fn what_waits_longest_is_the_first_of_each_group(world: &World) {
    let first = world.submit(spec()).await;
    world.pass(1_000).await;
    world.submit_many(3, &spec()).await;
    let other = world.submit(JobSpec { owner: "others".to_owned(), ..spec() }).await;
    world.pass(1_000).await;
    let urgent = world.submit(JobSpec { priority: Priority::new(55).unwrap(), ..spec() }).await;
    assert_eq!(world.store.longest_waiting(10).await.unwrap(), [first, other, urgent]);
    assert_eq!(world.store.longest_waiting(2).await.unwrap(), [first, other]);
    let summary = world.store.summary().await.unwrap();
    assert_eq!((summary.pools.len(), summary.counted), (0, None));
    let node = world.node().await;
    world.store.stamp_report_clock().await.unwrap();
    world.store.roll_up(1, Timestamp(0)).await.unwrap();
    let summary = world.store.summary().await.unwrap();
    assert_eq!(
        (summary.pools[0].name.as_str(), summary.pools[0].capacity),
        ("default", node.registration.capacity)
    );
    assert!(summary.report_clock.is_some() && summary.counted.is_some());
}
