//! What every artifact store must do, as one suite for all of them.

use std::io;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use jobyard_model::{ArtifactHash, Timestamp};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc::channel;
use tokio_stream::wrappers::ReceiverStream;

use super::{ArtifactStore, ByteStream, CheckedArtifact, LogDay, PutError};

/// A store, and a look behind it.
pub(super) trait World {
    fn store(&self) -> &dyn ArtifactStore;

    /// What lies in it, under whatever names.
    fn names(&self) -> Vec<String>;

    /// Uploads that were begun and neither finished nor given up.
    fn unfinished(&self) -> usize;
}

/// The suite as tests of one store.
macro_rules! cases {
    ($world:expr) => {
        $crate::artifact_store::conformance::cases!($world;
            what_was_put_is_read_back_whole_and_in_parts
            a_large_artifact_goes_through_in_pieces
            an_artifact_without_bytes_is_one
            a_mismatch_a_break_off_and_too_many_bytes_leave_nothing
            an_upload_that_is_dropped_half_way_leaves_nothing
            only_what_was_written_before_is_removed
            uploads_of_one_artifact_at_once_leave_it_once
            many_small_ones_are_stored_by_one_call
            segments_are_read_in_parts_and_their_names_stay_inside
            segments_go_by_whole_days);
    };
    ($world:expr; $($case:ident)*) => {
        $(#[tokio::test]
        async fn $case() {
            $crate::artifact_store::conformance::$case(&$world).await;
        })*
    };
}
pub(super) use cases;

pub(super) fn hash_of(bytes: &[u8]) -> ArtifactHash {
    ArtifactHash(Sha256::digest(bytes).into())
}

fn pieces(pieces: &[&[u8]]) -> ByteStream {
    let pieces: Vec<io::Result<Bytes>> =
        pieces.iter().map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    stream::iter(pieces).boxed()
}

pub(super) async fn read(
    store: &dyn ArtifactStore,
    hash: ArtifactHash,
    range: std::ops::Range<u64>,
) -> Vec<u8> {
    let read: Vec<Bytes> = store.read(hash, range).await.unwrap().unwrap().try_collect().await.unwrap();
    read.concat()
}

/// More than goes up at once, in pieces that end nowhere special; no two parts alike.
pub(super) fn large() -> Vec<u8> {
    (0..12_345_678_u32).map(|at| (at / 977 % 251) as u8).collect()
}

/// Until what a dropped upload left behind is cleared away, which needs nobody to wait for it.
async fn until_nothing_is_unfinished(world: &dyn World) {
    for _ in 0..1_000 {
        if world.unfinished() == 0 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{} unfinished uploads stay", world.unfinished());
}

pub(super) async fn what_was_put_is_read_back_whole_and_in_parts(world: &dyn World) {
    let (store, hash) = (world.store(), hash_of(b"hello world"));
    assert_eq!(store.size(hash).await.unwrap(), None);
    assert!(store.read(hash, 0..0).await.unwrap().is_none());
    assert_eq!(store.put(hash, pieces(&[b"hello ", b"world"]), 11).await.unwrap(), 11);
    assert_eq!(store.put(hash, pieces(&[b"hello world"]), 11).await.unwrap(), 11);
    assert_eq!(store.size(hash).await.unwrap(), Some(11));
    for (range, expected) in [(0..11, "hello world"), (6..11, "world"), (0..0, "")] {
        assert_eq!(read(store, hash, range).await, expected.as_bytes());
    }
    assert_eq!(world.names().len(), 1, "{:?}", world.names());
}

pub(super) async fn a_large_artifact_goes_through_in_pieces(world: &dyn World) {
    let (store, bytes) = (world.store(), large());
    let (hash, length) = (hash_of(&bytes), bytes.len() as u64);
    let cut: Vec<&[u8]> = bytes.chunks(999_983).collect();
    assert_eq!(store.put(hash, pieces(&cut), length).await.unwrap(), length);
    assert_eq!(store.size(hash).await.unwrap(), Some(length));
    assert!(read(store, hash, 0..length).await == bytes);
    assert!(read(store, hash, 5_242_870..5_242_890).await == bytes[5_242_870..5_242_890]);
    // Again, which changes nothing, and wrong ones, which leave nothing.
    assert_eq!(store.put(hash, pieces(&cut), length).await.unwrap(), length);
    assert!(read(store, hash, 0..length).await == bytes);
    let other = hash_of(b"another");
    assert!(matches!(store.put(other, pieces(&cut), length).await, Err(PutError::Mismatch { .. })));
    assert!(matches!(store.put(hash, pieces(&cut), length - 1).await, Err(PutError::TooLarge { .. })));
    let broken = pieces(&cut[..8]).chain(stream::iter([Err(io::Error::other("gone"))])).boxed();
    assert!(matches!(store.put(hash, broken, length).await, Err(PutError::BrokeOff(_))));
    assert_eq!(store.size(other).await.unwrap(), None);
    until_nothing_is_unfinished(world).await;
    assert!(!world.names().iter().any(|name| name.contains(&other.to_string())), "{:?}", world.names());
}

pub(super) async fn an_artifact_without_bytes_is_one(world: &dyn World) {
    let (store, hash) = (world.store(), hash_of(b""));
    assert_eq!(store.put(hash, pieces(&[]), 0).await.unwrap(), 0);
    assert_eq!(store.size(hash).await.unwrap(), Some(0));
    assert!(read(store, hash, 0..0).await.is_empty());
}

pub(super) async fn a_mismatch_a_break_off_and_too_many_bytes_leave_nothing(world: &dyn World) {
    let (store, hash) = (world.store(), hash_of(b"hello"));
    let broken = stream::iter([Ok(Bytes::from_static(b"hel")), Err(io::Error::other("gone"))]).boxed();
    assert!(matches!(store.put(hash, pieces(&[b"hullo"]), 9).await, Err(PutError::Mismatch { .. })));
    assert!(matches!(store.put(hash, broken, 9).await, Err(PutError::BrokeOff(_))));
    let too_large = store.put(hash, pieces(&[b"hello"]), 4).await;
    assert!(matches!(too_large, Err(PutError::TooLarge { most_bytes: 4 })));
    assert_eq!(store.size(hash).await.unwrap(), None);
    assert_eq!(world.names(), Vec::<String>::new());
}

pub(super) async fn an_upload_that_is_dropped_half_way_leaves_nothing(world: &dyn World) {
    let bytes = large();
    let hash = hash_of(&bytes);
    let (send, receive) = channel::<io::Result<Bytes>>(1);
    let body = ReceiverStream::new(receive).boxed();
    {
        let upload = world.store().put(hash, body, u64::MAX);
        let feed = async {
            for piece in bytes[..11 << 20].chunks(1 << 20) {
                send.send(Ok(Bytes::copy_from_slice(piece))).await.unwrap();
            }
            // Taken only after the pieces before it.
            send.send(Ok(Bytes::new())).await.unwrap();
            while world.unfinished() == 0 {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            done = upload => panic!("it ended: {done:?}"),
            () = feed => {}
        }
    }
    until_nothing_is_unfinished(world).await;
    assert_eq!(world.store().size(hash).await.unwrap(), None);
    assert_eq!(world.names(), Vec::<String>::new());
}

pub(super) async fn only_what_was_written_before_is_removed(world: &dyn World) {
    let (store, small, large) = (world.store(), hash_of(b"hello"), large());
    let in_parts = hash_of(&large);
    store.put(small, pieces(&[b"hello"]), 9).await.unwrap();
    store.put(in_parts, pieces(&[&large]), u64::MAX).await.unwrap();
    let (long_ago, long_after) = (Timestamp(1_000_000_000_000), Timestamp(9_000_000_000_000));
    for hash in [small, in_parts] {
        assert!(!store.remove(hash, long_ago).await.unwrap());
        assert!(store.size(hash).await.unwrap().is_some());
        assert!(store.remove(hash, long_after).await.unwrap());
        assert_eq!(store.size(hash).await.unwrap(), None);
        assert!(!store.remove(hash, long_after).await.unwrap());
    }
    assert_eq!(world.names(), Vec::<String>::new());
}

pub(super) async fn uploads_of_one_artifact_at_once_leave_it_once(world: &dyn World) {
    let (store, hash) = (world.store(), hash_of(b"hello"));
    let uploads = (0..8).map(|_| store.put(hash, pieces(&[b"hel", b"lo"]), 9));
    for done in futures_util::future::join_all(uploads).await {
        assert_eq!(done.unwrap(), 5);
    }
    assert_eq!(read(store, hash, 0..5).await, b"hello");
    // One more, and only one is left whoever was late with tidying up.
    store.put(hash, pieces(&[b"hello"]), 9).await.unwrap();
    assert_eq!(world.names().len(), 1, "{:?}", world.names());
}

pub(super) async fn many_small_ones_are_stored_by_one_call(world: &dyn World) {
    let store = world.store();
    let texts: Vec<Bytes> = (0..40).map(|number| Bytes::from(format!("text {}", number / 2))).collect();
    let checked = |text: &Bytes| CheckedArtifact::new(hash_of(text), text.clone()).unwrap();
    store.put(hash_of(&texts[0]), pieces(&[&texts[0]]), 100).await.unwrap();
    store.put_all(texts.iter().map(checked).collect()).await.unwrap();
    store.put_all(vec![checked(&Bytes::new())]).await.unwrap();
    store.put_all(Vec::new()).await.unwrap();
    for text in texts.iter().chain([&Bytes::new()]) {
        assert_eq!(read(store, hash_of(text), 0..text.len() as u64).await, *text);
    }
    until_nothing_is_unfinished(world).await;
    assert_eq!(world.names().len(), 21, "{:?}", world.names());
    let mismatch = CheckedArtifact::new(hash_of(b"one"), Bytes::from_static(b"two"));
    assert!(matches!(mismatch, Err(PutError::Mismatch { .. })), "{mismatch:?}");
}

pub(super) async fn segments_are_read_in_parts_and_their_names_stay_inside(world: &dyn World) {
    let store = world.store();
    store.put_segment("2026-05-01/ab-1", Bytes::from_static(b"0123456789")).await.unwrap();
    for (offset, length, expected) in [(3, 4, "3456"), (8, 100, "89"), (10, 5, ""), (20, 5, ""), (2, 0, "")] {
        let read = store.read_segment("2026-05-01/ab-1", offset, length).await.unwrap();
        assert_eq!(read.unwrap(), expected, "{offset} {length}");
    }
    assert_eq!(store.read_segment("2026-05-01/none", 0, 1).await.unwrap(), None);
    for name in ["../x", "/etc/passwd", "a//b", "", "a/../b", "A"] {
        assert!(store.put_segment(name, Bytes::new()).await.is_err(), "{name}");
        assert!(store.read_segment(name, 0, 1).await.is_err(), "{name}");
    }
}

pub(super) async fn segments_go_by_whole_days(world: &dyn World) {
    let store = world.store();
    assert_eq!(store.segment_days().await.unwrap(), []);
    let names: Vec<String> = [100, 100, 101].map(|day| LogDay(day).segment()).into();
    for name in &names {
        store.put_segment(name, Bytes::from_static(b"log")).await.unwrap();
    }
    // Not a day's, and so nobody's to drop.
    store.put_segment("logs/other/a", Bytes::from_static(b"x")).await.unwrap();
    let mut days = store.segment_days().await.unwrap();
    days.sort_unstable();
    assert_eq!(days, [LogDay(100), LogDay(101)]);
    store.drop_segments(LogDay(100)).await.unwrap();
    store.drop_segments(LogDay(100)).await.unwrap();
    assert_eq!(store.segment_days().await.unwrap(), [LogDay(101)]);
    assert_eq!(store.read_segment(&names[0], 0, 3).await.unwrap(), None);
    assert_eq!(store.read_segment(&names[2], 0, 3).await.unwrap().unwrap(), "log");
    assert_eq!(world.names().len(), 2, "{:?}", world.names());
    store.remove_segment(&names[2]).await.unwrap();
    store.remove_segment(&names[2]).await.unwrap();
    assert_eq!(store.read_segment(&names[2], 0, 3).await.unwrap(), None);
    assert!(store.remove_segment("../x").await.is_err());
}
