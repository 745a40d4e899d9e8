//! The index of logs.

use bytes::Bytes;
use jobyard_model::{LeaseId, Timestamp};
use jobyard_store::logs::LogQuery;
use jobyard_store::{Claimed, LogAnswer, LogBody, LogChunk, LogExtent, LogStream};
use uuid::Uuid;

use super::world::{World, exit, new_job_id, spec};

fn chunk(claimed: &Claimed, stream: LogStream, from: u64, text: &str) -> LogChunk {
    LogChunk {
        job_id: claimed.job_id,
        attempt: claimed.attempt,
        lease_id: claimed.lease_id,
        stream,
        from,
        to: from + text.len() as u64,
        at: Timestamp(1_000 + i64::try_from(from).unwrap()),
        seq: 0,
        body: LogBody::Inline(Bytes::copy_from_slice(text.as_bytes())),
    }
}

fn query(claimed: &Claimed) -> LogQuery {
    LogQuery {
        job_id: claimed.job_id,
        attempt: claimed.attempt,
        stream: None,
        from: 0,
        after_seq: 0,
        before_seq: None,
        newest: false,
        since: None,
        limit: 100,
    }
}

async fn append(world: &World, chunks: Vec<LogChunk>) -> Vec<LogAnswer> {
    world.store.append_logs(chunks).await.unwrap()
}

use LogAnswer::{End, Gap, Refused};
use LogStream::{Stderr, Stdout};

pub(crate) async fn chunks_append_where_the_stream_ends(world: &World) {
    let node = world.node().await;
    let claimed = world.running(spec(), &node).await;
    let mut wakes = world.store.wakes(jobyard_store::WakeTopic::Logs);
    wakes.borrow_and_update();
    let binary = "a\0\n\u{1f600}";
    let first = vec![
        chunk(&claimed, Stdout, 0, binary),
        chunk(&claimed, Stderr, 0, "err"),
        chunk(&claimed, Stdout, 7, "more"),
    ];
    assert_eq!(binary.len(), 7);
    assert_eq!(append(world, first.clone()).await, [End(7), End(3), End(11)]);
    wakes.changed().await.unwrap();
    assert_eq!(append(world, first).await, [End(11), End(3), End(11)]);
    let extent = world.store.log_extent(claimed.job_id, 1).await.unwrap();
    assert_eq!((extent.stdout, extent.stderr), (11, 3));

    let chunks = world.store.log_chunks(&query(&claimed)).await.unwrap();
    assert!(chunks.is_sorted_by(|left, right| left.seq < right.seq));
    assert_eq!(chunks.last().unwrap().seq, extent.last_seq);
    let texts: Vec<_> = chunks.iter().map(|chunk| (chunk.stream, chunk.body.clone())).collect();
    let inline = |text: &str| LogBody::Inline(Bytes::copy_from_slice(text.as_bytes()));
    assert_eq!(texts, [(Stdout, inline(binary)), (Stderr, inline("err")), (Stdout, inline("more"))]);
    assert!(chunks.iter().all(|chunk| chunk.lease_id == LeaseId(Uuid::nil())));
    assert_eq!(world.store.log_extent(new_job_id(), 1).await.unwrap(), LogExtent::default());
    let both = world.store.log_extents(claimed.job_id, 1..=2).await.unwrap();
    assert_eq!(both, [(1, extent), (2, LogExtent::default())]);
}

pub(crate) async fn a_gap_says_where_to_go_on(world: &World) {
    let node = world.node().await;
    let claimed = world.running(spec(), &node).await;
    assert_eq!(append(world, vec![chunk(&claimed, Stdout, 3, "late")]).await, [Gap(0)]);
    assert_eq!(append(world, vec![chunk(&claimed, Stdout, 0, "abc")]).await, [End(3)]);
    let overlapping = chunk(&claimed, Stdout, 1, "bcdef");
    assert_eq!(append(world, vec![overlapping]).await, [Gap(3)]);
    assert_eq!(append(world, vec![chunk(&claimed, Stdout, 3, "def")]).await, [End(6)]);
    assert_eq!(append(world, vec![chunk(&claimed, Stdout, 6, "")]).await, [End(6)]);
    assert_eq!(world.store.log_chunks(&query(&claimed)).await.unwrap().len(), 2);
}

pub(crate) async fn only_the_lease_may_append(world: &World) {
    let node = world.node().await;
    let claimed = world.running(spec(), &node).await;
    let own = chunk(&claimed, Stdout, 0, "own");
    let stranger = LogChunk { lease_id: LeaseId(Uuid::from_u128(3)), ..own.clone() };
    let nobody = LogChunk { job_id: new_job_id(), ..own.clone() };
    let other_attempt = LogChunk { attempt: 2, ..own.clone() };
    let lying = LogChunk { to: 9_999, ..own.clone() };
    let answers = append(world, vec![stranger, nobody, other_attempt, lying, own]).await;
    assert_eq!(answers, [Refused, Refused, Refused, Refused, End(3)]);
    // What was read before the end may arrive after it.
    world.end(&claimed, exit(0)).await;
    let segment = LogChunk {
        to: 10_003,
        body: LogBody::Segment { name: "2026/seg-1".to_owned(), offset: 4_096 },
        ..chunk(&claimed, Stdout, 3, "")
    };
    assert_eq!(append(world, vec![segment.clone()]).await, [End(10_003)]);
    let stored = world.store.log_chunks(&query(&claimed)).await.unwrap().remove(1);
    assert_eq!((stored.body, stored.at), (segment.body, segment.at));
}

pub(crate) async fn chunks_are_found_by_offset_arrival_and_time(world: &World) {
    let node = world.node().await;
    let claimed = world.running(spec(), &node).await;
    for from in (0..50).step_by(5) {
        append(world, vec![chunk(&claimed, Stdout, from, "12345")]).await;
        append(world, vec![chunk(&claimed, Stderr, from, "abcde")]).await;
    }
    let read = async |query: LogQuery| world.store.log_chunks(&query).await.unwrap();
    let all = read(query(&claimed)).await;
    assert_eq!(all.len(), 20);
    let beyond = read(LogQuery { stream: Some(Stdout), from: 12, ..query(&claimed) }).await;
    assert_eq!((beyond.len(), beyond[0].from), (8, 10));
    assert!(beyond.iter().all(|chunk| chunk.stream == Stdout));
    let later = read(LogQuery { after_seq: all[14].seq, ..query(&claimed) }).await;
    assert_eq!(later, all[15..]);
    let between = LogQuery { after_seq: all[4].seq, before_seq: Some(all[15].seq), ..query(&claimed) };
    assert_eq!(read(between.clone()).await, all[5..15]);
    let last_before = LogQuery { newest: true, limit: 3, ..between };
    assert_eq!(read(last_before.clone()).await, all[12..15]);
    let of_stream = read(LogQuery { stream: Some(Stderr), ..last_before }).await;
    assert_eq!(of_stream.iter().map(|chunk| chunk.seq).collect::<Vec<_>>(), [10, 12, 14]);
    let tail = read(LogQuery { newest: true, limit: 3, ..query(&claimed) }).await;
    assert_eq!(tail, all[17..]);
    let since = read(LogQuery { since: Some(Timestamp(1_045)), ..query(&claimed) }).await;
    assert_eq!(since, all[18..]);
    assert_eq!(read(LogQuery { limit: 4, ..query(&claimed) }).await, all[..4]);
}

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Goes on to the middle of a day, so that the test crosses midnight when it means to.
async fn go_to_noon(world: &World) {
    let since_midnight_ms = world.store.now().await.unwrap().0.rem_euclid(DAY_MS);
    world.pass(DAY_MS + DAY_MS / 2 - since_midnight_ms).await;
}

pub(crate) async fn old_logs_of_jobs_that_go_on_are_dropped_by_whole_days(world: &World) {
    let node = world.node().await;
    let over = world.running(spec(), &node).await;
    let again = world.running(spec(), &node).await;
    let claimed = world.running(spec(), &node).await;
    go_to_noon(world).await;
    for (attempt, text) in [(&over, "over"), (&again, "old"), (&claimed, "aaa")] {
        assert_eq!(append(world, vec![chunk(attempt, Stdout, 0, text)]).await, [End(text.len() as u64)]);
    }
    append(world, vec![chunk(&again, Stdout, 3, "end"), chunk(&claimed, Stderr, 0, "err")]).await;
    assert_eq!(append(world, vec![chunk(&over, Stdout, 4, "!")]).await, [End(5)]);
    world.end(&over, exit(0)).await;
    world.end(&again, exit(1)).await;
    world.pass(DAY_MS).await;
    append(world, vec![chunk(&claimed, Stdout, 3, "bbb")]).await;
    world.pass(DAY_MS).await;
    append(world, vec![chunk(&claimed, Stdout, 6, "ccc")]).await;

    let drop_after = async |after| world.store.drop_logs(2, after).await.unwrap();
    assert_eq!(drop_after(None).await.rows, 0, "today and the two days before");
    let before = world.store.log_extent(claimed.job_id, 1).await.unwrap();
    world.pass(DAY_MS).await;
    let dropped = drop_after(None).await;
    assert_eq!((dropped.rows, dropped.last), (2, Some(claimed.job_id)), "one of `again`, one of `claimed`");
    assert_eq!(drop_after(None).await.rows, 0);
    assert_eq!(drop_after(dropped.last).await.last, None);

    let left = async |claimed| {
        let chunks = world.store.log_chunks(&query(claimed)).await.unwrap();
        chunks.iter().map(|chunk| (chunk.stream, chunk.from)).collect::<Vec<_>>()
    };
    assert_eq!(left(&claimed).await, [(Stderr, 0), (Stdout, 3), (Stdout, 6)]);
    assert_eq!(left(&again).await, [(Stdout, 3)]);
    assert_eq!(left(&over).await, [(Stdout, 0), (Stdout, 4)], "goes with its job");
    assert_eq!(world.store.log_extent(claimed.job_id, 1).await.unwrap(), before);
    let more = vec![chunk(&claimed, Stderr, 3, "or"), chunk(&claimed, Stdout, 9, "ddd")];
    assert_eq!(append(world, more).await, [End(5), End(12)]);
    assert_eq!(world.store.log_extent(claimed.job_id, 1).await.unwrap().last_seq, before.last_seq + 2);
}

pub(crate) async fn months_of_old_logs_are_dropped_a_batch_at_a_time(world: &World) {
    let node = world.node().await;
    let claimed = world.running(spec(), &node).await;
    let chunks = (0..500).map(|from| chunk(&claimed, Stdout, from, "x")).collect();
    append(world, chunks).await;
    world.pass(40 * DAY_MS).await;
    let mut batches = Vec::new();
    while let dropped = world.store.drop_logs(30, None).await.unwrap()
        && dropped.rows > 0
    {
        batches.push(dropped.rows);
    }
    assert_eq!(batches.iter().sum::<u64>(), 499, "{batches:?}");
    assert!(batches.len() > 1, "{batches:?}");
    assert_eq!(append(world, vec![chunk(&claimed, Stdout, 500, "y")]).await, [End(501)]);
}
