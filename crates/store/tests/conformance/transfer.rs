//! All of a datastore in a file, and in another datastore of either dialect.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use jobyard_model::{
    Any, ArtifactHash, BinaryUrl, BulkAction, JobFilter, JobSpec, LabelCondition, Role, SessionId, Status,
    TextMatch, Timestamp,
};
use jobyard_store::transfer::{Part, file};
use jobyard_store::{
    DatastoreKind, EventCursor, EventFilter, JobQuery, LogBody, LogChunk, LogStream, NewBulk, NewSecrets,
    NewToken, NewTree, NewView, PostgresConfig, PostgresStore, Report, SealedSecrets, SqliteOptions,
    SqliteStore, Store, StoreError, ValueKey,
};
use jobyard_test_postgres::Cluster;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::World;
use super::world::{ann, exit, new_job, spec, with_key};

/// A clock that stands still, later than whatever happened before.
struct Later;

impl jobyard_model::Clock for Later {
    fn now(&self) -> Timestamp {
        Timestamp(2_000_000_000_000)
    }
}

/// New datastores of both dialects, and what they live in.
async fn empty_ones() -> (Vec<Arc<dyn Store>>, (tempfile::TempDir, Cluster)) {
    let directory = tempfile::tempdir().unwrap();
    let options = SqliteOptions::new(Arc::new(Later));
    let sqlite = SqliteStore::open(&directory.path().join("jobyard.db"), options).unwrap();
    let cluster = Cluster::start_new().unwrap();
    let config = PostgresConfig::new(cluster.url("postgres"));
    PostgresStore::migrate(&config).await.unwrap();
    let postgres = PostgresStore::open(config).await.unwrap();
    (vec![sqlite, postgres], (directory, cluster))
}

async fn export(store: &Arc<dyn Store>, path: &Path) -> Result<String, StoreError> {
    let (sender, mut receiver) = mpsc::channel(4);
    let (to, from) = (path.to_owned(), store.kind().as_str());
    let writing = tokio::task::spawn_blocking(move || {
        file::write(&to, from, std::iter::from_fn(|| receiver.blocking_recv()))
    });
    let dumped = store.dump(true, sender).await;
    let written = writing.await.unwrap();
    dumped?;
    written.unwrap();
    Ok(std::fs::read_to_string(path).unwrap())
}

async fn import(store: &Arc<dyn Store>, path: &Path) -> Result<(), StoreError> {
    let (sender, receiver) = mpsc::channel(4);
    let from = path.to_owned();
    let reading =
        tokio::task::spawn_blocking(move || file::read(&from, |part| sender.blocking_send(part).is_ok()));
    let loaded = store.load(receiver).await;
    let read = reading.await.unwrap();
    loaded?;
    read.unwrap();
    Ok(())
}

/// The rows of each table, without what is a dialect's own: where events lie, and the order of owners.
fn rows(text: &str, without_places: bool) -> BTreeMap<String, Vec<String>> {
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut table = String::new();
    for line in text.lines().skip(1) {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        if let Some(name) = value["table"].as_str() {
            name.clone_into(&mut table);
        } else if let Some(row) = value.as_array() {
            let kept = match (table.as_str(), without_places) {
                ("event_floor", true) => continue,
                ("event_floor", false) => &row[..2],
                ("event", true) => &row[2..],
                ("follower", true) => &row[3..],
                _ => row,
            };
            tables.entry(table.clone()).or_default().push(format!("{kept:?}"));
        }
    }
    tables.get_mut("idempotency").unwrap().sort();
    tables
}

struct Filled {
    waiting: jobyard_model::JobId,
    keyed: jobyard_model::JobId,
    ended: jobyard_model::JobId,
    awaited: ArtifactHash,
    ready: jobyard_model::JobId,
    cursor: EventCursor,
}

async fn keep_a_view_and_begin_an_action(store: &Arc<dyn Store>, name: &str) {
    let view =
        NewView { id: Uuid::from_u128(11), name: name.to_owned(), filter: "q=x".to_owned(), shared: true };
    store.add_view(&view, &ann()).await.unwrap();
    let bulk = NewBulk {
        id: Uuid::from_u128(12),
        filter: "name=nothing".to_owned(),
        action: BulkAction::Retry,
        owners: Some(vec!["team".to_owned()]),
        idempotency_key: None,
    };
    store.start_bulk(&bulk, &ann()).await.unwrap();
}

/// One of everything that moves.
async fn fill(world: &World) -> Filled {
    let store = &world.store;
    let node = world.node().await;
    store.put_pool("gpu", &ann()).await.unwrap();
    let odd = "tab\t newline\n return\r back\\slash quote\" \\N \\. ünï 🦀";
    let ended = {
        let job = JobSpec { name: odd.to_owned(), owner: odd.to_owned(), ..spec() };
        let claimed = world.running(job, &node).await;
        let chunk = |stream, from, body, to| LogChunk {
            job_id: claimed.job_id,
            attempt: 1,
            lease_id: claimed.lease_id,
            stream,
            from,
            to,
            at: Timestamp(9),
            seq: 0,
            body,
        };
        let inline = LogBody::Inline(bytes::Bytes::from_static(b"\0\xff\\x\n"));
        let segment = LogBody::Segment { name: "2026/seg".to_owned(), offset: 3 };
        let chunks =
            vec![chunk(LogStream::Stdout, 0, inline, 5), chunk(LogStream::Stderr, 0, segment, 9_000)];
        store.append_logs(chunks).await.unwrap();
        world.end(&claimed, exit(0)).await;
        claimed.job_id
    };
    let retried = world.running(JobSpec { labels: [("a".into(), "b".into())].into(), ..spec() }, &node).await;
    world.end(&retried, exit(1)).await;
    assert_eq!(world.status(retried.job_id).await, Status::Retry);
    world.running(spec(), &node).await;
    let cancelled = world.submit(spec()).await;
    store.cancel(cancelled, &ann()).await.unwrap();
    store.retry(cancelled, None, &ann()).await.unwrap();
    let [file, manifest, awaited] = [[1; 32], [2; 32], [3; 32]].map(ArtifactHash);
    store.add_artifact(file, 7, &ann()).await.unwrap();
    let tree = NewTree { hash: manifest, manifest_bytes: 9, artifacts: vec![file], files: 1, size_bytes: 7 };
    assert!(store.add_tree(tree, &ann()).await.unwrap());
    let waits = |hash| JobSpec { binary: Some(BinaryUrl::Artifact(hash)), command: Vec::new(), ..spec() };
    world.submit(waits(file)).await;
    let ready = world.submit(waits(awaited)).await;
    let secrets = NewSecrets {
        sealed: SealedSecrets { key_id: "k".to_owned(), sealed: vec![0, 255, 92] },
        earlier_hashes: Vec::new(),
    };
    let keyed = jobyard_store::NewJob { secrets: Some(secrets), ..with_key(spec(), "nightly", 5) };
    let keyed = world.submit_all(vec![keyed]).await[0].id;
    let token = NewToken {
        id: jobyard_model::ids::TokenId(Uuid::from_u128(9)),
        hash: [9; 32],
        name: "ann".to_owned(),
        role: Role::Admin,
        owners: vec!["team".to_owned()],
        expires_at: None,
    };
    store.add_token(&token, &ann()).await.unwrap();
    keep_a_view_and_begin_an_action(store, odd).await;
    store.roll_up(1_000, Timestamp(0)).await.unwrap();
    let page = store.events_after(EventCursor::default(), &EventFilter::default(), 3).await.unwrap();
    let cursor = page.items[2].cursor;
    store.hold_follower("webhook", SessionId(Uuid::from_u128(7)), 1, cursor).await.unwrap();
    let waiting = world.submit(spec()).await;
    Filled { waiting, keyed, ended, awaited, ready, cursor }
}

pub(crate) async fn all_of_it_is_the_same_in_either_dialect(world: &World) {
    let filled = fill(world).await;
    let (others, (directory, _cluster)) = empty_ones().await;
    let first = directory.path().join("first");
    let text = export(&world.store, &first).await.unwrap();
    let tables = rows(&text, false);
    for table in [
        "event",
        "follower",
        "job_secret",
        "attempt_live",
        "tree_file",
        "log_chunk",
        "audit",
        "token",
        "saved_view",
        "bulk",
    ] {
        assert!(tables.contains_key(table), "{table} in {text}");
    }
    for other in others {
        let second = directory.path().join(other.kind().as_str());
        import(&other, &first).await.unwrap();
        let moved = export(&other, &second).await.unwrap();
        // Into SQLite events come with numbers alone.
        let loses_places =
            (world.store.kind(), other.kind()) == (DatastoreKind::Postgres, DatastoreKind::Sqlite);
        assert_eq!(rows(&moved, loses_places), rows(&text, loses_places));
        goes_on(&other, &filled, loses_places).await;
        let refused = import(&other, &first).await.unwrap_err();
        assert!(matches!(refused, StoreError::NotEmpty { .. }), "{refused}");
        other.close().await;
    }
}

/// What was begun in one datastore goes on in the other.
async fn goes_on(store: &Arc<dyn Store>, filled: &Filled, lost_places: bool) {
    let all = EventFilter::default();
    let old = store.events_after(filled.cursor, &all, 100).await.unwrap();
    assert_eq!(old.expired, lost_places, "a cursor goes on, or is told that it can't");
    let head = store.event_head().await.unwrap();
    assert!(lost_places || head >= filled.cursor);

    let again = store.submit(vec![with_key(spec(), "nightly", 5), new_job(spec())], &ann()).await.unwrap();
    assert_eq!((again[0].id, again[0].created), (filled.keyed, false));
    let new = store.events_after(head, &all, 100).await.unwrap();
    assert_eq!(new.items.len(), 1, "above all that came");
    assert_eq!((new.items[0].job_id, new.expired), (again[1].id, false));
    let later = store.events_after(filled.cursor, &all, 100).await.unwrap();
    assert_eq!(later.expired, lost_places);
    if !lost_places {
        assert_eq!(later.items.len(), old.items.len() + 1, "none is missed");
    }
    let holder = SessionId(Uuid::from_u128(8));
    let place = store.hold_follower("webhook", holder, 1, EventCursor::default()).await.unwrap().unwrap();
    let ahead = store.events_after(place, &all, 100).await.unwrap();
    let whole = store.events_after(EventCursor::default(), &all, 100).await.unwrap();
    assert_eq!((ahead.expired, ahead.items.len()), (false, whole.items.len() - 3));

    let status = async |id| store.job(id).await.unwrap().unwrap().job.status();
    assert_eq!(status(filled.waiting).await, Status::Waiting);
    assert_eq!(status(filled.ready).await, Status::Ready);
    store.add_artifact(filled.awaited, 3, &ann()).await.unwrap();
    assert_eq!(status(filled.ready).await, Status::Waiting);
    let extent = store.log_extent(filled.ended, 1).await.unwrap();
    assert_eq!((extent.stdout, extent.stderr), (5, 9_000));
    assert!(store.token_by_hash([9; 32]).await.unwrap().is_some());
    let pools: Vec<String> = store.pools().await.unwrap().into_iter().map(|pool| pool.name).collect();
    assert_eq!(pools, ["default", "gpu"]);
    let snapshot = store.place_snapshot("default", 100, 1_000).await.unwrap();
    assert_eq!(snapshot.nodes.len(), 1);
    let label = LabelCondition { key: "a".to_owned(), value: Any::of([TextMatch::Is("b".to_owned())]) };
    let labelled = JobFilter { labels: vec![label], ..JobFilter::default() };
    assert_eq!(store.count_jobs(&labelled).await.unwrap().count, 1);
    assert_eq!(store.values(&ValueKey::LabelKey, "", 5).await.unwrap().0, ["a"]);
    assert_eq!(store.views("bob").await.unwrap().len(), 1);
    assert_eq!(store.bulks(true, 5).await.unwrap()[0].owners, Some(vec!["team".to_owned()]));
    // What happened is counted anew from the events that came along, those without a place of their own as well.
    let whole = store.events_after(EventCursor::default(), &all, 100).await.unwrap();
    assert_eq!(store.roll_up(1_000, Timestamp(0)).await.unwrap().events, whole.items.len() as u64);
    // An owner's count of un-ended jobs came along.
    store.cancel(filled.waiting, &ann()).await.unwrap();
    assert_eq!(store.audit(None, 1).await.unwrap()[0].action, "job.cancel");
}

pub(crate) async fn attempts_that_have_not_ended_are_not_left_behind_unasked(world: &World) {
    let node = world.node().await;
    let claimed = world.running(spec(), &node).await;
    let (sender, mut receiver) = mpsc::channel(4);
    let refused = world.store.dump(false, sender).await.unwrap_err();
    assert!(matches!(refused, StoreError::StillRunning { attempts: 1 }), "{refused}");
    assert!(receiver.recv().await.is_none(), "nothing was said");
    world.report(&claimed, Report::Ended(exit(0))).await;
    let (sender, mut receiver) = mpsc::channel(1_000);
    world.store.dump(false, sender).await.unwrap();
    let mut last = None;
    while let Some(part) = receiver.recv().await {
        last = Some(part);
    }
    assert!(matches!(last, Some(Part::End)), "{last:?}");
}

pub(crate) async fn what_has_no_end_is_not_kept(world: &World) {
    let (others, (directory, _cluster)) = empty_ones().await;
    let _filled = fill(world).await;
    let path = directory.path().join("export");
    export(&world.store, &path).await.unwrap();
    for other in others {
        let (sender, receiver) = mpsc::channel(4);
        let from = path.clone();
        // All but the end.
        let reading = tokio::task::spawn_blocking(move || {
            file::read(&from, |part| !matches!(part, Part::End) && sender.blocking_send(part).is_ok())
        });
        let cut = other.load(receiver).await.unwrap_err();
        assert!(matches!(cut, StoreError::CutOff { .. }), "{cut}");
        assert!(reading.await.unwrap().is_err());
        let query = JobQuery { limit: 10, ..JobQuery::default() };
        assert!(other.jobs(&query).await.unwrap().items.is_empty());
        assert!(other.tokens().await.unwrap().is_empty());
        import(&other, &path).await.unwrap();
        assert_eq!(other.jobs(&query).await.unwrap().items.len(), 8);
        other.close().await;
    }
}
